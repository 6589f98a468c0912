//! Keeping one connection to the counters: made again whenever it fails, never waited for.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use redis::{AsyncConnectionConfig, Client, aio::MultiplexedConnection};
use tokio::{
    sync::{Notify, watch},
    time::{sleep, timeout},
};

use super::{CountersError, Live};

/// Time limit for connecting, which takes several answers.
const CONNECTING: Duration = Duration::from_secs(1);
const ANSWERS_TO_CONNECT: u32 = 5;
/// The pause after a failure, and what it grows to: the server is back for a second at most
/// before it is used again.
const PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// Interval between probes of a connection, the key that they write, and for how long.
const PROBES: Duration = Duration::from_secs(1);
const PROBE_KEY: &str = "portcullis:probe";
const PROBE_MS: u32 = 60_000;

/// The newest connection that failed.
#[derive(Debug, Default)]
pub(super) struct Trouble {
    number: AtomicU64,
    told: Notify,
}

impl Trouble {
    /// Says that this connection is not to be used any more.
    pub(super) fn with(&self, number: u64) {
        self.number.fetch_max(number, Ordering::AcqRel);
        self.told.notify_one();
    }

    async fn comes_to(&self, number: u64) {
        while self.number.load(Ordering::Acquire) < number {
            self.told.notified().await;
        }
    }
}

/// The work of [`super::SharedCounters`]; without it there is no connection.
#[derive(Debug)]
pub struct CountersTask {
    client: Client,
    live: watch::Sender<Option<Live>>,
    trouble: Arc<Trouble>,
    patience: Duration,
}

impl CountersTask {
    pub(super) const fn new(
        client: Client,
        live: watch::Sender<Option<Live>>,
        trouble: Arc<Trouble>,
        patience: Duration,
    ) -> Self {
        Self { client, live, trouble, patience }
    }

    /// Keeps a connection until every [`super::SharedCounters`] is gone. Tells of every change:
    /// nothing when there is a connection, why when there is none.
    pub async fn run(self, tell: impl Fn(Option<CountersError>)) {
        let mut number = 0;
        let mut pause = PAUSE;
        let mut told = false;
        while !self.live.is_closed() {
            let failed = match self.connect().await {
                Ok(connection) => {
                    number += 1;
                    tell(None);
                    told = false;
                    self.live.send_replace(Some(Live { connection: connection.clone(), number }));
                    let begun = tokio::time::Instant::now();
                    let failed = self.watch(connection, number).await;
                    self.live.send_replace(None);
                    // A server that answers and then refuses is not to be hammered.
                    pause = if begun.elapsed() > LONGEST_PAUSE { PAUSE } else { pause };
                    failed
                }
                Err(error) => error,
            };
            if self.live.is_closed() {
                return;
            }
            if !std::mem::replace(&mut told, true) {
                tell(Some(failed));
            }
            tokio::select! {
                () = sleep(pause) => {}
                () = self.live.closed() => return,
            }
            pause = LONGEST_PAUSE.min(pause * 2);
        }
    }

    /// Returns when the connection is not to be used any more.
    async fn watch(&self, mut connection: MultiplexedConnection, number: u64) -> CountersError {
        loop {
            tokio::select! {
                () = self.live.closed() => return CountersError::Unreachable,
                () = self.trouble.comes_to(number) => {
                    return CountersError::Refused("a question was not answered".to_owned());
                }
                () = sleep(PROBES) => {}
            }
            if let Err(error) = self.probe(&mut connection).await {
                return error;
            }
        }
    }

    /// Writes, as counting does: a server that is read-only or full answers everything else.
    async fn probe(&self, connection: &mut MultiplexedConnection) -> Result<(), CountersError> {
        let mut write = redis::cmd("SET");
        write.arg(PROBE_KEY).arg(1).arg("PX").arg(PROBE_MS);
        match timeout(self.patience, write.query_async(connection)).await {
            Ok(written) => written.map_err(|error| CountersError::of(&error)),
            Err(_) => Err(CountersError::Slow),
        }
    }

    async fn connect(&self) -> Result<MultiplexedConnection, CountersError> {
        let limit = CONNECTING.max(self.patience.saturating_mul(ANSWERS_TO_CONNECT));
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(limit))
            .set_response_timeout(Some(limit));
        let connecting = self.client.get_multiplexed_async_connection_with_config(&config);
        match timeout(limit, connecting).await {
            Ok(Ok(mut connection)) => self.probe(&mut connection).await.map(|()| connection),
            Ok(Err(error)) => Err(CountersError::of(&error)),
            Err(_) => Err(CountersError::Slow),
        }
    }
}
