//! Evidence that is no export: an event as it is shown with its proof, and a checkpoint with what connects it to an
//! older one.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::{Fault, Since};
use crate::{
    audit::{
        checkpoint::{Checkpoint, hash_of, hash_text},
        merkle::{Hash, is_consistent, leaf_hash},
        note::VerifierKey,
        proof::{ProofError, TlogProof},
        verified::{DetachedValue, LEAF, Verified, verify},
    },
    clock::Timestamp,
    json,
};

/// Place of a shown event in its log, and the hash of its leaf.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeafOfEvent {
    pub sequence: u64,
    pub recorded_at: Timestamp,
    pub org_id: String,
    pub hash: Hash,
    /// Number of detached values that fit their commitments.
    pub opened: u64,
    /// Number of detached values without a salt, which cannot be checked.
    pub unopened: u64,
}

/// The leaf of an event as the API shows it: its canonical JSON without `detached` and `integrity`.
/// Rejects an event without a place in the log, one that says another leaf hash than its own, and
/// detached values that are not those committed to.
pub fn leaf_of_event(mut event: Map<String, Value>) -> Result<LeafOfEvent, Fault> {
    let detached = event.remove("detached").unwrap_or_default();
    let integrity = event.remove("integrity").unwrap_or_default();
    let text = |name: &str| event.get(name).and_then(Value::as_str);
    let sequence = event.get("sequence").and_then(Value::as_u64);
    let recorded_at = text("recorded_at").and_then(Timestamp::parse_rfc3339);
    let (Some(sequence), Some(recorded_at)) = (sequence, recorded_at) else {
        return Err(Fault::Incomplete("an event has no place in the log yet".to_owned()));
    };
    let org_id = text("org_id").unwrap_or_default().to_owned();
    let commitments = event.get("commitments").cloned().unwrap_or_default();
    let hash = leaf_hash(json::canonical(&Value::Object(event)).as_bytes());
    let said = integrity.get("leaf_hash").and_then(Value::as_str);
    let fits = said.is_none_or(|said| said == hash_text(&hash));
    let values = detached.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null());
    let values = values.map(|(name, value)| DetachedValue {
        name,
        value: Cow::Owned(json::canonical(value)),
        salt: integrity.get("salts").and_then(|salts| salts.get(name)).and_then(Value::as_str),
        commitment: commitments.get(name).and_then(Value::as_str),
    });
    let Verified { opened, unopened, mismatches, .. } = verify(Some(hash), fits, values);
    if let Some(name) = mismatches.iter().find(|name| *name != LEAF) {
        return Err(differs(sequence, &format!("its `{name}` is not the one committed to")));
    }
    if let Some(mismatch) = integrity.get("mismatch") {
        let what = format!("whoever wrote it down found that it does not fit: {mismatch}");
        return Err(differs(sequence, &what));
    }
    if !fits {
        return Err(differs(sequence, "it is not the event that its own leaf hash belongs to"));
    }
    Ok(LeafOfEvent { sequence, recorded_at, org_id, hash, opened, unopened })
}

fn differs(sequence: u64, what: &str) -> Fault {
    Fault::Root(format!("event {sequence} was changed: {what}"))
}

/// Result of verifying one event with its proof.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProvenEvent {
    /// The signed tree it is in.
    pub checkpoint: Checkpoint,
    pub sequence: u64,
    /// Detached values that are those the log committed to.
    pub values_proven: u64,
    /// Detached values that came without salts.
    pub values_unproven: u64,
}

/// Verifies one event as the API shows it with the text of its proof.
pub fn verify_event(
    event: Map<String, Value>,
    proof: &str,
    keys: &[VerifierKey],
) -> Result<ProvenEvent, Fault> {
    let proof: TlogProof =
        proof.parse().map_err(|error: ProofError| Fault::unreadable(error.to_string()))?;
    let leaf = leaf_of_event(event)?;
    let checkpoint = match proof.verify(&leaf.hash, keys) {
        Ok(checkpoint) => checkpoint,
        Err(ProofError::Checkpoint(error)) => {
            return Err(Fault::refused("the checkpoint of the proof", &error));
        }
        Err(ProofError::Root) => {
            return Err(Fault::Root(
                "the proof does not lead from this event to the signed root: \
                one of them was changed, or they do not belong together"
                    .to_owned(),
            ));
        }
        Err(ProofError::Form(what)) => return Err(Fault::unreadable(what)),
    };
    if proof.index != leaf.sequence || !is_of_org(&checkpoint, &leaf.org_id) {
        return Err(Fault::Root("the event stands at another place than it says".to_owned()));
    }
    Ok(ProvenEvent {
        checkpoint,
        sequence: leaf.sequence,
        values_proven: leaf.opened,
        values_unproven: leaf.unopened,
    })
}

/// Returns true if the log is that of the org: the last part of its origin.
pub(super) fn is_of_org(checkpoint: &Checkpoint, org_id: &str) -> bool {
    checkpoint.origin.rsplit('/').next() == Some(org_id)
}

/// Verifies a signed checkpoint and, if an older one is given, that it continues it: by the
/// consistency proof that `GET /v1/audit/checkpoint?since=` gives, each hash in base64.
pub fn verify_checkpoint(
    note: &str,
    keys: &[VerifierKey],
    since: Option<&Since>,
    consistency: &[String],
) -> Result<Checkpoint, Fault> {
    let checkpoint = super::verifier::open("the checkpoint", note, keys)?;
    let Some(since) = since else { return Ok(checkpoint) };
    let proof: Option<Vec<_>> = consistency.iter().map(|hash| hash_of(hash)).collect();
    let proof =
        proof.ok_or_else(|| Fault::unreadable("the consistency proof is no list of hashes"))?;
    since.continued_by(&checkpoint, || {
        let size = since.checkpoint().size;
        let root = &since.checkpoint().root;
        let holds = is_consistent(size, root, checkpoint.size, &checkpoint.root, &proof);
        if !holds && proof.is_empty() {
            let what = format!(
                "nothing shows that it continues the older checkpoint: ask for \
                 `/v1/audit/checkpoint?since={size}` and verify that answer"
            );
            return Err(Fault::Unreadable(what));
        }
        Ok(holds)
    })?;
    Ok(checkpoint)
}
