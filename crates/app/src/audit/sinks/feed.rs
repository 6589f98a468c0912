//! Feeding one sink: which logs it has not everything of, a batch of each in turn, and patience
//! with a side that does not take them. A single event that the receiver refuses for good holds up
//! neither other logs nor those behind it: it is set aside. A log at which the receiver fails in any
//! other way rests alone while it takes others.

use std::{collections::HashMap, time::Duration};

use portcullis_core::{audit::Shown, id::OrgId};
use portcullis_store::{
    Behind, EventFilter, EventOrder, EventPage, EventRecord, StoreError, Visibility,
};
use serde::Deserialize;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{Copy, OpenOutlet, SinkError, SinkSettings};
use crate::{
    audit::{Audit, events::sealed, pace::Pace},
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
/// Refusals of an event by itself after which it is set aside.
const REFUSALS: u32 = 5;
/// Other events that are offered to see whether the receiver takes any: of other logs, and of the same one.
const OTHERS: u32 = 16;
/// Time between two such offers.
const OFFER: Duration = Duration::from_secs(5);
/// Logs whose batches fail in a round before it ends, if the receiver takes none of any other.
const MISSES: usize = 3;

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
    /// Logs with failures that are not made up for yet.
    troubled: HashMap<OrgId, Troubled>,
    /// When the receiver last took an event.
    took: Option<Instant>,
    /// The log for which other events were offered last, and when that was.
    offered: Option<(OrgId, Instant)>,
}

/// Failures of one log.
struct Troubled {
    batch: u32,
    refused: Option<RefusedEvent>,
    rests_until: Option<Instant>,
    /// Failures in a row that were not about content.
    missed: u32,
    /// True if the receiver took events of other logs meanwhile.
    fails_alone: bool,
}

impl Default for Troubled {
    fn default() -> Self {
        let (refused, rests_until) = (None, None);
        Self { batch: BATCH, refused, rests_until, missed: 0, fails_alone: false }
    }
}

