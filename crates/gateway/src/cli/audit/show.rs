//! `portcullis audit show`.

use clap::Args;
use portcullis_core::id::EventId;

use crate::cli::{Failure, Installation};

#[derive(Args)]
pub(in crate::cli) struct Show {
    /// Its id: `evt_…`
    event: EventId,
    /// Id or name of the org; not needed where there is only one
    #[arg(long)]
    org: Option<String>,
    #[command(flatten)]
    installation: Installation,
}

impl Show {
    pub(super) async fn run(self) -> Result<(), Failure> {
        let Self { event, org, installation } = self;
        let org = org.as_deref();
        if let Some(gateway) = installation.gateway(org).await? {
            let found = gateway.get(&format!("/v1/audit/events/{event}")).await?;
            return installation.output().members(&found);
        }
        let config = installation.config()?;
        let office = installation.office().await?;
        let found = async {
            let org = office.shell.org_or_only(org).await?;
            let identity = office.log_identity(&config).await?;
            Ok::<_, Failure>(office.shell.log_event(&org, identity, event).await?)
        };
        let found = found.await;
        office.close().await;
        installation.output().members(&found?)
    }
}
