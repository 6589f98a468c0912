//! Results of calls as they are written: the members of the tool, or what stands in their place, and
//! our own members of `_meta`.

use std::sync::LazyLock;

use portcullis_app::GovernanceView;
use portcullis_core::{
    id::RequestId as HttpRequestId,
    json::{JsonValue, Node},
    mcp::{
        Era, meta,
        tasks::{self, Disposition},
    },
};
use serde::{Serialize, Serializer, ser::SerializeMap};
use serde_json::{Map, Value};

use super::{RpcError, RpcErrorBody};
use crate::{
    exchange::message::McpMessage,
    mcp::{common, question, server_info},
};

/// Member of a read that tells for how long it stays true, in milliseconds.
const TTL: &str = "ttlMs";

/// Written into each answer of the stateless era.
static SERVER_INFO: LazyLock<Value> = LazyLock::new(server_info);

/// A result of a use.
pub(super) struct CallResultBody<'a> {
    pub(super) era: Era,
    pub(super) members: Option<Node<'a>>,
    /// The members in which URIs carry their provider, if any of them holds one.
    pub(super) renamed: Option<Value>,
    /// Milliseconds for which the client may keep what it read, at most.
    pub(super) kept_for: Option<u64>,
    /// Questions of the tool, instead of members.
    pub(super) asks: Option<Value>,
    /// A task that was begun, instead of members.
    pub(super) task: Option<Value>,
    /// The sentence for a model, instead of members.
    pub(super) sentence: Option<String>,
    pub(super) own: OwnMeta<'a>,
}

/// A result of `tasks/get`.
pub(super) struct TaskEnd<'a> {
    pub(super) task: &'a Map<String, Value>,
    /// The result of its call, unless it failed or was given up.
    pub(super) result: Option<CallResultBody<'a>>,
    pub(super) error: Option<RpcError<'a>>,
}

/// Our members of `_meta`.
#[derive(Default)]
pub(super) struct OwnMeta<'a> {
    pub(super) governance: Option<&'a GovernanceView>,
    pub(super) request_id: Option<HttpRequestId>,
    pub(super) tool: Option<&'a str>,
    pub(super) error: Option<RpcErrorBody>,
    /// End of the call of a task.
    pub(super) disposition: Option<Disposition>,
    /// The sentence about a task that was begun.
    pub(super) immediate: Option<&'a Value>,
    /// Sentences about the input.
    pub(super) notes: &'a [String],
}

impl<'a> OwnMeta<'a> {
    pub(super) fn of(request: &'a McpMessage, request_id: HttpRequestId) -> Self {
        let tool = request.tool.get().map(String::as_str);
        Self { request_id: Some(request_id), tool, ..Self::default() }
    }
}

impl CallResultBody<'_> {
    /// Writes the result, with the members of the tool as they came or were masked.
    pub(super) fn write(&self, text: &mut Vec<u8>) -> serde_json::Result<()> {
        text.push(b'{');
        for (name, value) in self.members.and_then(Node::members).into_iter().flatten() {
            // Clients of the older era know it as an object only.
            let is_known =
                self.era == Era::Modern || name != "structuredContent" || value.is_object();
            if is_known && name != meta::META && name != "resultType" && name != TTL {
                serde_json::to_writer(&mut *text, name)?;
                text.push(b':');
                match self.renamed.as_ref().and_then(|renamed| renamed.get(name)) {
                    Some(renamed) => serde_json::to_writer(&mut *text, renamed)?,
                    None => text.extend_from_slice(value.line().as_bytes()),
                }
                text.push(b',');
            }
        }
        // What is our own follows in the same object.
        let brace = text.len();
        serde_json::to_writer(&mut *text, self)?;
        text.remove(brace);
        Ok(())
    }
}

impl TaskEnd<'_> {
    /// Writes the task, with the result of its call.
    pub(super) fn write(&self, text: &mut Vec<u8>) -> serde_json::Result<()> {
        serde_json::to_writer(&mut *text, self)?;
        text.pop();
        if let Some(result) = &self.result {
            text.extend_from_slice(b",\"result\":");
            result.write(text)?;
        }
        if let Some(error) = &self.error {
            text.extend_from_slice(b",\"error\":");
            serde_json::to_writer(&mut *text, error)?;
        }
        text.push(b'}');
        Ok(())
    }
}

/// Our own members of the result.
impl Serialize for CallResultBody<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_map(None)?;
        match (&self.task, &self.asks) {
            (Some(task), _) => {
                out.serialize_entry("resultType", "task")?;
                for (name, value) in task.as_object().into_iter().flatten() {
                    out.serialize_entry(name, value)?;
                }
            }
            (None, Some(asks)) => question::write(&mut out, asks)?,
            (None, None) if self.era == Era::Modern => {
                out.serialize_entry("resultType", "complete")?;
            }
            (None, None) => {}
        }
        if let Some(most) = self.kept_for {
            let told = self.members.and_then(|members| members.get(TTL));
            let told = told.and_then(|ttl| ttl.to_value().as_u64()).unwrap_or_default();
            out.serialize_entry(TTL, &told.min(most))?;
            out.serialize_entry("cacheScope", "private")?;
        }
        if let Some(sentence) = &self.sentence {
            out.serialize_entry("content", &[Text { kind: "text", text: sentence }])?;
            out.serialize_entry("isError", &true)?;
        }
        let upstream = self.members.and_then(|members| members.get(meta::META));
        out.serialize_entry(meta::META, &ResultMeta { upstream, era: self.era, own: &self.own })?;
        out.end()
    }
}

/// The members of the task.
impl Serialize for TaskEnd<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_map(None)?;
        for (name, value) in common(Era::Modern) {
            out.serialize_entry(&name, &value)?;
        }
        let status = match (&self.result, &self.error) {
            (Some(_), _) => None,
            (None, Some(_)) => Some("failed"),
            (None, None) => Some("cancelled"),
        };
        for (name, value) in self.task {
            match status.filter(|_| name == "status") {
                Some(status) => out.serialize_entry(name, status)?,
                None => out.serialize_entry(name, value)?,
            }
        }
        out.end()
    }
}

#[derive(Serialize)]
struct Text<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    text: &'a str,
}

struct ResultMeta<'a> {
    upstream: Option<Node<'a>>,
    era: Era,
    own: &'a OwnMeta<'a>,
}

impl Serialize for ResultMeta<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_map(None)?;
        let members = self.upstream.and_then(Node::members);
        for (name, value) in members.into_iter().flatten() {
            // Of a tool none is left; masking writes none.
            if !meta::is_reserved(name) {
                out.serialize_entry(name, &value)?;
            }
        }
        if self.era == Era::Modern {
            out.serialize_entry(meta::SERVER_INFO, &*SERVER_INFO)?;
        }
        if let Some(disposition) = self.own.disposition {
            out.serialize_entry(tasks::DISPOSITION, disposition.as_str())?;
        }
        if let Some(immediate) = self.own.immediate {
            out.serialize_entry(tasks::IMMEDIATE, immediate)?;
        }
        if let Some(error) = &self.own.error {
            out.serialize_entry(meta::ERROR, error)?;
        }
        if let Some(governance) = self.own.governance {
            out.serialize_entry(meta::GOVERNANCE, governance)?;
        }
        if !self.own.notes.is_empty() {
            out.serialize_entry(meta::NOTES, self.own.notes)?;
        }
        if let Some(request_id) = &self.own.request_id {
            out.serialize_entry(meta::REQUEST_ID, request_id)?;
        }
        if let Some(tool) = self.own.tool {
            out.serialize_entry(meta::TOOL, tool)?;
        }
        out.end()
    }
}
