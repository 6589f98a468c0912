//! `portcullis audit show`.

use clap::Args;
use portcullis_core::id::EventId;

use crate::cli::{of_org::OfOrg, output::Failure};

#[derive(Args)]
pub(in crate::cli) struct Show {
    /// Its id: `evt_…`
    event: EventId,
    #[command(flatten)]
    of: OfOrg,
}

impl Show {
    pub(super) async fn run(self) -> Result<(), Failure> {
        let Self { event, of } = self;
        let found = of.act(
            async |gateway| gateway.get(&format!("/v1/audit/events/{event}")).await,
            async |node, org| {
                let identity = node.log_identity(&of.installation.config()?).await?;
                Ok(node.shell.log_event(&org, identity, event).await?)
            },
        );
        of.installation.output().members(&found.await?)
    }
}
