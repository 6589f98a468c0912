//! What all upstreams share: connection pools, background tasks, randomness.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use portcullis_core::random::Random;
use reqwest::{Client, redirect, retry};
use tokio_util::task::TaskTracker;

use crate::{
    ids::Ids,
    reach::{Guard, Reach},
    settings::SettingsError,
};

/// How much of one answer may be under way over HTTP/2, and how much of all: answers that are left
/// waiting for their turn must not keep others of the same connection from coming.
const STREAM_WINDOW: u32 = 256 << 10;
const CONNECTION_WINDOW: u32 = 16 << 20;

/// An idle connection is dropped before common servers close it (5 s), so that a call rarely meets
/// a connection that is being closed; such a call could not be sent again.
const KEEP_IDLE: Duration = Duration::from_secs(4);
const USER_AGENT: &str = concat!("portcullis/", env!("CARGO_PKG_VERSION"));

/// The way out, shared by all servers. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Outbound(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    random: Arc<dyn Random>,
    clients: Mutex<HashMap<(Reach, Duration), Client>>,
    tasks: TaskTracker,
}

impl Outbound {
    /// A way out that draws its request ids from `random`.
    #[must_use]
    pub fn new(random: Arc<dyn Random>) -> Self {
        let tasks = TaskTracker::new();
        Self(Arc::new(Shared { random, clients: Mutex::default(), tasks }))
    }

    /// Waits until what runs in the background has ended. Shut the servers down first.
    pub async fn drained(&self) {
        self.0.tasks.close();
        self.0.tasks.wait().await;
    }

    pub(crate) fn tasks(&self) -> &TaskTracker {
        &self.0.tasks
    }

    pub(crate) fn ids(&self) -> Ids {
        Ids::new(self.0.random.as_ref())
    }

    /// The client for one reach. **Invariant:** no redirects, no retries, no proxy, no
    /// decompression, and no address that `reach` does not allow.
    pub(crate) fn client(&self, reach: Reach, connect: Duration) -> Result<Client, SettingsError> {
        let mut clients = self.0.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = clients.get(&(reach, connect)) {
            return Ok(client.clone());
        }
        let builder = match reach {
            Reach::Public | Reach::Named => Client::builder(),
            // Nothing is encrypted, so a machine without CA certificates will do.
            Reach::Private => Client::builder().tls_certs_only([]),
        };
        let client = builder
            .user_agent(USER_AGENT)
            .redirect(redirect::Policy::none())
            .retry(retry::never())
            .referer(false)
            .no_proxy()
            .https_only(reach != Reach::Private)
            .dns_resolver(Arc::new(Guard::new(reach)))
            .connect_timeout(connect)
            .tcp_nodelay(true)
            .http2_initial_stream_window_size(STREAM_WINDOW)
            .http2_initial_connection_window_size(CONNECTION_WINDOW)
            .pool_idle_timeout(KEEP_IDLE)
            .pool_max_idle_per_host(256)
            .build()
            .map_err(|_| SettingsError::HttpClient)?;
        clients.insert((reach, connect), client.clone());
        Ok(client)
    }
}
