//! `portcullis quickstart`: a real gateway from nothing, and three calls that show what it does.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use clap::Args;
use portcullis_app::Fallback;
use portcullis_core::{
    id::PrincipalId,
    principal::{Scope, ScopeSet},
    secret::Secret,
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::{
    api::{Api, Orgs, ask_operator, text},
    login_link,
    output::{Failure, Output},
    quickstart_tour::{self, Ways},
    serve,
};
use crate::{
    boot::{self, OfflineNode},
    config::Config,
    serve as server, telemetry,
};

const STARTER_POLICIES: &str = include_str!("../../assets/starter.cedar");
const ORG: &str = "quickstart";
const AGENT: &str = "quickstart-agent";
const PERSON: &str = "quickstart-user";

#[derive(Args)]
pub(super) struct Quickstart {
    /// The port; 0 takes any free one
    #[arg(long, default_value_t = 8080)]
    port: u16,
    /// Folder of key, database, policies and configuration; used again on the next run
    #[arg(long, default_value = "portcullis-data", value_name = "FOLDER")]
    data_dir: PathBuf,
}

impl Quickstart {
    pub(super) async fn run(self) -> Result<(), Failure> {
        let out = Output::new(false);
        let again = self.data_dir.join("portcullis.toml").exists();
        let file = self.prepare()?;
        let mut config = Config::load(Some(&file))?;
        config.server.listen = format!("127.0.0.1:{}", self.port);
        telemetry::log(&config.log)?;
        let bound = server::Bound::bind(&config.server)?;
        drop(bound);
        let token = agent_token(&config).await?;
        let (node, bound) = serve::start(&config, Fallback::Refuse).await?;
        let url = bound.url();
        let login = person_link(&config, &url).await?;
        let kept = if again { "using again" } else { "made" };
        out.line(&format!("Portcullis listens on {url}\n{kept} {}", self.data_dir.display()))?;
        let stop = serve::stop_signal()?;
        let tour = quickstart_tour::show(
            out,
            Ways { url: &url, token: &token, login: login.as_deref() },
            &self.data_dir,
        );
        let serving = server::run(node, bound, &config, stop.clone());
        with_tour(tour, serving, &stop).await
    }

    /// Makes what is not there yet: folder, key, policies, configuration.
    fn prepare(&self) -> Result<PathBuf, Failure> {
        let folder = &self.data_dir;
        let failed = |error: io::Error| format!("`{}`: {error}", folder.display());
        boot::make_private(folder).map_err(failed)?;
        fs::create_dir_all(folder.join("policies")).map_err(failed)?;
        if !folder.join("key").exists() {
            boot::new_key(&folder.join("key")).map_err(failed)?;
        }
        write_new(&folder.join("policies/starter.cedar"), STARTER_POLICIES).map_err(failed)?;
        let file = folder.join("portcullis.toml");
        write_new(&file, &configuration()?).map_err(failed)?;
        Ok(file)
    }
}

/// Serves while the tour is shown, and after it until `stop`.
async fn with_tour(
    tour: impl Future<Output = Result<(), Failure>>,
    serving: impl Future<Output = ()>,
    stop: &CancellationToken,
) -> Result<(), Failure> {
    tokio::pin!(serving);
    tokio::select! {
        () = &mut serving => return Ok(()),
        shown = tour => if let Err(error) = shown {
            stop.cancel();
            serving.await;
            return Err(error);
        },
    }
    serving.await;
    Ok(())
}

fn write_new(path: &Path, text: &str) -> io::Result<()> {
    if path.exists() { Ok(()) } else { fs::write(path, text) }
}

/// The configuration of the quickstart: the sample server as a child of this very program.
fn configuration() -> Result<String, Failure> {
    let program = std::env::current_exe()?;
    let command =
        toml::Value::from(vec![program.to_string_lossy().into_owned(), "sample-mcp".to_owned()]);
    Ok(format!(
        "# Made by `portcullis quickstart`. Serve it with `portcullis serve --config` and this file.\n\
         data_dir = \".\"\n\n\
         [log]\nlevel = \"warn\"\n\n[login]\nlinks = true\n\n\
         [[providers]]\nslug = \"sample\"\nname = \"Sample server\"\ncommand = {command}\n\
         expose = [\"tools\", \"prompts\", \"resources\", \"skills\", \"tasks\"]\n"
    ))
}

/// An address that logs the quickstart's user in once; made with its user. `None` if the
/// configuration of the folder has no links.
async fn person_link(config: &Config, url: &str) -> Result<Option<String>, Failure> {
    if !config.login.links {
        return Ok(None);
    }
    let office = OfflineNode::open(config).await?;
    let made = async {
        let role = json!({ "name": PERSON, "kind": "user", "role": "admin" });
        ensure(config, &office, PERSON, role).await?;
        let link = async |api: &Api<'_>| login_link::link(api, PERSON, url).await;
        ask_operator(config, &office, Orgs::One(Some(ORG)), link).await
    };
    let made = made.await;
    office.close().await;
    Ok(Some(made?.0))
}

/// Makes the principal of this name if it is not there, and gives its id.
async fn ensure(
    config: &Config,
    office: &OfflineNode,
    name: &str,
    new: Value,
) -> Result<PrincipalId, Failure> {
    let find = async |api: &Api<'_>| {
        if let Ok(id) = api.principal(name).await {
            return Ok(id);
        }
        api.post("/v1/principals", new).await?;
        api.principal(name).await
    };
    ask_operator(config, office, Orgs::One(Some(ORG)), find).await
}

/// A new token for the quickstart's service account; org and account are made on the first run.
async fn agent_token(config: &Config) -> Result<Secret, Failure> {
    let office = OfflineNode::open(config).await?;
    let made = mint(config, &office).await;
    office.close().await;
    made
}

async fn mint(config: &Config, office: &OfflineNode) -> Result<Secret, Failure> {
    if office.operator.org(ORG).await.is_err() {
        let new = json!({ "name": ORG, "plan": "pro" });
        let create = async |api: &Api<'_>| api.post("/operator/orgs", new).await;
        ask_operator(config, office, Orgs::Installation, create).await?;
    }
    let scopes: ScopeSet = [
        Scope::McpsRead,
        Scope::McpsInvoke,
        Scope::ProvidersRead,
        Scope::PoliciesRead,
        Scope::AuditRead,
    ]
    .into_iter()
    .collect();
    let account = json!({ "name": AGENT, "kind": "service", "scopes": scopes });
    let agent = ensure(config, office, AGENT, account).await?;
    let asked = json!({
        "principal_id": agent, "expires_in": 24 * 60 * 60, "label": "quickstart",
    });
    let create = async |api: &Api<'_>| api.post("/v1/tokens", asked).await;
    let token = ask_operator(config, office, Orgs::One(Some(ORG)), create).await?;
    Ok(Secret::new(text(&token, "token").to_owned()))
}
