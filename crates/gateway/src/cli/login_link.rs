//! `portcullis login-link`: on a node only, for a link logs in whom it names, and no token makes one.

use clap::Args;
use serde_json::{Value, json};

use super::{
    api::{Api, Orgs, operate_on, text},
    client_config::origin,
    installation::Installation,
    output::{Failure, visible},
};

/// Print an address that logs a person in with one browser, once, within five minutes
///
/// For people without an identity provider, and for an operator who locked everybody out. Needs
/// `login.links = true` in the configuration of the node.
#[derive(Args)]
pub(super) struct LoginLink {
    /// The person: id (`usr_…`) or name of a user
    #[arg(long)]
    principal: String,
    /// Id or name of the org, where several have a principal of that name
    #[arg(long)]
    org: Option<String>,
    #[command(flatten)]
    installation: Installation,
}

impl LoginLink {
    pub(super) async fn run(self) -> Result<(), Failure> {
        let config = self.installation.own_config()?;
        if !config.login.links {
            return Err(
                "links log nobody in: set `links = true` in `[login]` of the configuration, \
                        and restart the node"
                    .into(),
            );
        }
        let url = match &self.installation.remote.url {
            Some(url) => url.trim_end_matches('/').to_owned(),
            None => origin(&config.server)?,
        };
        let issue = async |api: &Api<'_>| link(api, &self.principal, &url).await;
        let (address, made) = operate_on(&config, Orgs::Any(self.org.as_deref()), issue).await?;
        let [id, name, until] =
            ["principal_id", "principal_name", "expires_at"].map(|member| text(&made, member));
        let record = json!({
            "url": address, "principal_id": id, "org_id": text(&made, "org_id"), "expires_at": until,
        });
        let name = visible(name);
        let told =
            format!("{address}\n\nlogs one browser in as {name} ({id}), once, until {until}");
        self.installation.output().record(&record, &told)
    }
}

/// Makes a link for the person who is named. Gives its address at the gateway of this `url`, and what else is known of
/// it.
pub(super) async fn link(
    api: &Api<'_>,
    named: &str,
    url: &str,
) -> Result<(String, Value), Failure> {
    let principal = api.principal(named).await?;
    let made = api.post("/operator/login-links", json!({ "principal_id": principal })).await?;
    Ok((format!("{url}/login/link?code={}", text(&made, "code")), made))
}
