//! A message as far as its answer depends on it, and answers that are none of a call.

use std::sync::OnceLock;

use bytes::Bytes;
use portcullis_core::{
    capability::CapabilityKind,
    mcp::{Era, ProtocolError, Request as Asking, RequestId},
};
use serde_json::{Map, Value};

/// The answer to a message, where it is none of a call.
#[derive(Debug)]
pub(crate) enum Reply {
    /// The result as text.
    Result(String),
    List(List),
    Error(ProtocolError),
    /// A notification was taken.
    Accepted,
}

/// A page of a list of tools or prompts.
#[derive(Debug)]
pub(crate) struct List {
    /// The member of the result that holds them.
    pub(crate) member: &'static str,
    /// The list as JSON, separated by commas.
    pub(crate) items: Bytes,
    /// The members that follow them, and the end of the result.
    pub(crate) rest: String,
}

/// Message as far as the writer of its answer has to know it.
#[derive(Debug)]
pub(crate) struct McpMessage {
    pub(crate) id: RequestId,
    pub(crate) era: Era,
    /// The tool, prompt or resource that is used, if one is, without its kind.
    pub(crate) tool: OnceLock<String>,
    /// A prompt or a resource is used, or a task asked about.
    is_no_call: OnceLock<()>,
    /// The resource that is read.
    pub(crate) read: OnceLock<Read>,
    /// The provider that the URIs of an answer carry.
    pub(crate) carried: OnceLock<String>,
    /// The client opens addresses for its user, and may be asked to in place of an answer.
    pub(crate) opens_urls: OnceLock<()>,
    /// The task that the answer tells of.
    task: OnceLock<TaskReply>,
}

/// The read of a resource, as far as the writer of its answer has to know it.
#[derive(Debug)]
pub(crate) struct Read {
    /// The URI as the client wrote it.
    pub(crate) uri: String,
    /// Milliseconds for which the client may keep the answer at most.
    pub(crate) ttl_ms: u64,
}

/// The task that an answer tells of, with its members.
#[derive(Debug)]
pub(crate) enum TaskReply {
    /// A task in place of a refusal.
    Begun(Map<String, Value>),
    /// The outcome is its answer.
    Ended(Map<String, Value>),
    /// The same of a task that the provider of the tool went on with.
    Provided(Map<String, Value>),
}

impl McpMessage {
    pub(crate) fn new(asking: &Asking) -> Self {
        Self {
            id: asking.id.clone(),
            era: asking.era,
            tool: OnceLock::new(),
            is_no_call: OnceLock::new(),
            read: OnceLock::new(),
            carried: OnceLock::new(),
            opens_urls: OnceLock::new(),
            task: OnceLock::new(),
        }
    }

    /// Its client opens addresses for its user.
    pub(crate) fn may_open_urls(&self) {
        let _ = self.opens_urls.set(());
    }

    /// The answer tells of a task.
    pub(crate) fn tells(&self, told: TaskReply) {
        let _ = self.task.set(told);
    }

    /// The members of a task whose answer the outcome is.
    pub(crate) fn ended_task(&self) -> Option<&Map<String, Value>> {
        match self.task.get() {
            Some(TaskReply::Ended(members) | TaskReply::Provided(members)) => Some(members),
            Some(TaskReply::Begun(_)) | None => None,
        }
    }

    /// The members of a task that stands in place of a refusal.
    pub(crate) fn begun_task(&self) -> Option<&Map<String, Value>> {
        match self.task.get() {
            Some(TaskReply::Begun(members)) => Some(members),
            Some(TaskReply::Ended(_) | TaskReply::Provided(_)) | None => None,
        }
    }

    /// Returns true if the outcome is the answer of a task that the provider of the tool went on with.
    pub(crate) fn tells_of_provided_task(&self) -> bool {
        matches!(self.task.get(), Some(TaskReply::Provided(_)))
    }

    /// Sets the tool, prompt or resource that the message uses.
    pub(crate) fn uses(&self, kind: CapabilityKind, id: &str) {
        let _ = self.tool.set(id.to_owned());
        if kind != CapabilityKind::Tool {
            let _ = self.is_no_call.set(());
        }
    }

    /// Sets the tool of a task that the message asks about.
    pub(crate) fn follows(&self, id: &str) {
        let _ = self.tool.set(id.to_owned());
        let _ = self.is_no_call.set(());
    }

    /// Sets the provider that URIs in the answer carry, where those of `several` providers are told apart by it.
    pub(crate) fn carries(&self, several: bool, slug: &str) {
        if several {
            let _ = self.carried.set(slug.to_owned());
        }
    }

    /// Returns true for a use of a tool, prompt or resource.
    pub(crate) fn is_use(&self) -> bool {
        self.tool.get().is_some()
    }

    /// Returns true for a use of a tool, of which models can read what a refusal says.
    pub(crate) fn is_call(&self) -> bool {
        self.is_use() && self.is_no_call.get().is_none()
    }
}
