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
use portcullis_store::{LogEnds, Org, StoreError};

pub(super) use self::walk::{WIDTH, columns_of, differing_columns, indexed, place};
use self::{removals::IndexFault, walk::Walk};
use super::{Operator, logs::LogIdentity};
use crate::audit::exports::{ExportError, SignedLog};

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
        if let Err(fault) = is_signed(ends, &signed, kept) {
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
            Some(fault) => Ok(Err(self.worst(org.id, fault_of(&fault)).await?)),
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

/// Refuses a log whose seals do not reach as far as its head counts, or go on beyond.
pub(super) fn reaches_its_head(LogEnds { size, sealed, agree }: LogEnds) -> Result<(), Fault> {
    if sealed < size {
        let missing = match size - sealed {
            1 => format!("event {sealed} is missing"),
            _ => format!("events {sealed} to {} are missing", size - 1),
        };
        let what = format!("{missing}: the log has given out {size} places, and its end is cut");
        return Err(Fault::Incomplete(what));
    }
    if sealed > size || !agree {
        let what = format!(
            "the head of the log counts {size} events and is not that of the last one there, at \
             place {}",
            sealed - 1
        );
        return Err(Fault::Index(what));
    }
    Ok(())
}

/// Refuses a log that is shorter than one that was kept, or of which not all can be signed.
fn is_signed(ends: LogEnds, signed: &SignedLog, kept: Option<u64>) -> Result<(), Fault> {
    let now = signed.size;
    if let Some(then) = kept.filter(|then| *then > now) {
        let what = format!(
            "the log was set back: a checkpoint of {then} events was kept, and it has {now} now"
        );
        return Err(Fault::Inconsistent(what));
    }
    if u64::try_from(ends.size).is_ok_and(|size| size > now) {
        let what = format!(
            "the log has {} events of which {now} are signed: its tree is not the continuation of \
             the one that was signed last",
            ends.size
        );
        return Err(Fault::Inconsistent(what));
    }
    Ok(())
}

fn fault_of(fault: &IndexFault) -> Fault {
    match fault {
        IndexFault::Stray(_) | IndexFault::Beyond(_) | IndexFault::Twin { .. } => {
            Fault::Root(fault.to_string())
        }
        IndexFault::Empty(_) => Fault::Incomplete(fault.to_string()),
        IndexFault::Position(_)
        | IndexFault::Leaf(_)
        | IndexFault::Columns { .. }
        | IndexFault::Hidden(_)
        | IndexFault::Value { .. }
        | IndexFault::Erasures(_)
        | IndexFault::Tile { .. } => Fault::Index(fault.to_string()),
    }
}
