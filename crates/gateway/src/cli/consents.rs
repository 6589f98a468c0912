//! `portcullis consent`.

use clap::Subcommand;
use portcullis_core::id::ConsentId;
use serde_json::json;

use super::{
    api::{Api, OfOrg, Search, Shape, name_person},
    output::Failure,
};

#[derive(Subcommand)]
pub(super) enum Consents {
    /// List what the people of an org let OAuth clients do
    List {
        #[command(flatten)]
        search: Search,
        #[command(flatten)]
        of: OfOrg,
    },
    /// Withdraw a consent: the tokens that came of it are revoked, everywhere within 5 seconds
    Withdraw {
        /// Its id: `con_…`
        consent: ConsentId,
        #[command(flatten)]
        of: OfOrg,
    },
}

const SHAPE: Shape = Shape {
    members: &[],
    columns: &[
        "id", "principal_name", "client_name", "client_id", "endpoint", "scope", "renewed_at",
    ],
    add: |members| {
        name_person(members);
        // The parts of the client as members of their own fit a table.
        for (part, name) in [("name", "client_name"), ("id", "client_id")] {
            let value = members.get("client").and_then(|client| client.get(part)).cloned();
            members.insert(name.to_owned(), json!(value));
        }
    },
};

impl Consents {
    pub(super) async fn run(self) -> Result<(), Failure> {
        match self {
            Self::List { search, of } => {
                of.list("/v1/consents", search.parameter().as_slice(), &SHAPE).await
            }
            Self::Withdraw { consent, of } => {
                let withdraw = async |api: &Api<'_>| {
                    let answer = api.delete(&format!("/v1/consents/{consent}")).await?;
                    let revoked = answer.get("tokens_revoked");
                    Ok(json!({"id": consent, "withdrawn": true, "tokens_revoked": revoked}))
                };
                let shown = of.show(withdraw, |it| {
                    let revoked = it.get("tokens_revoked").cloned().unwrap_or_default();
                    format!("withdrew {consent}, and revoked {revoked} tokens")
                });
                shown.await
            }
        }
    }
}
