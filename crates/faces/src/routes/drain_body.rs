//! The part of a request's body that no handler wanted.
//!
//! A client that is refused may still be sending. Its next request stands behind the rest of the
//! body, and a connection that is closed with unread data is reset, which can take the answer with
//! it. So the rest is read for a moment before the answer leaves; where it does not end in that
//! time, the answer says that the connection does (RFC 9112 §9.3).

use std::{sync::Arc, time::Duration};

use axum::http::{HeaderMap, HeaderValue, header};
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use tokio::time::timeout;

use crate::connection::Connection;

/// Limits on reading the rest of a body: bytes, total time, and time to wait for each part of it. A
/// client that sends nothing hears at once that it was refused.
const LINGER_BYTES: usize = 8 << 20;
const LINGER: Duration = Duration::from_secs(1);
const PATIENCE: Duration = Duration::from_millis(100);

/// Reads what was left of the body of this connection's request, within bounds, and tells the
/// client when the connection cannot be used again.
pub(crate) async fn settle(connection: &Arc<Connection>, waits: bool, answer: &mut HeaderMap) {
    let Some(mut rest) = connection.unread().take() else { return };
    // A client that waits for `100 Continue` sends nothing after a refusal, or all of it.
    let ended = if waits && !rest.begun { false } else { drained(&mut rest.body).await };
    if !ended {
        answer.insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
}

/// Reads on; tells if the body came to its end within bounds.
async fn drained(body: &mut Incoming) -> bool {
    let mut left = LINGER_BYTES;
    let reading = async {
        loop {
            let frame = match timeout(PATIENCE, body.frame()).await {
                Ok(None) => return true,
                Ok(Some(Ok(frame))) => frame,
                Ok(Some(Err(_))) | Err(_) => return false,
            };
            left = left.saturating_sub(frame.data_ref().map_or(0, Bytes::len));
            if left == 0 {
                return false;
            }
        }
    };
    timeout(LINGER, reading).await.unwrap_or(false)
}
