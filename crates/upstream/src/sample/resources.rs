//! The resource and the template of the sample server.

use serde_json::{Map, Value, json};

use super::{skills, tools};

const GUIDE: &str = "sample://guide";
const CUSTOMER: &str = "sample://customers/";

/// All resources, as `resources/list` gives them.
pub(super) fn list() -> Value {
    json!([{
        "uri": GUIDE,
        "name": "guide",
        "title": "Guide of the shop",
        "description": "How the shop treats orders and refunds.",
        "mimeType": "text/markdown",
    }])
}

/// All templates, as `resources/templates/list` gives them.
pub(super) fn templates() -> Value {
    json!([{
        "uriTemplate": format!("{CUSTOMER}{{id}}"),
        "name": "customer",
        "title": "Customer",
        "description": "A customer of the shop by id, such as cus_1001.",
        "mimeType": "application/json",
    }])
}

/// The contents of the resource that `params` names; `None` if there is no such resource.
pub(super) fn read(params: &Map<String, Value>) -> Option<Value> {
    let uri = params.get("uri").and_then(Value::as_str)?;
    let (mime, text) = match uri.strip_prefix(CUSTOMER) {
        None if uri == GUIDE => ("text/markdown", GUIDE_TEXT.to_owned()),
        None => ("text/markdown", skills::file(uri)?.to_owned()),
        Some(id) => ("application/json", tools::customer(id)?.to_string()),
    };
    Some(json!({"contents": [{"uri": uri, "mimeType": mime, "text": text}]}))
}

const GUIDE_TEXT: &str = "# Orders and refunds\n\nOrders leave within two days. A refund needs the order's id and a reason; above 100 euros a person approves it.\n";
