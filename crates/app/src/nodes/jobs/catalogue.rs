//! Keeps the catalogue true: asks each provider for its tools at start, when it says that they
//! changed, when its list is as old as it may be, and again and again while it cannot be reached.
//! Calls have it asked more often ([`crate::catalogue::freshness`]).

use std::{sync::Arc, time::Duration};

use portcullis_core::capability::Capability;
use portcullis_store::StoreError;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::{catalogue::provider::Provider, nodes::Nodes};

const FIRST_RETRY: Duration = Duration::from_secs(1);
const LONGEST_RETRY: Duration = Duration::from_mins(1);

pub(super) fn start(nodes: &Arc<Nodes>, stop: &CancellationToken) {
    for provider in nodes.catalogue.providers.values().filter(|it| it.declared.auth.needs_nobody())
    {
        let job = keep(Arc::clone(nodes), Arc::clone(provider), stop.clone());
        nodes.base.tasks.spawn(job);
    }
}

impl Nodes {
    /// Takes the tools of programs from what was accepted of them, without starting these. Gives the slugs of
    /// those of which something is known. Programs that are `missing` are left alone.
    pub async fn recall_programs(
        self: &Arc<Self>,
        missing: &[&str],
    ) -> Result<Vec<String>, StoreError> {
        let mut recalled = Vec::new();
        let all =
            self.catalogue.providers.iter().filter(|(slug, _)| !missing.contains(&slug.as_str()));
        for (slug, provider) in all.filter(|(_, it)| it.declared.auth.needs_nobody()) {
            if self.tools.recall(provider).await? {
                recalled.push(slug.clone());
            }
        }
        Ok(recalled)
    }

    /// Asks every provider but those that were `recalled` for its tools once, all at the same time, for at most
    /// `patience`. Providers that do not answer are asked again by the catalogue job.
    pub async fn connect_providers(self: &Arc<Self>, patience: Duration, recalled: &[String]) {
        let all = self.catalogue.providers.iter().filter(|(slug, _)| !recalled.contains(slug));
        let all = all.map(|(_, it)| it).filter(|it| it.declared.auth.needs_nobody());
        let all = all.map(|provider| self.tools.refresh(provider));
        let all = futures_util::future::join_all(all);
        if tokio::time::timeout(patience, all).await.is_err() {
            tracing::warn!("some providers have not answered yet; retrying");
        }
    }
}

/// Reason for which a provider tells no tools.
#[derive(Debug, thiserror::Error)]
pub enum UntoldTools {
    #[error("no provider `{0}` is declared in the configuration")]
    Undeclared(String),
    #[error(
        "people connect `{0}`, so its tools are known to connections only: call them with a token"
    )]
    OfConnections(String),
    #[error("`{slug}` cannot be used: {why}")]
    Unusable { slug: String, why: String },
}

impl Nodes {
    /// Asks one provider for its tools, for at most `patience`.
    pub async fn tools_of(
        self: &Arc<Self>,
        slug: &str,
        patience: Duration,
    ) -> Result<Vec<Arc<Capability>>, UntoldTools> {
        let provider = self.catalogue.providers.get(slug);
        let provider = provider.ok_or_else(|| UntoldTools::Undeclared(slug.to_owned()))?;
        if !provider.declared.auth.needs_nobody() {
            return Err(UntoldTools::OfConnections(slug.to_owned()));
        }
        let asked = tokio::time::timeout(patience, self.tools.refresh(provider)).await;
        let state = provider.state();
        match (&state.tools, asked) {
            (Some(tools), Ok(Ok(()))) => Ok(tools.clone()),
            (_, asked) => {
                let late =
                    asked.is_err().then(|| format!("no answer within {} s", patience.as_secs()));
                let why = late.or_else(|| state.last_error.clone()).unwrap_or_default();
                Err(UntoldTools::Unusable { slug: slug.to_owned(), why })
            }
        }
    }
}

async fn keep(nodes: Arc<Nodes>, provider: Arc<Provider>, stop: CancellationToken) {
    let mut news = provider.server().tools_changed();
    let mut retry = FIRST_RETRY;
    let mut budget = Budget::new();
    loop {
        let known = provider.state().last_error.is_none() && provider.state().tools.is_some();
        let wait = if known { provider.freshness.stale_in(nodes.base.clock.now()) } else { retry };
        tokio::select! {
            () = stop.cancelled() => break,
            () = tokio::time::sleep(wait) => {}
            () = provider.look_again.notified() => {}
            changed = news.changed() => {
                if changed.is_err() { break }
                // One that announces without end is not asked without end.
                tokio::select! {
                    () = stop.cancelled() => break,
                    () = budget.spend() => {}
                    () = provider.look_again.notified() => {}
                }
            }
        }
        // Before it is asked: what it announces while it answers is not in the answer.
        news.mark_unchanged();
        retry = match nodes.tools.refresh(&provider).await {
            Ok(()) => FIRST_RETRY,
            Err(_) => LONGEST_RETRY.min(retry * 2),
        };
    }
    provider.server().shutdown().await;
}

/// Refreshes that a provider may cause by announcing changes: a burst of a few, then one in
/// [`REFILL`].
struct Budget {
    left: u32,
    since: Instant,
}

const BURST: u32 = 5;
const REFILL: Duration = Duration::from_secs(20);

impl Budget {
    fn new() -> Self {
        Self { left: BURST, since: Instant::now() }
    }

    /// Returns when there is one left, and takes it.
    async fn spend(&mut self) {
        loop {
            while self.left < BURST && self.since.elapsed() >= REFILL {
                self.left += 1;
                self.since += REFILL;
            }
            if self.left > 0 {
                break;
            }
            tokio::time::sleep_until(self.since + REFILL).await;
        }
        if self.left == BURST {
            self.since = Instant::now();
        }
        self.left -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn announcements_are_heeded_at_once_a_few_times_and_then_now_and_then() {
        let mut budget = Budget::new();
        let start = Instant::now();

        for _ in 0..BURST {
            budget.spend().await;
        }
        assert_eq!(start.elapsed(), Duration::ZERO);
        budget.spend().await;
        assert_eq!(start.elapsed(), REFILL);
        budget.spend().await;
        assert_eq!(start.elapsed(), REFILL * 2);
        tokio::time::sleep(REFILL * 100).await;
        let rested = Instant::now();
        for _ in 0..BURST {
            budget.spend().await;
        }
        assert_eq!(rested.elapsed(), Duration::ZERO);
    }
}
