//! Asking recorded calls again.

mod approvals;
mod compare;
pub(crate) mod explained;
mod player;
mod recorded;
pub(super) mod report;
mod tally;

use std::sync::Arc;

use portcullis_core::refusal::Refusal;
use portcullis_store::{
    EventActor, EventFilter, EventOrder, EventPage, EventRecord, EventTarget, Visibility,
};
use serde_json::{Value, json};
use tokio::time::Instant;

use self::{player::Player, report::ReplayReport, tally::ReplayCounts};
use super::{Options, Replay, Simulations, sets::Sets};
use crate::{audit::events::visibility, base::long_work::LongTurn, request::Ctx};

/// Number of events in one read: with payloads they may take a hundred megabytes.
const PAGE: usize = 500;

impl Simulations {
    /// Asks the recorded calls that the caller may see again; gives the report and the part of it
    /// that is recorded.
    pub(super) async fn replayed(
        self: &Arc<Self>,
        ctx: &Ctx,
        replay: &Replay,
        sets: Sets,
        options: &Options,
        turn: &LongTurn,
    ) -> Result<(ReplayReport, Value), Refusal> {
        let started = Instant::now();
        let org = ctx.caller().org_id;
        self.audit.seal(org).await?;
        let (sets, policy_set) = turn
            .run(move |_| {
                let reported = sets.reported();
                (sets, reported)
            })
            .await?;
        let versions = (
            sets.candidate.version().to_owned(),
            sets.baseline().map(|set| set.version().to_owned()),
        );
        let tools = self.catalogue.tools.load_full();
        let player = Player::new(sets, tools, org.to_string(), options, replay.sample);
        let run = ReplayRun { player, scanned: 0, next: None, complete: true };
        let run = if replay.event_ids.is_empty() {
            self.play_pages(ctx, replay, run, turn).await?
        } else {
            self.play_named(ctx, replay, run, turn).await?
        };
        let duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let tallied = run.player.tallied(run.complete);
        let ReplayCounts { summary, approvals, by_policy, changes, changes_left_off } = tallied;
        let recorded = json!({
            "mode": "replay", "candidate": versions.0, "baseline": versions.1, "summary": summary,
        });
        let report = ReplayReport {
            mode: "replay",
            simulated: true,
            policy_set,
            summary,
            approvals,
            by_policy,
            changes,
            changes_left_off,
            next_cursor: run.next.map(|sequence| sequence.to_string()),
            duration_ms,
        };
        Ok((report, recorded))
    }

    async fn play_pages(
        &self,
        ctx: &Ctx,
        replay: &Replay,
        mut run: ReplayRun,
        turn: &LongTurn,
    ) -> Result<ReplayRun, Refusal> {
        let org = ctx.caller().org_id;
        let filter = filter(replay);
        let seen = visibility(ctx);
        let mut after = replay.after;
        let mut ahead = self.page(org, seen, &filter, after, replay.limit).await?;
        loop {
            let EventPage { events, reached, more } = ahead;
            run.scanned += events.len();
            after = reached.or(after);
            let room = replay.limit.saturating_sub(run.scanned);
            let next = async {
                if more && room > 0 {
                    self.page(org, seen, &filter, after, room).await.map(Some)
                } else {
                    Ok(None)
                }
            };
            // The next page is read while this one is judged.
            let (player, next) = tokio::join!(run.player.play(events, turn), next);
            run.player = player?;
            match next? {
                Some(page) if !run.player.is_late() => ahead = page,
                Some(_) | None => {
                    run.complete = !more && !run.player.is_late();
                    run.next = run.player.reached().or(after).filter(|_| !run.complete);
                    return Ok(run);
                }
            }
        }
    }

    async fn page(
        &self,
        org: portcullis_core::id::OrgId,
        seen: Visibility,
        filter: &EventFilter,
        after: Option<i64>,
        room: usize,
    ) -> Result<EventPage, Refusal> {
        let limit = u32::try_from(room.min(PAGE)).unwrap_or(u32::MAX);
        let order = EventOrder::Ascending;
        let page = self.base.store.list_events(org, seen, filter, order, after, limit).await;
        page.map_err(Refusal::from)
    }

    async fn play_named(
        &self,
        ctx: &Ctx,
        replay: &Replay,
        mut run: ReplayRun,
        turn: &LongTurn,
    ) -> Result<ReplayRun, Refusal> {
        let mut events: Vec<EventRecord> = Vec::new();
        for id in &replay.event_ids {
            let found = self.base.store.find_event(ctx.caller().org_id, visibility(ctx), *id).await;
            let found = found?;
            events.push(found.ok_or_else(|| Refusal::not_found("event", &id.to_string()))?);
        }
        run.scanned = events.len();
        run.player = run.player.play(events, turn).await?;
        run.complete = !run.player.is_late();
        Ok(run)
    }
}

/// A replay under way.
struct ReplayRun {
    player: Player,
    scanned: usize,
    next: Option<i64>,
    complete: bool,
}

impl Player {
    /// Judges a page off the threads that serve requests.
    async fn play(mut self, events: Vec<EventRecord>, turn: &LongTurn) -> Result<Self, Refusal> {
        turn.run(move |stop| {
            self.judge_all(&events, stop);
            self
        })
        .await
    }
}

fn filter(replay: &Replay) -> EventFilter {
    let provider = replay.provider.clone().map(EventTarget::OfProvider);
    EventFilter {
        from: replay.from,
        to: replay.to,
        kinds: vec!["mcp.invocation".to_owned()],
        actor: replay.principal.map(EventActor::Principal),
        target: replay.tool.clone().map(EventTarget::Is).or(provider),
        decision: replay.decision.into_iter().collect(),
        policy: replay.policy.iter().cloned().collect(),
        ..EventFilter::default()
    }
}
