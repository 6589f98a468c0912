//! Secrets in the settings of clients: what may be one, and what is none.

use std::fmt::Write as _;

use portcullis_core::{
    dlp::{Category, Engine, FingerprintKey, Settings},
    hidden::is_hidden,
};
use serde_json::Value;

use crate::cli::output::{Failure, visible};

/// Parts of names of what is secret.
const SECRET_NAMES: [&str; 13] = [
    "key", "token", "secret", "passw", "passphrase", "pwd", "auth", "cred", "cookie", "session",
    "signature", "dsn", "pin",
];

/// Values that are no secrets.
const PLAIN: [&str; 27] = [
    "debug", "dev", "development", "error", "false", "http", "info", "json", "local", "no", "none",
    "off", "on", "prod", "production", "silent", "staging", "stdio", "test", "text", "trace",
    "true", "verbose", "warn", "warning", "utf-8", "yes",
];

/// Last words of names whose values choose how a program works.
const SETTINGS: [&str; 19] = [
    "dir", "encoding", "env", "environment", "format", "host", "hostname", "lang", "level",
    "locale", "mode", "model", "port", "region", "timeout", "timezone", "transport", "tz",
    "version",
];

/// A name as it is told to people: in quotes, without what would end a comment, and not endless.
pub(super) fn quote_name(name: &str) -> String {
    let cut: String = name.chars().take(80).collect();
    visible(&format!("{cut:?}"))
}

/// A string of TOML in one line, with everything escaped that a reader would not see.
pub(super) fn quoted(text: &str) -> String {
    let json = Value::from(text).to_string();
    let mut quoted = String::with_capacity(json.len());
    for letter in json.chars() {
        // A string takes everything.
        let _ = match u32::from(letter) {
            code @ ..=0xffff if is_hidden(letter) => write!(quoted, "\\u{code:04X}"),
            code if is_hidden(letter) => write!(quoted, "\\U{code:08X}"),
            _ => quoted.write_char(letter),
        };
    }
    quoted
}

/// True if a client would put something else into this text.
pub(super) fn is_expanded(text: &str) -> bool {
    let mut pairs = text.as_bytes().windows(2);
    pairs.any(|pair| matches!(pair, [b'$', b'{' | b'_' | b'A'..=b'Z' | b'a'..=b'z']))
}

/// True if what has this name may be secret.
pub(super) fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let mut words = name.split(|it: char| !it.is_ascii_alphanumeric());
    SECRET_NAMES.iter().any(|part| name.contains(part)) || words.any(|word| word == "pass")
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

    /// True if the value of a variable can be printed: neither it nor the name looks secret, and one of the
    /// two is of a kind that secrets are not.
    pub(super) fn is_plain(&self, name: &str, value: &str) -> bool {
        let kind = is_number(value)
            || PLAIN.contains(&value.to_ascii_lowercase().as_str())
            || is_path(value)
            || is_plain_address(value)
            || (is_setting(name) && is_word(value));
        kind && !is_secret_name(name) && !is_expanded(value) && !self.suspect(value)
    }

    /// True if what stands in for a variable that is not set can be printed. A word such as `none` says
    /// nothing of a secret.
    pub(super) fn is_plain_default(&self, name: &str, default: &str) -> bool {
        default.is_empty()
            || PLAIN.contains(&default.to_ascii_lowercase().as_str())
            || self.is_plain(name, default)
    }
}

fn is_number(value: &str) -> bool {
    value.len() <= 15
        && value.bytes().any(|it| it.is_ascii_digit())
        && value.bytes().all(|it| it.is_ascii_digit() || matches!(it, b'.' | b'-'))
}

/// A path from the root, a drive, the home or the working folder on.
fn is_path(value: &str) -> bool {
    let is_drive = matches!(value.as_bytes(), [b'A'..=b'Z' | b'a'..=b'z', b':', b'\\' | b'/', ..]);
    let starts = ["/", "./", "../", "~/"].iter().any(|start| value.starts_with(start));
    (starts || is_drive) && !value.contains(['=', '\n', '\r', '\0'])
}

