//! Verification of an org's log as it is: its end first, then all of it as an export of the whole,
//! then what it is searched and proven by.

use std::{
    collections::BTreeMap,
    io::{self, BufRead, BufReader, PipeReader, Read},
};

use portcullis_core::{
    audit::{
        Hash,
        export::{Fault, MAX_LINE_BYTES, Report, Since, Verifier},
        note::VerifierKey,
    },
    id::OrgId,
};
use portcullis_store::{ExportBeat, LogEnds, Org, StoreError};

use super::{
    Shell,
    indexes::{IndexFault, Indexed, VerifiedLog},
    logs::LogIdentity,
};
use crate::audit::exports::{
    error::ExportError,
    request::ExportRequest,
    signed::{ExportedLog, SignedLog},
    writing::{ExportOutput, Progress, export_places},
};

/// Bytes that are read at once from the export.
const CHUNK: usize = 1 << 18;

/// Evidence that a log is held against: all of it comes from outside of the database.
#[derive(Debug, Clone, Default)]
pub struct Witnessed {
    pub keys: Vec<VerifierKey>,
    /// The largest tree that was kept.
    pub newest: Option<Since>,
    /// Roots of the trees that were kept, by size.
    pub trees: BTreeMap<u64, Vec<Hash>>,
}

impl Shell {
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
        let report = match self.read_whole(org, &signed, witnessed).await? {
            Ok(report) => report,
            Err(fault) => return Ok(Err(fault)),
        };
        let verified = VerifiedLog {
            // Without a range all that the tree has is passed over.
            first: report.range.map_or(report.checkpoint_size, |range| range.first),
            size: report.checkpoint_size,
            root: report.checkpoint_root,
        };
        let indexed = self.check_indexes(org.id, verified, &witnessed.trees).await?;
        match indexed {
            Ok(indexed) => Ok(Ok((report, indexed))),
            Err(fault) => Ok(Err(self.worst(org.id, fault_of(&fault)).await?)),
        }
    }

    /// The fault, or that an event was added: what is wrong with columns or tiles must not hide one. Both are
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

    /// Writes every place of the signed log into a pipe, at whose other end it is verified.
    async fn read_whole(
        &self,
        org: &Org,
        signed: &SignedLog,
        Witnessed { keys, newest, .. }: &Witnessed,
    ) -> Result<Result<Report, Fault>, ExportError> {
        let (reader, writer) = io::pipe()?;
        let verifier = Verifier::new(keys.clone(), newest.clone());
        let verifying = tokio::task::spawn_blocking(move || verify_lines(reader, verifier));
        let now = self.clock.now();
        let kept = newest.as_ref().map(|since| since.checkpoint().size);
        let request = ExportRequest::whole(now).continuing(kept);
        let log = ExportedLog { store: &self.store, org: org.id, signed, now };
        // By place and not by time: a moment that was tampered with hides nothing.
        let first = self.store.pruned_size(org.id).await?;
        let output = ExportOutput { out: Box::new(writer), file: None };
        let written = export_places(log, &request, first, i64::MAX, output, &mut Silent).await;
        let report = verifying.await.map_err(|_| ExportError::Stopped)?;
        match (report, written) {
            (Err(Fault::Incomplete(_)), Err(ExportError::Stored(event))) => {
                Ok(Err(Fault::Root(event.to_string())))
            }
            // Nothing came to be verified, or not all: a log that cannot be read to its end looks
            // cut off.
            (
                Err(Fault::Unreadable(_) | Fault::Incomplete(_)),
                Err(error @ (ExportError::Store(_) | ExportError::Tree)),
            )
            | (Ok(_), Err(error)) => Err(error),
            // A verifier that refuses stops reading: what it found comes first.
            (report, _) => Ok(report),
        }
    }
}

fn verify_lines(pipe: PipeReader, mut verifier: Verifier) -> Result<Report, Fault> {
    let unread = |error: io::Error| Fault::Unreadable(format!("the log cannot be read: {error}"));
    let mut reader = BufReader::with_capacity(CHUNK, pipe);
    let mut line = Vec::new();
    let most = u64::try_from(MAX_LINE_BYTES + 2).unwrap_or(u64::MAX);
    while reader.by_ref().take(most).read_until(b'\n', &mut line).map_err(unread)? > 0 {
        line.pop_if(|last| *last == b'\n');
        verifier.line(&line)?;
        line.clear();
    }
    verifier.finish()
}

/// Refuses a log whose seals do not reach as far as its head counts, or go on beyond.
fn reaches_its_head(LogEnds { size, sealed, agree }: LogEnds) -> Result<(), Fault> {
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
        IndexFault::Root
        | IndexFault::Stray(_)
        | IndexFault::Beyond(_)
        | IndexFault::Twin { .. } => Fault::Root(fault.to_string()),
        IndexFault::Empty(_) => Fault::Incomplete(fault.to_string()),
        IndexFault::Several(all) => match all.first().map(fault_of) {
            Some(Fault::Root(_)) => Fault::Root(fault.to_string()),
            Some(Fault::Incomplete(_)) => Fault::Incomplete(fault.to_string()),
            Some(_) | None => Fault::Index(fault.to_string()),
        },
        IndexFault::Column { .. }
        | IndexFault::Unlisted { .. }
        | IndexFault::Position(_)
        | IndexFault::Leaf(_)
        | IndexFault::Hidden(_)
        | IndexFault::Value { .. }
        | IndexFault::Erasures(_)
        | IndexFault::Tile { .. } => Fault::Index(fault.to_string()),
    }
}

/// Progress that is shown nowhere.
struct Silent;

impl Progress for Silent {
    async fn reached(&mut self, _: ExportBeat) -> Result<(), ExportError> {
        Ok(())
    }
}
