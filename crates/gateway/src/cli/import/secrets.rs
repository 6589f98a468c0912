//! Secrets in the settings of clients: where they may be, and which variable stands for them.

use portcullis_core::dlp::{Category, Engine, FingerprintKey, Settings};
use serde_json::Value;

use crate::cli::Failure;

/// Parts of names of what is secret.
const SECRET_NAMES: [&str; 13] = [
    "key",
    "token",
    "secret",
    "passw",
    "passphrase",
    "pwd",
    "auth",
    "cred",
    "cookie",
    "session",
    "signature",
    "dsn",
    "pin",
];

/// A name as it is told to people: in quotes, without what would end a comment, and not endless.
pub(super) fn shown(name: &str) -> String {
    let cut: String = name.chars().take(80).collect();
    format!("{cut:?}")
}

/// A string of TOML in one line.
pub(super) fn quoted(text: &str) -> String {
    Value::from(text).to_string().replace('\u{7f}', "\\u007F")
}

/// A variable of the gateway's environment that has to be set.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Variable {
    pub(super) name: String,
    /// Content of the value, in words.
    pub(super) holds: String,
}

impl Variable {
    /// The variable for a value. One that is a reference itself stays it, so that whoever has set it
    /// needs to do nothing.
    pub(super) fn of(slug: &str, part: &str, value: &str, what: &str) -> Self {
        match Reference::parse(value) {
            Some(Reference::Environment(name)) => {
                Self { holds: format!("{what}, as in the client"), name: name.to_owned() }
            }
            Some(Reference::Asked(input)) => Self {
                name: derived(slug, input),
                holds: format!("{what}, for which the client asks as {}", shown(input)),
            },
            None => Self { name: derived(slug, part), holds: format!("the value of {what}") },
        }
    }
}

/// A name that no other entry gets, and that is no setting of the gateway.
fn derived(slug: &str, part: &str) -> String {
    let name = format!("MCP_{slug}_{part}");
    name.chars()
        .map(|it| if it.is_ascii_alphanumeric() { it.to_ascii_uppercase() } else { '_' })
        .collect()
}

/// Reference that a client puts in the place of a whole value.
enum Reference<'a> {
    /// A variable of its environment.
    Environment(&'a str),
    /// Question to the person.
    Asked(&'a str),
}

impl<'a> Reference<'a> {
    /// `${NAME}`, `${env:NAME}`, `${NAME:-default}`, `$NAME` or `${input:ID}`, and nothing beside it.
    fn parse(value: &'a str) -> Option<Self> {
        let inner = match value.strip_prefix("${") {
            Some(rest) => rest.strip_suffix('}')?,
            None => value.strip_prefix('$')?,
        };
        if let Some(id) = inner.strip_prefix("input:") {
            return (!id.contains(['$', '}'])).then_some(Self::Asked(id));
        }
        let inner = inner.strip_prefix("env:").unwrap_or(inner);
        let name = inner.split_once(":-").map_or(inner, |(name, _)| name);
        is_usable_variable(name).then_some(Self::Environment(name))
    }
}

/// A name that variables can have, and that the gateway does not take for a setting of its own.
pub(super) fn is_usable_variable(name: &str) -> bool {
    let letter = |it: u8| it.is_ascii_alphabetic() || it == b'_';
    name.bytes().next().is_some_and(letter)
        && name.bytes().all(|it| letter(it) || it.is_ascii_digit())
        && name.len() <= 128
        && !name.starts_with("PORTCULLIS_")
}

/// True if a client would put something else into this text.
pub(super) fn is_expanded(text: &str) -> bool {
    let mut pairs = text.as_bytes().windows(2);
    pairs.any(|pair| matches!(pair, [b'$', b'{' | b'_' | b'A'..=b'Z' | b'a'..=b'z']))
}

/// True if what has this name may be secret.
pub(super) fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SECRET_NAMES.iter().any(|part| name.contains(part))
}

/// Finds secrets in texts that have to be printed.
pub(super) struct Detectors(Engine);

impl Detectors {
    pub(super) fn new() -> Result<Self, Failure> {
        Ok(Self(Engine::new(&Settings::default())?))
    }

    /// True if a text may be secret, or hold a secret: that is looked for more eagerly than in calls.
    pub(super) fn suspect(&self, text: &str) -> bool {
        let found = self.0.scan(&Value::from(text), &FingerprintKey::new([0; 32]));
        let found = found.map(|found| found.iter().any(|it| it.category() == Category::Secret));
        found.unwrap_or(true) || looks_random(text) || text_with_password(text)
    }
}

/// A long run of letters and digits, which neither words nor versions have.
fn looks_random(text: &str) -> bool {
    text.split(|it: char| !it.is_ascii_alphanumeric()).any(|run| {
        run.len() >= 16
            && run.bytes().any(|it| it.is_ascii_digit())
            && run.bytes().any(|it| it.is_ascii_alphabetic())
    })
}

/// A URL with a password, such as that of a database.
fn text_with_password(text: &str) -> bool {
    let authority = text.split_once("://").map(|(_, rest)| rest.split(['/', '?', '#']).next());
    authority
        .flatten()
        .and_then(|it| it.rsplit_once('@'))
        .is_some_and(|(user, _)| user.contains(':'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_of_the_client_stays_one_unless_it_would_be_a_setting_of_ours() {
        for (value, name) in [
            ("${GITHUB_TOKEN}", "GITHUB_TOKEN"),
            ("${env:GITHUB_TOKEN}", "GITHUB_TOKEN"),
            ("${GITHUB_TOKEN:-x}", "GITHUB_TOKEN"),
            ("$GITHUB_TOKEN", "GITHUB_TOKEN"),
            ("${input:github-token}", "MCP_GIT_HUB_GITHUB_TOKEN"),
            ("${PORTCULLIS_KEYS__FILE}", "MCP_GIT_HUB_TOKEN"),
            ("${A}${B}", "MCP_GIT_HUB_TOKEN"),
            ("${A\n}", "MCP_GIT_HUB_TOKEN"),
            ("ghp_0123", "MCP_GIT_HUB_TOKEN"),
            ("$", "MCP_GIT_HUB_TOKEN"),
        ] {
            assert_eq!(Variable::of("git-hub", "token", value, "it").name, name, "{value}");
        }
    }

    #[test]
    fn secrets_are_suspected_and_words_are_not() {
        let detectors = Detectors::new().unwrap();
        for text in [
            "postgresql://me:pass@db.example/x",
            "ghp_aBcDeFgHiJkLmNoPqRsTuVwXyZ0123456789",
            "Bearer 0a1b2c3d4e5f6a7b8c9d",
        ] {
            assert!(detectors.suspect(text), "{text}");
        }
        for text in [
            "-y",
            "@modelcontextprotocol/server-github@2025.4.8",
            "/srv/shared/projects",
            "https://mcp.example.com/v1/mcp",
            "postgresql://localhost/shop",
        ] {
            assert!(!detectors.suspect(text), "{text}");
        }
    }
}
