//! The prompt of the sample server.

use serde_json::{Map, Value, json};

const NAME: &str = "customer_letter";

/// All definitions, as `prompts/list` gives them.
pub(super) fn list() -> Value {
    json!([{
        "name": NAME,
        "title": "Letter to a customer",
        "description": "Asks for a short letter to a customer of the shop.",
        "arguments": [
            {"name": "customer", "description": "The customer's id, such as cus_1001.", "required": true},
            {"name": "tone", "description": "How the letter sounds; friendly when absent."},
        ],
    }])
}

/// The messages of the prompt that `params` names, or what is wrong with them.
pub(super) fn get(params: &Map<String, Value>) -> Result<Value, &'static str> {
    if params.get("name").and_then(Value::as_str) != Some(NAME) {
        return Err("there is no such prompt");
    }
    let argument = |name| params.get("arguments")?.get(name)?.as_str();
    let customer = argument("customer").ok_or("`customer` is missing")?;
    let tone = argument("tone").unwrap_or("friendly");
    let text = format!(
        "Look up customer {customer} with get_customer. Then write a {tone} letter of at most five sentences that \
         thanks for the last order. Leave out card numbers."
    );
    let content = json!({"type": "text", "text": text});
    Ok(
        json!({"description": "A letter to write.", "messages": [{"role": "user", "content": content}]}),
    )
}
