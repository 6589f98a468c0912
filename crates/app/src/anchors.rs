//! Where checkpoints are published, so that a copy exists outside of the database: a file, and
//! witnesses. None of it is in the way of a call, a seal or a proof.

mod file;
mod witness;

pub use self::{file::AnchorFile, witness::WitnessedBy};

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use portcullis_core::{clock::Timestamp, id::OrgId};
use portcullis_store::StoredCheckpoint;
use tokio::sync::Mutex;

use crate::{App, counting, store_failed};

/// All places where checkpoints are published.
#[derive(Debug, Default)]
pub struct Anchors {
    /// How often it is looked whether there are new ones.
    pub(crate) every: Duration,
    /// A file that is only appended to.
    pub(crate) file: Option<AnchorFile>,
    /// Those who sign that they saw them.
    pub(crate) witnesses: Vec<WitnessedBy>,
    /// Held while the signatures of two witnesses come together.
    merging: Mutex<()>,
}

/// Clocks of nodes differ: so many seconds are looked at again.
const SLACK: i64 = -60;

/// How far an anchor has come.
#[derive(Debug, Default)]
struct Progress(Mutex<Reached>);

#[derive(Debug, Default)]
struct Reached {
    /// The moment of the latest checkpoint that was looked at.
    moment: Timestamp,
    /// The size of each log that is published there.
    sizes: BTreeMap<OrgId, u64>,
    /// Checkpoints that are still to be published, the latest of each log.
    waiting: BTreeMap<OrgId, StoredCheckpoint>,
    /// Logs that are shorter than what was published of them.
    set_back: BTreeSet<OrgId>,
}

impl Reached {
    /// Takes what was signed since the last look.
    async fn look(&mut self, app: &App, anchor: &str) {
        let fresh = match app.store.checkpoints_since(self.moment.plus_seconds(SLACK)).await {
            Ok(fresh) => fresh,
            Err(error) => return drop(store_failed(&error)),
        };
        for (org, checkpoint) in fresh {
            self.moment = self.moment.max(checkpoint.signed_at);
            match self.sizes.get(&org) {
                Some(size) if *size == checkpoint.size => {}
                Some(size) if *size > checkpoint.size => {
                    if self.set_back.insert(org) {
                        counting::anchored(anchor, "set_back");
                        tracing::error!(
                            anchor,
                            log = app.log.origin(org),
                            size = checkpoint.size,
                            published = size,
                            "more of the log was published than there is: the database was set back"
                        );
                    }
                }
                _ => {
                    self.waiting.insert(org, checkpoint);
                }
            }
        }
    }

    fn published(&mut self, org: OrgId, size: u64) {
        self.waiting.remove(&org);
        self.sizes.insert(org, size);
    }
}

/// One round: publishes what is new in every place; each waits for itself only.
pub(crate) async fn publish(app: &App) {
    let file = async {
        if let Some(file) = &app.anchors.file {
            file.publish(app).await;
        }
    };
    let witnesses = app.anchors.witnesses.iter().map(|witness| witness.publish(app));
    futures_util::future::join(file, futures_util::future::join_all(witnesses)).await;
}

impl Anchors {
    /// Publishes to these places every `every`.
    #[must_use]
    pub fn new(every: Duration, file: Option<AnchorFile>, witnesses: Vec<WitnessedBy>) -> Self {
        Self { every, file, witnesses, merging: Mutex::default() }
    }

    /// Whether there is anywhere to publish to.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.file.is_none() && self.witnesses.is_empty()
    }
}
