//! `portcullis session`.

use axum::http::Method;
use clap::Subcommand;
use portcullis_app::SessionView;
use portcullis_core::id::SessionId;
use serde_json::{Value, json};

use super::{Failure, Installation};

#[derive(Subcommand)]
pub(super) enum Sessions {
    /// List the browser sessions of an org that have not ended
    List {
        /// Only those of this person: id (`usr_…`) or name
        #[arg(long)]
        principal: Option<String>,
        /// Id or name of the org; not needed where there is only one
        #[arg(long)]
        org: Option<String>,
        #[command(flatten)]
        installation: Installation,
    },
    /// End a browser session; running nodes follow within 5 seconds
    End {
        /// Its id: `ses_…`
        session: SessionId,
        #[command(flatten)]
        installation: Installation,
    },
}

impl Sessions {
    pub(super) async fn run(self) -> Result<(), Failure> {
        match self {
            Self::List { principal, org, installation } => {
                list(principal.as_deref(), org.as_deref(), &installation).await
            }
            Self::End { session, installation } => end(session, &installation).await,
        }
    }
}

async fn list(
    principal: Option<&str>,
    org: Option<&str>,
    installation: &Installation,
) -> Result<(), Failure> {
    let records = match installation.gateway(org).await? {
        Some(gateway) => {
            let principal = match principal {
                Some(named) => Some(gateway.principal(named).await?.id.to_string()),
                None => None,
            };
            let only: Vec<_> = principal.iter().map(|id| ("principal", id.as_str())).collect();
            gateway.list("/v1/sessions", &only).await?
        }
        None => list_stored(principal, org, installation).await?,
    };
    let columns = ["id", "principal_id", "method", "created_at", "last_seen_at", "ends_at"];
    installation.output().table(&records, &columns)
}

async fn list_stored(
    principal: Option<&str>,
    org: Option<&str>,
    installation: &Installation,
) -> Result<Vec<Value>, Failure> {
    let office = installation.office().await?;
    let listed = async {
        let org = office.shell.org_or_only(org).await?.id;
        let named = org.to_string();
        let principal = match principal {
            Some(who) => Some(office.shell.principal_of(Some(&named), who).await?.id),
            None => None,
        };
        office.shell.sessions(org, principal).await
    };
    let listed = listed.await;
    office.close().await;
    Ok(listed?.into_iter().map(|session| json!(SessionView::from(session))).collect())
}

async fn end(session: SessionId, installation: &Installation) -> Result<(), Failure> {
    if let Some(gateway) = installation.gateway(None).await? {
        gateway.send(Method::DELETE, &format!("/v1/sessions/{session}"), None).await?;
    } else {
        let office = installation.office().await?;
        let ended = office.shell.end_session(session).await;
        office.close().await;
        ended?;
    }
    let text = format!("ended {session}: its browser is signed out");
    installation.output().record(&json!({ "id": session, "ended": true }), &text)
}
