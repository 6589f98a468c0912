//! Streams of an HTTP/2 connection: few until a caller has authenticated over it.

use std::{net::IpAddr, sync::Arc, time::Duration};

use axum::{
    extract::Request,
    http::{HeaderMap, HeaderName, HeaderValue, Method, Uri},
};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

use crate::quota::{Exhausted, Permit, Quota};

/// Requests of one connection at once.
pub const MAX_STREAMS: u32 = 100;
/// Requests of one connection that are handled at once before anybody has authenticated over it.
const UNKNOWN_STREAMS: usize = 8;
/// Time that further ones wait. An honest client that begins with many requests has authenticated
/// by then.
const PATIENCE: Duration = Duration::from_secs(1);
/// Requests that wait so, on all connections and on those of one source.
const WAITING: usize = 1024;
const WAITING_SHARE: usize = 256;

/// Bytes of the heads of such requests, on all connections and on those of one source.
const HEADS: usize = 64 << 20;
const HEADS_SHARE: usize = 8 << 20;
/// Memory that a request and each of its headers take besides their texts.
const REQUEST: usize = 1 << 10;
const HEADER: usize = 128;

/// Slots for the requests of one connection.
#[derive(Debug)]
pub(super) struct Streams(Arc<Semaphore>);

impl Default for Streams {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(UNKNOWN_STREAMS)))
    }
}

/// The quota of requests that wait for a slot.
#[must_use]
pub fn waiting() -> Arc<Quota> {
    Quota::fair(WAITING, WAITING_SHARE)
}

/// The quota of bytes of heads: methods, addresses and headers.
#[must_use]
pub fn heads() -> Arc<Quota> {
    Quota::fair(HEADS, HEADS_SHARE)
}

/// Charges the head of a request to its source. One for which there is no room is let go of at once:
/// many requests may be waiting for a thread to refuse them.
pub(super) fn hold_head(
    request: &mut Request,
    source: IpAddr,
    heads: &Arc<Quota>,
) -> Result<Permit, Exhausted> {
    let held = heads.take(Some(source), head_size(request));
    if held.is_err() {
        *request.method_mut() = Method::GET;
        if address_size(request.uri()) > REQUEST {
            *request.uri_mut() = Uri::default();
        }
        *request.headers_mut() = HeaderMap::new();
    }
    held
}

fn head_size(request: &Request) -> usize {
    let header =
        |(name, value): (&HeaderName, &HeaderValue)| HEADER + name.as_str().len() + value.len();
    let headers: usize = request.headers().iter().map(header).sum();
    REQUEST + request.method().as_str().len() + address_size(request.uri()) + headers
}

fn address_size(uri: &Uri) -> usize {
    uri.authority().map_or(0, |it| it.as_str().len())
        + uri.path_and_query().map_or(0, |it| it.as_str().len())
}

impl Streams {
    /// Makes room for as many requests as HTTP/2 lets a client send.
    pub(super) fn open(&self) {
        self.0.add_permits(usize::try_from(MAX_STREAMS).unwrap_or(usize::MAX));
    }

    /// Takes a slot, or waits for one if not too many wait already.
    pub(super) async fn enter(
        &self,
        source: IpAddr,
        waiting: &Arc<Quota>,
    ) -> Option<OwnedSemaphorePermit> {
        if let Ok(slot) = Arc::clone(&self.0).try_acquire_owned() {
            return Some(slot);
        }
        let _queued = waiting.take(Some(source), 1).ok()?;
        timeout(PATIENCE, Arc::clone(&self.0).acquire_owned()).await.ok()?.ok()
    }
}

#[cfg(test)]
mod tests {
    use std::{future::poll_fn, task::Poll};

    use axum::body::Body;

    use super::*;

    const SOURCE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    #[tokio::test]
    async fn the_ninth_unknown_stream_waits_until_somebody_has_authenticated() {
        let streams = Streams::default();
        let waiting = waiting();
        let mut held = Vec::new();
        for _ in 0..UNKNOWN_STREAMS {
            held.push(streams.enter(SOURCE, &waiting).await.unwrap());
        }

        assert!(streams.enter(SOURCE, &waiting).await.is_none(), "nobody has authenticated");
        let mut ninth = Box::pin(streams.enter(SOURCE, &waiting));
        poll_fn(|context| {
            assert!(ninth.as_mut().poll(context).is_pending());
            Poll::Ready(())
        })
        .await;
        streams.open();

        assert!(ninth.await.is_some());
    }

    #[test]
    fn a_head_for_which_there_is_no_room_is_let_go_of() {
        let request = |path: &str| {
            Request::get(path).header("a", "x".repeat(100)).body(Body::empty()).unwrap()
        };
        let long = format!("/{}", "x".repeat(REQUEST));
        let size = REQUEST + HEADER + "GET".len() + "/healthz".len() + 101;
        let heads = Quota::new(2 * size - 1, 2 * size - 1);
        let (mut first, mut second, mut third) =
            (request("/healthz"), request("/healthz"), request(&long));

        let held = hold_head(&mut first, SOURCE, &heads);
        let refused = [&mut second, &mut third].map(|it| hold_head(it, SOURCE, &heads).is_err());

        assert_eq!((held.is_ok(), refused), (true, [true, true]));
        assert_eq!((first.headers().len(), first.uri().path()), (1, "/healthz"));
        assert_eq!((second.headers().capacity(), second.uri().path()), (0, "/healthz"));
        assert_eq!(third.uri().path(), "/");
        drop(held);
        assert!(hold_head(&mut request("/healthz"), SOURCE, &heads).is_ok());
    }

    #[tokio::test]
    async fn no_more_wait_than_may() {
        let streams = Streams::default();
        let none = Quota::new(0, 0);
        for _ in 0..UNKNOWN_STREAMS {
            std::mem::forget(streams.enter(SOURCE, &none).await.unwrap());
        }

        assert!(streams.enter(SOURCE, &none).await.is_none());
    }
}
