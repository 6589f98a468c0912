//! A proof that one event is in its log, as <https://c2sp.org/tlog-proof> writes it, and a checkpoint with what
//! connects it to an older one.

use std::{fmt, str::FromStr};

use serde_json::{Map, Value};

use super::{
    checkpoint::{Checkpoint, CheckpointError, decimal, hash_of, hash_text},
    export::{Fault, Since, leaf_of_event},
    merkle::{Hash, is_consistent, root_of_path},
    note::{MAX_NOTE_BYTES, VerifierKey},
};

const FIRST_LINE: &str = "c2sp.org/tlog-proof@v1";
/// No path is longer than the bits of a size.
const MAX_HASHES: usize = 64;

/// An inclusion path and the signed checkpoint it leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlogProof {
    /// Place of the leaf, from 0: the event's `sequence`.
    pub index: u64,
    /// From the leaf's sibling up to the child of the root.
    pub path: Vec<Hash>,
    /// The signed note.
    pub checkpoint: String,
}

/// Reason that a proof does not prove.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProofError {
    #[error("not a proof: {0}")]
    Form(&'static str),
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// The path does not lead from this leaf to the signed root.
    #[error("the path does not lead from this event to the signed root")]
    Root,
}

impl TlogProof {
    /// The checkpoint that covers the leaf. Fails unless it is signed by a key of the log among
    /// `keys` and the path leads to its root.
    pub fn verify(&self, leaf: &Hash, keys: &[VerifierKey]) -> Result<Checkpoint, ProofError> {
        let (checkpoint, _) = Checkpoint::open(&self.checkpoint, keys)?;
        let root = root_of_path(self.index, checkpoint.size, leaf, &self.path);
        if root == Some(checkpoint.root) { Ok(checkpoint) } else { Err(ProofError::Root) }
    }
}

impl fmt::Display for TlogProof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{FIRST_LINE}\nindex {}", self.index)?;
        self.path.iter().try_for_each(|hash| writeln!(f, "{}", hash_text(hash)))?;
        write!(f, "\n{}", self.checkpoint)
    }
}

impl FromStr for TlogProof {
    type Err = ProofError;

    fn from_str(text: &str) -> Result<Self, ProofError> {
        let form = ProofError::Form;
        if text.len() > 2 * MAX_NOTE_BYTES {
            return Err(form("it is too long"));
        }
        let (head, checkpoint) = text.split_once("\n\n").ok_or(form("it has no checkpoint"))?;
        let mut lines = head.split('\n');
        if lines.next() != Some(FIRST_LINE) {
            return Err(form("its first line is not `c2sp.org/tlog-proof@v1`"));
        }
        let mut line = lines.next();
        if line.is_some_and(|line| line.starts_with("extra ")) {
            line = lines.next();
        }
        let index = line.and_then(|line| line.strip_prefix("index ")).and_then(decimal);
        let index = index.ok_or(form("it has no index"))?;
        let path: Option<Vec<_>> = lines.take(MAX_HASHES + 1).map(hash_of).collect();
        let path = path.ok_or(form("a line of its path is no hash"))?;
        if path.len() > MAX_HASHES {
            return Err(form("its path is too long"));
        }
        Ok(Self { index, path, checkpoint: checkpoint.to_owned() })
    }
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
    if proof.index != leaf.sequence || !checkpoint.is_of_org(&leaf.org_id) {
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
    let opened = Checkpoint::open(note, keys);
    let (checkpoint, _) = opened.map_err(|error| Fault::refused("the checkpoint", &error))?;
    let Some(since) = since else { return Ok(checkpoint) };
    let proof: Option<Vec<_>> = consistency.iter().map(|hash| hash_of(hash)).collect();
    let proof =
        proof.ok_or_else(|| Fault::unreadable("the consistency proof is no list of hashes"))?;
    since.continued_by(&checkpoint, || {
        let Checkpoint { size, root, .. } = since.checkpoint();
        let holds = is_consistent(*size, root, checkpoint.size, &checkpoint.root, &proof);
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
