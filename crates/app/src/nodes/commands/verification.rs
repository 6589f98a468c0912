//! Verification of an org's log as it is: its end first, then each event in its place, then the tree that these are,
//! and what the log is proven by.

mod removals;
mod walk;

use std::collections::BTreeMap;

use portcullis_core::{
    audit::{
        Hash,
        checkpoint::Checkpoint,
        export::{Fault, Range, Report, Since},
        note::VerifierKey,
    },
    id::OrgId,
};
use portcullis_store::{Org, StoreError};

use self::walk::Walk;
use super::{Operator, logs::LogIdentity};
use crate::audit::{
    exports::{ExportError, writing::SignedLog},
    faults::IndexFault,
    proven::{is_signed, reaches_its_head},
};

/// Evidence that a log is held against: all of it comes from outside of the database.
#[derive(Debug, Clone, Default)]
pub struct Witnessed {
    pub keys: Vec<VerifierKey>,
    /// The largest tree that was kept.
    pub newest: Option<Since>,
    /// Roots of the trees that were kept, by size.
    pub trees: BTreeMap<u64, Vec<Hash>>,
}

/// Result of comparing a log with what it is proven by.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Indexed {
    /// Number of events that were compared.
    pub events: u64,
    /// Sizes and roots of kept trees that are not the beginning of this log.
    pub strangers: Vec<(u64, Hash)>,
}

impl Operator {
    /// Verifies all that is kept of the org's log, up to the size that its head counts. Seals what
    /// waits and changes nothing else. The inner error is what was found; the outer one says why
    /// nothing could be.
    pub async fn verify_log(
        &self,
        org: &Org,
        identity: LogIdentity,
        witnessed: &Witnessed,
    ) -> Result<Result<(Report, Indexed), Fault>, ExportError> {
        let found = self.verify_places(org, identity, witnessed).await;
        match found {
            // Whatever is stored in a form in which it was not written is not that of the events.
            Err(error @ (ExportError::Store(StoreError::Corrupt(_)) | ExportError::Tree)) => {
                Ok(Err(Fault::Index(error.detail())))
            }
            found => found,
        }
    }

    async fn verify_places(
        &self,
        org: &Org,
        identity: LogIdentity,
        witnessed: &Witnessed,
    ) -> Result<Result<(Report, Indexed), Fault>, ExportError> {
        // Before it is sealed: whether what is sealed next continues what is there.
        let ends = self.store.log_ends(org.id).await?;
        if let Err(fault) = reaches_its_head(ends) {
            return Ok(Err(fault));
        }
        let signed = SignedLog::take(&self.store, &self.signer(identity), org.id).await?;
        let kept = witnessed.newest.as_ref().map(|since| since.checkpoint().size);
        if let Err(fault) = is_signed(ends, signed.size, kept) {
            return Ok(Err(fault));
        }
        let mut walk = match self.walk(org.id, &signed, witnessed).await? {
            Ok(walk) => walk,
            Err(fault) => return Ok(Err(fault)),
        };
        let report = match report(&walk, &signed, witnessed)? {
            Ok(report) => report,
            Err(fault) => return Ok(Err(fault)),
        };
        match walk.pending.take() {
            Some(fault) => Ok(Err(self.worst(org.id, fault.into()).await?)),
            None => Ok(Ok((report, Indexed { events: walk.events, strangers: walk.strangers }))),
        }
    }

    /// The fault, or that an event was added: what is wrong with positions or tiles must not hide one. Both are
    /// named.
    async fn worst(&self, org: OrgId, fault: Fault) -> Result<Fault, StoreError> {
        let Fault::Index(told) = fault else { return Ok(fault) };
        let added = match self.store.stray_event(org, i64::MIN, None).await? {
            Some(id) => Some(IndexFault::Stray(id)),
            None => self.store.event_beyond(org).await?.map(IndexFault::Beyond),
        };
        Ok(match added {
            Some(added) => Fault::Root(format!("{added}; and {told}")),
            None => Fault::Index(told),
        })
    }
}

/// Proof by the events that were walked through: that they are the signed tree, which continues the one that was
/// kept.
fn report(
    walk: &Walk,
    signed: &SignedLog,
    witnessed: &Witnessed,
) -> Result<Result<Report, Fault>, StoreError> {
    if let Some(missing) = walk.missing() {
        return Ok(Err(Fault::Incomplete(missing)));
    }
    let (checkpoint, signers) = match Checkpoint::open(&signed.note, &witnessed.keys) {
        Ok(opened) => opened,
        Err(error) => return Ok(Err(Fault::refused("the checkpoint of the log", &error))),
    };
    let range = (walk.first < signed.size).then(|| Range {
        first: walk.first,
        last: signed.size - 1,
        checkpoint_size: signed.size,
    });
    if walk.is_whole {
        if walk.root()? != checkpoint.root {
            let (first, last) = (walk.first, signed.size.saturating_sub(1));
            let what = format!("events {first} to {last} are not those of the signed tree");
            return Ok(Err(Fault::Root(what)));
        }
        if let Some(since) = &witnessed.newest {
            let continued = || Ok(walk.root_then == Some(since.checkpoint().root));
            if let Err(fault) = since.continued_by(&checkpoint, continued) {
                return Ok(Err(fault));
            }
        }
    }
    Ok(Ok(Report {
        log: checkpoint.origin,
        events: walk.events,
        complete: true,
        period_proven: walk.first == 0,
        range,
        checkpoint_size: checkpoint.size,
        checkpoint_root: checkpoint.root,
        signed_by: signers.iter().map(|by| by.key.name().to_owned()).collect(),
        signing_keys: signers.iter().map(|by| by.key.id()).collect(),
        continues: witnessed.newest.as_ref().map(|since| since.checkpoint().size),
        values_proven: walk.values,
        values_unproven: 0,
    }))
}
