//! `portcullis consent`.

use axum::http::Method;
use clap::Subcommand;
use portcullis_core::id::ConsentId;
use serde_json::{Value, json};

use super::{Failure, Installation};

#[derive(Subcommand)]
pub(super) enum Consents {
    /// List what the people of an org let OAuth clients do
    List {
        /// Id or name of the org; not needed where there is only one
        #[arg(long)]
        org: Option<String>,
        #[command(flatten)]
        installation: Installation,
    },
    /// Withdraw a consent: the tokens that came of it are revoked, everywhere within 5 seconds
    Withdraw {
        /// Its id: `con_…`
        consent: ConsentId,
        /// Id or name of the org; not needed where there is only one
        #[arg(long)]
        org: Option<String>,
        #[command(flatten)]
        installation: Installation,
    },
}

impl Consents {
    pub(super) async fn run(self) -> Result<(), Failure> {
        match self {
            Self::List { org, installation } => list(org.as_deref(), &installation).await,
            Self::Withdraw { consent, org, installation } => {
                withdraw(consent, org.as_deref(), &installation).await
            }
        }
    }
}

async fn list(org: Option<&str>, installation: &Installation) -> Result<(), Failure> {
    let records: Vec<Value> = if let Some(gateway) = installation.gateway(org).await? {
        gateway.list("/v1/consents", &[]).await?
    } else {
        let office = installation.office().await?;
        let listed = async {
            let org = office.shell.org_or_only(org).await?.id;
            office.shell.consents(org).await
        };
        let listed = listed.await;
        office.close().await;
        listed?.iter().map(|consent| json!(consent)).collect()
    };
    let columns = ["id", "principal_id", "client", "endpoint", "scope", "renewed_at"];
    installation.output().table(&records, &columns)
}

async fn withdraw(
    consent: ConsentId,
    org: Option<&str>,
    installation: &Installation,
) -> Result<(), Failure> {
    let revoked = if let Some(gateway) = installation.gateway(org).await? {
        let path = format!("/v1/consents/{consent}");
        let told = gateway.send(Method::DELETE, &path, None).await?;
        told.get("tokens_revoked").cloned().unwrap_or_default()
    } else {
        let office = installation.office().await?;
        let withdrawn = async {
            let org = office.shell.org_or_only(org).await?.id;
            office.shell.withdraw_consent(org, consent).await
        };
        let withdrawn = withdrawn.await;
        office.close().await;
        json!(withdrawn?)
    };
    let text = format!("withdrew {consent}, and revoked {revoked} tokens");
    let record = json!({"id": consent, "withdrawn": true, "tokens_revoked": revoked});
    installation.output().record(&record, &text)
}
