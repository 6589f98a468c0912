//! `portcullis session`.

use clap::Subcommand;
use portcullis_core::id::SessionId;
use serde_json::json;

use super::{
    api::{Api, OfOrg, Orgs, Search, Shape, name_person},
    installation::Installation,
    output::Failure,
};

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

const SHAPE: Shape = Shape {
    members: &[],
    columns: &["id", "principal_name", "method", "created_at", "last_seen_at", "ends_at"],
    add: name_person,
};

impl Sessions {
    pub(super) async fn run(self) -> Result<(), Failure> {
        match self {
            Self::List { principal, search, of } => {
                let list = async |api: &Api<'_>| {
                    let principal = match principal {
                        Some(named) => Some(api.principal(&named).await?.to_string()),
                        None => None,
                    };
                    let principal = principal.iter().map(|id| ("principal", id.as_str()));
                    let only: Vec<_> = principal.chain(search.parameter()).collect();
                    api.records(api.list("/v1/sessions", &only).await?, &SHAPE).await
                };
                let sessions = of.ask(list).await?;
                of.installation.output().table(&sessions, SHAPE.columns)
            }
            Self::End { session, installation } => {
                let path = format!("/v1/sessions/{session}");
                let end = async |api: &Api<'_>| api.delete(&path).await;
                installation.ask(Orgs::Any(None), end).await?;
                let text = format!("ended {session}: its browser is signed out");
                installation.output().record(&json!({ "id": session, "ended": true }), &text)
            }
        }
    }
}
