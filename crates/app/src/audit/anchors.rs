//! Publication of checkpoints, so that a copy exists outside of the database: in a file, and at
//! witnesses. None of it is in the way of a call, a seal or a proof.

mod file;
mod witness;

pub use self::{file::AnchorFile, witness::WitnessedBy};

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use portcullis_core::{audit::Hash, clock::Timestamp, id::OrgId};
use portcullis_store::StoredCheckpoint;
use tokio::sync::Mutex;

use super::Audit;
use crate::telemetry::counters;

/// All places where checkpoints are published.
#[derive(Debug, Default)]
pub struct Anchors {
    /// Time between two checks for new ones.
    pub(crate) every: Duration,
    /// A file that is only appended to.
    pub(crate) file: Option<AnchorFile>,
    /// Witnesses that sign the checkpoints they saw.
    pub(crate) witnesses: Vec<WitnessedBy>,
    /// Held while the signatures of two witnesses come together.
    merging: Mutex<()>,
}

/// Clocks of nodes differ: so many seconds are looked at again.
const SLACK: i64 = -60;

#[derive(Debug, Default)]
struct AnchorProgress(Mutex<Reached>);

#[derive(Debug, Default)]
struct Reached {
    /// The moment of the latest checkpoint that was looked at.
    moment: Timestamp,
    /// The size of each log that is published there.
    sizes: BTreeMap<OrgId, u64>,
    /// Roots of these trees, as far as they were read from there and are still to be held against the
    /// stored trees: once for each log and start.
    roots: BTreeMap<OrgId, Hash>,
    /// Checkpoints that are still to be published, the latest of each log.
    waiting: BTreeMap<OrgId, StoredCheckpoint>,
    /// Logs that are shorter than what was published of them.
    set_back: BTreeSet<OrgId>,
}

impl Reached {
    /// Takes what was signed since the last look.
    async fn look(&mut self, audit: &Audit, anchor: &str) {
        let fresh = match audit.base.store.checkpoints_since(self.moment.plus_seconds(SLACK)).await
        {
            Ok(fresh) => fresh,
            Err(error) => return error.log(),
        };
        for (org, checkpoint) in fresh {
            self.moment = self.moment.max(checkpoint.signed_at);
            let size = self.sizes.get(&org).copied().unwrap_or(0);
            if size > checkpoint.size {
                self.tell_set_back(audit, anchor, org, size, checkpoint.size);
                continue;
            }
            if !self.is_continued(audit, org, size).await {
                self.tell_set_back(audit, anchor, org, size, checkpoint.size);
            }
            if size < checkpoint.size {
                self.waiting.insert(org, checkpoint);
            }
        }
    }

    /// True if the log begins with the tree of `size` events that was published of it, or if that has
    /// been looked at before. A log that was set back and has grown again does not.
    async fn is_continued(&mut self, audit: &Audit, org: OrgId, size: u64) -> bool {
        let Some(root) = self.roots.remove(&org) else { return true };
        match audit.base.store.root_at(org, size).await {
            Ok(stored) => stored == root,
            Err(error) => {
                error.log();
                self.roots.insert(org, root);
                true
            }
        }
    }

    fn tell_set_back(
        &mut self,
        audit: &Audit,
        anchor: &str,
        org: OrgId,
        published: u64,
        size: u64,
    ) {
        if self.set_back.insert(org) {
            counters::anchored(anchor, "set_back");
            let log = audit.log.origin(org);
            tracing::error!(
                anchor,
                log,
                size,
                published,
                "the log is not the continuation of what was published of it: the database was set \
                 back or rewritten; `portcullis audit verify --org --since` tells more"
            );
        }
    }

    fn published(&mut self, org: OrgId, size: u64) {
        self.waiting.remove(&org);
        self.sizes.insert(org, size);
    }
}

/// One round: publishes what is new in every place; each waits for itself only.
pub(crate) async fn publish(audit: &Audit) {
    let file = async {
        if let Some(file) = &audit.anchors.file {
            file.publish(audit).await;
        }
    };
    let witnesses = audit.anchors.witnesses.iter().map(|witness| witness.publish(audit));
    futures_util::future::join(file, futures_util::future::join_all(witnesses)).await;
}

impl Anchors {
    /// Publishes to these places every `every`.
    #[must_use]
    pub fn new(every: Duration, file: Option<AnchorFile>, witnesses: Vec<WitnessedBy>) -> Self {
        Self { every, file, witnesses, merging: Mutex::default() }
    }

    /// True if there is anywhere to publish to.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.file.is_none() && self.witnesses.is_empty()
    }
}
