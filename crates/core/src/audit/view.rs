//! A sealed event as the API shows it, put together from what is stored without reading all of it.

use std::{borrow::Cow, collections::BTreeMap};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{json, value::RawValue};

use super::{
    leaf::leaf_bytes,
    row::{Sealed, StoredError},
};

/// Members of the erasable part that say who and from where.
pub(super) const NAMES: [&str; 4] = ["actor_name", "label", "source_ip", "user_agent"];

/// The erasable parts that are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shown {
    /// Nothing.
    Bare,
    /// Actor and source.
    Named,
    /// Everything there is, with the salts that open the commitments.
    Whole,
}

impl Sealed<'_> {
    /// The record of the log named `log`, as JSON, marked with the `mismatches` that were found in it.
    pub fn record(
        &self,
        log: &str,
        shown: Shown,
        mismatches: &[String],
    ) -> Result<String, StoredError> {
        let wrong = StoredError(self.sequence);
        let mut record =
            leaf_bytes(self.core, self.sequence, self.recorded_at).map_err(|_| wrong)?;
        // The leaf is an object that goes on after its last member.
        if record.pop() != Some('}') {
            return Err(wrong);
        }
        match (shown, self.detached) {
            (Shown::Bare, _) => {}
            (Shown::Named, _) => {
                record.push_str(",\"detached\":");
                record.push_str(&self.names_as_json()?);
            }
            (Shown::Whole, detached) => {
                record.push_str(",\"detached\":");
                record.push_str(detached.unwrap_or("{}"));
            }
        }
        record.push_str(",\"integrity\":{\"leaf_hash\":\"");
        record.push_str(&STANDARD.encode(self.leaf_hash));
        record.push_str("\",\"log\":");
        record.push_str(&json!(log).to_string());
        if !mismatches.is_empty() {
            record.push_str(",\"mismatch\":");
            record.push_str(&json!(mismatches).to_string());
        }
        if shown == Shown::Whole {
            record.push_str(",\"salts\":");
            record.push_str(self.salts.unwrap_or("{}"));
        }
        record.push_str(",\"sealed\":true}}");
        Ok(record)
    }

    /// Actor and source as JSON; `null` where nothing is kept.
    fn names_as_json(&self) -> Result<String, StoredError> {
        let wrong = StoredError(self.sequence);
        let kept = self.detached.unwrap_or("{}");
        let kept: BTreeMap<Cow<'_, str>, &RawValue> =
            serde_json::from_str(kept).map_err(|_| wrong)?;
        let names = NAMES.map(|name| (name, kept.get(name)));
        serde_json::to_string(&BTreeMap::from(names)).map_err(|_| wrong)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::clock::Timestamp;

    #[test]
    fn what_is_shown_is_what_was_asked_for() {
        let sealed = Sealed {
            core: r#"{"actor":{},"outcome":{},"request":null,"schema":1,"target":null,"type":"x"}"#,
            detached: Some(r#"{"actor_name":"alice","input":{"a":1}}"#),
            salts: Some(r#"{"actor_name":"AA","input":"BB"}"#),
            sequence: 7,
            recorded_at: Timestamp::default(),
            leaf_hash: [0; 32],
        };
        let record = |shown| -> Value {
            let record = sealed.record("host/audit/org_1", shown, &[]).unwrap();
            serde_json::from_str(&record).unwrap()
        };

        let bare = record(Shown::Bare);
        let named = record(Shown::Named);
        let whole = record(Shown::Whole);

        assert_eq!(bare["sequence"], json!(7));
        assert_eq!(bare["integrity"]["log"], "host/audit/org_1");
        assert!(bare.get("detached").is_none());
        let wanted = json!({
            "actor_name": "alice", "label": null, "source_ip": null, "user_agent": null,
        });
        assert_eq!(named["detached"], wanted);
        assert!(named["integrity"].get("salts").is_none());
        assert_eq!(whole["detached"], json!({"actor_name": "alice", "input": {"a": 1}}));
        assert_eq!(whole["integrity"]["salts"]["input"], "BB");
        assert!(whole["integrity"].get("mismatch").is_none());
        let wrong = ["leaf".to_owned(), "input".to_owned()];
        let marked = sealed.record("host/audit/org_1", Shown::Whole, &wrong).unwrap();
        let marked: Value = serde_json::from_str(&marked).unwrap();
        assert_eq!(marked["integrity"]["mismatch"], json!(["leaf", "input"]));
    }
}
