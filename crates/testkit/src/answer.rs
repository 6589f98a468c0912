//! An HTTP answer, read whole.

use http::{HeaderMap, StatusCode};
use serde_json::Value;

/// Status, headers and body of an answer.
#[derive(Debug, Clone)]
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    /// The body as text.
    pub text: String,
    /// The body as JSON; `null` when it is none.
    pub json: Value,
}

impl Answer {
    pub(crate) async fn read(response: reqwest::Response) -> Self {
        let status = response.status();
        let headers = response.headers().clone();
        let text = response.text().await.expect("a body in UTF-8");
        let json = serde_json::from_str(&text).unwrap_or(Value::Null);
        Self { status, headers, text, json }
    }

    /// The same answer; panics with its text unless its status is 200.
    #[track_caller]
    pub fn ok(self) -> Self {
        assert_eq!(self.status, 200, "{}", self.text);
        self
    }

    /// The value at a JSON Pointer; `null` when there is none.
    #[must_use]
    pub fn at(&self, pointer: &str) -> &Value {
        self.json.pointer(pointer).unwrap_or(&Value::Null)
    }

    /// `error.code`.
    #[must_use]
    pub fn code(&self) -> &str {
        self.at("/error/code").as_str().unwrap_or_default()
    }

    /// Status and `error.code`.
    #[must_use]
    pub fn refusal(&self) -> (u16, &str) {
        (self.status.as_u16(), self.code())
    }

    /// A header as text; empty when it is absent.
    #[must_use]
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().expect("a text header"))
    }

    /// `governance.audit_event_id`.
    #[must_use]
    pub fn event_id(&self) -> &str {
        self.at("/governance/audit_event_id").as_str().unwrap_or_default()
    }
}
