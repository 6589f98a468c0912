//! Background jobs: sealing, late events, overdue tasks, catalogue refresh, connections, recovery, token use,
//! usage, sessions, overrides of orgs, forgetting, pruning, sweeping the export folder, feeding sinks, sending traces.

pub(crate) mod catalogue;
mod connections;
mod forgetting;
mod recovery;
mod sealing;
pub(crate) mod unreadable;

use std::{pin::Pin, sync::Arc, time::Duration};

use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

use super::Nodes;
use crate::{
    approvals,
    audit::{anchors, exports, late},
    base::tenants::usage,
    calls::provider_task,
    identity::access::{
        token_use,
        tokens::renewal::{RENEW_EVERY, renew},
        watch,
    },
    providers::pin_changes,
    telemetry::counters,
};

/// Interval between two looks for refusals that have to be recorded.
const COALESCE: Duration = Duration::from_secs(5);

/// Time between two rounds that remove what is beyond its retention.
const PRUNE: Duration = Duration::from_hours(1);

/// Time between two sweeps of the export folder.
const EXPORTS: Duration = Duration::from_mins(1);

/// Time between two looks at the policies that orgs switched off.
const OVERRIDES: Duration = Duration::from_secs(1);

/// Time between two counts of open circuits.
const CIRCUITS: Duration = Duration::from_secs(1);

/// One round of a job.
type Round = for<'a> fn(&'a Arc<Nodes>) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

impl Nodes {
    /// Starts the jobs; they end when `stop` is cancelled, each after a last round.
    pub fn start_jobs(self: &Arc<Self>, stop: &CancellationToken) {
        self.repeat(sealing::EVERY, |this| Box::pin(sealing::seal_all(&this.audit)), stop);
        self.repeat(sealing::SWEEP, |this| Box::pin(sealing::sweep(&this.audit)), stop);
        self.repeat(late::EVERY, |this| Box::pin(late::write(&this.audit)), stop);
        self.approvals.notify_until(stop);
        self.repeat(approvals::EVERY, |this| Box::pin(this.approvals.end_round()), stop);
        self.repeat(provider_task::EVERY, |this| Box::pin(this.calls.end_overdue_tasks()), stop);
        self.repeat(COALESCE, |this| Box::pin(this.audit.record_coalesced()), stop);
        self.repeat(COALESCE, |this| Box::pin(this.audit.record_accesses()), stop);
        self.repeat(PRUNE, |this| Box::pin(this.audit.prune()), stop);
        self.repeat(watch::EVERY, |this| Box::pin(watch::look(&this.access)), stop);
        self.repeat(OVERRIDES, |this| Box::pin(this.policies.read_org_overrides()), stop);
        self.repeat(RENEW_EVERY, |this| Box::pin(renew(&this.access)), stop);
        self.repeat(token_use::EVERY, |this| Box::pin(token_use::write(&this.access)), stop);
        self.repeat(usage::EVERY, |this| Box::pin(this.quotas.write_usage()), stop);
        self.repeat(forgetting::EVERY, |this| Box::pin(forgetting::forget(this)), stop);
        self.repeat(unreadable::EVERY, |this| Box::pin(async { unreadable::tell(this) }), stop);
        self.repeat(EXPORTS, |this| Box::pin(exports::files::sweep(&this.audit)), stop);
        self.repeat(CIRCUITS, |this| Box::pin(async { this.count_circuits() }), stop);
        if !self.audit.anchors.is_empty() {
            self.repeat(
                self.audit.anchors.every,
                |this| Box::pin(anchors::publish(&this.audit)),
                stop,
            );
        }
        self.repeat(
            pin_changes::EVERY,
            |this| Box::pin(pin_changes::follow(&this.providers)),
            stop,
        );
        catalogue::start(self, stop);
        self.look_after_connections(stop);
        self.audit.start_sinks(stop);
        self.telemetry.start_traces(stop);
        let exports = self.audit.exports.stop.clone();
        let stop = stop.clone();
        self.base.tasks.spawn(async move {
            stop.cancelled().await;
            exports.cancel();
        });
    }

    fn count_circuits(&self) {
        for (slug, provider) in &self.catalogue.providers {
            counters::circuits(slug, provider.server().open_circuits());
        }
    }

    fn look_after_connections(self: &Arc<Self>, stop: &CancellationToken) {
        let this = Arc::clone(self);
        let stop = stop.clone();
        self.base.tasks.spawn(async move {
            let mut ticks = tokio::time::interval(connections::EVERY);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            let mut round = 0_u32;
            while stop.run_until_cancelled(ticks.tick()).await.is_some() {
                round = round.wrapping_add(1);
                if round.is_multiple_of(connections::KEYS_EVERY) {
                    connections::look_at_keys(&this.providers).await;
                }
                if round % connections::MISSING_EVERY == 1 {
                    this.providers.forget_missing().await;
                }
                connections::look_after(&this.providers).await;
            }
        });
    }

    fn repeat(self: &Arc<Self>, every: Duration, round: Round, stop: &CancellationToken) {
        let this = Arc::clone(self);
        let stop = stop.clone();
        self.base.tasks.spawn(async move {
            let mut ticks = tokio::time::interval(every);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            while stop.run_until_cancelled(ticks.tick()).await.is_some() {
                round(&this).await;
            }
            round(&this).await;
        });
    }
}
