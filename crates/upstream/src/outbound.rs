//! Shared state of all upstreams: connection pools, background tasks, randomness.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use portcullis_core::random::{self, Random};
use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;

use crate::{
    clients::Clients, error::SettingsError, http_client::HttpClient, ids::Ids, reach::Reach,
};

/// The way out, shared by all servers. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Outbound(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    random: Arc<dyn Random>,
    clients: Mutex<HashMap<(Reach, Duration), Arc<Clients>>>,
    tasks: TaskTracker,
    /// The turns of programs that start.
    starts: Arc<Semaphore>,
}

/// Programs that start at the same time.
const STARTS: usize = 4;

impl Outbound {
    /// A way out that draws its request ids from `random`.
    #[must_use]
    pub fn new(random: Arc<dyn Random>) -> Self {
        Self(Arc::new(Shared {
            random,
            clients: Mutex::default(),
            tasks: TaskTracker::new(),
            starts: Arc::new(Semaphore::new(STARTS)),
        }))
    }

    /// Waits until what runs in the background has ended. Shut the servers down first.
    pub async fn drained(&self) {
        self.0.tasks.close();
        self.0.tasks.wait().await;
    }

    pub(crate) fn tasks(&self) -> &TaskTracker {
        &self.0.tasks
    }

    pub(crate) fn starts(&self) -> Arc<Semaphore> {
        Arc::clone(&self.0.starts)
    }

    /// A part of one half, by which those differ who would do something at the same time.
    pub(crate) fn jitter(&self) -> f64 {
        let [byte] = random::bytes::<1>(self.0.random.as_ref());
        f64::from(byte) / 512.0
    }

    pub(crate) fn ids(&self) -> Ids {
        Ids::new(self.0.random.as_ref())
    }

    /// The clients for one reach.
    pub(crate) fn clients(
        &self,
        reach: Reach,
        connect: Duration,
    ) -> Result<Arc<Clients>, SettingsError> {
        let mut all = self.0.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(clients) = all.get(&(reach, connect)) {
            return Ok(Arc::clone(clients));
        }
        let clients = Arc::new(Clients::new(reach, connect)?);
        all.insert((reach, connect), Arc::clone(&clients));
        Ok(clients)
    }

    /// The one of them for the runtime that this is called on.
    pub(crate) fn client(
        &self,
        reach: Reach,
        connect: Duration,
    ) -> Result<HttpClient, SettingsError> {
        Ok(self.clients(reach, connect)?.here())
    }
}