/// Event that the receiver refused by itself.
struct RefusedEvent {
    id: String,
    times: u32,
    last: Instant,
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
            troubled: HashMap::new(),
            took: None,
            offered: None,
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
        let mut behind = self.audit.base.store.behind(&self.settings.name).await?;
        // Each log has its turn to ask whether the receiver takes another event.
        let last = self.offered.map(|(org, _)| org);
        if let Some(at) = behind.iter().position(|log| Some(log.org_id) == last) {
            behind.rotate_left(at + 1);
        }
        // Those that fail come last, so that they hide no log that is taken.
        behind.sort_by_key(|log| self.troubled.get(&log.org_id).map_or(0, |of| of.missed));
        let took = self.took;
        let (mut is_taking, mut refused, mut missed) = (false, None, Vec::new());
        for log in behind.iter().filter(|log| !self.rests(log)).collect::<Vec<_>>() {
            match self.forward_log(log, &behind).await {
                Ok(()) => is_taking = true,
                // What one org did holds up no other one.
                Err(error) if error.is_about_content() => refused = refused.or(Some(error)),
                Err(error) => {
                    missed.push((log.org_id, error));
                    if self.took == took && missed.len() >= MISSES {
                        break;
                    }
                }
            }
        }
        self.idle = behind.is_empty().then(|| (sealed, Instant::now()));
        let has_taken = self.took != took;
        self.rest_missed(missed, has_taken)?;
        match refused {
            Some(error) if !is_taking => Err(error),
            Some(_) | None => Ok(is_taking),
        }
    }

    /// Lets logs rest longer and longer at which the receiver fails while it takes others. Fails with the first error
    /// if it took nothing, and not only those logs failed.
    fn rest_missed(
        &mut self,
        missed: Vec<(OrgId, SinkError)>,
        has_taken: bool,
    ) -> Result<(), SinkError> {
        let mut fail_alone = true;
        for (org, _) in &missed {
            let of = self.troubled.entry(*org).or_default();
            of.missed = of.missed.saturating_add(1);
            fail_alone &= has_taken || of.fails_alone;
        }
        for (org, error) in missed {
            if !fail_alone {
                return Err(error);
            }
            let name = &self.settings.name;
            counters::sink_failed(name);
            let of = self.troubled.entry(org).or_default();
            if !of.fails_alone {
                tracing::warn!(sink = name, %org, %error, "a sink takes no events of this org's log");
            }
            of.fails_alone = true;
            let pause = PAUSE.saturating_mul(2_u32.saturating_pow(of.missed)).min(LONGEST_PAUSE);
            of.rests_until = Some(Instant::now() + error.pause(pause));
        }
        Ok(())
    }

    fn rests(&self, log: &Behind) -> bool {
        let until = self.troubled.get(&log.org_id).and_then(|of| of.rests_until);
        until.is_some_and(|until| Instant::now() < until)
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

    async fn forward_log(&mut self, log: &Behind, behind: &[Behind]) -> Result<(), SinkError> {
        while let Err(error) = self.forward_batch(log, behind).await {
            if !self.tries_less(log, &error) {
                return Err(error);
            }
        }
        if let Some(of) = self.troubled.get_mut(&log.org_id) {
            of.batch = of.batch.saturating_mul(2).min(BATCH);
            (of.rests_until, of.missed, of.fails_alone) = (None, 0, false);
            if of.batch == BATCH {
                self.troubled.remove(&log.org_id);
            }
        }
        Ok(())
    }

    /// Tries with less of the log at a time: it may be one event too large. True if the receiver says so, and there
    /// is less to try; a log whose next event is refused by itself rests longer and longer.
    fn tries_less(&mut self, log: &Behind, error: &SinkError) -> bool {
        let of = self.troubled.entry(log.org_id).or_default();
        let before = of.batch;
        of.batch = (before / 2).max(1);
        if !error.is_about_content() {
            return false;
        }
        counters::sink_failed(&self.settings.name);
        if before > 1 {
            return true;
        }
        let earlier = of.refused.as_ref().map_or(0, |event| event.times.saturating_sub(1));
        let pause = PAUSE.saturating_mul(2_u32.saturating_pow(earlier)).min(LONGEST_PAUSE);
        of.rests_until = Some(Instant::now() + error.pause(pause));
        false
    }

    async fn forward_batch(&mut self, log: &Behind, behind: &[Behind]) -> Result<(), SinkError> {
        let batch = self.troubled.get(&log.org_id).map_or(BATCH, |of| of.batch);
        let page = page(self.audit, log, log.next - 1, batch).await?;
        let last = page.events.last().and_then(|event| event.seal).map(|seal| seal.sequence);
        let copies = self.copies(log, &page.events)?;
        if !copies.is_empty() {
            let rejected = match self.way.deliver(&self.audit.base.node, &copies).await {
                Ok(rejected) => rejected,
                Err(error) => self.set_aside(error, &copies, log, behind).await?,
            };
            self.count(copies.len(), rejected);
        }
        // What is pruned already is passed over: it no longer exists.
        let next = last.or(page.reached).map_or(log.size, |last| last + 1);
        // A crash before this line hands the same events over again.
        let name = &self.settings.name;
        Ok(self.audit.base.store.advance_sink(name, log.org_id, next).await?)
    }

    fn count(&mut self, events: usize, rejected: u64) {
        let name = &self.settings.name;
        let events = u64::try_from(events).unwrap_or(u64::MAX);
        let rejected = rejected.min(events);
        if rejected < events {
            self.took = Some(Instant::now());
        }
        if rejected > 0 {
            tracing::error!(
                sink = name,
                rejected,
                "a receiver does not take events; it does not get them again"
            );
        }
        counters::sink_delivered(name, events - rejected, rejected);
    }

    /// Gives up an event that the receiver refused by itself again and again while it takes another:
    /// a receiver that takes none is asked in a wrong way, which its operator mends. Gives the number
    /// of events that are given up.
    async fn set_aside(
        &mut self,
        error: SinkError,
        copies: &[Copy],
        log: &Behind,
        behind: &[Behind],
    ) -> Result<u64, SinkError> {
        let of = self.troubled.entry(log.org_id).or_default();
        // What is tried next is smaller than this was, however few there were.
        of.batch = u32::try_from(copies.len()).unwrap_or(of.batch);
        let [copy] = copies else { return Err(error) };
        if !error.is_about_content() {
            return Err(error);
        }
        let last = Instant::now();
        let before = of.refused.take().filter(|event| event.id == copy.id);
        let times = before.as_ref().map_or(1, |event| event.times.saturating_add(1));
        of.refused = Some(RefusedEvent { id: copy.id.clone(), times, last });
        let since = before.map_or(last, |event| event.last);
        let is_taking = self.took.is_some_and(|took| took > since);
        if times < REFUSALS || !(is_taking || self.takes_another(copy, log, behind).await?) {
            return Err(error);
        }
        // Perhaps it takes everything by now.
        match self.way.deliver(&self.audit.base.node, copies).await {
            Err(error) if error.is_about_content() => {
                let (sink, org, event) = (&self.settings.name, &copy.org, &copy.id);
                tracing::warn!(sink, org, event, %error, "a receiver refuses this event; it is set aside");
                Ok(1)
            }
            delivered => delivered,
        }
    }

    /// Offers other events one by one, the next one of each other log before those of the same one; true as soon as
    /// the receiver takes one. They come again in their turn.
    async fn takes_another(
        &mut self,
        refused: &Copy,
        of: &Behind,
        behind: &[Behind],
    ) -> Result<bool, SinkError> {
        if self.offered.is_some_and(|(_, at)| at.elapsed() < OFFER) {
            return Ok(false);
        }
        self.offered = Some((of.org_id, Instant::now()));
        let others = behind.iter().filter(|log| log.org_id != of.org_id).zip(0..OTHERS);
        let mut offers: Vec<_> = others.map(|(log, _)| (log, log.next - 1, 1)).collect();
        // The last one of the log, too: a caller can make any number of the same kind in a row.
        let before_last = refused.sequence.max(of.size - 2);
        offers.extend([(of, refused.sequence, OTHERS), (of, before_last, 1)]);
        for (log, after, limit) in offers {
            let page = page(self.audit, log, after, limit).await?;
            for copy in self.copies(log, &page.events)? {
                match self.way.deliver(&self.audit.base.node, &[copy]).await {
                    Ok(0) => return Ok(true),
                    Ok(_) => {}
                    Err(error) if error.is_about_content() => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(false)
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
        counters::sink_up(&self.settings.name, true);
    }

    /// Waits longer and longer; not for logs whose events are refused, which rest by themselves.
    fn failed(&mut self, error: &SinkError) -> Duration {
        if !error.is_about_content() {
            counters::sink_failed(&self.settings.name);
        }
        counters::sink_up(&self.settings.name, false);
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
        if error.is_about_content() {
            self.health = Health::Failing { pause: PAUSE, told };
            return LOOK;
        }
        self.health = Health::Failing { pause, told };
        error.pause(pause)
    }
}

async fn page(
    audit: &Audit,
    log: &Behind,
    after: i64,
    limit: u32,
) -> Result<EventPage, StoreError> {
    let everything = EventFilter::default();
    let (all, order) = (Visibility::All, EventOrder::Ascending);
    audit.base.store.list_events(log.org_id, all, &everything, order, Some(after), limit).await
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
