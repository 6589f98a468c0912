//! One event held against the log: its record against the leaf, its detached values against the commitments in the
//! record. Readers, exports and verification of events ask this.
//!
//! Costs one hash a record, and one for each detached value that is shown. It finds what was changed
//! in a row without its leaf hash; a change of both is found by the tree (`portcullis audit
//! verify`). An event without a place in the log yet has no leaf: of it only the detached values
//! can be held against something.

use std::{borrow::Cow, collections::BTreeMap};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{
    leaf::leaf_bytes,
    merkle::{Hash, leaf_hash},
    row::Sealed,
    view::{NAMES, Shown},
};
use crate::json::{self, Bounds};

/// Name under which [`Verified::mismatches`] lists the record itself.
pub const LEAF: &str = "leaf";

/// Result of holding an event against the log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verified {
    /// Hash of its leaf; `None` if the record is not in the form it was written in.
    pub leaf: Option<Hash>,
    /// Number of detached values that are those committed to.
    pub opened: u64,
    /// Number of detached values without a salt.
    pub unopened: u64,
    /// Names of what is not as the log has it: [`LEAF`] if the record is not the one of the leaf, and those of detached
    /// values that are not those it committed to. Empty if all fits.
    pub mismatches: Vec<String>,
}

/// A detached value with what it is held against.
pub(super) struct DetachedValue<'a> {
    pub(super) name: &'a str,
    /// As JSON.
    pub(super) value: Cow<'a, str>,
    pub(super) salt: Option<&'a str>,
    pub(super) commitment: Option<&'a str>,
}

impl DetachedValue<'_> {
    /// True if the commitment is `SHA-256(salt ‖ canonical(value))`. Values are stored in canonical form.
    fn is_committed(&self, salt: &str) -> bool {
        let (Ok(salt), Some(commitment), false) =
            (STANDARD.decode(salt), self.commitment, salt.is_empty())
        else {
            return false;
        };
        let fits = |value: &str| json::sha256(&[&salt, value.as_bytes()]) == commitment;
        fits(&self.value)
            || json::parse(self.value.as_bytes(), Bounds::RECORDED)
                .is_ok_and(|value| fits(&json::canonical(&value)))
    }
}

/// Holds an event against the log; `fits` says whether its leaf is the one that it should have.
pub(super) fn verify<'a>(
    leaf: Option<Hash>,
    fits: bool,
    values: impl Iterator<Item = DetachedValue<'a>>,
) -> Verified {
    let mismatches = if fits { Vec::new() } else { vec![LEAF.to_owned()] };
    let mut verified = Verified { leaf, mismatches, ..Verified::default() };
    for value in values {
        match value.salt {
            None => verified.unopened += 1,
            Some(salt) if value.is_committed(salt) => verified.opened += 1,
            Some(_) => verified.mismatches.push(value.name.to_owned()),
        }
    }
    verified
}

#[derive(Deserialize)]
struct Committing<'a> {
    #[serde(borrow, default)]
    commitments: BTreeMap<Cow<'a, str>, Cow<'a, str>>,
}

impl Sealed<'_> {
    /// Holds the event against the log, with those of its detached values that are `shown`.
    #[must_use]
    pub fn verify(&self, shown: Shown) -> Verified {
        let leaf = leaf_bytes(self.core, self.sequence, self.recorded_at);
        let leaf = leaf.ok().map(|leaf| leaf_hash(leaf.as_bytes()));
        let fits = leaf == Some(self.leaf_hash);
        verify_stored(leaf, fits, [Some(self.core), self.detached, self.salts], shown)
    }

    /// Names what is not as the log has it.
    #[must_use]
    pub fn mismatches(&self, shown: Shown) -> Vec<String> {
        self.verify(shown).mismatches
    }
}

/// Names of those detached values `shown` that are not those the record `core` committed to. All
/// three are JSON as it is stored; a value whose salt is gone fits nothing, for both go together.
#[must_use]
pub fn uncommitted(
    core: &str,
    detached: Option<&str>,
    salts: Option<&str>,
    shown: Shown,
) -> Vec<String> {
    verify_stored(None, true, [Some(core), detached, salts], shown).mismatches
}

