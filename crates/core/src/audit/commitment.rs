//! The erasable part of an event and the salted commitments to it.

use std::collections::BTreeMap;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::Serialize;
use serde_json::Value;

use crate::{
    audit::MOST_PAYLOAD_BYTES,
    json,
    random::{self, Random},
};

/// What is personal or payload: hashed with a salt into the log, kept beside it or not at all.
///
/// Members are ordered by name, as the canonical form wants them.
#[derive(Debug, Clone, Default)]
pub struct Detached {
    commitments: BTreeMap<&'static str, String>,
    values: BTreeMap<&'static str, Value>,
    salts: BTreeMap<&'static str, String>,
}

impl Detached {
    /// Adds a value that is kept; nothing if there is none.
    #[must_use]
    pub fn keep(
        mut self,
        name: &'static str,
        value: Option<impl Into<Value>>,
        source: &dyn Random,
    ) -> Self {
        if let Some(value) = value {
            let value = value.into();
            self.commit(name, Some(&value), source);
            self.values.insert(name, value);
        }
        self
    }

    /// Adds a value of which only the commitment `SHA-256(salt ‖ canonical(value))` is kept: a
    /// party that holds the original can later prove that it is the one.
    pub fn commit(&mut self, name: &'static str, value: Option<&Value>, source: &dyn Random) {
        let Some(value) = value else { return };
        let salt = random::bytes::<32>(source);
        let digest = json::sha256(&[&salt, json::canonical(value).as_bytes()]);
        self.commitments.insert(name, digest);
        self.salts.insert(name, STANDARD.encode(salt));
        self.values.insert(name, Value::Null);
    }

    /// Adds a payload that is kept, unless it is too long to be: then it is committed to.
    pub fn keep_payload(&mut self, name: &'static str, value: Value, source: &dyn Random) {
        self.commit(name, Some(&value), source);
        if json::canonical(&value).len() <= MOST_PAYLOAD_BYTES {
            self.values.insert(name, value);
        }
    }

    /// Leaves nothing of a member, as if it had never been.
    pub fn forget(&mut self, name: &str) {
        self.commitments.remove(name);
        self.values.remove(name);
        self.salts.remove(name);
    }

    /// `sha256:…` by member: hashed into the log.
    #[must_use]
    pub const fn commitments(&self) -> &impl Serialize {
        &self.commitments
    }

    /// The values that are kept, by member; `null` where only the commitment is.
    #[must_use]
    pub const fn values(&self) -> &impl Serialize {
        &self.values
    }

    /// Whether a payload is kept, not only committed to.
    #[must_use]
    pub fn has_payload(&self) -> bool {
        let kept = |name| self.values.get(name).is_some_and(|value| !value.is_null());
        kept("input") || kept("output")
    }

    /// The salts in base64, by member: whoever holds value and salt can check the commitment.
    #[must_use]
    pub const fn salts(&self) -> &impl Serialize {
        &self.salts
    }
}
