//! Feeding one sink: which logs it has not everything of, a batch of each in turn, and patience
//! with a side that does not take them.

use std::time::Duration;

use portcullis_core::audit::Shown;
use portcullis_store::{Behind, EventFilter, EventOrder, EventRecord, StoreError, Visibility};
use serde::Deserialize;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{Copy, OpenOutlet, SinkError, SinkSettings};
use crate::{
    audit::{
        Audit,
        exports::{lines::sealed, pace::Pace},
    },
    telemetry::counters,
};

/// Events of a batch at most.
const BATCH: u32 = 200;
/// Time between two looks for new events.
const LOOK: Duration = Duration::from_millis(500);
const LOOK_AT_ALL: Duration = Duration::from_secs(5);
/// Time between two reports of a sink's lag.
const TELL: Duration = Duration::from_secs(1);
/// Time between two renewals of this node's lease on a sink, and of other nodes' attempts to take it.
const RENEW: Duration = Duration::from_secs(5);
const LEASE: i64 = 30;
/// The pause after a failure, and what it grows to.
const PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// Time between two warnings about a sink that stays dead.
const REMIND: Duration = Duration::from_mins(5);

/// Feeds the sink until `stop`.
pub(super) async fn run(audit: &Audit, settings: SinkSettings, stop: &CancellationToken) {
    let mut feed = Feed::new(audit, settings);
    while let Some(next) = stop.run_until_cancelled(feed.round()).await {
        if stop.run_until_cancelled(tokio::time::sleep(next)).await.is_none() {
            break;
        }
    }
    // Another node need not wait for the lease to run out.
    let released = audit.base.store.release_sink(&feed.settings.name, &audit.base.node).await;
    if let Err(error) = released {
        tracing::warn!(sink = feed.settings.name, %error, "a sink cannot be handed over");
    }
}

/// Says how far behind the sink is, whatever becomes of its batches, until `stop`.
pub(super) async fn tell_lag(audit: &Audit, name: &str, stop: &CancellationToken) {
    loop {
        if let Ok(behind) = audit.base.store.behind(name).await {
            let events = behind.iter().map(|log| log.size - log.next).sum::<i64>();
            let oldest = behind.iter().filter_map(|log| log.since).min();
            let micros = oldest.map_or(0, |since| audit.base.now().as_micros() - since.as_micros());
            counters::sink_lag(name, events, micros.max(0));
        }
        if stop.run_until_cancelled(tokio::time::sleep(TELL)).await.is_none() {
            return;
        }
    }
}

/// Health of the receiver.
enum Health {
    Well,
    Failing { pause: Duration, told: Instant },
}

struct Feed<'a> {
    audit: &'a Audit,
    settings: SinkSettings,
    way: OpenOutlet,
    health: Health,
    pace: Pace,
    leased: Option<Instant>,
    /// The last sealed position when the sink had everything, and when that was.
    idle: Option<(i64, Instant)>,
    batch: u32,
}

impl<'a> Feed<'a> {
    fn new(audit: &'a Audit, settings: SinkSettings) -> Self {
        let way = OpenOutlet::of(&settings.outlet);
        let pace = Pace::new(audit.writer.progress().jobs);
        Self {
            audit,
            settings,
            way,
            health: Health::Well,
            pace,
            leased: None,
            idle: None,
            batch: BATCH,
        }
    }

    /// Hands over a batch of each log that the sink has not everything of. Gives how long to wait
    /// before the next round.
    async fn round(&mut self) -> Duration {
        match self.forward().await {
            Ok(true) => {
                self.recovered();
                self.pace.rest(self.audit.writer.progress().jobs).await;
                Duration::ZERO
            }
            Ok(false) => LOOK,
            Err(error) => self.failed(&error),
        }
    }

    async fn forward(&mut self) -> Result<bool, SinkError> {
        if !self.is_ours().await? {
            return Ok(false);
        }
        // Looking at every log costs with their number: mostly it is enough to see that nothing
        // was sealed anywhere.
        let sealed = self.audit.base.store.last_sealed().await?;
        if self.idle.is_some_and(|(last, at)| last == sealed && at.elapsed() < LOOK_AT_ALL) {
            return Ok(false);
        }
        let behind = self.audit.base.store.behind(&self.settings.name).await?;
        for log in &behind {
            self.forward_log(log).await?;
        }
        self.idle = behind.is_empty().then(|| (sealed, Instant::now()));
        Ok(!behind.is_empty())
    }

