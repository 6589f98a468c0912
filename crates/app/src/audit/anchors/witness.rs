//! Witnesses: others who sign that they saw a log, and only ever one that continues what they saw.

use portcullis_core::{
    audit::{
        Plan,
        checkpoint::hash_text,
        note::{Note, VerifierKey, signatures},
    },
    id::OrgId,
};
use portcullis_store::{CheckpointKind, StoreError, StoredCheckpoint};
use portcullis_upstream::{Witness, WitnessError, Witnessing};

use super::AnchorProgress;
use crate::{audit::Audit, telemetry::counters};

/// A witness and the key it signs with.
#[derive(Debug)]
pub struct WitnessedBy {
    key: VerifierKey,
    witness: Witness,
    progress: AnchorProgress,
}

/// Result of asking a witness.
enum WitnessReply {
    Signed,
    /// The witness did not sign this log; others may succeed.
    Refused(&'static str),
    /// The witness is unreachable; no other log needs to ask it now.
    Away,
}

impl WitnessedBy {
    /// The witness that signs with `key`.
    #[must_use]
    pub fn new(key: VerifierKey, witness: Witness) -> Self {
        counters::start_witness(key.name());
        Self { key, witness, progress: AnchorProgress::default() }
    }

    pub(super) async fn publish(&self, audit: &Audit) {
        let mut reached = self.progress.0.lock().await;
        reached.look(audit, self.key.name()).await;
        let waiting: Vec<_> = reached.waiting.iter().map(|(org, it)| (*org, it.clone())).collect();
        for (org, checkpoint) in waiting {
            let known = reached.sizes.get(&org).copied().unwrap_or(0);
            let outcome = match self.ask(audit, org, &checkpoint, known).await {
                Ok(WitnessReply::Signed) => {
                    reached.published(org, checkpoint.size);
                    "published"
                }
                Ok(WitnessReply::Refused(outcome)) => outcome,
                Ok(WitnessReply::Away) => {
                    counters::anchored(self.key.name(), "unreachable");
                    tracing::warn!(witness = self.key.name(), "the witness cannot be reached");
                    break;
                }
                Err(error) => {
                    error.log();
                    "failed"
                }
            };
            counters::anchored(self.key.name(), outcome);
        }
        counters::anchor_behind(self.key.name(), reached.waiting.len());
    }

    async fn ask(
        &self,
        audit: &Audit,
        org: OrgId,
        checkpoint: &StoredCheckpoint,
        known: u64,
    ) -> Result<WitnessReply, StoreError> {
        let mut old = known;
        // A witness that knows another size says which; a second answer of the kind is no use.
        for _ in 0..2 {
            let Some(plan) = Plan::consistency(old, checkpoint.size) else {
                let name = self.key.name();
                let size = checkpoint.size;
                tracing::error!(
                    witness = name,
                    log = audit.log.origin(org),
                    size,
                    witnessed = old,
                    "the witness saw more of the log than there is: the database was set back"
                );
                return Ok(WitnessReply::Refused("set_back"));
            };
            let proof: Vec<_> =
                audit.base.store.prove(org, &plan).await?.iter().map(hash_text).collect();
            match self.witness.add_checkpoint(old, &proof, &checkpoint.note).await {
                Ok(Witnessing::Signed(lines)) => {
                    return self.keep(audit, org, checkpoint, &lines).await;
                }
                Ok(Witnessing::Knows(size)) if size != old => old = size,
                Ok(Witnessing::Knows(_)) => break,
                Err(WitnessError::Unreachable) => return Ok(WitnessReply::Away),
                Err(error) => {
                    let name = self.key.name();
                    let log = audit.log.origin(org);
                    tracing::error!(witness = name, log, %error, "the witness does not sign");
                    let inconsistent = error == WitnessError::Inconsistent;
                    return Ok(WitnessReply::Refused(if inconsistent {
                        "inconsistent"
                    } else {
                        "refused"
                    }));
                }
            }
        }
        Ok(WitnessReply::Refused("refused"))
    }

    /// Keeps the signature with the checkpoint, beside those of other witnesses.
    async fn keep(
        &self,
        audit: &Audit,
        org: OrgId,
        checkpoint: &StoredCheckpoint,
        lines: &str,
    ) -> Result<WitnessReply, StoreError> {
        let kind = CheckpointKind::Witnessed;
        let _turn = audit.anchors.merging.lock().await;
        let before = audit.base.store.find_checkpoint(org, kind).await?;
        let same = before.filter(|it| it.size == checkpoint.size && it.root == checkpoint.root);
        let base = same.map_or_else(|| checkpoint.note.clone(), |it| it.note);
        let (Ok(mut note), Ok(given)) = (Note::parse(&base), signatures(lines)) else {
            return Ok(WitnessReply::Refused("malformed"));
        };
        let mut signed = Note::sign(note.text().to_owned(), &[]);
        for signature in given.into_iter().filter(|it| it.name == self.key.name()) {
            signed.add(signature.clone());
            note.add(signature);
        }
        if signed.verify(std::slice::from_ref(&self.key)).is_err() {
            let name = self.key.name();
            tracing::error!(witness = name, "what the witness answered is not signed by its key");
            return Ok(WitnessReply::Refused("bad_signature"));
        }
        let witnessed = StoredCheckpoint { note: note.to_string(), ..checkpoint.clone() };
        audit.base.store.keep_checkpoint(org, kind, &witnessed).await?;
        Ok(WitnessReply::Signed)
    }
}
