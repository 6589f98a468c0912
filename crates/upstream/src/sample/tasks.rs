//! Calls of the sample server that go on as tasks: those of `slow_echo` by clients that declare tasks.

use std::{collections::BTreeMap, time::Duration};

use portcullis_core::{clock::Timestamp, mcp::tasks};
use serde_json::{Map, Value, json};

use super::tools;

/// Tasks that are kept; the oldest are forgotten first.
const MOST: usize = 64;
/// Milliseconds for which a task is said to be kept.
const TTL_MS: u64 = 600_000;

/// A call of `slow_echo`.
struct Echo {
    text: String,
    begun: Timestamp,
    ends: Timestamp,
    cancelled: Option<Timestamp>,
}

#[derive(Default)]
pub(super) struct Tasks {
    begun: u64,
    kept: BTreeMap<u64, Echo>,
}

impl Tasks {
    /// Begins a task for a call of a client that declared them. `None` for other calls.
    pub(super) fn begin(&mut self, params: &Map<String, Value>, now: Timestamp) -> Option<Value> {
        let is_declared = params.get("_meta").is_some_and(tasks::is_declared);
        let arguments =
            params.get("arguments").and_then(Value::as_object).filter(|_| is_declared)?;
        let (text, seconds) = tools::echoed(arguments).ok()?;
        let micros = Duration::from_secs_f64(seconds).as_micros();
        let micros = i64::try_from(micros).unwrap_or_default();
        let ends = Timestamp::from_micros(now.as_micros().saturating_add(micros));
        self.begun += 1;
        let text = text.to_owned();
        self.kept.insert(self.begun, Echo { text, begun: now, ends, cancelled: None });
        if self.kept.len() > MOST {
            self.kept.pop_first();
        }
        let mut told = self.told(self.begun, now)?;
        told.insert("resultType".to_owned(), json!("task"));
        Some(Value::Object(told))
    }

    /// Answers a request about a task. `None` if there is no such task.
    pub(super) fn answer(
        &mut self,
        method: &str,
        params: &Map<String, Value>,
        now: Timestamp,
    ) -> Option<Value> {
        let id = params.get("taskId")?.as_str()?.strip_prefix("echo-")?.parse().ok()?;
        let told = self.told(id, now)?;
        let echo = self.kept.get_mut(&id)?;
        if method == "tasks/get" {
            return Some(Value::Object(told));
        }
        // It asks nothing, so an update says nothing.
        if method == "tasks/cancel" && now < echo.ends {
            echo.cancelled = echo.cancelled.or(Some(now));
        }
        Some(json!({}))
    }

    fn told(&self, id: u64, now: Timestamp) -> Option<Map<String, Value>> {
        let Echo { text, begun, ends, cancelled } = self.kept.get(&id)?;
        let (status, changed_at) = match cancelled {
            Some(at) => ("cancelled", at),
            None if now < *ends => ("working", begun),
            None => ("completed", ends),
        };
        let told = json!({
            "taskId": format!("echo-{id}"), "status": status, "createdAt": begun,
            "lastUpdatedAt": changed_at, "ttlMs": TTL_MS, "pollIntervalMs": 500,
        });
        let Value::Object(mut told) = told else { return None };
        if status == "completed" {
            told.insert("result".to_owned(), tools::success(&json!({ "text": text })));
        }
        Some(told)
    }
}
