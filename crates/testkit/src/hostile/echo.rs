//! Results that tell what a call said.

use serde_json::json;

use super::{HostileCall, at};

/// The result of [`Script::Asks`].
pub(super) fn ask_questions(call: &HostileCall, questions: &str) -> String {
    let param = |name: &str| at(&call.message, &format!("/params/{name}")).clone();
    let responses = param("inputResponses");
    let state = param("requestState");
    if responses.is_null() && state.is_null() {
        return questions.to_owned();
    }
    let told = json!({"responses": responses, "state": state, "arguments": param("arguments")});
    json!({"content": [], "structuredContent": told}).to_string()
}

/// The result of [`Script::Echo`].
pub(super) fn echo(call: &HostileCall) -> String {
    let arguments = call.arguments();
    let block = json!({"type": "text", "text": arguments});
    if at(&call.message, "/method") == "resources/read" {
        let uri = at(&call.message, "/params/uri");
        let content =
            json!({"uri": uri, "mimeType": "text/plain", "text": call.headers.get("mcp-name")});
        return json!({"contents": [content]}).to_string();
    }
    if at(&call.message, "/method") == "prompts/get" {
        return json!({"messages": [{"role": "user", "content": block}]}).to_string();
    }
    if at(&call.message, "/method") == "completion/complete" {
        let mut params = at(&call.message, "/params").clone();
        params.as_object_mut().map(|members| members.remove("_meta"));
        return json!({"completion": {"values": [params.to_string()]}}).to_string();
    }
    format!(r#"{{"content":[{block}],"structuredContent":{arguments}}}"#)
}
