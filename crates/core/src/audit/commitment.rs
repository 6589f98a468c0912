//! The erasable part of an event and the salted commitments to it.

use std::{fmt, ops::Range};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::{Serialize, Serializer, ser::SerializeMap as _};
use serde_json::Value;

use crate::{
    audit::MOST_PAYLOAD_BYTES,
    json::{self, JsonValue},
    random::{self, Random},
};

/// A salt, or the seed of the salts of an event.
type Salt = [u8; 32];
/// Bytes of a salt in base64.
const SALT: usize = 44;
/// Members for which room is made at once: no call has more.
const MEMBERS: usize = 8;
/// The same of what is kept of a call without its payload.
const USUAL_BYTES: usize = 512;

/// Personal data and payload: hashed with a salt into the log, kept beside it or not at all.
///
/// Values are held as the canonical text that is hashed, so that nothing is written twice. Each salt is the
/// SHA-256 of its member's name and a seed, which is random: none leads to another. What is kept of an event
/// has the seed, and the commitments to values that are not kept; the others follow ([`restore`]). Members
/// are ordered by name, as the canonical form wants them.
#[derive(Clone, Default)]
pub struct Detached {
    members: Vec<DetachedMember>,
    /// Kept values, one behind the other.
    kept: String,
    /// Drawn with the first member.
    seed: Option<Salt>,
}

#[derive(Clone)]
struct DetachedMember {
    name: &'static str,
    value: MemberValue,
}

#[derive(Clone)]
enum MemberValue {
    /// Its place among the kept values.
    Kept(Range<usize>),
    /// The commitment as it is recorded: `sha256:` and hexadecimal digits.
    Committed(String),
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

    /// Adds a text that is kept; nothing if there is none.
    #[must_use]
    pub fn keep_text(
        mut self,
        name: &'static str,
        text: Option<&str>,
        source: &dyn Random,
    ) -> Self {
        if let Some(text) = text {
            self.set_written(name, |out| json::write_string(text, out), source);
        }
        self
    }

    /// Adds the value that is kept and that `write` appends in its canonical form.
    pub fn set_written(
        &mut self,
        name: &'static str,
        write: impl FnOnce(&mut String),
        source: &dyn Random,
    ) {
        let from = self.kept.len();
        if self.kept.capacity() == 0 {
            self.kept.reserve(USUAL_BYTES);
        }
        write(&mut self.kept);
        self.add_written(name, from, usize::MAX, source);
    }

    /// Adds a value that is kept.
    pub fn set(&mut self, name: &'static str, value: &Value, source: &dyn Random) {
        self.add_up_to(usize::MAX, name, value, source);
    }

