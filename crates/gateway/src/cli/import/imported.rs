//! One `[[providers]]` in the making: its settings, and the variables that they refer to.

use std::collections::BTreeMap;

use portcullis_core::secret::Secret;

use super::{
    secrets::quoted,
    variables::{Names, Variable},
};

/// A provider as it is written.
#[derive(Debug)]
pub(super) struct Imported<'a> {
    pub(super) slug: String,
    names: &'a mut Names,
    pub(super) entry: String,
    pub(super) variables: Vec<Variable>,
    pub(super) notes: Vec<String>,
    /// Warnings that the operator has to read before the gateway runs it.
    pub(super) warnings: Vec<String>,
}

impl<'a> Imported<'a> {
    /// An entry that says only what it is called.
    pub(super) fn begin(slug: &str, name: &str, names: &'a mut Names) -> Self {
        let mut entry = format!("[[providers]]\nslug = {}\n", quoted(slug));
        if name != slug {
            entry.extend(["name = ", &quoted(name), "\n"]);
        }
        let slug = slug.to_owned();
        Self { slug, names, entry, variables: Vec::new(), notes: Vec::new(), warnings: Vec::new() }
    }

    /// Adds a setting whose value is TOML already.
    pub(super) fn set(&mut self, key: &str, value: &str) {
        self.entry.extend([key, " = ", value, "\n"]);
    }

    /// A reference to the variable that stands for a value.
    pub(super) fn refer(&mut self, part: &str, value: &str, what: &str) -> String {
        let variable = self.names.variable(&self.slug, part, value, what);
        let reference = format!("{{ env = {} }}", quoted(&variable.name));
        if self.variables.iter().all(|known| known.name != variable.name) {
            self.variables.push(variable);
        }
        reference
    }

    /// A reference to the variable that a value names, with the default that is taken if that is not set.
    pub(super) fn refer_or(&mut self, value: &str, default: &str, what: &str) -> String {
        let variable = self.names.variable(&self.slug, "", value, what);
        self.note(format!("May be set: {} for {what}.", variable.name));
        format!("{{ env = {}, default = {} }}", quoted(&variable.name), quoted(default))
    }

    /// Takes the variables whose values the client has: the operator need not set them.
    pub(super) fn take_values(&mut self) -> BTreeMap<String, Secret> {
        let known = self.variables.extract_if(.., |variable| variable.value.is_some());
        known.filter_map(|variable| Some((variable.name, variable.value?))).collect()
    }

    pub(super) fn note(&mut self, text: impl Into<String>) {
        self.notes.push(text.into());
    }

    /// The entry under its notes.
    pub(super) fn text(&self) -> String {
        let mut text = String::from("\n");
        for warning in &self.warnings {
            text.extend(["# WARNING: ", warning, "\n"]);
        }
        for variable in &self.variables {
            text.extend(["# Set ", &variable.name, ": ", &variable.holds, ".\n"]);
        }
        for note in &self.notes {
            text.extend(["# ", note, "\n"]);
        }
        text.push_str(&self.entry);
        text
    }
}
