//! The erasable part of an event and the salted commitments to it.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Map, Value};

use crate::{
    json,
    random::{self, Random},
};

/// What is personal or payload, before it is committed to. A member that is `None` is left out.
#[derive(Debug, Clone, Default)]
pub struct Detached {
    members: Vec<(&'static str, Value, Capture)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Capture {
    Keep,
    CommitOnly,
}

/// The three forms in which the erasable part is stored.
#[derive(Debug, Clone, Default)]
pub struct DetachedParts {
    /// `sha256:…` by member: hashed into the log.
    pub commitments: Map<String, Value>,
    /// The values that are kept, by member; `null` where only the commitment is.
    pub values: Map<String, Value>,
    /// The salts in base64, by member: whoever holds value and salt can check the commitment.
    pub salts: Map<String, Value>,
}

impl Detached {
    /// Adds a value that is kept.
    #[must_use]
    pub fn keep(mut self, name: &'static str, value: Option<impl Into<Value>>) -> Self {
        self.members.extend(value.map(|value| (name, value.into(), Capture::Keep)));
        self
    }

    /// Adds a value of which only the commitment is kept: a party that holds the original can
    /// later prove that it is the one.
    #[must_use]
    pub fn commit(mut self, name: &'static str, value: Option<Value>) -> Self {
        self.members.extend(value.map(|value| (name, value, Capture::CommitOnly)));
        self
    }

    /// Salts and hashes every member: `SHA-256(salt ‖ canonical(value))`.
    #[must_use]
    pub fn seal(mut self, source: &dyn Random) -> DetachedParts {
        self.members.sort_by_key(|(name, ..)| *name);
        let mut parts = DetachedParts::default();
        for (name, value, capture) in self.members {
            let salt = random::bytes::<32>(source);
            let digest = json::sha256(&[&salt, json::canonical(&value).as_bytes()]);
            parts.commitments.insert(name.to_owned(), Value::String(digest));
            parts.salts.insert(name.to_owned(), Value::String(STANDARD.encode(salt)));
            let kept = if capture == Capture::Keep { value } else { Value::Null };
            parts.values.insert(name.to_owned(), kept);
        }
        parts
    }
}