    /// True if this node is the one that feeds the sink.
    async fn is_ours(&mut self) -> Result<bool, StoreError> {
        if self.leased.is_some_and(|since| since.elapsed() < RENEW) {
            return Ok(true);
        }
        let now = self.audit.base.now();
        let audit = self.audit;
        let until = now.plus_seconds(LEASE);
        let ours =
            audit.base.store.lease_sink(&self.settings.name, &audit.base.node, now, until).await?;
        self.leased = ours.then(Instant::now);
        Ok(ours)
    }

    async fn forward_log(&mut self, log: &Behind) -> Result<(), SinkError> {
        let audit = self.audit;
        let name = &self.settings.name;
        let all = Visibility::All;
        let order = EventOrder::Ascending;
        let everything = EventFilter::default();
        let after = Some(log.next - 1);
        let page = audit
            .base
            .store
            .list_events(log.org_id, all, &everything, order, after, self.batch)
            .await?;
        let last = page.events.last().and_then(|event| event.seal).map(|seal| seal.sequence);
        let copies = self.copies(log, &page.events)?;
        if !copies.is_empty() {
            let unusable = self.way.deliver(&audit.base.node, &copies).await?;
            if unusable > 0 {
                tracing::error!(sink = name, unusable, "a receiver took events for unusable");
            }
            counters::sink_delivered(name, copies.len());
        }
        // What is pruned already is passed over: it no longer exists.
        let next = last.or(page.reached).map_or(log.size, |last| last + 1);
        // A crash before this line hands the same events over again.
        Ok(audit.base.store.advance_sink(name, log.org_id, next).await?)
    }

    fn copies(&self, log: &Behind, events: &[EventRecord]) -> Result<Vec<Copy>, SinkError> {
        let origin = self.audit.log.origin(log.org_id);
        let shown = if self.settings.detached { Shown::Named } else { Shown::Bare };
        let copies = events.iter().filter_map(|event| {
            let sealed = sealed(event)?;
            let mismatches = self.audit.mismatches(log.org_id, event.id, &sealed, shown);
            Some(sealed.record(&origin, shown, &mismatches).map(|json| {
                let told: DeliveredMembers = serde_json::from_str(&event.core).unwrap_or_default();
                Copy {
                    json,
                    org: log.org_id.to_string(),
                    id: event.id.to_string(),
                    kind: event.kind.clone(),
                    occurred_at: event.occurred_at.as_micros(),
                    recorded_at: sealed.recorded_at.as_micros(),
                    sequence: sealed.sequence,
                    denied: told
                        .governance
                        .is_some_and(|it| it.decision.as_deref() == Some("deny")),
                    trace_id: told.request.and_then(|it| it.trace_id),
                }
            }))
        });
        Ok(copies.collect::<Result<_, _>>()?)
    }

    fn recovered(&mut self) {
        if !matches!(self.health, Health::Well) {
            tracing::info!(sink = self.settings.name, "a sink takes events again and catches up");
        }
        self.health = Health::Well;
        self.batch = self.batch.saturating_mul(2).min(BATCH);
        counters::sink_up(&self.settings.name, true);
    }

    /// Waits longer and longer, and tries with less at a time: it may be one event too large.
    fn failed(&mut self, error: &SinkError) -> Duration {
        counters::sink_failed(&self.settings.name);
        counters::sink_up(&self.settings.name, false);
        self.batch = (self.batch / 2).max(1);
        let (pause, told) = match self.health {
            Health::Well => (PAUSE, None),
            Health::Failing { pause, told } => {
                (pause.saturating_mul(2).min(LONGEST_PAUSE), Some(told))
            }
        };
        let told = told.filter(|told| told.elapsed() < REMIND).unwrap_or_else(|| {
            let name = &self.settings.name;
            tracing::warn!(sink = name, %error, "a sink takes no events; it falls behind until it does");
            Instant::now()
        });
        self.health = Health::Failing { pause, told };
        error.pause().unwrap_or(pause)
    }
}

/// Members of an event that a sink is given beside it.
#[derive(Debug, Default, Deserialize)]
struct DeliveredMembers {
    governance: Option<DeliveredGovernance>,
    request: Option<DeliveredRequest>,
}

#[derive(Debug, Deserialize)]
struct DeliveredGovernance {
    decision: Option<String>,
}

#[derive(Debug, Deserialize)]
struct DeliveredRequest {
    trace_id: Option<String>,
}
