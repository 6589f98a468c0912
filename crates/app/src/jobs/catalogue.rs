//! Keeps the catalogue true: asks each provider for its tools at start, when it says that they
//! changed, every few minutes, and again and again while it cannot be reached.

use std::{sync::Arc, time::Duration};

use tokio_util::sync::CancellationToken;

use crate::{App, providers::Provider};

/// How long a list of tools is believed.
const TTL: Duration = Duration::from_mins(5);
const FIRST_RETRY: Duration = Duration::from_secs(1);
const LONGEST_RETRY: Duration = Duration::from_mins(1);

pub(super) fn start(app: &Arc<App>, stop: &CancellationToken) {
    for provider in app.providers.values() {
        let job = keep(Arc::clone(app), Arc::clone(provider), stop.clone());
        app.tasks.spawn(job);
    }
}

impl App {
    /// Asks every provider for its tools once, all at the same time, for at most `patience`.
    /// Those that do not answer are asked again by the catalogue job.
    pub async fn connect_providers(self: &Arc<Self>, patience: Duration) {
        let all = self.providers.values().map(|provider| self.refresh(provider));
        let all = futures_util::future::join_all(all);
        if tokio::time::timeout(patience, all).await.is_err() {
            tracing::warn!("some providers have not answered yet; they are asked again");
        }
    }
}

async fn keep(app: Arc<App>, provider: Arc<Provider>, stop: CancellationToken) {
    let mut news = provider.server().tools_changed();
    news.mark_unchanged();
    let mut retry = FIRST_RETRY;
    loop {
        let known = provider.state().last_error.is_none() && provider.state().tools.is_some();
        let wait = if known { TTL } else { retry };
        tokio::select! {
            () = stop.cancelled() => break,
            () = tokio::time::sleep(wait) => {}
            changed = news.changed() => if changed.is_err() { break },
        }
        retry = match app.refresh(&provider).await {
            Ok(()) => FIRST_RETRY,
            Err(_) => LONGEST_RETRY.min(retry * 2),
        };
        news.mark_unchanged();
    }
    provider.server().shutdown().await;
}
