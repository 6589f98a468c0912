//! A body in parts: a text that many answers share is sent as it is, without a copy.

use std::{
    array,
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
};

use axum::body::HttpBody;
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};

/// Three parts, one after the other.
#[derive(Debug)]
pub(crate) struct Parts(array::IntoIter<Bytes, 3>);

impl From<[Bytes; 3]> for Parts {
    fn from(parts: [Bytes; 3]) -> Self {
        Self(parts.into_iter())
    }
}

impl HttpBody for Parts {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.get_mut().0.next().map(|part| Ok(Frame::data(part))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.as_slice().is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        let bytes: usize = self.0.as_slice().iter().map(Bytes::len).sum();
        SizeHint::with_exact(u64::try_from(bytes).unwrap_or(u64::MAX))
    }
}