    /// Adds a value of which only the commitment `SHA-256(salt ‖ canonical(value))` is kept: a
    /// party that holds the original can later prove that it is the one.
    pub fn commit<'a>(
        &mut self,
        name: &'static str,
        value: impl JsonValue<'a>,
        source: &dyn Random,
    ) {
        match value.known_canonical() {
            Some(text) => self.add(name, text, None, source),
            None => self.add_up_to(0, name, value, source),
        }
    }

    /// Adds a payload that is kept, unless it is too long to be: then it is committed to.
    pub fn keep_payload<'a>(
        &mut self,
        name: &'static str,
        value: impl JsonValue<'a>,
        source: &dyn Random,
    ) {
        self.add_up_to(MOST_PAYLOAD_BYTES, name, value, source);
    }

    /// Adds a value, which is kept if its canonical form has no more than `most` bytes.
    fn add_up_to<'a>(
        &mut self,
        most: usize,
        name: &'static str,
        value: impl JsonValue<'a>,
        source: &dyn Random,
    ) {
        let from = self.kept.len();
        json::write_canonical(value, &mut self.kept);
        self.add_written(name, from, most, source);
    }

    /// Adds the value that was written behind what is kept.
    fn add_written(&mut self, name: &'static str, from: usize, most: usize, source: &dyn Random) {
        let mut kept = std::mem::take(&mut self.kept);
        let text = kept.get(from..).unwrap_or_default();
        let place = (text.len() <= most).then_some(from..kept.len());
        let is_kept = place.is_some();
        self.add(name, text, place, source);
        if !is_kept {
            kept.truncate(from);
        }
        self.kept = kept;
    }

    /// Adds a member by its canonical text, in the place of one of the same name.
    fn add(
        &mut self,
        name: &'static str,
        text: &str,
        kept: Option<Range<usize>>,
        source: &dyn Random,
    ) {
        let seed = self.seed.get_or_insert_with(|| random::bytes(source));
        // A value that is nothing looks like one that is not kept.
        let value = match kept.filter(|_| text != NOTHING) {
            Some(place) => MemberValue::Kept(place),
            None => MemberValue::Committed(commitment_to(&salt_of(seed, name), text)),
        };
        let member = DetachedMember { name, value };
        if self.members.is_empty() {
            self.members.reserve(MEMBERS);
        }
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
        Commitments { detached: self, with_kept: true }
    }

    /// Of these, the commitments to values that are not kept.
    pub(super) const fn bare_commitments(&self) -> Commitments<'_> {
        Commitments { detached: self, with_kept: false }
    }

    /// Writes the values that are kept, by member, as JSON; `null` where only the commitment is.
    pub fn write_values(&self, out: &mut String) {
        self.write(out, |member, out| out.push_str(self.kept_of(member).unwrap_or(NOTHING)));
    }

    /// Writes the seed of the salts as JSON: a text in base64, or an empty object without members.
    pub fn write_seed(&self, out: &mut String) {
        match &self.seed {
            Some(seed) if !self.members.is_empty() => write_base64(seed, out),
            Some(_) | None => out.push_str("{}"),
        }
    }

    /// The values, as [`Self::write_values`] writes them.
    #[must_use]
    pub fn values_json(&self) -> String {
        let mut out = String::new();
        self.write_values(&mut out);
        out
    }

    /// The salts in base64, by member, as JSON: a holder of value and salt can check the commitment.
    #[must_use]
    pub fn salts_json(&self) -> String {
        let mut out = String::new();
        let seed = self.seed.unwrap_or_default();
        self.write(&mut out, |member, out| write_base64(&salt_of(&seed, member.name), out));
        out
    }

    /// Bytes that values and seed take together, at most.
    #[must_use]
    pub fn written_len(&self) -> usize {
        let names: usize = self.members.iter().map(|member| member.name.len()).sum();
        let one = "\"\":null,".len();
        self.kept.len() + names + one * self.members.len() + "{}".len() + SALT + "\"\"".len()
    }

    /// Returns true if a payload is kept, not only committed to.
    #[must_use]
    pub fn has_payload(&self) -> bool {
        let payload = |member: &&DetachedMember| matches!(member.name, "input" | "output");
        self.members.iter().filter(payload).any(|member| self.kept_of(member).is_some())
    }

    fn kept_of(&self, member: &DetachedMember) -> Option<&str> {
        match &member.value {
            MemberValue::Kept(place) => self.kept.get(place.clone()),
            MemberValue::Committed(_) => None,
        }
    }

    /// Writes an object with something of each member. Their names need no escaping.
    fn write(&self, out: &mut String, write: impl Fn(&DetachedMember, &mut String)) {
        out.push('{');
        for (index, member) in self.members.iter().enumerate() {
            if index > 0 {
                out.push(',');
            }
            out.push('"');
            out.push_str(member.name);
            out.push_str("\":");
            write(member, out);
        }
        out.push('}');
    }
}

/// Text in the place of a value that is not kept.
pub(super) const NOTHING: &str = "null";

/// Salt of a member. Names are not secret, so the seed makes it.
pub(super) fn salt_of(seed: &Salt, name: &str) -> Salt {
    json::digest(&[name.as_bytes(), seed])
}

/// Commitment to the canonical text of a value with its salt.
pub(super) fn commitment_to(salt: &Salt, text: &str) -> String {
    json::sha256(&[salt, text.as_bytes()])
}

/// Writes a salt or a seed as a text in base64.
pub(super) fn write_base64(salt: &Salt, out: &mut String) {
    out.push('"');
    STANDARD.encode_string(salt, out);
    out.push('"');
}

/// Names alone: what is personal is printed by nothing.
impl fmt::Debug for Detached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.members.iter().map(|member| member.name)).finish()
    }
}

/// Commitments to the members of [`Detached`], as they are recorded.
#[derive(Debug)]
pub struct Commitments<'a> {
    detached: &'a Detached,
    /// False for those alone whose values are not kept.
    with_kept: bool,
}

impl Serialize for Commitments<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let seed = self.detached.seed.unwrap_or_default();
        let mut map = to.serialize_map(None)?;
        for member in &self.detached.members {
            match &member.value {
                MemberValue::Committed(digest) => map.serialize_entry(member.name, digest)?,
                MemberValue::Kept(_) if !self.with_kept => {}
                MemberValue::Kept(_) => {
                    let text = self.detached.kept_of(member).unwrap_or(NOTHING);
                    let salt = salt_of(&seed, member.name);
                    map.serialize_entry(member.name, &commitment_to(&salt, text))?;
                }
            }
        }
        map.end()
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
        let salt = |name: &str| json::digest(&[name.as_bytes(), &[7; 32]]);
        let opened = json::sha256(&[&salt("actor_name"), b"\"alice\""]);
        assert_eq!(commitments["actor_name"], json!(opened));
        assert!(commitments.get("user_agent").is_none());
        let values = json!({"actor_name": "alice", "input": null, "label": "al\"ice's\n"});
        assert_eq!(parsed(&detached.values_json()), values);
        let salts = parsed(&detached.salts_json());
        assert_eq!(salts["input"], json!(STANDARD.encode(salt("input"))));
        assert_ne!(salts["input"], salts["label"]);
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
