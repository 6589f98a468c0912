//! Judgement of a server's answers: the era that it speaks.

use portcullis_core::mcp::{Era, LEGACY, MODERN, apps, code::UNSUPPORTED_VERSION, skills, tasks};
use serde_json::{Map, Value};

use super::message::{Outcome, RpcError};

/// Meaning of an answer to `server/discover`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The server speaks our modern version, and announces these changes.
    Modern(Announced),
    /// The server does not speak it, so `initialize` comes next.
    Legacy,
    /// The server speaks only versions we do not know.
    Stranger,
}

/// Changes that a server declares that it announces.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Announced {
    pub(crate) lists: bool,
    pub(crate) resources: bool,
}

impl Announced {
    /// Reads the capabilities of a server.
    pub(crate) fn read(result: &Map<String, Value>) -> Self {
        let all = result.get("capabilities");
        let told = |kind: &str, what: &str| all?.get(kind)?.get(what)?.as_bool();
        let mut kinds = ["tools", "prompts", "resources"].into_iter();
        Self {
            lists: kinds.any(|kind| told(kind, "listChanged") == Some(true)),
            resources: told("resources", "subscribe") == Some(true),
        }
    }
}

/// Most extensions that are remembered of a server, and most bytes of the id of each.
const MOST_EXTENSIONS: usize = 64;
const MOST_ID_BYTES: usize = 128;

/// Kinds and extensions that a server declares, in the words of `expose`; other extensions by their ids.
pub(crate) fn offered(result: &Map<String, Value>) -> Vec<String> {
    let Some(Value::Object(all)) = result.get("capabilities") else { return Vec::new() };
    let kinds =
        ["tools", "prompts", "resources"].into_iter().filter(|kind| all.contains_key(*kind));
    let extensions = all.get("extensions").and_then(Value::as_object);
    let ids = extensions.into_iter().flat_map(Map::keys).take(MOST_EXTENSIONS);
    let words = ids.map(|id| match id.as_str() {
        apps::EXTENSION => "apps".to_owned(),
        skills::EXTENSION => "skills".to_owned(),
        tasks::EXTENSION => "tasks".to_owned(),
        other => other.chars().filter(char::is_ascii_graphic).take(MOST_ID_BYTES).collect(),
    });
    kinds.map(str::to_owned).chain(words).collect()
}

/// The session or process that a server is spoken to in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer {
    pub(crate) number: u64,
    pub(crate) era: Era,
    /// Changes of its resources are announced to us.
    pub(crate) tells_of_resources: bool,
}

/// Judges the answer to `server/discover`.
pub(crate) fn discovered(outcome: &Outcome) -> Verdict {
    match outcome {
        Ok(reply) => {
            let result = &reply.members();
            let versions = result.get("supportedVersions").and_then(Value::as_array);
            let versions: Vec<_> =
                versions.into_iter().flatten().filter_map(Value::as_str).collect();
            judge(&versions, Announced::read(result))
        }
        Err(RpcError { code: UNSUPPORTED_VERSION, supported, .. }) => {
            let supported: Vec<_> = supported.iter().map(String::as_str).collect();
            judge(&supported, Announced::default())
        }
        Err(RpcError { .. }) => Verdict::Legacy,
    }
}

/// Returns true if the answer to `server/discover` says that the server speaks our modern version.
pub(crate) fn is_modern(outcome: &Outcome) -> bool {
    matches!(discovered(outcome), Verdict::Modern(_))
}

fn judge(versions: &[&str], announced: Announced) -> Verdict {
    if versions.contains(&MODERN) {
        Verdict::Modern(announced)
    } else if versions.is_empty() || versions.iter().any(|version| LEGACY.contains(version)) {
        Verdict::Legacy
    } else {
        Verdict::Stranger
    }
}

/// The version of a successful `initialize`; `None` when it is not one of ours.
pub(crate) fn initialized(result: &Map<String, Value>) -> Option<&'static str> {
    let version = result.get("protocolVersion").and_then(Value::as_str)?;
    LEGACY.into_iter().find(|known| *known == version)
}

#[cfg(test)]
mod tests {
    use portcullis_core::{json::Document, mcp::interaction::ClientCapabilities};
    use serde_json::json;

    use super::*;
    use crate::mcp::message::Reply;

    fn result(value: Value) -> Map<String, Value> {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn a_server_is_modern_only_when_it_says_so() {
        let modern = result(json!({
            "supportedVersions": ["2027-01-01", "2026-07-28"],
            "capabilities": {"tools": {"listChanged": true}, "resources": {"subscribe": true}},
        }));
        let refused = |supported: &[&str]| {
            let supported = supported.iter().map(ToString::to_string).collect();
            let required = ClientCapabilities::default();
            Err(RpcError { code: UNSUPPORTED_VERSION, supported, required, message: String::new() })
        };

        let ok = |result: Map<String, Value>| {
            let result = Document::of(&Value::Object(result));
            Ok(Reply { result, unreadable: Vec::new(), is_mended: false, peer: 0 })
        };
        let announced = Announced { lists: true, resources: true };
        assert_eq!(discovered(&ok(modern)), Verdict::Modern(announced));
        assert_eq!(discovered(&refused(&["2026-07-28"])), Verdict::Modern(Announced::default()));
        assert_eq!(discovered(&refused(&["2025-11-25"])), Verdict::Legacy);
        assert_eq!(discovered(&refused(&["2099-01-01"])), Verdict::Stranger);
        for code in [-32601, -32602, -32600, -32000, 0] {
            let required = ClientCapabilities::default();
            let supported = Vec::new();
            let message = String::new();
            let other = Err(RpcError { code, message, supported, required });
            assert_eq!(discovered(&other), Verdict::Legacy, "{code}");
        }
        assert_eq!(discovered(&ok(result(json!({})))), Verdict::Legacy);
    }

    #[test]
    fn what_a_server_offers_is_told_in_the_words_of_the_configuration() {
        let cases = [
            (json!({}), vec![]),
            (json!({"capabilities": 7}), vec![]),
            (
                json!({"capabilities": {"logging": {}, "prompts": {}, "tools": {}}}),
                vec!["tools", "prompts"],
            ),
            (
                json!({"capabilities": {"extensions": {
                    "io.modelcontextprotocol/ui": {}, "io.modelcontextprotocol/skills": {},
                    "io.modelcontextprotocol/tasks": {}, "com.example/\u{1b}files\u{202e}": {},
                }}}),
                vec!["apps", "skills", "tasks", "com.example/files"],
            ),
        ];

        for (declared, words) in cases {
            assert_eq!(offered(declared.as_object().unwrap()), words, "{declared}");
        }
        let many: Map<_, _> = (0..100).map(|id| (format!("{id:0300}"), json!({}))).collect();
        let many = offered(&result(json!({"capabilities": {"extensions": many}})));
        assert_eq!(many.len(), 64);
        assert!(many.iter().all(|it| it.len() == 128));
    }

    #[test]
    fn only_versions_we_know_are_agreed_on() {
        let answer =
            |version: &str| initialized(json!({"protocolVersion": version}).as_object().unwrap());

        assert_eq!(answer("2025-06-18"), Some("2025-06-18"));
        assert_eq!(answer("2026-07-28"), None);
        assert_eq!(answer("1.0"), None);
    }
}
