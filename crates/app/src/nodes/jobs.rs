//! What happens without being asked: sealing, late events, catalogue refresh, connections, recovery,
//! token use, sessions, forgetting, pruning, sweeping the export folder, feeding sinks, sending
//! traces.

mod catalogue;
mod connections;
mod exports;
mod forgetting;
mod late;
mod pruning;
mod recovery;
mod sealing;
mod token_use;
mod unreadable;

pub(crate) use self::{late::LateEvents, token_use::UsedTokens, unreadable::Named};

use std::{pin::Pin, sync::Arc, time::Duration};

use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

use crate::{
    App,
    access::tokens::{RENEW_EVERY, renew},
    audit::anchors,
    telemetry::counters,
    tools::pins,
};

/// How often it is looked whether refusals have to be told.
const COALESCE: Duration = Duration::from_secs(5);

/// How often it is counted what is left in peace.
const CIRCUITS: Duration = Duration::from_secs(1);

/// One round of a job.
type Round = for<'a> fn(&'a Arc<App>) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

impl App {
    /// Starts the jobs; they end when `stop` is cancelled, each after a last round.
    pub fn start_jobs(self: &Arc<Self>, stop: &CancellationToken) {
        self.repeat(sealing::EVERY, |app| Box::pin(sealing::seal_all(app)), stop);
        self.repeat(sealing::SWEEP, |app| Box::pin(sealing::sweep(app)), stop);
        self.repeat(late::EVERY, |app| Box::pin(late::write(app)), stop);
        self.repeat(COALESCE, |app| Box::pin(app.record_coalesced()), stop);
        self.repeat(COALESCE, |app| Box::pin(app.record_accesses()), stop);
        self.repeat(pruning::EVERY, |app| Box::pin(pruning::prune(app)), stop);
        self.repeat(RENEW_EVERY, |app| Box::pin(renew(app)), stop);
        self.repeat(token_use::EVERY, |app| Box::pin(token_use::write(app)), stop);
        self.repeat(forgetting::EVERY, |app| Box::pin(forgetting::forget(app)), stop);
        self.repeat(unreadable::EVERY, |app| Box::pin(async { unreadable::tell(app) }), stop);
        self.repeat(exports::EVERY, |app| Box::pin(exports::sweep(app)), stop);
        self.repeat(CIRCUITS, |app| Box::pin(async { app.count_circuits() }), stop);
        if !self.anchors.is_empty() {
            self.repeat(self.anchors.every, |app| Box::pin(anchors::publish(app)), stop);
        }
        self.repeat(pins::EVERY, |app| Box::pin(pins::follow(app)), stop);
        catalogue::start(self, stop);
        self.look_after_connections(stop);
        self.start_sinks(stop);
        self.start_traces(stop);
        let (exports, stop) = (self.exports.stop.clone(), stop.clone());
        self.tasks.spawn(async move {
            stop.cancelled().await;
            exports.cancel();
        });
    }

    fn count_circuits(&self) {
        for (slug, provider) in &self.providers {
            counters::circuits(slug, provider.server().open_circuits());
        }
    }

    fn look_after_connections(self: &Arc<Self>, stop: &CancellationToken) {
        let (app, stop) = (Arc::clone(self), stop.clone());
        self.tasks.spawn(async move {
            let mut ticks = tokio::time::interval(connections::EVERY);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            let mut round = 0_u32;
            while stop.run_until_cancelled(ticks.tick()).await.is_some() {
                round = round.wrapping_add(1);
                if round.is_multiple_of(connections::KEYS_EVERY) {
                    connections::look_at_keys(&app).await;
                }
                if round % connections::MISSING_EVERY == 1 {
                    app.forget_missing().await;
                }
                connections::look_after(&app).await;
            }
        });
    }

    fn repeat(self: &Arc<Self>, every: Duration, round: Round, stop: &CancellationToken) {
        let (app, stop) = (Arc::clone(self), stop.clone());
        self.tasks.spawn(async move {
            let mut ticks = tokio::time::interval(every);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            while stop.run_until_cancelled(ticks.tick()).await.is_some() {
                round(&app).await;
            }
            round(&app).await;
        });
    }
}
