//! One entry of a client as one `[[providers]]`.

use std::collections::BTreeMap;

use portcullis_core::{policy::Catalogue, secret::Secret, tool::ProviderSlug};
use serde_json::{Map, Value};

use super::{
    document::Entry,
    http, program,
    secrets::{Detectors, quoted, shown},
    variables::{Names, Variable},
};

/// A provider as it is written.
#[derive(Debug)]
pub(super) struct Imported<'a> {
    pub(super) slug: String,
    names: &'a mut Names,
    /// The `[[providers]]` entry.
    pub(super) entry: String,
    pub(super) variables: Vec<Variable>,
    pub(super) notes: Vec<String>,
    /// Warnings that the operator has to read before the gateway runs it.
    pub(super) warnings: Vec<String>,
}

impl<'a> Imported<'a> {
    /// An entry that says only what it is called.
    fn named(slug: &str, name: &str, names: &'a mut Names) -> Self {
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

/// The slug for a name. Rejects a name that makes none.
pub(super) fn slug(name: &str) -> Result<String, String> {
    let letters = name.to_ascii_lowercase();
    let words = letters.split(|it: char| !it.is_ascii_alphanumeric());
    let slug = words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join("-");
    if slug.parse::<ProviderSlug>().is_err() {
        return Err(
            "its name makes no slug, which is 1 to 63 of a-z, 0-9 and `-`; rename it".to_owned()
        );
    }
    if slug == Catalogue::RESERVED_PROVIDER {
        return Err(format!("the slug `{slug}` is reserved for action groups; rename it"));
    }
    if name.chars().any(char::is_control) || name.chars().count() > 200 {
        return Err("its name has control characters or is longer than 200; rename it".to_owned());
    }
    Ok(slug)
}

/// The provider that an entry becomes, or what is in the way and what to do about it.
pub(super) fn import<'a>(
    slug: &str,
    entry: &Entry,
    detectors: &Detectors,
    names: &'a mut Names,
) -> Result<Imported<'a>, String> {
    let mut members = Members { left: entry.members.clone() };
    let disabled = members.left.remove("disabled") == Some(Value::Bool(true));
    if disabled || members.left.remove("enabled") == Some(Value::Bool(false)) {
        return Err("it is switched off in the client; switch it on there to import it".to_owned());
    }
    for idle in ["name", "description", "version", "icon", "gallery", "title"] {
        members.left.remove(idle);
    }
    let mut imported = Imported::named(slug, &entry.name, names);
    match members.kind()? {
        ImportedTransport::Program => {
            let program = program::Program::read(&mut members)?;
            match program.bridged()? {
                Some(remote) => http::import(remote, &mut imported, detectors)?,
                None => program.import(&mut imported, detectors)?,
            }
        }
        ImportedTransport::Http => {
            let remote = http::Remote::read(&mut members)?;
            http::import(remote, &mut imported, detectors)?;
        }
    }
    if let Some(Value::Number(seconds)) = members.left.remove("tool_timeout_sec") {
        let seconds = seconds.as_f64().unwrap_or(30.0).clamp(1.0, 300.0).ceil();
        imported.set("timeout_seconds", &seconds.to_string());
    }
    if !members.left.is_empty() {
        let names: Vec<_> = members.left.keys().map(|name| shown(name)).collect();
        imported.note(format!("Not taken over: {}.", names.join(", ")));
    }
    if TOOL_FILTERS.iter().any(|name| members.left.contains_key(*name)) {
        imported.note("Which tools may be called, and how, is said by policies.");
    }
    Ok(imported)
}

/// Members by which clients choose or trust tools.
const TOOL_FILTERS: [&str; 10] = [
    "alwaysAllow",
    "autoApprove",
    "disabledTools",
    "disabled_tools",
    "enabledTools",
    "enabled_tools",
    "excludeTools",
    "includeTools",
    "tools",
    "trust",
];

enum ImportedTransport {
    Http,
    Program,
}

/// The members of an entry that are still unread.
pub(super) struct Members {
    pub(super) left: Map<String, Value>,
}

impl Members {
    fn kind(&mut self) -> Result<ImportedTransport, String> {
        let kind = self.text("type")?;
        let transport = self.text("transport")?;
        let named = kind.or(transport).map(|it| it.to_ascii_lowercase().replace(['-', '_'], ""));
        let has_address =
            ["url", "serverUrl", "httpUrl"].iter().any(|name| self.left.contains_key(*name));
        let has_command = self.left.contains_key("command");
        match (named.as_deref(), has_address, has_command) {
            (_, true, true) => Err("it has both an address and a command; remove one".to_owned()),
            (Some("sse"), ..) => Err(SSE.to_owned()),
            (None | Some("http" | "streamablehttp"), true, false) => Ok(ImportedTransport::Http),
            (None | Some("stdio" | "local"), false, true) => Ok(ImportedTransport::Program),
            (None, false, false) => Err("it has neither a `url` nor a `command`".to_owned()),
            (Some(_), ..) => Err("its `type` does not fit: `http` goes with `url`, `stdio` with \
                                  `command`, and there is no other"
                .to_owned()),
        }
    }

    /// A text, if there is one.
    pub(super) fn text(&mut self, name: &str) -> Result<Option<String>, String> {
        match self.left.remove(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
                Err(format!("its `{name}` has to be a text"))
            }
        }
    }

    /// A list of texts; empty if there is none.
    pub(super) fn texts(&mut self, name: &str) -> Result<Vec<String>, String> {
        let wrong = || format!("its `{name}` has to be a list of texts");
        match self.left.remove(name) {
            None | Some(Value::Null) => Ok(Vec::new()),
            Some(Value::Array(items)) => items
                .into_iter()
                .map(|item| item.as_str().map(str::to_owned).ok_or_else(wrong))
                .collect(),
            Some(Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_)) => {
                Err(wrong())
            }
        }
    }

    /// Names with texts; numbers, `true` and `false` count as the texts that they are written as.
    pub(super) fn pairs(&mut self, name: &str) -> Result<Vec<(String, String)>, String> {
        let wrong = || format!("its `{name}` has to be an object with texts");
        match self.left.remove(name) {
            None | Some(Value::Null) => Ok(Vec::new()),
            Some(Value::Object(members)) => members
                .into_iter()
                .map(|(name, value)| match value {
                    Value::String(text) => Ok((name, text)),
                    Value::Bool(_) | Value::Number(_) => Ok((name, value.to_string())),
                    Value::Null | Value::Array(_) | Value::Object(_) => Err(wrong()),
                })
                .collect(),
            Some(Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => {
                Err(wrong())
            }
        }
    }
}

/// Advice for a server of the first HTTP transport.
pub(super) const SSE: &str = "it speaks HTTP+SSE, the transport that MCP replaced in 2025 and that this gateway does \
     not speak; use the server's streamable HTTP address, which often ends in `/mcp`";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_makes_a_slug_or_is_refused() {
        for (name, wanted) in [
            ("github", Some("github")),
            ("Git Hub (prod)", Some("git-hub-prod")),
            ("io.github.me/server_2", Some("io-github-me-server-2")),
            ("", None),
            ("--", None),
            ("日本", None),
            ("hint", None),
            ("a\n[server]\nlisten = \"0.0.0.0:1\"", None),
            (&"x".repeat(64), None),
        ] {
            assert_eq!(slug(name).ok().as_deref(), wanted, "{name}");
        }
    }
}
