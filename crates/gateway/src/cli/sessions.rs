//! `portcullis session`.

use clap::Subcommand;
use portcullis_app::SessionView;
use portcullis_core::id::SessionId;
use portcullis_store::Org;
use serde_json::json;

use super::{
    installation::Installation,
    of_org::{OfOrg, Search, values},
    output::Failure,
    remote::RemoteGateway,
};
use crate::boot::OfflineNode;

#[derive(Subcommand)]
pub(super) enum Sessions {
    /// List the browser sessions of an org that have not ended
    List {
        /// Only those of this person: id (`usr_…`) or name
        #[arg(long)]
        principal: Option<String>,
        #[command(flatten)]
        search: Search,
        #[command(flatten)]
        of: OfOrg,
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
            Self::List { principal, search, of } => list(principal.as_deref(), &search, &of).await,
            Self::End { session, installation } => end(session, &installation).await,
        }
    }
}

async fn list(principal: Option<&str>, search: &Search, of: &OfOrg) -> Result<(), Failure> {
    let remotely = async |gateway: &RemoteGateway| {
        let principal = match principal {
            Some(named) => Some(gateway.principal(named).await?.id.to_string()),
            None => None,
        };
        let principal = principal.iter().map(|id| ("principal", id.as_str()));
        let only: Vec<_> = principal.chain(search.parameter()).collect();
        gateway.list("/v1/sessions", &only).await
    };
    let here = async |node: &OfflineNode, org: Org| {
        let named = org.id.to_string();
        let principal = match principal {
            Some(who) => Some(node.shell.principal_of(Some(&named), who).await?.id),
            None => None,
        };
        let sessions = node.shell.sessions(org.id, principal, search.text()).await?;
        Ok(values(sessions.into_iter().map(SessionView::from)))
    };
    let columns = ["id", "principal_name", "method", "created_at", "last_seen_at", "ends_at"];
    let records = of.named("principal_id", remotely, here).await?;
    of.installation.output().table(&records, &columns)
}

async fn end(session: SessionId, installation: &Installation) -> Result<(), Failure> {
    if let Some(gateway) = installation.gateway(None).await? {
        gateway.delete(&format!("/v1/sessions/{session}")).await?;
    } else {
        let end = async |node: &OfflineNode| Ok(node.shell.end_session(session).await?);
        installation.with_offline_node(end).await?;
    }
    let text = format!("ended {session}: its browser is signed out");
    installation.output().record(&json!({ "id": session, "ended": true }), &text)
}
