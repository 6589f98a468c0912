//! `portcullis login-link`: on a node only, for a link logs in whom it names, and no token makes one.

use clap::Args;
use portcullis_app::{NewLoginLink, Operator};
use portcullis_store::Principal;
use serde_json::json;

use super::{
    client_config::origin,
    installation::{Installation, with_node_of},
    output::Failure,
};
use crate::boot::OfflineNode;

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
        let issue = async |node: &OfflineNode| {
            let found = node.operator.principal_of(self.org.as_deref(), &self.principal).await?;
            Ok((link(&node.operator, &found, &url).await?, found))
        };
        let ((address, made), found) = with_node_of(&config, issue).await?;
        let record = json!({
            "url": address, "principal_id": found.id, "org_id": found.org_id,
            "expires_at": made.expires_at,
        });
        let text = format!(
            "{address}\n\nlogs one browser in as {} ({}), once, until {}",
            found.name, found.id, made.expires_at
        );
        self.installation.output().record(&record, &text)
    }
}

/// Makes a link for the person, and gives its address at the gateway of this `url`.
pub(super) async fn link(
    operator: &Operator,
    person: &Principal,
    url: &str,
) -> Result<(String, NewLoginLink), Failure> {
    let made = operator.login_link(person).await?;
    Ok((format!("{url}/login/link?code={}", made.secret.expose()), made))
}
