//! Records as they are kept: without the commitments to values that stand beside them, and with the seed of
//! their salts alone. Both are random to any compression, and follow from what is kept.

use std::collections::BTreeMap;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::value::RawValue;

use super::commitment::{NOTHING, commitment_to, salt_of, write_base64};

/// A record in full, and the salts of the values beside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestoredRecord {
    /// As [`super::EventParts::core_json`] writes it.
    pub core: String,
    /// As [`super::Detached::salts_json`] writes them.
    pub salts: String,
}

/// Restores a record from [`super::EventParts::kept_json`], the values of [`super::Detached::write_values`]
/// and the seed of [`super::Detached::write_seed`]. `None` for anything else.
#[must_use]
pub fn restore(kept: &str, values: &str, seed: &str) -> Option<RestoredRecord> {
    let seed = seed.strip_prefix('"')?.strip_suffix('"')?;
    let seed = STANDARD.decode(seed).ok()?.try_into().ok()?;
    let values: BTreeMap<&str, &RawValue> = serde_json::from_str(values).ok()?;
    // No text holds these quotes: in texts they are escaped.
    let start = kept.find(COMMITMENTS)? + COMMITMENTS.len() - "{".len();
    let end = start + kept.get(start..)?.find('}')? + "}".len();
    let mut bare: BTreeMap<&str, &str> = serde_json::from_str(kept.get(start..end)?).ok()?;
    let mut core = String::with_capacity(kept.len() + ROOM * values.len());
    let mut salts = String::with_capacity(ROOM * values.len());
    core.push_str(kept.get(..start)?);
    let mut between = '{';
    for (name, value) in values {
        for text in [&mut core, &mut salts] {
            text.push(between);
            text.push('"');
            text.push_str(name);
            text.push_str("\":");
        }
        between = ',';
        let salt = salt_of(&seed, name);
        write_base64(&salt, &mut salts);
        core.push('"');
        match value.get() {
            NOTHING => core.push_str(bare.remove(name)?),
            text => core.push_str(&commitment_to(&salt, text)),
        }
        core.push('"');
    }
    core.push('}');
    salts.push('}');
    core.push_str(kept.get(end..)?);
    (between == ',' && bare.is_empty()).then_some(RestoredRecord { core, salts })
}

const COMMITMENTS: &str = "\"commitments\":{";

/// Bytes of a commitment or salt with its name, about.
const ROOM: usize = 96;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{audit::Detached, random::Sevens};

    const KEPT: &str =
        r#"{"actor":{"name":"\"commitments\":{"},"commitments":{"input":"sha256:1"},"id":"evt_1"}"#;
    const VALUES: &str = r#"{"input":null,"label":"a"}"#;

    fn seed() -> String {
        let mut seed = String::new();
        Detached::default().keep("label", Some(json!("a")), &Sevens).write_seed(&mut seed);
        seed
    }

    #[test]
    fn commitments_are_added_in_their_place_and_nothing_else_is_changed() {
        let restored = restore(KEPT, VALUES, &seed()).unwrap();

        let (before, after) = KEPT.split_once(r#""sha256:1""#).unwrap();
        let label = restored.core.strip_prefix(before).unwrap().strip_suffix(after).unwrap();
        let label = label.strip_prefix(r#""sha256:1","label":"sha256:"#).unwrap();
        assert_eq!(label.len(), 64 + 1);
        let salts: serde_json::Value = serde_json::from_str(&restored.salts).unwrap();
        assert_eq!(salts.as_object().unwrap().len(), 2);
    }

    #[test]
    fn what_does_not_belong_together_is_refused() {
        let seed = seed();
        for (kept, values, seed) in [
            (KEPT, VALUES, "\"AAAA\""),
            (KEPT, VALUES, "{}"),
            (KEPT, r#"{"label":"a"}"#, &*seed),
            (KEPT, r#"{"input":null,"label":null}"#, &*seed),
            (KEPT, "[]", &*seed),
            (r#"{"id":"evt_1"}"#, VALUES, &*seed),
            (r#"{"commitments":{"input":"sha256:1""#, VALUES, &*seed),
        ] {
            assert_eq!(restore(kept, values, seed), None, "{kept} {values} {seed}");
        }
    }
}
