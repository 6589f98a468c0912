//! The skill of the sample server.

use portcullis_core::json;
use serde_json::{Map, Value, json};

const URI: &str = "skill://refund-policy/SKILL.md";
const DESCRIPTION: &str =
    "Decides about a refund for an order of the shop, and writes to the customer.";
/// The files by URI, each with its text.
const FILES: [(&str, &str); 2] = [
    (
        URI,
        "---\nname: refund-policy\ndescription: Decides about a refund for an order of the shop, and writes to the \
         customer.\n---\n\n# Refunds\n\n1. Look up the order's customer with `get_customer`.\n2. Up to 100 euros, \
         refund at once; above that, ask a person first.\n3. Write as in [the example](examples/email.md).\n",
    ),
    (
        "skill://refund-policy/examples/email.md",
        "Dear customer,\n\nwe have refunded your order. The money arrives within three days.\n\nYour shop\n",
    ),
];

/// All entries, as `skills/list` gives them.
pub(super) fn list() -> Value {
    let files = FILES.map(|(uri, text)| {
        json!({ "uri": uri, "digest": json::sha256(&[text.as_bytes()]), "size": text.len() })
    });
    json!([{
        "uri": URI,
        "frontmatter": { "name": "refund-policy", "description": DESCRIPTION },
        "resources": files,
    }])
}

/// The entry of the skill that `params` names; `None` if there is no such skill.
pub(super) fn get(params: &Map<String, Value>) -> Option<Value> {
    let entry = list().get_mut(0).map(Value::take);
    entry.filter(|_| params.get("uri").and_then(Value::as_str) == Some(URI))
}

/// The text of a file; `None` if there is no such file.
pub(super) fn file(uri: &str) -> Option<&'static str> {
    FILES.iter().find(|it| it.0 == uri).map(|it| it.1)
}
