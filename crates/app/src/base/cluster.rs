//! The node among others that share its database: its name, what they tell each other, and what
//! becomes of those that die.
//!
//! **Invariant:** a node that has not heard of its store for [`TRUST`] trusts nothing it remembers:
//! it may have missed a revocation. So a revocation holds everywhere within that time, whatever is
//! lost on the way.

use std::{
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    time::Duration,
};

use portcullis_core::{
    id::Ids,
    refusal::{Refusal, Unavailable},
};
use portcullis_store::{LEASE_SECONDS, LiveNode, NodeRecord, Nodes, StoreError};
use tokio::time::Instant;

/// Time for which a node trusts its caches without an answer of its store.
const TRUST: Duration = Duration::from_secs(5);
/// Interval of heartbeats.
pub(crate) const BEAT: Duration = Duration::from_secs(1);

/// Reason that a node does not take part.
#[derive(Debug, thiserror::Error)]
pub enum JoinError {
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
        other: String,
        /// The node that counts by itself.
        who: &'static str,
    },
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The node as one of several.
#[derive(Debug)]
pub struct Cluster {
    pub(crate) nodes: Nodes,
    pub(crate) me: NodeRecord,
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
        name: &str,
        place: String,
        counts_alone: bool,
    ) -> Result<Self, JoinError> {
        // Like any id of ours, but never shown.
        let lease = format!("{name}/{}", portcullis_core::id::RequestId::new(ids));
        let me = NodeRecord { name: name.to_owned(), lease, place, counts_alone, policy_set: None };
        let patience = Duration::from_secs(LEASE_SECONDS.unsigned_abs()) + BEAT;
        let since = Instant::now();
        loop {
            let is_late = since.elapsed() > patience;
            match nodes.hold(&me).await {
                Ok(true) => break,
                Ok(false) if is_late => return Err(JoinError::NameTaken(me.name)),
                Ok(false) => {}
                // A machine that is busy at this moment is no reason not to start.
                Err(StoreError::Unavailable(reason)) if !is_late => {
                    tracing::warn!(reason, "the register of nodes does not answer yet");
                }
                Err(error) => return Err(error.into()),
            }
            tokio::time::sleep(BEAT).await;
        }
        let joined =
            Self { nodes, me, since, heard: AtomicU64::new(0), ousted: AtomicBool::new(false) };
        joined.note_answer(Instant::now());
        let others = joined.nodes.others(&joined.me).await?;
        if let Some(refused) = uneven(&joined.me, &others) {
            joined.leave().await;
            return Err(refused);
        }
        Ok(joined)
    }

    /// Lease id that the intents of this process carry.
    #[must_use]
    pub fn lease(&self) -> &str {
        &self.me.lease
    }

    fn note_answer(&self, asked: Instant) {
        let heard = asked.duration_since(self.since).as_millis();
        self.heard.fetch_max(u64::try_from(heard).unwrap_or(u64::MAX), Ordering::AcqRel);
    }

    /// Fails unless the store was heard of lately, and this is the node of its name.
    pub(crate) fn in_touch(&self) -> Result<(), Refusal> {
        let heard = Duration::from_millis(self.heard.load(Ordering::Acquire));
        let silent = self.since.elapsed().saturating_sub(heard);
        if silent < TRUST && !self.ousted.load(Ordering::Acquire) {
            return Ok(());
        }
        Err(Refusal::Unavailable { reason: Unavailable::Store })
    }

    pub(crate) async fn beat(&self, policy_set: String) {
        let asked = Instant::now();
        let me = NodeRecord { policy_set: Some(policy_set), ..self.me.clone() };
        match self.nodes.hold(&me).await {
            Ok(true) => {
                self.note_answer(asked);
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
            Err(error) => tracing::warn!(%error, "the heartbeat of this node cannot be written"),
        }
    }

    /// Lets go of the name.
    pub async fn leave(&self) {
        if let Err(error) = self.nodes.release(&self.me).await {
            tracing::warn!(%error, "the lease of this node cannot be released; it expires by itself");
        }
    }
}

/// Reason that nodes that count limits differently cannot serve side by side.
fn uneven(me: &NodeRecord, others: &[LiveNode]) -> Option<JoinError> {
    let refused = |other: &LiveNode, who| JoinError::CountsAlone { other: other.name.clone(), who };
    if me.counts_alone {
        return others.first().map(|other| refused(other, "this one"));
    }
    others.iter().find(|other| other.counts_alone).map(|other| refused(other, "that one"))
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
