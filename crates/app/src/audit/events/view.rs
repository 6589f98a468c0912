//! An event as it is shown: the answer and its schema.

use std::{borrow::Cow, collections::BTreeMap};

use portcullis_core::{audit::RecordedEvent, clock::Timestamp, id::PrincipalId};
use serde::Serialize;
use serde_json::{Map, Value, value::RawValue};
use utoipa::ToSchema;

/// An audit event. Its leaf in the log is the canonical JSON of all but `detached` and `integrity`.
///
/// The record is sent as it is stored, whatever it holds: what was changed in a row is shown, and
/// named in `integrity.mismatch`.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Event)]
pub struct EventView {
    #[serde(flatten)]
    #[schema(value_type = RecordedEvent)]
    pub(super) record: Map<String, Value>,
    /// Its place in the log; `null` before it has one.
    #[schema(minimum = 0)]
    pub(super) sequence: Option<i64>,
    /// When it got its place in the log; `null` before.
    pub(super) recorded_at: Option<Timestamp>,
    pub(super) detached: EventDetached,
    pub(super) integrity: EventIntegrity,
}

/// The erasable part of an event: `null` where nothing was captured or it was erased. Events of
/// some types have further members, which are shown in full views.
#[derive(Debug, Default, Serialize, ToSchema)]
pub(super) struct EventDetached {
    /// Name of the principal, or of the operator's account.
    #[schema(value_type = Option<String>)]
    actor_name: Value,
    /// Label of the token.
    #[schema(value_type = Option<String>)]
    label: Value,
    /// Address that the request came from.
    #[schema(value_type = Option<String>)]
    source_ip: Value,
    /// Program that sent the request.
    #[schema(value_type = Option<String>)]
    user_agent: Value,
    /// In full views: the captured input.
    #[serde(skip_serializing_if = "Option::is_none")]
    input: Option<Value>,
    /// In full views: the captured result.
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<Value>,
    /// Of events about approvals: the approval.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    approval: Option<Value>,
    /// Of `policy.changed` and `tool.changed`: the difference.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    change: Option<Value>,
    /// Of events about providers: the connection.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    connection: Option<Value>,
    /// Of calls that policies decided: what the decision depends on.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    decision_inputs: Option<Value>,
    /// Of `audit.erased`: extent of the erasure, and the `fault` that stopped it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    erasure: Option<Value>,
    /// Of `audit.exported`: the export.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    export: Option<Value>,
    /// Of calls in which the provider presented forms: how many were accepted and refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    forms: Option<Value>,
    /// Of uses that only asked for values of an argument: `completion/complete`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    method: Option<Value>,
    /// Of calls with something odd that did not stop them: `patterns_unenforced`, if patterns of the tool's
    /// input schema cannot be enforced, `characters_replaced`, if parts of the result's texts were no
    /// characters and became U+FFFD, `output_mismatch`, if the result does not fit the tool's output schema, and
    /// `page_narrowed`, if a page of an app asked for more than the operator gives.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<String>>)]
    remarks: Option<Value>,
    /// Of `audit.hold_changed`: the hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    hold: Option<Value>,
    /// Of tokens that a registered key bought: its thumbprint.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    key: Option<Value>,
    /// Of `system.started`: size of the log.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    log: Option<Value>,
    /// Of `audit.pruned`: range of the events that were deleted, or the `fault` for which none were.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pruning: Option<Value>,
    /// Of `audit.rows_refused`: the first of the rows that got no place in the log, each with its `position` in the
    /// database, the `id` that stands there, and the `fault`: `mac`, if the gateway did not write it like this, or
    /// `twice`, if an event of its id has a place. Rows of open calls have no `position`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    refused: Option<Value>,
    /// Of `audit.reindexed`: the part of the index (`events`, `entries` or `counts`), and places of events.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    reindex: Option<Value>,
    /// Of `policy.reload_failed`: the errors.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    reload: Option<Value>,
    /// Of `policy.simulated`: the request and its counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    simulation: Option<Value>,
}

