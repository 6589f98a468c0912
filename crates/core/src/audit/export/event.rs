//! An event as it is shown, back to the leaf that was hashed.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Map, Value};

use super::Fault;
use crate::{
    audit::{
        checkpoint::hash_text,
        merkle::{Hash, leaf_hash},
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
    let (opened, unopened) = commitments_hold(&commitments, &detached, &integrity)
        .map_err(|name| differs(sequence, &format!("its `{name}` is not the one committed to")))?;
    if let Some(mismatch) = integrity.get("mismatch") {
        let what = format!("whoever wrote it down found that it does not fit: {mismatch}");
        return Err(differs(sequence, &what));
    }
    let hash = leaf_hash(json::canonical(&Value::Object(event)).as_bytes());
    let said = integrity.get("leaf_hash").and_then(Value::as_str);
    if said.is_some_and(|said| said != hash_text(&hash)) {
        return Err(differs(sequence, "it is not the event that its own leaf hash belongs to"));
    }
    Ok(LeafOfEvent { sequence, recorded_at, org_id, hash, opened, unopened })
}

fn differs(sequence: u64, what: &str) -> Fault {
    Fault::Root(format!("event {sequence} was changed: {what}"))
}

/// Checks `SHA-256(salt ‖ canonical(value))` for each value that came with its salt: how many
/// did, and how many came without. Says which one does not fit.
pub fn commitments_hold<'a>(
    commitments: &Value,
    detached: &'a Value,
    integrity: &Value,
) -> Result<(u64, u64), &'a str> {
    let mut opened = 0;
    let mut unopened = 0;
    let values = detached.as_object().into_iter().flatten();
    for (name, value) in values.filter(|(_, value)| !value.is_null()) {
        let salt = integrity.get("salts").and_then(|salts| salts.get(name)).and_then(Value::as_str);
        let Some(salt) = salt else {
            unopened += 1;
            continue;
        };
        let salt = STANDARD.decode(salt).map_err(|_| name.as_str())?;
        let computed = json::sha256(&[&salt, json::canonical(value).as_bytes()]);
        if commitments.get(name).and_then(Value::as_str) != Some(&computed) {
            return Err(name);
        }
        opened += 1;
    }
    Ok((opened, unopened))
}
