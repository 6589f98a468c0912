//! A call, get or read that a person makes from the page of what it uses.

use std::{fmt::Write as _, sync::Arc};

use portcullis_app::{Conversation, Invocation, View};
use portcullis_core::{
    call::Aim,
    capability::{CapabilityId, CapabilityKind},
    hidden::is_hidden,
};
use serde_json::Value;

use super::{api::Problem, capability::Capability, json::Json, signed_in::Guest};
use crate::{
    exchange::{Outcome, body},
    pages::form::Form,
};

/// A call and how it ended.
#[derive(Debug)]
pub(super) struct Trial<'a> {
    /// The form, if its fields are not the input: it was filled in to none, or with variables of a template.
    pub(super) unread: Option<&'a Form>,
    /// The input as JSON, as it was sent.
    pub(super) raw: String,
    /// The same call from programs, by their languages.
    pub(super) snippets: [(&'static str, String); 3],
    /// The result, or why the call was refused.
    pub(super) result: Result<Json, Problem>,
    /// Decision, policy, findings and event.
    pub(super) governance: Json,
}

impl<'a> Trial<'a> {
    /// Uses it with the input of `form`.
    pub(super) async fn run(guest: &Guest, used: &Capability, form: &'a Form) -> Self {
        let raw = used.input(form);
        let has_variables = used.id.kind() == CapabilityKind::Template;
        let unread = (raw.is_err() || has_variables).then_some(form);
        let outcome = match &raw {
            Ok(raw) => invoke(guest, &used.id, raw).await,
            Err(wrong) => portcullis_core::refusal::Refusal::bad_request(wrong.clone()).into(),
        };
        let raw = escaped(&raw.unwrap_or_else(|_| used.empty_input()));
        let snippets = snippets(guest, &used.id, &raw);
        let (result, governance) = match Problem::or_reply(outcome) {
            Ok(reply) => (Ok(reply.data), reply.governance),
            Err(problem) => {
                let governance = problem.governance.clone();
                (Err(problem), governance)
            }
        };
        Self { unread, raw, snippets, result, governance }
    }

    /// The input, if it was JSON.
    pub(super) fn input(&self) -> Option<Value> {
        serde_json::from_str(&self.raw).ok()
    }
}

async fn invoke(guest: &Guest, id: &CapabilityId, raw: &str) -> Outcome {
    let (gateway, ctx) = (Arc::clone(&guest.gateway), guest.ctx.clone());
    if let Err(refusal) = gateway.app.calls.room_for_a_call() {
        return refusal.into();
    }
    let bytes = raw.len();
    let (id, raw) = (id.clone(), raw.to_owned());
    let calls = Arc::clone(&gateway.app.calls);
    let asked = move || {
        let size = u64::try_from(bytes).unwrap_or(u64::MAX);
        let input = body::document(raw.as_bytes()).and_then(|input| {
            if input.root().is_object() {
                Ok((input, size))
            } else {
                Err(body::wrong_member("input", "has to be an object"))
            }
        });
        let read = input.as_ref().map(|(input, _)| input);
        Invocation {
            tool: Capability::used_id(id, &gateway, &ctx, read),
            aim: Aim::Use,
            view: Ok(View::default()),
            key: Ok(None),
            body: input,
            conversation: Conversation::default(),
            task: None,
        }
    };
    Outcome::of_call(calls.invoke(guest.ctx.clone(), bytes, asked).await)
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

/// The call by `curl` and by the SDKs of MCP; the token is the caller's own.
fn snippets(guest: &Guest, id: &CapabilityId, raw: &str) -> [(&'static str, String); 3] {
    let url = guest.gateway.app.providers.public_url().unwrap_or("https://<this gateway>");
    let input = serde_json::from_str::<Value>(raw).map(|input| input.to_string());
    let input = escaped(input.as_deref().unwrap_or("{}"));
    // Text of JSON is text of both languages, in its quotation marks.
    let as_text = Value::from(&*input).to_string();
    let (short, slug, name) = (id.short(), id.provider(), Value::from(id.name()));
    let wrapped = format!("{{\"input\": {input}}}");
    let of_both = format!("{{ name: {name}, arguments: {input} }}");
    let (path, body, python_call, script_call) = match id.kind() {
        CapabilityKind::Tool => (
            format!("mcps/{short}/invoke"),
            wrapped,
            format!("call_tool({name}, arguments)"),
            format!("callTool({of_both})"),
        ),
        CapabilityKind::Prompt => (
            format!("prompts/{short}/get"),
            wrapped,
            format!("get_prompt({name}, arguments)"),
            format!("getPrompt({of_both})"),
        ),
        CapabilityKind::Resource | CapabilityKind::Template | CapabilityKind::Skill => (
            "resources/read".to_owned(),
            input.replacen('{', &format!("{{\"provider\": \"{slug}\", "), 1),
            "read_resource(**arguments)".to_owned(),
            format!("readResource({input})"),
        ),
    };
    let quoted = body.replace('\'', "'\\''");
    let curl = format!(
        "curl -H \"Authorization: Bearer $TOKEN\" -H \"Content-Type: application/json\" \\\n  \
         -d '{quoted}' \\\n  {url}/v1/{path}"
    );
    let python = format!(
        "import asyncio, json, os\n\n\
         from mcp import Client\n\
         from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client\n\n\n\
         async def main():\n    \
             headers = {{\"Authorization\": \"Bearer \" + os.environ[\"TOKEN\"]}}\n    \
             async with create_mcp_http_client(headers=headers) as http:\n        \
                 transport = streamable_http_client(\"{url}/mcp/{slug}\", http_client=http)\n        \
                 async with Client(transport) as client:\n            \
                     arguments = json.loads({as_text})\n            \
                     print(await client.{python_call})\n\n\n\
         asyncio.run(main())"
    );
    let typescript = format!(
        "import {{ Client, StreamableHTTPClientTransport }} from \"@modelcontextprotocol/client\";\n\n\
         const headers = {{ Authorization: `Bearer ${{process.env.TOKEN}}` }};\n\
         const address = new URL(\"{url}/mcp/{slug}\");\n\
         const client = new Client({{ name: \"example\", version: \"1.0.0\" }});\n\
         await client.connect(new StreamableHTTPClientTransport(address, {{ requestInit: {{ headers }} }}));\n\
         console.log(await client.{script_call});\n\
         await client.close();"
    );
    [("curl", curl), ("Python", python), ("TypeScript", typescript)]
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
