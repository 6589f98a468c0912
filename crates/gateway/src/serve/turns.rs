//! Turns in the life of a connection, besides its requests.

use std::{future::pending, sync::Arc};

use futures_util::{FutureExt, StreamExt, future::BoxFuture, stream::FuturesUnordered};
use tokio::time::{Instant, sleep_until};
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

/// The turns of a connection. They are asked only when they have something to tell, and not whenever a
/// call goes on: to ask whether the gateway ends takes a lock that all connections share.
pub(super) struct Turns<'a> {
    client: &'a Arc<Connection>,
    over: FuturesUnordered<BoxFuture<'a, Over>>,
    late: FuturesUnordered<BoxFuture<'a, Over>>,
    rest: FuturesUnordered<BoxFuture<'a, ()>>,
}

impl<'a> Turns<'a> {
    pub(super) fn of(
        client: &'a Arc<Connection>,
        idle: IdleTime,
        stop: &'a CancellationToken,
    ) -> Self {
        let over = async move {
            tokio::select! {
                () = stop.cancelled() => Over::Stopped,
                () = client.silence(idle) => Over::Silent,
            }
        };
        let over = FuturesUnordered::from_iter([over.boxed()]);
        Self { client, over, late: FuturesUnordered::new(), rest: FuturesUnordered::new() }
    }

    /// Waits until the connection is to be closed.
    pub(super) async fn over(&mut self) -> Over {
        self.over.next().await.unwrap_or(Over::Stopped)
    }

    /// Waits until it is to be closed or rests.
    pub(super) async fn next(&mut self) -> Turn {
        if self.rest.is_empty() {
            self.rest.push(self.client.rest().boxed());
        }
        tokio::select! {
            biased;
            over = self.over.next() => Turn::Over(over.unwrap_or(Over::Stopped)),
            Some(over) = self.late.next() => Turn::Over(over),
            Some(()) = self.rest.next() => Turn::Resting,
        }
    }

    /// It is to be closed as well if no further request has begun by then.
    pub(super) fn ask_by(&mut self, end: Instant) {
        let (client, requests) = (self.client, self.client.requests());
        let late = async move {
            sleep_until(end).await;
            if client.requests() != requests {
                pending::<()>().await;
            }
            Over::Silent
        };
        self.late = FuturesUnordered::from_iter([late.boxed()]);
    }
}
