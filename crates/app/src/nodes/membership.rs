//! Membership of this node: its heartbeat, its view of the others, and what it hears from them.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use portcullis_store::{LiveNode, News, StoreError};
use tokio::time::MissedTickBehavior;

use super::Nodes;
use crate::{
    base::cluster::{BEAT, Cluster},
    providers::pin_changes,
    telemetry::counters,
};

/// Interval at which a node reads the register of the others.
const LOOK: Duration = Duration::from_secs(2);
/// The pause before it listens anew.
const AGAIN: Duration = Duration::from_millis(500);

impl Nodes {
    /// Says that this node lives, for as long as this is run; listens to the others, and looks
    /// after those that die. Begun before the node serves, and ended when nothing is under way.
    pub async fn take_part(self: Arc<Self>) {
        if let Some(cluster) = &self.cluster {
            let live = live(&self, cluster);
            let look_around = look_around(&self, cluster);
            tokio::join!(live, look_around, listen(&self, cluster));
        }
    }

    /// Lets go of the name of this node, when nothing is under way any more.
    pub async fn end_part(&self) {
        if let Some(cluster) = &self.cluster {
            cluster.leave().await;
        }
    }

    fn policy_set_version(&self) -> String {
        self.policies.current().version().to_owned()
    }
}

async fn live(nodes: &Nodes, cluster: &Cluster) {
    let mut ticks = tokio::time::interval(BEAT);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        cluster.beat(nodes.policy_set_version()).await;
    }
}

/// Counts the living, and closes what the dead left open.
async fn look_around(nodes: &Nodes, cluster: &Cluster) {
    let mut sets_differ = false;
    let mut round = 0_u32;
    loop {
        tokio::time::sleep(LOOK).await;
        match cluster.nodes.others(&cluster.me).await {
            Ok(others) => {
                let mine = nodes.policy_set_version();
                let sets = others.iter().filter_map(|other| other.policy_set.as_deref());
                let sets: BTreeSet<&str> = sets.chain([mine.as_str()]).collect();
                counters::nodes(others.len() + 1, sets.len());
                if std::mem::replace(&mut sets_differ, sets.len() > 1) != (sets.len() > 1) {
                    tell_of_sets(&others, sets.len() > 1);
                }
            }
            Err(error) => tracing::warn!(%error, "the register of nodes cannot be read"),
        }
        // A process that outlived its lease may have left something after it was forgotten.
        round = round.wrapping_add(1);
        let every = round.is_multiple_of(30);
        if let Err(error) = bury(nodes, every).await {
            tracing::warn!(%error, "open intents of dead nodes cannot be closed yet");
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
async fn bury(nodes: &Nodes, look_closely: bool) -> Result<(), StoreError> {
    if !look_closely && !nodes.base.store.has_dead_nodes().await? {
        return Ok(());
    }
    let closed = nodes.recover().await?;
    let failed = nodes.audit.fail_abandoned_exports().await?;
    let gone = nodes.base.store.forget_nodes().await?;
    if gone > 0 || closed > 0 || failed > 0 {
        tracing::warn!(gone, closed, failed, "closed open intents of dead nodes");
    }
    Ok(())
}

/// Hears what others change. Whatever is remembered counts for nothing when a wire breaks, for
/// changes made meanwhile are lost.
async fn listen(nodes: &Arc<Nodes>, cluster: &Cluster) {
    let mut told = false;
    loop {
        let broke = match cluster.nodes.listen().await {
            Ok(mut listener) => {
                told = false;
                nodes.quotas.tenants.revoked_all();
                loop {
                    match listener.next().await {
                        Ok(News::Org(org)) => nodes.quotas.tenants.revoked(org),
                        Ok(News::Pins) => pin_changes::follow(&nodes.providers).await,
                        Err(error) => break error,
                    }
                }
            }
            Err(error) => error,
        };
        nodes.quotas.tenants.revoked_all();
        if !std::mem::replace(&mut told, true) {
            tracing::warn!(error = %broke, "changes by other nodes are not heard for the moment");
        }
        tokio::time::sleep(AGAIN).await;
    }
}
