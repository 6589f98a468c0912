//! What the tests share.

use std::{sync::Arc, time::Duration};

use portcullis_core::{
    random::Random,
    refusal::{Executed, UpstreamReason},
};
use portcullis_upstream::{
    CallAnswer, CallError, CallErrorKind, Dispatch, Outbound, Program, Server, ServerSettings,
    Transport,
};
use serde_json::{Value, json};

/// A source of bytes that are all the same.
#[derive(Debug)]
struct Fixed;

impl Random for Fixed {
    fn fill(&self, bytes: &mut [u8]) {
        bytes.fill(7);
    }
}

pub(crate) fn outbound() -> Outbound {
    Outbound::new(Arc::new(Fixed))
}

/// Settings with times that suit tests: long enough for a busy machine.
pub(crate) fn settings(transport: Transport) -> ServerSettings {
    let slug = "hostile".parse().unwrap();
    let timeout = Duration::from_secs(20);
    ServerSettings {
        call_timeout: timeout,
        max_response_bytes: 50_000,
        ..ServerSettings::new(slug, transport)
    }
}

pub(crate) fn server(settings: ServerSettings) -> Server {
    Server::new(settings, &outbound()).unwrap()
}

/// The badly behaved child.
pub(crate) fn hostile(args: &[&str]) -> Transport {
    Transport::Stdio(Program::new(env!("CARGO_BIN_EXE_portcullis-hostile-mcp"), args))
}

pub(crate) async fn call(server: &Server, arguments: Value) -> Result<CallAnswer, CallError> {
    call_tool(server, "act", arguments).await
}

pub(crate) async fn call_tool(
    server: &Server,
    name: &str,
    arguments: Value,
) -> Result<CallAnswer, CallError> {
    let name = name.parse().unwrap();
    let call = Dispatch { name: &name, arguments: &arguments, traceparent: None, tracestate: None };
    server.call_tool(call).await
}

/// The text of an answer's only block.
pub(crate) fn text(answer: &CallAnswer) -> &str {
    answer.content[0]["text"].as_str().unwrap()
}

/// The failure of a call with empty arguments, in words.
pub(crate) async fn failure(server: &Server) -> (CallErrorKind, Executed) {
    let error = call(server, json!({})).await.unwrap_err();
    assert!(!format!("{error} {error:?}").contains("hunter2"), "{error}");
    (error.kind, error.executed)
}

pub(crate) const fn upstream(reason: UpstreamReason) -> CallErrorKind {
    CallErrorKind::Upstream(reason)
}