/// A URL without user, password and parameters that may be secret.
fn is_plain_address(value: &str) -> bool {
    let Some((scheme, rest)) = value.split_once("://") else { return false };
    let is_part = |it: char| it.is_ascii_alphanumeric() || "+-.".contains(it);
    scheme.chars().all(is_part)
        && rest.chars().all(|it| it.is_ascii_graphic() && it != '@')
        && !rest.split_once(['?', '#']).is_some_and(|(_, parameters)| is_secret_name(parameters))
        && !has_uuid(rest)
}

/// True for an address with a UUID, by which some servers know who calls.
pub(super) fn has_uuid(address: &str) -> bool {
    address.split(|it: char| !it.is_ascii_hexdigit() && it != '-').any(|run| {
        let parts: Vec<usize> = run.split('-').map(str::len).collect();
        parts == [8, 4, 4, 4, 12]
    })
}

/// True for names such as `LOG_LEVEL` and `AWS_REGION`.
fn is_setting(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SETTINGS.contains(&name.rsplit('_').next().unwrap_or_default())
}

/// A word such as `eu-west-1`, or a few of them with commas between.
fn is_word(value: &str) -> bool {
    value.len() <= 64 && value.chars().all(|it| it.is_ascii_alphanumeric() || "-_.,:/".contains(it))
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
    fn settings_are_plain_and_whatever_may_be_secret_is_not() {
        let detectors = Detectors::new().unwrap();
        for (name, value) in [
            ("LOG_LEVEL", "debug"),
            ("LOG_LEVEL", "chatty"),
            ("NODE_ENV", "production"),
            ("AWS_REGION", "eu-west-1"),
            ("OPENAI_MODEL", "gpt-5-mini"),
            ("VERBOSE", "TRUE"),
            ("RETRIES", "-1"),
            ("RATIO", "0.25"),
            ("PROJECT", "123456789012"),
            ("ROOT", "/srv/shared/projects"),
            ("CONFIG", "C:\\tools\\server.json"),
            ("BASE", "https://api.example.com/v1?page_size=10"),
            ("REDIS", "redis://cache.internal:6379/0"),
        ] {
            assert!(detectors.is_plain(name, value), "{name}={value}");
        }
        for (name, value) in [
            ("API_KEY", "debug"),
            ("DB_PASS", "1234"),
            ("PIN", "1234"),
            ("GREETING", "hunter2"),
            ("WORDS", "correct horse battery staple"),
            ("BASE", "https://me@api.example.com/"),
            ("BASE", "https://api.example.com/?access_token=abc"),
            ("BASE", "https://api.example.com/0a1b2c3d4e5f6a7b8c9d"),
            ("BASE", "https://api.example.com/s/01234567-89ab-cdef-0123-456789abcdef/mcp"),
            ("DB", "postgresql://me:pass@db.example/x"),
            ("HOME_DIR", "${HOME}/x"),
            ("NODE_ENV", "0a1b2c3d4e5f6a7b8c9d"),
            ("LEVEL", "a b"),
            ("", ""),
        ] {
            assert!(!detectors.is_plain(name, value), "{name}={value}");
        }
    }

    #[test]
    fn what_nobody_sees_is_written_so_that_it_is_seen_and_stays_the_same() {
        let name = "a\u{202e}b\u{e0041}\u{3164}\u{7f}\n\"\\ Zoë";

        let written = quoted(name);

        assert_eq!(written, r#""a\u202Eb\U000E0041\u3164\u007F\n\"\\ Zoë""#);
        let read: toml::Table = format!("name = {written}").parse().unwrap();
        assert_eq!(read["name"].as_str(), Some(name));
        assert!(!quote_name(name).contains(is_hidden), "{}", quote_name(name));
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
