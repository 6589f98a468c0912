//! A call that a person makes from the page of a tool.

use std::fmt::Write as _;

use portcullis_app::{Conversation, Invocation, View, tool_named};
use portcullis_core::hidden::is_hidden;
use serde_json::Value;

use super::{api::Problem, guest::Guest, json::Json, schema_form};
use crate::{body, form::Form, outcome::Outcome};

/// A call and how it ended.
#[derive(Debug)]
pub(super) struct Trial {
    /// The input as JSON, as it was sent.
    pub(super) raw: String,
    /// The same call as a command.
    pub(super) command: String,
    /// The result; nothing if the call was refused.
    pub(super) result: Option<Json>,
    pub(super) problem: Option<Problem>,
    /// Decision, policy, findings and event.
    pub(super) governance: Json,
}

impl Trial {
    /// Calls the tool `id` with the input of `form`.
    pub(super) async fn run(guest: &Guest, id: &str, tool: &Json, form: &Form) -> Self {
        let raw = match form.field("raw") {
            Some(raw) => Ok(raw.trim().replace("\r\n", "\n")),
            None => schema_form::input(&tool.at("/input_schema").0, form)
                .map(|input| serde_json::to_string_pretty(&input).unwrap_or_default()),
        };
        let outcome = match &raw {
            Ok(raw) => invoke(guest, id, raw).await,
            Err(wrong) => portcullis_core::refusal::Refusal::bad_request(wrong.clone()).into(),
        };
        let raw = escaped(&raw.unwrap_or_else(|_| "{}".to_owned()));
        let command = command(guest, id, &raw);
        match Problem::or_reply(outcome) {
            Ok(reply) => Self {
                raw,
                command,
                result: Some(reply.data),
                problem: None,
                governance: reply.governance,
            },
            Err(problem) => {
                let governance = problem.governance.clone();
                Self { raw, command, result: None, problem: Some(problem), governance }
            }
        }
    }

    /// The input, if it was JSON.
    pub(super) fn input(&self) -> Option<Value> {
        serde_json::from_str(&self.raw).ok()
    }
}

async fn invoke(guest: &Guest, id: &str, raw: &str) -> Outcome {
    let gateway = &guest.gateway;
    if let Err(refusal) = gateway.app.calls.room_for_a_call() {
        return refusal.into();
    }
    let bytes = raw.len();
    let tool = tool_named(id);
    let raw = raw.to_owned();
    let asked = move || {
        let size = u64::try_from(bytes).unwrap_or(u64::MAX);
        let input = body::document(raw.as_bytes()).and_then(|input| {
            if input.root().is_object() {
                Ok((input, size))
            } else {
                Err(body::wrong_member("input", "has to be an object"))
            }
        });
        Invocation {
            tool,
            view: Ok(View::default()),
            key: Ok(None),
            body: input,
            conversation: Conversation::default(),
            task: None,
        }
    };
    Outcome::of_call(gateway.app.calls.invoke(guest.ctx.clone(), bytes, asked).await)
}

/// JSON with its hidden characters as escapes: the same value, which a reader sees.
pub(super) fn escaped(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for letter in text.chars() {
        if is_hidden(letter) {
            let mut units = [0; 2];
            for unit in letter.encode_utf16(&mut units) {
                let _ = write!(shown, "\\u{unit:04x}");
            }
        } else {
            shown.push(letter);
        }
    }
    shown
}

/// The call as a command of a shell; the token is the caller's own.
fn command(guest: &Guest, id: &str, raw: &str) -> String {
    let url = guest.gateway.app.providers.public_url().unwrap_or("https://<this gateway>");
    let input = serde_json::from_str::<Value>(raw).map(|input| input.to_string());
    let body = format!("{{\"input\": {}}}", escaped(input.as_deref().unwrap_or("{}")));
    let quoted = body.replace('\'', "'\\''");
    format!(
        "curl -H \"Authorization: Bearer $TOKEN\" -H \"Content-Type: application/json\" \\\n  \
         -d '{quoted}' \\\n  {url}/v1/mcps/{id}/invoke"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_characters_are_seen_and_stay_the_same_value() {
        let sent = "{\"a\": \"x\u{202e}y\u{e0041}\"}";

        let shown = escaped(sent);

        assert_eq!(shown, r#"{"a": "x\u202ey\udb40\udc41"}"#);
        let value = |text: &str| serde_json::from_str::<Value>(text).unwrap();
        assert_eq!(value(&shown), value(sent));
    }
}
