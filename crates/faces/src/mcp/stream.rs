//! A call whose caller wants to hear of its progress: the answer is a stream of events, with the
//! result as the last one.
//!
//! The call runs on a task of its own, so that a client that does not read holds nothing but its
//! connection and what may wait there. A client that closes the stream cancels the call. Every stream
//! ends with an answer, for some clients wait for one although the stream has ended.

use std::{sync::Arc, time::Duration};

use axum::response::Response;
use bytes::Bytes;
use futures_util::stream;
use portcullis_app::{Attending, ClearedProgress};
use portcullis_core::{
    json::{JsonValue as _, Kind, Node},
    mcp::{ProtocolError, meta},
    refusal::{Refusal, Unavailable},
};
use serde::Serialize;
use serde_json::{Number, Value};
use tokio::sync::oneshot;

use super::reply;
use crate::{
    exchange::{Exchange, Outcome, sse},
    gateway::Gateway,
};

/// Time without news after which a comment is sent, so that the connection is not taken for dead.
const COMMENT_AFTER: Duration = Duration::from_secs(15);
/// Longest token in bytes: it is echoed with each notification.
const LONGEST_TOKEN: usize = 256;

/// The token under which a client wants to hear of progress. It never goes upstream.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub(super) struct Token(Value);

impl Token {
    /// The token of a request, if it has one. Rejects what is neither a text nor an integer, and a
    /// text that is too long.
    pub(super) fn of(meta: Node<'_>) -> Result<Option<Self>, ProtocolError> {
        let Some(token) = meta.get(meta::PROGRESS_TOKEN) else { return Ok(None) };
        let good = match token.kind() {
            Kind::Null => return Ok(None),
            Kind::Text(text) if text.len() <= LONGEST_TOKEN => Some(Value::from(text)),
            Kind::Number(_) => {
                Some(token.to_value()).filter(|number| number.is_i64() || number.is_u64())
            }
            Kind::Text(_) | Kind::Bool(_) | Kind::Array(_) | Kind::Object(_) => None,
        };
        if let Some(token) = good {
            return Ok(Some(Self(token)));
        }
        let form = format!("has to be an integer, or a text of at most {LONGEST_TOKEN} bytes");
        Err(ProtocolError::bad_params(format!("`progressToken` {form}.")))
    }
}

/// A call under way.
struct Events {
    gateway: Arc<Gateway>,
    exchange: Arc<Exchange>,
    token: Token,
    attending: Attending,
    end: oneshot::Receiver<Outcome>,
    ended: bool,
}

/// Begins a call, whose answer is a stream once it is dispatched. What ends before that is answered
/// as if no progress had been asked for.
pub(super) async fn open(
    gateway: &Arc<Gateway>,
    exchange: &Arc<Exchange>,
    token: Token,
    attending: Attending,
    call: impl Future<Output = Outcome> + Send + 'static,
) -> Result<Response, Outcome> {
    let (done, mut end) = oneshot::channel();
    gateway.app.base.spawn(async move {
        // The client may be gone; the event is recorded.
        let _ = done.send(call.await);
    });
    tokio::select! {
        biased;
        () = attending.dispatched() => {}
        outcome = &mut end => return Err(outcome.unwrap_or_else(|_| Refusal::Internal.into())),
    }
    let gateway = Arc::clone(gateway);
    let exchange = Arc::clone(exchange);
    let events = Events { gateway, exchange, token, attending, end, ended: false };
    let events = stream::unfold(events, |mut events| async {
        let event = events.next().await?;
        Some((event, events))
    });
    Ok(sse::response(events))
}

impl Events {
    /// The next event, or a comment; `None` after the answer.
    async fn next(&mut self) -> Option<Bytes> {
        if self.ended {
            return None;
        }
        tokio::select! {
            biased;
            Some(progress) = self.attending.next() => Some(self.progress(&progress)),
            outcome = &mut self.end => {
                self.ended = true;
                Some(self.answer(outcome.unwrap_or_else(|_| Refusal::Internal.into())).await)
            }
            () = self.gateway.app.base.streams_cut() => {
                self.ended = true;
                let refusal = Refusal::Unavailable { reason: Unavailable::Shutdown };
                Some(self.event(&Outcome::unsure(refusal)))
            }
            () = tokio::time::sleep(COMMENT_AFTER) => Some(sse::COMMENT),
        }
    }

    fn progress(&self, progress: &ClearedProgress) -> Bytes {
        let params = Params {
            token: &self.token,
            progress: &progress.progress,
            total: progress.total.as_ref(),
            message: progress.message.as_deref(),
        };
        let method = "notifications/progress";
        // Texts and numbers always serialise.
        let text = serde_json::to_vec(&Notification { jsonrpc: "2.0", method, params });
        sse::event(&text.unwrap_or_default())
    }

    /// The answer, which a worker writes if it is large.
    async fn answer(&self, outcome: Outcome) -> Bytes {
        let Some(org) = self.exchange.org().filter(|_| outcome.large) else {
            return self.event(&outcome);
        };
        let exchange = Arc::clone(&self.exchange);
        let write = move || event_of(&exchange, &outcome);
        let written = self.gateway.app.base.worked(org, usize::MAX, write).await;
        written.unwrap_or_else(|refusal| self.event(&Outcome::unsure(refusal)))
    }

    fn event(&self, outcome: &Outcome) -> Bytes {
        event_of(&self.exchange, outcome)
    }
}

fn event_of(exchange: &Exchange, outcome: &Outcome) -> Bytes {
    sse::event(&reply::body(outcome, exchange.message(), exchange.origin.request_id))
}

#[derive(Serialize)]
struct Notification<'a> {
    jsonrpc: &'static str,
    method: &'static str,
    params: Params<'a>,
}

#[derive(Serialize)]
struct Params<'a> {
    #[serde(rename = "progressToken")]
    token: &'a Token,
    progress: &'a Number,
    #[serde(skip_serializing_if = "Option::is_none")]
    total: Option<&'a Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'a str>,
}
