//! Evidence that is no export: an event as it is shown with its proof, and a checkpoint with what connects it to an
//! older one.

use serde_json::{Map, Value};

use super::{Fault, Since, leaf_of_event, lines::is_of_org};
use crate::audit::{
    checkpoint::{Checkpoint, hash_of},
    merkle::is_consistent,
    note::VerifierKey,
    proof::{ProofError, TlogProof},
};

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
