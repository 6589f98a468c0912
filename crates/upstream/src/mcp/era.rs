//! Judgement of a server's answers: the era that it speaks.

use portcullis_core::mcp::{LEGACY, MODERN, code::UNSUPPORTED_VERSION};
use serde_json::{Map, Value};

use super::message::{Outcome, RpcError};

/// Meaning of an answer to `server/discover`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The server speaks our modern version; whether it tells when its lists change.
    Modern { announces: bool },
    /// The server does not speak it, so `initialize` comes next.
    Legacy,
    /// The server speaks only versions we do not know.
    Stranger,
}

/// Judges the answer to `server/discover`.
pub(crate) fn discovered(outcome: &Outcome) -> Verdict {
    match outcome {
        Ok(reply) => {
            let result = &reply.members();
            let versions = result.get("supportedVersions").and_then(Value::as_array);
            let versions: Vec<_> =
                versions.into_iter().flatten().filter_map(Value::as_str).collect();
            judge(&versions, announces(result))
        }
        Err(RpcError { code: UNSUPPORTED_VERSION, supported, .. }) => {
            judge(&supported.iter().map(String::as_str).collect::<Vec<_>>(), false)
        }
        Err(RpcError { .. }) => Verdict::Legacy,
    }
}

/// Returns true if the answer to `server/discover` says that the server speaks our modern version.
pub(crate) fn is_modern(outcome: &Outcome) -> bool {
    matches!(discovered(outcome), Verdict::Modern { .. })
}

fn judge(versions: &[&str], announces: bool) -> Verdict {
    if versions.contains(&MODERN) {
        Verdict::Modern { announces }
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

/// Returns true if the server declares that it announces changes of its lists.
pub(crate) fn announces(result: &Map<String, Value>) -> bool {
    let all = result.get("capabilities");
    let told = |kind: &str| all?.get(kind)?.get("listChanged")?.as_bool();
    ["tools", "prompts", "resources"].into_iter().any(|kind| told(kind) == Some(true))
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
            "capabilities": {"tools": {"listChanged": true}},
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
        assert_eq!(discovered(&ok(modern)), Verdict::Modern { announces: true });
        assert_eq!(discovered(&refused(&["2026-07-28"])), Verdict::Modern { announces: false });
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
    fn only_versions_we_know_are_agreed_on() {
        let answer =
            |version: &str| initialized(json!({"protocolVersion": version}).as_object().unwrap());

        assert_eq!(answer("2025-06-18"), Some("2025-06-18"));
        assert_eq!(answer("2026-07-28"), None);
        assert_eq!(answer("1.0"), None);
    }
}