/// Proof of an event.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct EventIntegrity {
    /// The origin of the log.
    pub(super) log: String,
    /// Hash of its leaf, in base64; `null` before it has a place.
    pub(super) leaf_hash: Option<String>,
    /// True once it has a place in the log.
    pub(super) sealed: bool,
    /// Present only when something is wrong: the parts that are not as the log holds them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Option<Vec<String>>)]
    pub(super) mismatch: Vec<String>,
    /// In full views: the salts that open the commitments, in base64.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<BTreeMap<String, String>>)]
    pub(super) salts: Option<Map<String, Value>>,
}

impl EventView {
    /// True if the principal did it itself or it was done on its behalf.
    pub(super) fn concerns(&self, principal: PrincipalId) -> bool {
        let principal = principal.to_string();
        let actor = self.record.get("actor");
        let mine = |name| actor.and_then(|actor| actor.get(name)?.as_str()) == Some(&*principal);
        mine("id") || mine("via")
    }
}

impl EventDetached {
    /// Actor and source of an erasable part as it is stored; of its payloads nothing is made. `None` if
    /// it is no object.
    pub(super) fn named_in(stored: &str) -> Option<Self> {
        let members: BTreeMap<Cow<'_, str>, &RawValue> = serde_json::from_str(stored).ok()?;
        let value = |name: &str| match members.get(name) {
            Some(value) => serde_json::from_str(value.get()).ok(),
            None => Some(Value::Null),
        };
        Some(Self {
            actor_name: value("actor_name")?,
            label: value("label")?,
            source_ip: value("source_ip")?,
            user_agent: value("user_agent")?,
            ..Self::default()
        })
    }

    /// Actor and source; takes them out of `kept`.
    fn take_names(kept: &mut Map<String, Value>) -> Self {
        Self {
            actor_name: kept.remove("actor_name").unwrap_or_default(),
            label: kept.remove("label").unwrap_or_default(),
            source_ip: kept.remove("source_ip").unwrap_or_default(),
            user_agent: kept.remove("user_agent").unwrap_or_default(),
            ..Self::default()
        }
    }

    /// Everything.
    pub(super) fn whole(mut kept: Map<String, Value>) -> Self {
        let named = Self::take_names(&mut kept);
        Self {
            input: Some(kept.remove("input").unwrap_or_default()),
            output: Some(kept.remove("output").unwrap_or_default()),
            approval: kept.remove("approval"),
            change: kept.remove("change"),
            connection: kept.remove("connection"),
            decision_inputs: kept.remove("decision_inputs"),
            erasure: kept.remove("erasure"),
            export: kept.remove("export"),
            forms: kept.remove("forms"),
            method: kept.remove("method"),
            hold: kept.remove("hold"),
            key: kept.remove("key"),
            log: kept.remove("log"),
            pruning: kept.remove("pruning"),
            refused: kept.remove("refused"),
            reindex: kept.remove("reindex"),
            reload: kept.remove("reload"),
            remarks: kept.remove("remarks"),
            simulation: kept.remove("simulation"),
            ..named
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_was_not_captured_is_null_and_what_was_erased_stays_so() {
        let kept = json!({ "actor_name": "ana", "hold": null, "input": { "n": 1 }, "key": "k", "more": 1 });
        let Value::Object(kept) = kept else { unreachable!() };

        let named = EventDetached::named_in(&json!(kept).to_string()).unwrap();
        let whole = EventDetached::whole(kept);

        let mut shown =
            json!({ "actor_name": "ana", "label": null, "source_ip": null, "user_agent": null });
        assert_eq!(json!(named), shown);
        assert!(EventDetached::named_in("[]").is_none());
        shown["input"] = json!({ "n": 1 });
        shown["output"] = Value::Null;
        shown["hold"] = Value::Null;
        shown["key"] = json!("k");
        assert_eq!(json!(whole), shown);
    }
}
