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

/// Prefix of our own members. What an upstream sends under it is removed.
pub const OWN_PREFIX: &str = "dev.portcullis/";
/// The decision about a call.
pub const GOVERNANCE: &str = "dev.portcullis/governance";
/// The id of the request.
pub const REQUEST_ID: &str = "dev.portcullis/request_id";
/// The id of the tool behind the name under which it is listed.
pub const TOOL: &str = "dev.portcullis/tool";
/// Code, message and details of a refusal, as over REST.
pub const ERROR: &str = "dev.portcullis/error";
/// The idempotency key of a call.
pub const IDEMPOTENCY_KEY: &str = "dev.portcullis/idempotency_key";

/// Returns true if the `_meta` of an object holds what only we may say.
#[must_use]
pub fn has_own(object: Node<'_>) -> bool {
    let mut members = object.get(META).and_then(Node::members).into_iter().flatten();
    members.any(|(name, _)| name.starts_with(OWN_PREFIX))
}

/// Removes what only we may say from the `_meta` of what an upstream sent.
pub fn remove_own(object: &mut Map<String, Value>) {
    let Some(Value::Object(meta)) = object.get_mut(META) else { return };
    meta.retain(|name, _| !name.starts_with(OWN_PREFIX));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_our_own_members_are_removed() {
        let mut result = json!({
            "dev.portcullis/error": "outside of _meta it is the server's",
            "_meta": {"dev.portcullis/governance": {"decision": "allow"}, "dev.portcullis/": 1, "a": 2},
        });

        remove_own(result.as_object_mut().unwrap());

        assert_eq!(result["_meta"], json!({"a": 2}));
        assert!(result["dev.portcullis/error"].is_string());
        for mut other in [json!({}), json!({"_meta": 7})] {
            let before = other.clone();
            remove_own(other.as_object_mut().unwrap());
            assert_eq!(other, before);
        }
    }
}
