//! A bare durable bracket around a call: the least that a gateway can do which parses, judges, scans
//! and records.
//!
//! Its policy is a list of tools, its scan looks for a few literals in both directions, and it keeps a
//! row of each call before it is sent and another before it is answered.

mod writer;

use std::{
    net::SocketAddr,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
};

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::Full;
use memchr::memmem::Finder;
use serde_json::Value;

use self::writer::{Row, Writer};
use crate::{Failure, client::Answer, relay};

pub(crate) use self::writer::outcomes;

/// Tools that may be called.
const PERMITTED: [&str; 3] = ["list", "echo", "search"];
/// Beginnings of secrets.
const SECRETS: [&[u8]; 5] = [b"AKIA", b"ghp_", b"xoxb-", b"-----BEGIN ", b"eyJhbGciOi"];

/// Serves until standard input ends; prints where it listens.
pub(crate) async fn serve(upstream: SocketAddr, database: &Path) -> Result<(), Failure> {
    let bracket = Arc::new(Bracket {
        upstream,
        writer: Writer::start(database)?,
        secrets: SECRETS.map(Finder::new),
        calls: AtomicI64::new(0),
    });
    relay::serve(move |request| Arc::clone(&bracket).call(request)).await
}

struct Bracket {
    upstream: SocketAddr,
    writer: Writer,
    secrets: [Finder<'static>; SECRETS.len()],
    calls: AtomicI64,
}

impl Bracket {
    async fn call(self: Arc<Self>, request: Request<Bytes>) -> Result<Answer, Failure> {
        let message: Value = serde_json::from_slice(request.body())?;
        let tool = message.pointer("/params/name").and_then(Value::as_str).unwrap_or_default();
        if !PERMITTED.contains(&tool) || self.holds_secret(request.body()) {
            return Ok(refusal());
        }
        let call = self.calls.fetch_add(1, Ordering::Relaxed);
        let bytes = i64::try_from(request.body().len())?;
        self.writer.write(Row::Intent { call, tool: tool.to_owned(), bytes }).await?;
        let answer = relay::ask(self.upstream, request.map(Full::from)).await?;
        let status = answer.status;
        let bytes = i64::try_from(answer.body.len())?;
        let withheld = self.holds_secret(&answer.body);
        self.writer.write(Row::Outcome { call, status, bytes, withheld }).await?;
        Ok(if withheld { refusal() } else { answer })
    }

    fn holds_secret(&self, text: &[u8]) -> bool {
        self.secrets.iter().any(|secret| secret.find(text).is_some())
    }
}

fn refusal() -> Answer {
    Answer { status: StatusCode::FORBIDDEN, retry_after: None, body: Bytes::new() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{client::direct_call, upstream};

    fn call(arguments: &Value) -> Request<Bytes> {
        let call = direct_call(upstream::ANYWHERE, arguments).unwrap();
        let message = json!({ "params": { "name": "echo", "arguments": arguments } });
        call.map(|_| Bytes::from(message.to_string()))
    }

    #[tokio::test]
    async fn a_secret_is_neither_sent_nor_recorded() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("bracket.db");
        let bracket = Arc::new(Bracket {
            upstream: upstream::ANYWHERE,
            writer: Writer::start(&database).unwrap(),
            secrets: SECRETS.map(Finder::new),
            calls: AtomicI64::new(0),
        });

        let refused = Arc::clone(&bracket).call(call(&json!({ "key": "AKIA" }))).await.unwrap();
        let lost = Arc::clone(&bracket).call(call(&json!({ "key": "a" }))).await;

        assert_eq!(refused.status, StatusCode::FORBIDDEN);
        assert!(lost.is_err(), "nobody listens there");
        assert_eq!(bracket.calls.load(Ordering::Relaxed), 1);
        assert_eq!(outcomes(&database).unwrap(), 0);
    }
}
