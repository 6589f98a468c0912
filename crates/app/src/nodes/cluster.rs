//! This node among others that share its database: its name, what they tell each other, and what
//! becomes of those that die.
//!
//! **Invariant:** a node that has not heard of its store for [`TRUST`] trusts nothing it remembers:
//! it may have missed a revocation. So a revocation holds everywhere within that time, whatever is
//! lost on the way.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use portcullis_core::{
    id::Ids,
    refusal::{Refusal, Unavailable},
};
use portcullis_store::{LEASE_SECONDS, LiveNode, News, NodeRecord, Nodes, StoreError};
use tokio::time::{Instant, MissedTickBehavior};

use crate::{App, telemetry::counters, tools::pins};

/// How long a node trusts what it remembers without having heard of its store.
const TRUST: Duration = Duration::from_secs(5);
/// How often it says that it lives.
const BEAT: Duration = Duration::from_secs(1);
/// How often it looks who else does.
const LOOK: Duration = Duration::from_secs(2);
/// The pause before it listens anew.
const AGAIN: Duration = Duration::from_millis(500);

/// Why a node does not take part.
#[derive(Debug, thiserror::Error)]
pub enum JoinError {
    /// Another process has the name.
    #[error(
        "another node `{0}` serves from this database: give this one a name of its own \
         (`server.node`)"
    )]
    NameTaken(String),
    /// Nodes that count by themselves would let pass a multiple of every limit.
    #[error(
        "the node `{other}` serves from this database as well, and {who} counts limits by itself: \
         set `[limits] redis` for all nodes, so that they count together"
    )]
    CountsAlone {
        /// One of the others.
        other: String,
        /// Which of the two.
        who: &'static str,
    },
    /// The register cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// This node as one of several.
#[derive(Debug)]
pub struct Cluster {
    nodes: Nodes,
    me: NodeRecord,
    since: Instant,
    /// Milliseconds from `since` to when the store was asked last that answered since.
    heard: AtomicU64,
    /// Another process has the name.
    ousted: AtomicBool,
}

impl Cluster {
    /// Takes the name, waiting for the lease of a process that died with it.
    pub async fn join(
        nodes: Nodes,
        ids: Ids<'_>,
        (name, place): (&str, String),
        counts_alone: bool,
    ) -> Result<Self, JoinError> {
        // Like any id of ours, but nobody is ever told of it.
        let lease = format!("{name}/{}", portcullis_core::id::RequestId::new(ids));
        let me = NodeRecord { name: name.to_owned(), lease, place, counts_alone, policy_set: None };
        let patience = Duration::from_secs(LEASE_SECONDS.unsigned_abs()) + BEAT;
        let since = Instant::now();
        while !nodes.hold(&me).await? {
            if since.elapsed() > patience {
                return Err(JoinError::NameTaken(me.name));
            }
            tokio::time::sleep(BEAT).await;
        }
        let joined =
            Self { nodes, me, since, heard: AtomicU64::new(0), ousted: AtomicBool::new(false) };
        joined.heard(Instant::now());
        let others = joined.nodes.others(&joined.me).await?;
        if let Some(refused) = uneven(&joined.me, &others) {
            joined.leave().await;
            return Err(refused);
        }
        Ok(joined)
    }

    /// What stands in the intents of this process.
    #[must_use]
    pub fn lease(&self) -> &str {
        &self.me.lease
    }

    fn heard(&self, asked: Instant) {
        let heard = asked.duration_since(self.since).as_millis();
        self.heard.fetch_max(u64::try_from(heard).unwrap_or(u64::MAX), Ordering::AcqRel);
    }

    /// Says no unless the store was heard of lately, and this is the node of its name.
    pub(crate) fn in_touch(&self) -> Result<(), Refusal> {
        let heard = Duration::from_millis(self.heard.load(Ordering::Acquire));
        let silent = self.since.elapsed().saturating_sub(heard);
        if silent < TRUST && !self.ousted.load(Ordering::Acquire) {
            return Ok(());
        }
        Err(Refusal::Unavailable { reason: Unavailable::Store })
    }

    async fn beat(&self, policy_set: String) {
        let asked = Instant::now();
        let me = NodeRecord { policy_set: Some(policy_set), ..self.me.clone() };
        match self.nodes.hold(&me).await {
            Ok(true) => {
                self.heard(asked);
                if self.ousted.swap(false, Ordering::AcqRel) {
                    tracing::warn!(node = self.me.name, "the name of this node is free again");
                }
            }
            Ok(false) => {
                if !self.ousted.swap(true, Ordering::AcqRel) {
                    tracing::error!(
                        node = self.me.name,
                        "another process has the name of this node: every request is refused"
                    );
                }
            }
            Err(error) => tracing::warn!(%error, "this node cannot say that it lives"),
        }
    }

    /// Lets go of the name.
    pub async fn leave(&self) {
        if let Err(error) = self.nodes.release(&self.me).await {
            tracing::warn!(%error, "this node cannot say that it ends; its lease runs out");
        }
    }
}

