//! Clients that describe themselves in a document (Client ID Metadata Documents).
//!
//! **Invariant:** whatever strangers ask for, a node fetches only so many documents at once, and one that it has,
//! or could not have, not again within five minutes, or one.

use std::{sync::Arc, time::Duration};

use moka::sync::Cache;
use portcullis_core::{
    authorization::{Client, OAuthError, OAuthErrorCode},
    clock::Timestamp,
};
use portcullis_upstream::{Endpoint, Outbound, SettingsError};
use tokio::sync::Semaphore;

/// Documents that are kept; the least used are forgotten first.
const MOST: u64 = 2_000;
/// Seconds for which a document is kept at least, and at most.
const SHORTEST: i64 = 5 * 60;
const LONGEST: i64 = 24 * 60 * 60;
/// Seconds for which a failure is kept.
const FAILED: i64 = 60;
/// Documents that are fetched at once.
const AT_ONCE: usize = 16;

/// Rules by which documents are fetched.
#[derive(Debug)]
pub struct DocumentRules {
    /// Addresses that clients may have; each may end in `*`. Any when absent.
    pub allowed: Option<Vec<String>>,
    /// Hosts in private networks that may be dialled.
    pub private_hosts: Vec<String>,
    pub outbound: Outbound,
}

/// Documents that were fetched.
#[derive(Debug)]
pub(super) struct Documents {
    rules: DocumentRules,
    known: Cache<String, Arc<FetchedClient>>,
    fetching: Semaphore,
}

#[derive(Debug)]
struct FetchedClient {
    client: Result<Client, OAuthError>,
    until: Timestamp,
}

impl Documents {
    pub(super) fn new(rules: DocumentRules) -> Self {
        let life = Duration::from_secs(LONGEST.unsigned_abs());
        let known = Cache::builder().max_capacity(MOST).time_to_live(life).build();
        Self { rules, known, fetching: Semaphore::new(AT_ONCE) }
    }

    /// The client whose document stands at `id`.
    ///
    /// # Errors
    /// `invalid_client` for an address that is not allowed or cannot be had, and what is wrong with the document.
    /// `temporarily_unavailable` while too many are fetched.
    pub(super) async fn client(&self, id: &str, now: Timestamp) -> Result<Client, OAuthError> {
        if !self.is_allowed(id) {
            let told = "the operator of this gateway does not allow this client";
            return Err(OAuthError::client(told));
        }
        if let Some(known) = self.known.get(id).filter(|known| now < known.until) {
            return known.client.clone();
        }
        let Ok(_turn) = self.fetching.try_acquire() else {
            let told = "too many clients are looked up at this moment";
            return Err(OAuthError::new(OAuthErrorCode::TemporarilyUnavailable, told));
        };
        let known = Arc::new(self.fetch(id, now).await);
        self.known.insert(id.to_owned(), Arc::clone(&known));
        known.client.clone()
    }

    async fn fetch(&self, id: &str, now: Timestamp) -> FetchedClient {
        let unreadable = || OAuthError::client("the metadata document of the client cannot be had");
        let failed = |error| FetchedClient { client: Err(error), until: now.plus_seconds(FAILED) };
        let Ok(endpoint) = self.endpoint(id) else { return failed(unreadable()) };
        let Ok(fetched) = self.rules.outbound.fetch_client_document(&endpoint).await else {
            return failed(unreadable());
        };
        match Client::of_document(id, &fetched.document) {
            Ok(client) => {
                let life = fetched.max_age.unwrap_or(SHORTEST).clamp(SHORTEST, LONGEST);
                FetchedClient { client: Ok(client), until: now.plus_seconds(life) }
            }
            Err(error) => failed(error),
        }
    }

    fn endpoint(&self, id: &str) -> Result<Endpoint, SettingsError> {
        // An id that comes here is written as a parser would write it.
        let host = id.strip_prefix("https://").and_then(|rest| rest.split(['/', ':']).next());
        let is_private =
            host.is_some_and(|host| self.rules.private_hosts.iter().any(|it| it == host));
        if is_private { Endpoint::named(id) } else { Endpoint::public(id) }
    }

    fn is_allowed(&self, id: &str) -> bool {
        let matches = |pattern: &String| match pattern.strip_suffix('*') {
            Some(beginning) => id.starts_with(beginning),
            None => id == pattern,
        };
        self.rules.allowed.as_ref().is_none_or(|allowed| allowed.iter().any(matches))
    }
}
