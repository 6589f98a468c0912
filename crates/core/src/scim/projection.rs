//! `attributes` and `excludedAttributes` (RFC 7644 §3.9).

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::{
    ScimError,
    object::{attribute_name, invalid, without_core_schema},
};

/// Names in a list at most.
const MOST: usize = 50;
/// Attributes that every answer has.
const ALWAYS: [&str; 2] = ["schemas", "id"];

/// Attributes of the resources in an answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ScimProjection {
    /// Only these, where any are named.
    only: BTreeSet<String>,
    /// All but these.
    without: BTreeSet<String>,
}

impl ScimProjection {
    /// Reads the two lists of names, which commas separate.
    ///
    /// # Errors
    /// `invalidValue` for what is no list of names.
    pub fn parse(only: Option<&str>, without: Option<&str>) -> Result<Self, ScimError> {
        Ok(Self {
            only: names(only.unwrap_or_default())?,
            without: names(without.unwrap_or_default())?,
        })
    }

    /// True if the answer has this attribute, or parts of it.
    #[must_use]
    pub fn shows(&self, attribute: &str) -> bool {
        let attribute = attribute.to_ascii_lowercase();
        let is_named = |name: &String| name.split('.').next() == Some(attribute.as_str());
        ALWAYS.contains(&attribute.as_str())
            || (!self.without.contains(&attribute)
                && (self.only.is_empty() || self.only.iter().any(is_named)))
    }

    /// Takes away what is not asked for.
    pub fn apply(&self, resource: &mut Map<String, Value>) {
        resource.retain(|name, _| self.shows(name));
        for (name, value) in resource.iter_mut() {
            if let Value::Object(parts) = value {
                let name = name.to_ascii_lowercase();
                let whole = self.only.is_empty() || self.only.contains(&name);
                parts.retain(|part, _| {
                    let path = format!("{name}.{}", part.to_ascii_lowercase());
                    !self.without.contains(&path) && (whole || self.only.contains(&path))
                });
            }
        }
    }
}

fn names(list: &str) -> Result<BTreeSet<String>, ScimError> {
    let names = list.split(',').map(str::trim).filter(|name| !name.is_empty());
    let names: Vec<&str> = names.take(MOST + 1).collect();
    if names.len() > MOST {
        return Err(invalid(format!("A list of attributes has {MOST} names at most.")));
    }
    // Attributes of extensions are never shown, so that their names do not matter.
    let is_core = |name: &&&str| without_core_schema(name) != **name || !name.contains(':');
    let known = names.iter().filter(is_core).map(|name| attribute_name(name));
    known
        .map(|name| name.ok_or_else(|| invalid("A list of attributes has names and commas only.")))
        .collect()
}
