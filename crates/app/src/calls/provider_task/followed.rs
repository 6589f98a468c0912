//! A call that its provider goes on with, what is asked about it, and what is answered.

use portcullis_core::{call::ProviderTask, capability::CapabilityId, clock::Timestamp};
use portcullis_upstream::ToldTask;
use serde_json::{Map, Value, json};

use crate::calls::{Answered, Stopped};

/// Milliseconds after which to ask again where the provider does not say.
const USUAL_PAUSE_MS: u64 = 2_000;

/// A call that its provider goes on with.
#[derive(Debug, Clone)]
pub struct FollowedTask {
    pub(super) id: String,
    pub(super) task: ProviderTask,
    pub(super) tool: CapabilityId,
}

/// Request of a caller about such a call.
#[derive(Debug)]
pub enum FollowUp {
    State,
    /// Answers to its questions, by their names.
    Answers(Map<String, Value>),
    Cancel,
}

/// The answer to that.
#[derive(Debug)]
pub enum Followed {
    /// The task as MCP writes it.
    State(Map<String, Value>),
    /// The call has this answer from now on.
    Ended(Map<String, Value>, Result<Answered, Box<Stopped>>),
    /// The provider has taken the answers, or that the call is given up.
    Taken,
}

impl FollowedTask {
    /// The tool that was called.
    #[must_use]
    pub const fn tool(&self) -> &CapabilityId {
        &self.tool
    }

    /// The same that can be asked about until then.
    pub(super) fn until(&self, ends_at: Timestamp) -> Self {
        Self { task: ProviderTask { ends_at, ..self.task.clone() }, ..self.clone() }
    }

    /// The members that MCP has for a task in a state.
    pub(super) fn members(&self, status: &str, told: Option<&ToldTask>) -> Map<String, Value> {
        let ProviderTask { created_at, ends_at, .. } = self.task;
        let life = ends_at.as_millis().saturating_sub(created_at.as_millis());
        let changed_at = told.and_then(|told| told.updated_at).unwrap_or(created_at);
        Map::from_iter([
            ("taskId".to_owned(), json!(self.id)),
            ("status".to_owned(), json!(status)),
            ("createdAt".to_owned(), json!(created_at)),
            ("lastUpdatedAt".to_owned(), json!(changed_at)),
            ("ttlMs".to_owned(), json!(life)),
            ("pollIntervalMs".to_owned(), json!(pause_ms(told.and_then(|told| told.poll_ms)))),
        ])
    }
}

/// Milliseconds after which to ask again: half a second to a minute.
pub(super) fn pause_ms(told: Option<u64>) -> u64 {
    told.unwrap_or(USUAL_PAUSE_MS).clamp(500, 60_000)
}
