//! `portcullis serve`.

use std::process;

use clap::Args;
use portcullis_app::Fallback;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::{installation::Installation, output::Failure};
use crate::{
    boot::{self, Mode, Node},
    config::{self, Config},
    serve::{self, Bound},
    telemetry, watch,
};

#[derive(Args)]
pub(super) struct Serve {
    #[command(flatten)]
    installation: Installation,
    /// The port, instead of the one in `server.listen`; 0 takes any free one
    #[arg(long)]
    port: Option<u16>,
    /// Start with the policies that were last in force if those of the folder do not load
    #[arg(long)]
    last_good: bool,
}

impl Serve {
    pub(super) async fn run(self) -> Result<(), Failure> {
        let mut config = self.installation.own_config()?.of_installation()?;
        if let Some(port) = self.port {
            let mut address = config::address(&config.server.listen, "server.listen")?;
            address.set_port(port);
            config.server.listen = address.to_string();
        }
        telemetry::log(&config.log)?;
        let fallback = if self.last_good { Fallback::LastGood } else { Fallback::Refuse };
        let stop = stop_signal()?;
        let Some(started) = stop.run_until_cancelled(start(&config, fallback)).await else {
            return Ok(());
        };
        let (node, bound) = started?;
        tracing::info!("listening on {}", bound.url());
        serve::run(node, bound, &config, stop).await;
        Ok(())
    }
}

/// Everything up to the first connection: metrics, store, policies, crash recovery, providers,
/// port. Whatever is wrong is told before the port is bound.
pub(super) async fn start(config: &Config, fallback: Fallback) -> Result<(Node, Bound), Failure> {
    if let Some(listen) = &config.server.metrics_listen {
        let handle = telemetry::metrics()?;
        boot::detach(telemetry::serve_metrics(listen, handle)?);
    }
    boot::claim(config)?;
    // Before they are loaded: what changes meanwhile is loaded again. What cannot be read is told below.
    let sources = config.dlp.sources().unwrap_or_default();
    let node = Node::assemble(config, fallback, Mode::Serving).await?;
    let durability = node.store.durability().await?;
    if durability.row_security == Some(false) {
        tracing::warn!("{}", boot::UNWALLED);
    }
    if !durability.whole_pages {
        tracing::warn!("{}", boot::TORN_PAGES);
    }
    let closed = node.app.nodes.recover().await?;
    if closed > 0 {
        tracing::warn!(closed, "calls that a crash cut off are recorded as unknown");
    }
    let failed = node.app.audit.recover_exports().await?;
    if failed > 0 {
        tracing::warn!(failed, "exports that a restart cut off have failed");
    }
    let bound = Bound::bind(&config.server)?;
    node.app.providers.found_at(config.server.public_url.as_deref().unwrap_or(&bound.url()));
    let patience = config.server.patience();
    node.app.nodes.connect_providers(patience, &[]).await;
    let (policies, loaded) = node.app.policies.policy_set();
    for error in &loaded.errors {
        tracing::error!(%error, "the policy folder cannot be loaded; the last good set is in force");
    }
    if !loaded.errors.is_empty() {
        tracing::warn!(
            version = policies.version(),
            "this node decides by the policies that were last in force, until those of the folder load"
        );
    }
    if policies.summary().active == 0 {
        let folder = config.policy_folder();
        tracing::warn!("no active policy in {}: every call is denied", folder.display());
    }
    if let Some(told) = config.mcp.told_of_many(node.app.providers.count_tools()) {
        tracing::info!("{told}");
    }
    watch::follow(config, &node, &bound, sources)?;
    Ok((node, bound))
}

/// Cancelled by SIGTERM or Ctrl-C; a second one ends the process at once.
#[expect(clippy::disallowed_methods, reason = "signals are awaited as long as the process lives")]
pub(super) fn stop_signal() -> Result<CancellationToken, Failure> {
    let stop = CancellationToken::new();
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let stopped = stop.clone();
    tokio::spawn(async move {
        loop {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            if stopped.is_cancelled() {
                process::exit(130);
            }
            stopped.cancel();
        }
    });
    Ok(stop)
}
