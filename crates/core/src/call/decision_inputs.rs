//! Inputs of decisions as text.

use std::ops::Range;

/// Inputs of the decisions about a call by name, each in its canonical form.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DecisionInputs {
    text: String,
    /// In the order of names.
    members: Vec<(&'static str, Range<usize>)>,
}

impl DecisionInputs {
    /// None yet, with room for those that most decisions have.
    pub(super) fn with_room() -> Self {
        Self { text: String::with_capacity(256), members: Vec::with_capacity(6) }
    }

    /// True if there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Adds the value that `write` appends in its canonical form, in the place of one of the same
    /// name.
    pub(super) fn add(&mut self, name: &'static str, write: impl FnOnce(&mut String)) {
        let start = self.text.len();
        write(&mut self.text);
        let value = start..self.text.len();
        match self.members.binary_search_by(|(known, _)| (*known).cmp(name)) {
            Ok(at) => {
                if let Some((_, known)) = self.members.get_mut(at) {
                    *known = value;
                }
            }
            Err(at) => self.members.insert(at, (name, value)),
        }
    }

    /// Adds those of another decision about the same call.
    pub fn extend(&mut self, other: &Self) {
        for (name, value) in &other.members {
            self.add(name, |text| text.push_str(other.value(value)));
        }
    }

    /// Writes them as one object in canonical form. Their names are plain.
    pub fn write(&self, out: &mut String) {
        out.push('{');
        for (index, (name, value)) in self.members.iter().enumerate() {
            out.push_str(if index > 0 { ",\"" } else { "\"" });
            out.push_str(name);
            out.push_str("\":");
            out.push_str(self.value(value));
        }
        out.push('}');
    }

    fn value(&self, place: &Range<usize>) -> &str {
        self.text.get(place.clone()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(members: &[(&'static str, &str)]) -> DecisionInputs {
        let mut inputs = DecisionInputs::default();
        for (name, value) in members {
            inputs.add(name, |text| text.push_str(value));
        }
        inputs
    }

    #[test]
    fn inputs_of_both_sides_are_one_object_in_order() {
        let mut inputs = of(&[("request", "1"), ("dlp", "{}"), ("output", "0")]);

        inputs.extend(&of(&[("output", "[2]"), ("dlp_output", "3")]));

        let mut text = String::new();
        inputs.write(&mut text);
        assert_eq!(text, r#"{"dlp":{},"dlp_output":3,"output":[2],"request":1}"#);
        assert!(!inputs.is_empty() && DecisionInputs::default().is_empty());
    }
}
