//! The erasable part of an event and the salted commitments to it.

use std::{fmt, sync::Arc};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::{
    audit::{Hash, MOST_PAYLOAD_BYTES},
    json::{self, JsonValue},
    random::{self, Random},
};

/// Personal data and payload: hashed with a salt into the log, kept beside it or not at all.
///
/// Values are held as the canonical text that was hashed, so that nothing is written twice. Members
/// are ordered by name, as the canonical form wants them. Cheap to clone.
#[derive(Clone, Default)]
pub struct Detached {
    members: Vec<Member>,
}

/// One member. What is not kept is only committed to.
#[derive(Clone)]
struct Member {
    name: &'static str,
    digest: Hash,
    salt: [u8; 32],
    kept: Option<Arc<str>>,
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
            self.set(name, &value.into(), source);
        }
        self
    }

    /// Adds a value that is kept.
    pub fn set(&mut self, name: &'static str, value: &Value, source: &dyn Random) {
        self.add(name, &json::canonical(value), true, source);
    }

    /// Adds a value of which only the commitment `SHA-256(salt ‖ canonical(value))` is kept: a
    /// party that holds the original can later prove that it is the one.
    pub fn commit<'a>(
        &mut self,
        name: &'static str,
        value: impl JsonValue<'a>,
        source: &dyn Random,
    ) {
        self.add(name, &value.canonical(), false, source);
    }

    /// Adds a payload that is kept, unless it is too long to be: then it is committed to.
    pub fn keep_payload<'a>(
        &mut self,
        name: &'static str,
        value: impl JsonValue<'a>,
        source: &dyn Random,
    ) {
        let text = value.canonical();
        self.add(name, &text, text.len() <= MOST_PAYLOAD_BYTES, source);
    }

    /// Adds a member by its canonical text, in the place of one of the same name.
    fn add(&mut self, name: &'static str, text: &str, is_kept: bool, source: &dyn Random) {
        let salt = random::bytes::<32>(source);
        let digest = json::digest(&[&salt, text.as_bytes()]);
        let member = Member { name, digest, salt, kept: is_kept.then(|| Arc::from(text)) };
        match self.members.binary_search_by(|known| known.name.cmp(name)) {
            Ok(at) => {
                if let Some(known) = self.members.get_mut(at) {
                    *known = member;
                }
            }
            Err(at) => self.members.insert(at, member),
        }
    }

    /// Leaves nothing of a member, as if it had never been.
    pub fn forget(&mut self, name: &str) {
        self.members.retain(|member| member.name != name);
    }

    /// `sha256:…` by member: hashed into the log.
    #[must_use]
    pub const fn commitments(&self) -> Commitments<'_> {
        Commitments(self)
    }

    /// The values that are kept, by member, as JSON; `null` where only the commitment is.
    #[must_use]
    pub fn values_json(&self) -> String {
        self.written(|member, out| out.push_str(member.kept.as_deref().unwrap_or("null")))
    }

    /// The salts in base64, by member, as JSON: whoever holds value and salt can check the
    /// commitment.
    #[must_use]
    pub fn salts_json(&self) -> String {
        self.written(|member, out| {
            out.push('"');
            STANDARD.encode_string(member.salt, out);
            out.push('"');
        })
    }

    /// Returns true if a payload is kept, not only committed to.
    #[must_use]
    pub fn has_payload(&self) -> bool {
        let payload = |member: &&Member| matches!(member.name, "input" | "output");
        self.members.iter().filter(payload).any(Member::is_known)
    }

    /// An object with something of each member. Their names need no escaping.
    fn written(&self, write: impl Fn(&Member, &mut String)) -> String {
        let kept = |member: &Member| member.kept.as_deref().map_or(4, str::len);
        let length = self.members.iter().map(|member| member.name.len() + 50 + kept(member)).sum();
        let mut out = String::with_capacity(length);
        out.push('{');
        for (index, member) in self.members.iter().enumerate() {
            if index > 0 {
                out.push(',');
            }
            out.push('"');
            out.push_str(member.name);
            out.push_str("\":");
            write(member, &mut out);
        }
        out.push('}');
        out
    }
}

impl Member {
    fn is_known(&self) -> bool {
        self.kept.as_deref().is_some_and(|text| text != "null")
    }
}

/// Names alone: what is personal is printed by nothing.
impl fmt::Debug for Detached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.members.iter().map(|member| member.name)).finish()
    }
}

/// Commitments to the members of [`Detached`], as they are recorded.
#[derive(Debug)]
pub struct Commitments<'a>(&'a Detached);

impl Serialize for Commitments<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let members = self.0.members.iter();
        to.collect_map(members.map(|member| (member.name, json::digest_text(&member.digest))))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::random::Sevens;

    fn parsed(text: &str) -> Value {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn a_commitment_opens_with_salt_and_value_and_only_kept_values_are_kept() {
        let mut detached = Detached::default()
            .keep("label", Some("al\"ice's\n"), &Sevens)
            .keep("actor_name", Some("alice"), &Sevens)
            .keep("user_agent", None::<String>, &Sevens);
        detached.commit("input", &json!({"limit": 10}), &Sevens);

        let commitments = json!(detached.commitments());
        let opened = json::sha256(&[&[7; 32], b"\"alice\""]);
        assert_eq!(commitments["actor_name"], json!(opened));
        assert!(commitments.get("user_agent").is_none());
        let values = json!({"actor_name": "alice", "input": null, "label": "al\"ice's\n"});
        assert_eq!(parsed(&detached.values_json()), values);
        assert_eq!(parsed(&detached.salts_json())["input"], json!(STANDARD.encode([7; 32])));
        assert!(!detached.has_payload());
    }

    #[test]
    fn a_member_that_is_added_again_takes_the_place_of_the_first() {
        let mut detached = Detached::default();
        detached.commit("output", &json!(1), &Sevens);
        detached.keep_payload("output", &json!({"b": 1, "a": [true]}), &Sevens);
        detached.commit("input", &json!(3), &Sevens);

        assert_eq!(detached.values_json(), r#"{"input":null,"output":{"a":[true],"b":1}}"#);
        assert!(detached.has_payload());
        detached.forget("output");
        assert_eq!(detached.values_json(), r#"{"input":null}"#);
        assert!(!detached.has_payload());
    }

    #[test]
    fn a_payload_that_is_too_long_is_committed_to() {
        let mut detached = Detached::default();
        detached.keep_payload("input", &json!("a".repeat(MOST_PAYLOAD_BYTES)), &Sevens);

        assert_eq!(detached.values_json(), r#"{"input":null}"#);
    }
}
