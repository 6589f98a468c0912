//! `POST /mcp` and `POST /mcp/{slug}`: the server that MCP clients speak to.

mod apps;
mod calls;
mod cards;
pub(crate) mod clients;
mod completion;
mod conformance;
mod governed;
mod guide;
mod law;
mod links;
mod list_cases;
mod lists;
mod messages;
mod nodes;
mod odd;
mod pages;
pub(crate) mod progress;
mod prompts;
mod questions;
mod resource_cases;
mod resources;
mod search;
mod security;
mod skills;
mod streams;
mod tasks;
mod updates;
mod walk;

use crate::prelude::*;

/// A message of the stateless era with its headers, to be completed and sent.
pub(crate) fn modern(
    gateway: &Gateway,
    who: &Principal,
    path: &str,
    method: &str,
    params: &Value,
) -> RequestBuilder {
    let name = ["name", "uri"].iter().find_map(|member| params.get(*member)?.as_str());
    modern_named(gateway, who, path, method, params, name)
}

/// The same with another name in the header.
fn modern_named(
    gateway: &Gateway,
    who: &Principal,
    path: &str,
    method: &str,
    params: &Value,
    name: Option<&str>,
) -> RequestBuilder {
    let mut params = params.clone();
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let members = params.as_object_mut().expect("params");
    let known = members.entry("_meta").or_insert_with(|| json!({}));
    let known = known.as_object_mut().expect("_meta");
    for (name, value) in meta.as_object().expect("members") {
        known.entry(name).or_insert_with(|| value.clone());
    }
    let message = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
    let mut request = raw(gateway, who, path, &message.to_string())
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", method);
    if let Some(name) = name {
        request = request.header("mcp-name", name);
    }
    request
}

/// A body that is posted as it is.
fn raw(gateway: &Gateway, who: &Principal, path: &str, body: &str) -> RequestBuilder {
    gateway
        .request(Method::POST, path)
        .bearer_auth(&who.token)
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .body(body.to_owned())
}

/// Sends a message of the stateless era.
pub(crate) async fn ask(
    gateway: &Gateway,
    who: &Principal,
    path: &str,
    method: &str,
    params: Value,
) -> Answer {
    gateway.send(modern(gateway, who, path, method, &params)).await
}

/// Sends a message of the era with a handshake.
async fn ask_legacy(
    gateway: &Gateway,
    who: &Principal,
    path: &str,
    method: &str,
    params: Value,
) -> Answer {
    let message = json!({"jsonrpc": "2.0", "id": "a", "method": method, "params": params});
    let request = raw(gateway, who, path, &message.to_string());
    gateway.send(request.header("mcp-protocol-version", "2025-11-25")).await
}

/// Calls a tool in the stateless era.
pub(crate) async fn call(
    gateway: &Gateway,
    who: &Principal,
    path: &str,
    tool: &str,
    input: Value,
) -> Answer {
    ask(gateway, who, path, "tools/call", json!({"name": tool, "arguments": input})).await
}

/// The names in an answer to `tools/list`.
pub(crate) fn names(answer: &Answer) -> Vec<&str> {
    let tools = answer.at("/result/tools").as_array();
    let tools = tools.unwrap_or_else(|| panic!("no list: {}", answer.text));
    tools.iter().map(|tool| tool["name"].as_str().expect("a name")).collect()
}

/// The status and the error code of JSON-RPC.
fn error(answer: &Answer) -> (u16, i64) {
    (answer.status.as_u16(), answer.at("/error/code").as_i64().unwrap_or_default())
}

/// Memory of the gateway's process in KiB, without the pages of its program that it touched so far.
fn own_kib(gateway: &Gateway) -> usize {
    let status = fs::read_to_string(format!("/proc/{}/status", gateway.pid()));
    let status = status.expect("the status of the process");
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).expect("its memory");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

/// Our member of this name in `_meta` of a result.
fn own<'a>(answer: &'a Answer, name: &str) -> &'a Value {
    answer.at(&format!("/result/_meta/dev.portcullis~1{name}"))
}
