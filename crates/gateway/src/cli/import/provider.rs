//! One entry of a client as one `[[providers]]`.

use portcullis_core::capability::ProviderSlug;
use serde_json::Value;

use super::{
    document::Entry,
    http,
    imported::Imported,
    members::{ImportedTransport, Members},
    program,
    secrets::{Detectors, quote_name},
    variables::Names,
};

/// The slug for a name. Rejects a name that makes none.
pub(super) fn slug(name: &str) -> Result<String, String> {
    let letters = name.to_ascii_lowercase();
    let words = letters.split(|it: char| !it.is_ascii_alphanumeric());
    let slug = words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join("-");
    if let Err(error) = slug.parse::<ProviderSlug>() {
        return Err(format!("its name makes no slug: {error}; rename it"));
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
    let mut imported = Imported::begin(slug, &entry.name, names);
    if let Some(project) = &entry.project {
        imported.note(format!("Of the project {}.", quote_name(project)));
    }
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
        let names: Vec<_> = members.left.keys().map(|name| quote_name(name)).collect();
        imported.note(format!("Not taken over: {}.", names.join(", ")));
    }
    if TOOL_FILTERS.iter().any(|name| members.left.contains_key(*name)) {
        imported.note("Which tools may be called, and how, is said by policies.");
    }
    Ok(imported)
}

/// Members by which clients choose or trust tools.
const TOOL_FILTERS: [&str; 10] = [
    "alwaysAllow", "autoApprove", "disabledTools", "disabled_tools", "enabledTools",
    "enabled_tools", "excludeTools", "includeTools", "tools", "trust",
];

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
