//! What a refused client is still sending.
//!
//! A connection that is closed with unread data is reset, and a reset takes the answer with it.
//! So the body that no handler wanted is read for a moment before the answer leaves.

use std::{
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use axum::{
    body::{Body, HttpBody},
    extract::Request,
    http::{Version, header},
};
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Frame, SizeHint};
use tokio::sync::oneshot;

/// Bodies up to this size are read by the connection itself.
const SMALL: u64 = 16 << 10;
/// How much is read at most, and for how long.
const LINGER_BYTES: usize = 8 << 20;
const LINGER: Duration = Duration::from_secs(1);

/// The rest of a body, once its handler has let go of it.
pub(super) struct Leftover(Option<oneshot::Receiver<Body>>);

impl Leftover {
    /// Keeps hold of the request's body if it may have to be read on. HTTP/2 needs no such care,
    /// and a client that waits for `100 Continue` has sent nothing yet.
    pub(super) fn of(request: Request) -> (Request, Self) {
        let small = request.body().size_hint().upper().is_some_and(|size| size <= SMALL);
        let waits = request.headers().contains_key(header::EXPECT);
        if small || waits || request.version() >= Version::HTTP_2 {
            return (request, Self(None));
        }
        let (back, leftover) = oneshot::channel();
        let lend = |body| Body::new(Lent { body, back: Some(back) });
        (request.map(lend), Self(Some(leftover)))
    }

    /// Reads on, within bounds.
    pub(super) async fn read(self) {
        let Some(mut body) = self.0.and_then(|mut leftover| leftover.try_recv().ok()) else {
            return;
        };
        let mut left = LINGER_BYTES;
        let reading = async {
            while let Some(Ok(frame)) = body.frame().await {
                left = left.saturating_sub(frame.data_ref().map_or(0, Bytes::len));
                if left == 0 {
                    return;
                }
            }
        };
        let _ = tokio::time::timeout(LINGER, reading).await;
    }
}

/// A body that comes back when it is dropped.
struct Lent {
    body: Body,
    back: Option<oneshot::Sender<Body>>,
}

impl HttpBody for Lent {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if let Some(back) = self.back.take()
            && !self.body.is_end_stream()
        {
            let _ = back.send(std::mem::take(&mut self.body));
        }
    }
}
