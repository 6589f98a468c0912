//! Answers as a stream of server-sent events, of which each holds one JSON-RPC message.

use std::convert::Infallible;

use axum::{
    body::Body,
    http::{HeaderName, HeaderValue, header},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use futures_util::{Stream, StreamExt as _};

/// A comment: clients ignore it, and it shows that the connection lives.
pub(crate) const COMMENT: Bytes = Bytes::from_static(b":\n\n");

/// The response whose body are these events and comments. No proxy may hold them back.
pub(crate) fn response(events: impl Stream<Item = Bytes> + Send + 'static) -> Response {
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream")),
        (HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no")),
    ];
    (headers, Body::from_stream(events.map(Ok::<_, Infallible>))).into_response()
}

/// An event around a message, which has no line feed in it.
pub(crate) fn event(message: &[u8]) -> Bytes {
    [&b"event: message\ndata: "[..], message, b"\n\n"].concat().into()
}
