//! Members of `_meta`: those of the protocol and our own.

use serde_json::{Map, Value};

use crate::json::{JsonValue, Node};

/// The member itself.
pub const META: &str = "_meta";

/// Protocol version of a request; required since 2026-07-28.
pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// Name and version of the client.
pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
/// Capabilities of the client; required since 2026-07-28.
pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// Name and version of the server.
pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
/// Id of the request that opened a subscription.
pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
/// Token under which the progress of a request is told.
pub const PROGRESS_TOKEN: &str = "progressToken";
/// W3C trace context.
pub const TRACEPARENT: &str = "traceparent";

/// Prefix of our own members.
pub const OWN_PREFIX: &str = "dev.portcullis/";
/// The decision about a call.
pub const GOVERNANCE: &str = "dev.portcullis/governance";
/// The id of the request.
pub const REQUEST_ID: &str = "dev.portcullis/request_id";
/// The id of the tool behind the name under which it is listed.
pub const TOOL: &str = "dev.portcullis/tool";
/// Code, message and details of a refusal, as over REST.
pub const ERROR: &str = "dev.portcullis/error";
/// Sentences about arguments that look misspelt, as in `meta.notes` over REST.
pub const NOTES: &str = "dev.portcullis/notes";
/// The idempotency key of a call.
pub const IDEMPOTENCY_KEY: &str = "dev.portcullis/idempotency_key";

/// Labels that MCP keeps for itself as the second of a prefix, such as `io.modelcontextprotocol/`.
const PROTOCOL_LABELS: [&str; 2] = ["modelcontextprotocol", "mcp"];

/// Returns true if only the gateway may say a member of `_meta` to its callers: its own, and those of the
/// protocol, by which it names itself, its tasks and what became of approvals.
#[must_use]
pub fn is_reserved(name: &str) -> bool {
    let Some((prefix, _)) = name.split_once('/') else { return false };
    let second = prefix.split('.').nth(1).unwrap_or_default();
    name.starts_with(OWN_PREFIX)
        || PROTOCOL_LABELS.iter().any(|label| label.eq_ignore_ascii_case(second))
}

/// Returns true if the `_meta` of an object is none, or holds what only the gateway may say.
#[must_use]
pub fn has_reserved(object: Node<'_>) -> bool {
    let Some(meta) = object.get(META) else { return false };
    let members = meta.members();
    members.is_none_or(|mut members| members.any(|(name, _)| is_reserved(name)))
}

/// Removes what only the gateway may say from the `_meta` of what an upstream sent, and a `_meta` that is no
/// object.
pub fn remove_reserved(object: &mut Map<String, Value>) {
    match object.get_mut(META) {
        Some(Value::Object(meta)) => meta.retain(|name, _| !is_reserved(name)),
        Some(_) => drop(object.remove(META)),
        None => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::json::Document;

    #[test]
    fn only_what_the_gateway_says_is_removed() {
        let others = json!({
            "a": 2, "mcp": 1, "mcp/x": 1, "com.example/y": 1, "com.example.mcp/z": 1, "openai/out": 1,
            "dev.portcullis": 1, "/": 1,
        });
        let mut meta = others.clone();
        for name in [
            GOVERNANCE,
            "dev.portcullis/",
            SERVER_INFO,
            "io.modelcontextprotocol/tool-approval-disposition",
            "io.modelcontextprotocol/related-task",
            "org.modelcontextprotocol.api/a",
            "dev.mcp/a",
            "tools.MCP.com/a",
        ] {
            meta[name] = json!("ours");
        }
        let mut result = json!({"_meta": meta});
        assert!(has_reserved(Document::of(&result).root()));

        remove_reserved(result.as_object_mut().unwrap());

        assert_eq!(result["_meta"], others);
        assert!(!has_reserved(Document::of(&result).root()));
    }

    #[test]
    fn what_is_no_object_is_no_meta() {
        for (mut other, expected) in
            [(json!({"a": 1}), json!({"a": 1})), (json!({"_meta": 7, "a": 1}), json!({"a": 1}))]
        {
            remove_reserved(other.as_object_mut().unwrap());
            assert_eq!(other, expected);
        }
    }
}
