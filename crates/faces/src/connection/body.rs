//! Request bodies of HTTP/1, and what was not read of them.
//!
//! The next request of a connection can only be read behind the body before it. A body that its
//! handler did not read to the end therefore comes back to its connection, so that the rest can be
//! read, or the client told that the connection ends.

use std::{
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
};

use axum::body::HttpBody;
use bytes::Bytes;
use hyper::body::{Frame, Incoming, SizeHint};

use super::Connection;

/// The slot for a body that was not read to its end. HTTP/1 has one request at a time.
#[derive(Debug, Default)]
pub(crate) struct Unread(Mutex<Option<Rest>>);

/// The rest of a body.
#[derive(Debug)]
pub(crate) struct Rest {
    /// The part that is still to come.
    pub(crate) body: Incoming,
    /// Set once any of it was asked for: a client that waits for `100 Continue` sends nothing
    /// before that.
    pub(crate) begun: bool,
}

impl Unread {
    /// The body that was given back last, if it was.
    pub(crate) fn take(&self) -> Option<Rest> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn give_back(&self, rest: Rest) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(rest);
    }
}

/// A body that goes back to its connection when it is dropped before its end.
pub(super) struct ReturnedBody {
    rest: Option<Rest>,
    connection: Arc<Connection>,
}

impl ReturnedBody {
    pub(super) fn new(body: Incoming, connection: &Arc<Connection>) -> Self {
        let rest = (!body.is_end_stream()).then_some(Rest { body, begun: false });
        Self { rest, connection: Arc::clone(connection) }
    }
}

impl HttpBody for ReturnedBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let Some(rest) = &mut self.rest else { return Poll::Ready(None) };
        rest.begun = true;
        let frame = std::task::ready!(Pin::new(&mut rest.body).poll_frame(context));
        if frame.is_none() || rest.body.is_end_stream() {
            self.rest = None;
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        self.rest.as_ref().map_or_else(|| SizeHint::with_exact(0), |rest| rest.body.size_hint())
    }
}

impl Drop for ReturnedBody {
    fn drop(&mut self) {
        if let Some(rest) = self.rest.take() {
            self.connection.unread.give_back(rest);
        }
    }
}
