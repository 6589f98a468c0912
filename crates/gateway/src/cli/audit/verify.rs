//! `portcullis audit verify`: offline, in little memory, with nothing but keys from elsewhere; or the
//! log of an installation as it is at this moment.

mod checkpoints;
mod live;
mod reading;

use std::{
    collections::BTreeMap,
    io::{self, Write},
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::Args;
use portcullis_core::{
    audit::{
        export::{Fault, Line, Report, Since, Verifier},
        note::VerifierKey,
        proof::{TlogProof, verify_checkpoint, verify_event},
    },
    clock::Timestamp,
    json::{self, Bounds},
};
use serde_json::{Map, Value, json};

use self::{checkpoints::KeptCheckpoint, reading::Lines};
use crate::cli::{installation::Installation, output::Failure};

/// The codes of [`Fault::exit_code`], for a person.
const EXIT_CODES: &str = "\
Exit codes:
   0  verified
   1  unreadable: no export, proof or checkpoint, or what is asked cannot be told from it
   2  wrong usage
  10  root_mismatch: the events are not those of the signed tree
  11  bad_signature: not signed by a given key of this log
  12  inconsistent: not the continuation of a checkpoint that was kept: rewritten, forked or set back
  13  incomplete: events or the end of the file are missing
  14  index_mismatch: places, tiles or detached values are not those of the events (with --org)";

#[derive(Args)]
#[command(after_help = EXIT_CODES)]
pub(in crate::cli) struct Verify {
    /// An export in the format `jsonl`, a proof, or a checkpoint; each may be gzipped
    #[arg(required_unless_present = "org", conflicts_with = "org")]
    file: Option<PathBuf>,
    /// Instead of a file, all that the database of this installation holds of the log of this org
    /// (id or name). A running gateway need not be stopped
    #[arg(long, conflicts_with = "event")]
    org: Option<String>,
    /// A verifier key of the log (`portcullis audit key list`), from a party you trust; may be
    /// repeated. With `--org` the installation's own by default
    #[arg(long = "key", value_name = "VKEY", required_unless_present = "org")]
    keys: Vec<VerifierKey>,
    /// A checkpoint that was kept: it has to be the beginning of this log. Also an anchor file, of
    /// which the latest that is old enough counts, and with `--org` every one
    #[arg(long, value_name = "OLD-CHECKPOINT")]
    since: Option<PathBuf>,
    /// The event that a proof is of, as the API gave it
    #[arg(long, value_name = "EVENT")]
    event: Option<PathBuf>,
    #[command(flatten)]
    installation: Installation,
}

/// Larger proofs, events and checkpoints are none.
const MAX_TEXT: u64 = 16 << 20;

impl Verify {
    /// Tells what was found, and gives the exit code that says it.
    pub(super) async fn run(self) -> Result<ExitCode, Failure> {
        let verified = match (&self.file, &self.org) {
            (Some(file), _) => self.verify(file),
            (None, Some(org)) => {
                let org = org.clone();
                return self.run_live(&org).await;
            }
            (None, None) => Err(Fault::unreadable("there is nothing to verify")),
        };
        Ok(self.tell(verified))
    }

    fn tell(&self, verified: Result<(Value, String), Fault>) -> ExitCode {
        let output = self.installation.output();
        let told = match verified {
            Ok((found, text)) => output.record(&found, &text).map(|()| 0),
            Err(fault) => {
                let code = fault.exit_code();
                let found = json!({
                    "verified": false,
                    "fault": fault.name(),
                    "exit_code": code,
                    "message": fault.to_string(),
                });
                if self.installation.json {
                    output.record(&found, "").map(|()| code)
                } else {
                    let _ = writeln!(io::stderr().lock(), "NOT VERIFIED: {fault}");
                    Ok(code)
                }
            }
        };
        told.map_or(ExitCode::FAILURE, ExitCode::from)
    }

    fn verify(&self, file: &Path) -> Result<(Value, String), Fault> {
        self.verify_lines(Lines::open(file)?)
    }

    fn verify_lines(&self, mut lines: Lines) -> Result<(Value, String), Fault> {
        let first = lines.next()?.unwrap_or_default().to_vec();
        if first.starts_with(b"c2sp.org/tlog-proof@") {
            return self.proof(&lines.all(&first, MAX_TEXT)?);
        }
        if let Ok(Line::Manifest(manifest)) = Line::parse(&first) {
            let size = manifest.range.map_or(u64::MAX, |range| range.checkpoint_size);
            let made = Timestamp::parse_rfc3339(&manifest.created_at);
            return self.export(lines, &first, size, made);
        }
        let text = lines.all(&first, MAX_TEXT)?;
        if first.starts_with(b"{") {
            let (note, proof) = answer(&text)?;
            return self.checkpoint(&note, &proof);
        }
        self.checkpoint(&text, &[])
    }

    fn export(
        &self,
        lines: Lines,
        first: &[u8],
        size: u64,
        made: Option<Timestamp>,
    ) -> Result<(Value, String), Fault> {
        let kept = self.find_kept(size, made)?;
        let since = kept.as_ref().map(|kept| kept.since.clone());
        let report = self.read_export(lines, first, since)?;
        Ok(finish(&mut json!(report), report_text(&report), kept.as_ref()))
    }

    fn read_export(
        &self,
        mut lines: Lines,
        first: &[u8],
        since: Option<Since>,
    ) -> Result<Report, Fault> {
        let mut verifier = Verifier::new(self.keys.clone(), since);
        verifier.line(first)?;
        loop {
            let whole = lines.whole;
            let Some(line) = lines.next()? else { break };
            match verifier.line(line) {
                Ok(()) => {}
                Err(Fault::Unreadable(_)) if !lines.whole && whole => {
                    return Err(Fault::Incomplete(
                        "the file is cut off in its last line".to_owned(),
                    ));
                }
                Err(fault) => return Err(fault),
            }
            lines.progress(verifier.events());
        }
        lines.done();
        verifier.finish()
    }

    fn proof(&self, proof: &str) -> Result<(Value, String), Fault> {
        let Some(event) = &self.event else {
            return Err(Fault::unreadable("a proof is of an event: give it with `--event`"));
        };
        let event = event_of(&Lines::text(event, MAX_TEXT)?)?;
        let proven = verify_event(event, proof, &self.keys)?;
        let size = proven.checkpoint.size;
        let kept = self.find_kept(size, None)?;
        if let Some(kept) = &kept {
            let note = proof.parse::<TlogProof>().map(|proof| proof.checkpoint).unwrap_or_default();
            verify_checkpoint(&note, &self.keys, Some(&kept.since), &[])?;
        }
        let mut found = json!({
            "log": proven.checkpoint.origin,
            "sequence": proven.sequence,
            "checkpoint_size": size,
            "values_proven": proven.values_proven,
            "values_unproven": proven.values_unproven,
        });
        let text = format!(
            "verified: event {} of {}, in the signed tree of {size} events",
            proven.sequence, proven.checkpoint.origin
        );
        Ok(finish(&mut found, vec![text], kept.as_ref()))
    }

    fn checkpoint(&self, note: &str, proof: &[String]) -> Result<(Value, String), Fault> {
        let alone = verify_checkpoint(note, &self.keys, None, &[])?;
        let kept = self.find_kept(alone.size, None)?;
        if let Some(kept) = &kept {
            verify_checkpoint(note, &self.keys, Some(&kept.since), proof)?;
        }
        let mut found = json!({ "log": alone.origin, "checkpoint_size": alone.size });
        let text = format!("verified: the checkpoint of {} events of {}", alone.size, alone.origin);
        Ok(finish(&mut found, vec![text], kept.as_ref()))
    }

    fn find_kept(
        &self,
        size: u64,
        made: Option<Timestamp>,
    ) -> Result<Option<KeptCheckpoint>, Fault> {
        let since = self.since.as_deref();
        since.map(|path| KeptCheckpoint::find(path, size, made, &self.keys)).transpose()
    }
}

/// Lines for a person about what an export was found to prove.
fn report_text(report: &Report) -> Vec<String> {
    let events = report.events;
    let mut text = vec![format!(
        "verified: {events} event{} of {}",
        if events == 1 { "" } else { "s" },
        report.log
    )];
    text.push(match (report.complete, report.period_proven) {
        (true, true) => "complete: the log holds no other event of this period".to_owned(),
        (true, false) => "complete: nothing is missing between the first and the last; that \
                          they are all of the period is only said"
            .to_owned(),
        (false, _) => "filtered: each event is proven, others may exist".to_owned(),
    });
    text.push(format!(
        "tree of {} events, signed by {}",
        report.checkpoint_size,
        signers(&report.signed_by, &report.signing_keys).join(", ")
    ));
    if report.values_unproven > 0 {
        text.push(format!(
            "{} names, addresses or payloads came without salts: of them nothing is proven",
            report.values_unproven
        ));
    }
    text
}

/// Each name once, with the ids of its keys.
fn signers(names: &[String], ids: &[String]) -> Vec<String> {
    let mut keys: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (name, id) in names.iter().zip(ids) {
        keys.entry(name).or_default().push(id);
    }
    let signer = |(name, ids): (&str, Vec<&str>)| format!("{name} (key {})", ids.join(", "));
    keys.into_iter().map(signer).collect()
}

/// Says what the older checkpoint adds.
fn finish(
    found: &mut Value,
    mut text: Vec<String>,
    kept: Option<&KeptCheckpoint>,
) -> (Value, String) {
    if let Value::Object(members) = found {
        members.insert("verified".to_owned(), json!(true));
        if let Some(KeptCheckpoint { since, newest }) = kept {
            let size = since.checkpoint().size;
            members.insert("continues".to_owned(), json!(size));
            text.push(format!("continues the log of {size} events that was kept"));
            if *newest > size {
                members.insert("kept_beyond".to_owned(), json!(newest));
                text.push(format!(
                    "note: a tree of {newest} events was kept as well, of which this file says \
                     nothing; `portcullis audit verify --org` looks whether the log still has them"
                ));
            }
        }
    }
    (found.take(), text.join("\n"))
}

/// Note and consistency proof of an answer of `GET /v1/audit/checkpoint?since=`.
fn answer(text: &str) -> Result<(String, Vec<String>), Fault> {
    let other = || Fault::unreadable("it is neither an export nor a proof nor a checkpoint");
    let answer = json::parse(text.as_bytes(), Bounds::RECORDED).map_err(|_| other())?;
    let data = answer.get("data").unwrap_or(&answer);
    let note = data.get("checkpoint").and_then(Value::as_str).ok_or_else(other)?;
    let proof = data.get("consistency").and_then(Value::as_array);
    let hashes = proof.into_iter().flatten().take(128);
    let hashes: Option<Vec<_>> = hashes.map(|it| it.as_str().map(str::to_owned)).collect();
    Ok((note.to_owned(), hashes.ok_or_else(other)?))
}

/// The record of an event, alone or in the envelope.
fn event_of(text: &str) -> Result<Map<String, Value>, Fault> {
    let none = || Fault::unreadable("the file given with `--event` holds no event");
    let Ok(Value::Object(mut event)) = json::parse(text.as_bytes(), Bounds::RECORDED) else {
        return Err(none());
    };
    for envelope in ["data", "event"] {
        match event.remove(envelope) {
            Some(Value::Object(inner)) => return Ok(inner),
            Some(_) => return Err(none()),
            None => {}
        }
    }
    Ok(event)
}

fn unreadable(path: &Path, error: &io::Error) -> Fault {
    Fault::Unreadable(format!("`{}` cannot be read: {error}", path.display()))
}
