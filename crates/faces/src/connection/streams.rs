//! Streams of an HTTP/2 connection: few until a caller has authenticated over it.

use std::{net::IpAddr, sync::Arc, time::Duration};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

use crate::quota::Quota;

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
