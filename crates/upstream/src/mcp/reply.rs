//! Requests of a server's, and our replies to them.

use portcullis_core::{
    mcp::code::{INVALID_PARAMS, METHOD_NOT_FOUND},
    refusal::Executed,
};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::error::CallError;

/// Request of a server.
#[derive(Debug)]
pub(crate) struct ServerRequest {
    pub(crate) id: Value,
    pub(crate) method: String,
    pub(crate) params: Map<String, Value>,
    /// Length of the whole message.
    pub(crate) bytes: usize,
}

/// Reply to such a request.
#[derive(Debug)]
pub(crate) enum Reply {
    /// To a `ping`.
    Pong,
    /// We do not offer the method.
    NotOffered,
    /// A form with this answer.
    Accepted(Map<String, Value>),
    /// A form without an answer.
    Cancelled,
    /// A question of another kind than forms.
    NoForm,
}

impl ServerRequest {
    /// The reply where no form is answered: `ping` is answered, the rest we do not offer.
    pub(crate) fn plain_reply(&self) -> Result<Vec<u8>, CallError> {
        let ping = self.method == "ping";
        self.reply(if ping { Reply::Pong } else { Reply::NotOffered })
    }

    /// The text of a reply, with no line feed in it.
    pub(crate) fn reply(&self, reply: Reply) -> Result<Vec<u8>, CallError> {
        let error = |code: i64, message: &str| Err(json!({"code": code, "message": message}));
        let outcome = match reply {
            Reply::Pong => Ok(json!({})),
            Reply::NotOffered => error(METHOD_NOT_FOUND, "Method not found"),
            Reply::Accepted(content) => Ok(json!({"action": "accept", "content": content})),
            Reply::Cancelled => Ok(json!({"action": "cancel"})),
            Reply::NoForm => error(INVALID_PARAMS, "Only forms are offered"),
        };
        let id = &self.id;
        let message = match outcome {
            Ok(result) => ReplyMessage { jsonrpc: "2.0", id, result: Some(result), error: None },
            Err(error) => ReplyMessage { jsonrpc: "2.0", id, result: None, error: Some(error) },
        };
        serde_json::to_vec(&message).map_err(|_| CallError::protocol(Executed::No))
    }
}

#[derive(Serialize)]
struct ReplyMessage<'a> {
    jsonrpc: &'static str,
    id: &'a Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Value>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pings_are_answered_and_the_rest_is_refused() {
        let text = |method: &str| {
            let id = json!("x");
            let method = method.to_owned();
            let request = ServerRequest { id, method, params: Map::new(), bytes: 0 };
            String::from_utf8(request.plain_reply().unwrap()).unwrap()
        };

        assert_eq!(text("ping"), r#"{"jsonrpc":"2.0","id":"x","result":{}}"#);
        assert!(text("sampling/createMessage").contains("-32601"));
        assert!(text("elicitation/create").contains("-32601"));
    }
}
