//! `portcullis consent`.

use clap::Subcommand;
use portcullis_core::id::ConsentId;
use portcullis_store::Org;
use serde_json::{Value, json};

use super::{
    of_org::{OfOrg, Search, values},
    output::Failure,
    remote::RemoteGateway,
};
use crate::boot::OfflineNode;

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

impl Consents {
    pub(super) async fn run(self) -> Result<(), Failure> {
        match self {
            Self::List { search, of } => {
                let only = search.parameter();
                let records = of.named(
                    "principal_id",
                    async |gateway| gateway.list("/v1/consents", only.as_slice()).await,
                    async |node, org| Ok(values(node.shell.consents(org.id, search.text()).await?)),
                );
                let mut records = records.await?;
                records.iter_mut().for_each(name_client);
                let columns = [
                    "id", "principal_name", "client_name", "client_id", "endpoint", "scope",
                    "renewed_at",
                ];
                of.installation.output().table(&records, &columns)
            }
            Self::Withdraw { consent, of } => withdraw(consent, &of).await,
        }
    }
}

/// Adds the parts of the client as members of their own, which fit a table.
fn name_client(consent: &mut Value) {
    let [name, id] = ["/client/name", "/client/id"].map(|part| consent.pointer(part).cloned());
    if let Value::Object(members) = consent {
        let parts = [("client_name", name), ("client_id", id)];
        members.extend(parts.map(|(part, value)| (part.to_owned(), json!(value))));
    }
}

async fn withdraw(consent: ConsentId, of: &OfOrg) -> Result<(), Failure> {
    let remotely = async |gateway: &RemoteGateway| {
        let answer = gateway.delete(&format!("/v1/consents/{consent}")).await?;
        Ok(answer.get("tokens_revoked").cloned().unwrap_or_default())
    };
    let here = async |node: &OfflineNode, org: Org| {
        Ok(json!(node.shell.withdraw_consent(org.id, consent).await?))
    };
    let revoked: Value = of.act(remotely, here).await?;
    let text = format!("withdrew {consent}, and revoked {revoked} tokens");
    let record = json!({"id": consent, "withdrawn": true, "tokens_revoked": revoked});
    of.installation.output().record(&record, &text)
}
