//! `portcullis ready`.

use clap::Args;
use portcullis_upstream::probe;
use serde_json::json;

use super::{installation::Installation, output::Failure};
use crate::config;

#[derive(Args)]
pub(super) struct Ready {
    #[command(flatten)]
    installation: Installation,
    /// Ask only whether the process lives, not whether it can govern calls
    #[arg(long)]
    live: bool,
}

impl Ready {
    /// Asks the node where its configuration says that it listens: for probes, if there is such a
    /// listener.
    pub(super) async fn run(self) -> Result<(), Failure> {
        let config = self.installation.own_config()?;
        let server = &config.server;
        let (address, tls) = match &server.health_listen {
            Some(health) => (config::address(health, "server.health_listen")?, false),
            None => (config::address(&server.listen, "server.listen")?, server.tls.is_some()),
        };
        let (path, said) = if self.live { ("/healthz", "alive") } else { ("/readyz", "ready") };
        let status = probe::status_of(address, tls, path).await?;
        if status != 200 {
            return Err(format!("the node at {address} is not {said}: status {status}").into());
        }
        let shown = json!({ said: true });
        self.installation.output().record(&shown, &format!("the node is {said}"))
    }
}
