//! Turns in the life of a connection, besides its requests.

use std::sync::Arc;

use futures_util::{FutureExt, StreamExt, future::BoxFuture, stream::FuturesUnordered};
use tokio_util::sync::CancellationToken;

use crate::connection::{Connection, IdleTime};

/// A turn in the life of a connection.
pub(super) enum Turn {
    /// The connection is to be closed.
    Over(Over),
    /// Its last request was answered a while ago.
    Resting,
}

/// Reason to close a connection.
#[derive(Clone, Copy)]
pub(super) enum Over {
    /// The gateway ends.
    Stopped,
    /// Nothing was asked over it for too long.
    Silent,
}

/// The turns of a connection, one after the other.
pub(super) struct Turns<'a> {
    client: Arc<Connection>,
    idle: IdleTime,
    stop: &'a CancellationToken,
    /// The next one, asked only when it has something to tell, and not whenever a call goes on: to ask
    /// `stop` takes a lock that all connections share.
    next: FuturesUnordered<BoxFuture<'a, Turn>>,
    may_rest: bool,
}

impl<'a> Turns<'a> {
    pub(super) fn of(
        client: &Arc<Connection>,
        idle: IdleTime,
        stop: &'a CancellationToken,
    ) -> Self {
        let (client, next) = (Arc::clone(client), FuturesUnordered::new());
        Self { client, idle, stop, next, may_rest: false }
    }

    /// Waits for the next one, which is that the connection rests only if it may.
    pub(super) async fn next(&mut self, may_rest: bool) -> Turn {
        if self.may_rest != may_rest || self.next.is_empty() {
            self.may_rest = may_rest;
            self.next = FuturesUnordered::from_iter([self.turn()]);
        }
        self.next.next().await.unwrap_or(Turn::Over(Over::Stopped))
    }

    fn turn(&self) -> BoxFuture<'a, Turn> {
        let (client, idle, may_rest) = (Arc::clone(&self.client), self.idle, self.may_rest);
        let stop = self.stop;
        async move {
            tokio::select! {
                () = stop.cancelled() => Turn::Over(Over::Stopped),
                () = client.silence(idle) => Turn::Over(Over::Silent),
                () = client.rest(), if may_rest => Turn::Resting,
            }
        }
        .boxed()
    }
}
