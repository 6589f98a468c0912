//! The log of an installation as it is: exported into a pipe and verified as a file would be, then
//! held against what it is searched and proven by.

use std::{collections::BTreeMap, io, process::ExitCode};

use portcullis_app::{
    ExportError, ExportRequest, IndexFault, LogIdentity, Progress, VerifiedLog, origin,
};
use portcullis_core::audit::export::{Fault, Report};
use portcullis_store::{ExportBeat, Org};
use serde_json::{Value, json};

use super::{Kept, Lines, Verify, finish, kept::KeptLog, report_text};
use crate::{boot::Office, cli::Failure};

impl Verify {
    pub(super) async fn run_live(mut self, org: &str) -> Result<ExitCode, Failure> {
        let config = self.installation.config()?;
        let office = self.installation.office().await?;
        let found = async {
            let org = office.shell.org(org).await?;
            let identity = office.log_identity(&config).await?;
            Ok::<_, Failure>((org, identity))
        };
        let code = match found.await {
            Ok((org, identity)) => {
                if self.keys.is_empty() {
                    let known = identity.keys.known(&origin(&identity.host, org.id))?;
                    self.keys = known.into_iter().map(|key| key.verifier).collect();
                }
                self.hold(&office, &org, identity).await
            }
            Err(error) => Err(error),
        };
        office.close().await;
        code
    }

    async fn hold(
        self,
        office: &Office,
        org: &Org,
        identity: LogIdentity,
    ) -> Result<ExitCode, Failure> {
        // Before the log is looked at: what is published meanwhile is of a larger one.
        let kept = self.since.as_deref().map(|path| KeptLog::read(path, &self.keys)).transpose();
        let kept = match kept {
            Ok(kept) => kept,
            Err(fault) => return Ok(self.tell(Err(fault))),
        };
        let (verify, report) = self.through_pipe(office, org, identity, kept.as_ref()).await?;
        let held = match report {
            Ok(report) => verify.indexes(office, org, report, kept).await?,
            Err(fault) => Err(fault),
        };
        Ok(verify.tell(held))
    }

    async fn through_pipe(
        self,
        office: &Office,
        org: &Org,
        identity: LogIdentity,
        kept: Option<&KeptLog>,
    ) -> Result<(Self, Result<Report, Fault>), Failure> {
        let (reader, writer) = io::pipe()?;
        let newest = kept.map(|kept| kept.newest.clone());
        let size = newest.as_ref().map(|since| since.checkpoint().size);
        let verifying = tokio::task::spawn_blocking(move || {
            let mut lines = Lines::of(reader);
            let first = lines.next().map(|line| line.unwrap_or_default().to_vec());
            let report = first.and_then(|first| self.read_export(lines, &first, newest));
            (self, report)
        });
        let request = ExportRequest::whole(office.shell.clock.now()).continuing(size);
        let out = (Box::new(writer) as _, None);
        let written = office.shell.write_log((org, identity), &request, out, &mut Silent).await;
        let (verify, report) = verifying.await?;
        match (report, written) {
            (_, Err(ExportError::Shorter)) => {
                let now = office.shell.store.sealed_size(org.id).await?;
                let then = size.unwrap_or_default();
                let what = format!(
                    "the log was set back: a checkpoint of {then} events was kept, and it has \
                     {now} now"
                );
                Ok((verify, Err(Fault::Inconsistent(what))))
            }
            (Err(Fault::Incomplete(_)), Err(ExportError::Stored(event))) => {
                Ok((verify, Err(Fault::Root(event.to_string()))))
            }
            // Nothing came to be verified, or not all: a log that cannot be read to its end looks
            // cut off.
            (
                Err(Fault::Unreadable(_) | Fault::Incomplete(_)),
                Err(error @ (ExportError::Store(_) | ExportError::Tree)),
            )
            | (Ok(_), Err(error)) => Err(error.into()),
            // A verifier that says no stops reading: what it found comes first.
            (report, _) => Ok((verify, report)),
        }
    }

    /// Holds columns, tiles and kept trees against the events that were verified.
    async fn indexes(
        &self,
        office: &Office,
        org: &Org,
        report: Report,
        kept: Option<KeptLog>,
    ) -> Result<Result<(Value, String), Fault>, Failure> {
        let verified = VerifiedLog {
            // Without a range all that the tree has is passed over.
            first: report.range.map_or(report.checkpoint_size, |range| range.first),
            size: report.checkpoint_size,
            root: report.checkpoint_root,
        };
        let (newest, trees) =
            kept.map_or((None, BTreeMap::new()), |kept| (Some(kept.newest), kept.trees));
        let indexed = match office.shell.check_indexes(org.id, verified, &trees).await? {
            Ok(indexed) => indexed,
            Err(fault) => return Ok(Err(fault_of(&fault))),
        };
        if let Some(path) = &self.since
            && let Err(fault) = KeptLog::refuse(path, &indexed.strangers, &self.keys)
        {
            return Ok(Err(fault));
        }
        let (mut found, mut text) = (json!(report), report_text(&report));
        if let Value::Object(members) = &mut found {
            members.insert("indexed".to_owned(), json!(indexed.events));
        }
        text.push(format!(
            "columns and tiles are those of {} event{}",
            indexed.events,
            if indexed.events == 1 { "" } else { "s" }
        ));
        let kept = newest.map(|since| Kept { newest: since.checkpoint().size, since });
        Ok(Ok(finish(&mut found, text, kept.as_ref())))
    }
}

fn fault_of(fault: &IndexFault) -> Fault {
    match fault {
        IndexFault::Root => Fault::Root(fault.to_string()),
        IndexFault::Column { .. }
        | IndexFault::Position(_)
        | IndexFault::Leaf(_)
        | IndexFault::Hidden(_)
        | IndexFault::Tile { .. } => Fault::Index(fault.to_string()),
    }
}

/// Nobody is told how far it is.
struct Silent;

impl Progress for Silent {
    async fn reached(&mut self, _: ExportBeat) -> Result<(), ExportError> {
        Ok(())
    }
}