/// Why nodes that count limits differently cannot serve side by side.
fn uneven(me: &NodeRecord, others: &[LiveNode]) -> Option<JoinError> {
    let refused = |other: &LiveNode, who| JoinError::CountsAlone { other: other.name.clone(), who };
    if me.counts_alone {
        return others.first().map(|other| refused(other, "this one"));
    }
    others.iter().find(|other| other.counts_alone).map(|other| refused(other, "that one"))
}

impl App {
    /// Says that this node lives, for as long as this is run; listens to the others, and looks
    /// after those that die. Begun before the node serves, and ended when nothing is under way.
    pub async fn take_part(self: Arc<Self>) {
        if let Some(cluster) = &self.cluster {
            let (live, look_around) = (live(&self, cluster), look_around(&self, cluster));
            tokio::join!(live, look_around, listen(&self, cluster));
        }
    }

    /// Lets go of the name of this node, when nothing is under way any more.
    pub async fn end_part(&self) {
        if let Some(cluster) = &self.cluster {
            cluster.leave().await;
        }
    }

    /// Says no while this node cannot know what others have revoked.
    pub(crate) fn in_touch(&self) -> Result<(), Refusal> {
        self.cluster.as_ref().map_or(Ok(()), Cluster::in_touch)
    }

    fn policy_set_version(&self) -> String {
        self.policies.current().version().to_owned()
    }
}

async fn live(app: &App, cluster: &Cluster) {
    let mut ticks = tokio::time::interval(BEAT);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        cluster.beat(app.policy_set_version()).await;
    }
}

/// Counts the living, and closes what the dead left open.
async fn look_around(app: &App, cluster: &Cluster) {
    let mut sets_differ = false;
    let mut round = 0_u32;
    loop {
        tokio::time::sleep(LOOK).await;
        match cluster.nodes.others(&cluster.me).await {
            Ok(others) => {
                let mine = app.policy_set_version();
                let sets = others.iter().filter_map(|other| other.policy_set.as_deref());
                let sets: BTreeSet<&str> = sets.chain([mine.as_str()]).collect();
                counters::nodes(others.len() + 1, sets.len());
                if std::mem::replace(&mut sets_differ, sets.len() > 1) != (sets.len() > 1) {
                    tell_of_sets(&others, sets.len() > 1);
                }
            }
            Err(error) => tracing::warn!(%error, "the other nodes cannot be seen"),
        }
        // A process that outlived its lease may have left something after it was forgotten.
        round = round.wrapping_add(1);
        let every = round.is_multiple_of(30);
        if let Err(error) = bury(app, every).await {
            tracing::warn!(%error, "what dead nodes left open cannot be closed yet");
        }
    }
}

fn tell_of_sets(others: &[LiveNode], differ: bool) {
    if differ {
        let others: Vec<_> = others.iter().map(|other| other.name.as_str()).collect();
        tracing::warn!(?others, "nodes decide by different policy sets");
    } else {
        tracing::info!("all nodes decide by the same policy set");
    }
}

/// Closes the intents and exports of nodes that are gone, then forgets them. Any number may do it
/// at once.
async fn bury(app: &App, look_closely: bool) -> Result<(), StoreError> {
    if !look_closely && !app.store.has_dead_nodes().await? {
        return Ok(());
    }
    let closed = app.recover().await?;
    let failed = app.fail_abandoned_exports().await?;
    let gone = app.store.forget_nodes().await?;
    if gone > 0 || closed > 0 || failed > 0 {
        tracing::warn!(gone, closed, failed, "closed what dead nodes left open");
    }
    Ok(())
}

/// Hears what others change. Whatever is remembered counts for nothing when a wire breaks, for
/// nobody knows what was said meanwhile.
async fn listen(app: &Arc<App>, cluster: &Cluster) {
    let mut told = false;
    loop {
        let broke = match cluster.nodes.listen().await {
            Ok(mut listener) => {
                told = false;
                app.tenants.revoked_all();
                loop {
                    match listener.next().await {
                        Ok(News::Org(org)) => app.tenants.revoked(org),
                        Ok(News::Pins) => pins::follow(app).await,
                        Err(error) => break error,
                    }
                }
            }
            Err(error) => error,
        };
        app.tenants.revoked_all();
        if !std::mem::replace(&mut told, true) {
            tracing::warn!(error = %broke, "changes by other nodes are not heard for the moment");
        }
        tokio::time::sleep(AGAIN).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(counts_alone: bool) -> NodeRecord {
        let [name, lease, place] = ["a", "a/1", "here"].map(str::to_owned);
        NodeRecord { name, lease, place, counts_alone, policy_set: None }
    }

    fn other(counts_alone: bool) -> LiveNode {
        LiveNode { name: "b".to_owned(), counts_alone, policy_set: None }
    }

    #[test]
    fn nodes_serve_side_by_side_only_if_all_of_them_count_together() {
        assert!(uneven(&node(true), &[]).is_none());
        assert!(uneven(&node(false), &[other(false)]).is_none());
        for (me, others) in [(true, false), (false, true), (true, true)] {
            let refused = uneven(&node(me), &[other(others)]).unwrap();
            assert!(refused.to_string().contains("[limits] redis"), "{refused}");
        }
    }
}
