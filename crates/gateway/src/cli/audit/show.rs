//! `portcullis audit show`.

use clap::Args;
use portcullis_core::id::EventId;

use crate::cli::{
    api::{Api, OfOrg, Orgs},
    output::Failure,
};

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
        let path = format!("/v1/audit/events/{event}");
        let find = async |api: &Api<'_>| api.get(&path).await;
        let found = of.installation.ask(Orgs::Log(of.org.as_deref()), find).await?;
        of.installation.output().members(&found)
    }
}