fn verify_stored(
    leaf: Option<Hash>,
    fits: bool,
    [core, detached, salts]: [Option<&str>; 3],
    shown: Shown,
) -> Verified {
    let (Some(core), Some(detached), false) = (core, detached, shown == Shown::Bare) else {
        return verify(leaf, fits, std::iter::empty());
    };
    let record = serde_json::from_str::<Committing<'_>>(core);
    let values = serde_json::from_str::<BTreeMap<Cow<'_, str>, &RawValue>>(detached);
    let salts = serde_json::from_str::<BTreeMap<Cow<'_, str>, Cow<'_, str>>>(salts.unwrap_or("{}"));
    let (Ok(record), Ok(values), Ok(salts)) = (record, values, salts) else {
        let mut verified = verify(leaf, fits, std::iter::empty());
        verified.mismatches.push("detached".to_owned());
        return verified;
    };
    let is_shown = |name: &str| shown == Shown::Whole || NAMES.contains(&name);
    let values = values.iter().filter(|(name, value)| is_shown(name) && value.get() != "null");
    let values = values.map(|(name, value)| DetachedValue {
        name,
        value: Cow::Borrowed(value.get()),
        // Value and salt go together.
        salt: Some(salts.get(name).map_or("", |salt| &**salt)),
        commitment: record.commitments.get(name).map(|commitment| &**commitment),
    });
    verify(leaf, fits, values)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{audit::Detached, clock::Timestamp, random::Sevens};

    struct Row {
        core: String,
        detached: String,
        salts: String,
        leaf_hash: [u8; 32],
    }

    impl Row {
        fn new() -> Self {
            let detached = Detached::default()
                .keep("actor_name", Some("alice"), &Sevens)
                .keep("input", Some(json!({"n": 1})), &Sevens)
                .keep("label", None::<String>, &Sevens);
            let commitments = serde_json::to_string(&detached.commitments()).unwrap();
            let core = format!(
                r#"{{"commitments":{commitments},"id":"evt_1","request":null,"target":null}}"#
            );
            let leaf = leaf_bytes(&core, 7, Timestamp::default()).unwrap();
            Self {
                detached: detached.values_json(),
                salts: detached.salts_json(),
                leaf_hash: leaf_hash(leaf.as_bytes()),
                core,
            }
        }

        fn mismatches(&self, shown: Shown) -> Vec<String> {
            let sealed = Sealed {
                core: &self.core,
                detached: Some(&self.detached),
                salts: Some(&self.salts),
                sequence: 7,
                recorded_at: Timestamp::default(),
                leaf_hash: self.leaf_hash,
            };
            sealed.mismatches(shown)
        }
    }

    #[test]
    fn a_record_as_it_was_written_fits() {
        let row = Row::new();

        for shown in [Shown::Bare, Shown::Named, Shown::Whole] {
            assert!(row.mismatches(shown).is_empty(), "{shown:?}");
        }
        let spaced = Row { detached: row.detached.replace("{\"n\":1}", "{ \"n\": 1 }"), ..row };
        assert!(spaced.mismatches(Shown::Whole).is_empty());
    }

    #[test]
    fn what_was_changed_is_named() {
        let changed =
            |from: &str, to: &str| Row { core: Row::new().core.replace(from, to), ..Row::new() };
        let named = |detached: &str| Row { detached: detached.to_owned(), ..Row::new() };

        assert_eq!(changed("evt_1", "evt_2").mismatches(Shown::Bare), [LEAF]);
        assert_eq!(changed("\"request\"", "\"asked\"").mismatches(Shown::Bare), [LEAF]);
        let renamed = named(r#"{"actor_name":"bob","input":{"n":1}}"#);
        assert!(renamed.mismatches(Shown::Bare).is_empty(), "it is not shown");
        assert_eq!(renamed.mismatches(Shown::Named), ["actor_name"]);
        let paid = named(r#"{"actor_name":"alice","input":{"n":2}}"#);
        assert!(paid.mismatches(Shown::Named).is_empty(), "it is not shown");
        assert_eq!(paid.mismatches(Shown::Whole), ["input"]);
        let added = named(r#"{"actor_name":"alice","input":{"n":1},"label":"mine"}"#);
        assert_eq!(added.mismatches(Shown::Named), ["label"]);
        let unsalted = Row { salts: "{}".to_owned(), ..Row::new() };
        assert_eq!(unsalted.mismatches(Shown::Named), ["actor_name"]);
        assert_eq!(named("[]").mismatches(Shown::Named), ["detached"]);
        let erased = Row { salts: "{}".to_owned(), ..named(r#"{"actor_name":null}"#) };
        assert!(erased.mismatches(Shown::Whole).is_empty(), "what is erased is gone, not changed");
    }
}
