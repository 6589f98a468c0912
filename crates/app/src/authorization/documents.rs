//! Clients that describe themselves in a document (Client ID Metadata Documents).
//!
//! **Invariant:** whatever strangers ask for, a node fetches only so many documents at once, and one that it has,
//! or could not have, not again within five minutes, or one.

use std::{sync::Arc, time::Duration};

use moka::sync::Cache;
use portcullis_core::{
    authorization::{Client, ClientAuthentication, ClientRef, OAuthError, OAuthErrorCode},
    clock::Timestamp,
    trust::KeySet,
};
use portcullis_upstream::{Endpoint, KeyLocation, Outbound, SettingsError};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio_util::task::TaskTracker;

use crate::access::trust::{KeySource, keys::IssuerKeys};

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
    tasks: TaskTracker,
}

#[derive(Debug)]
struct FetchedClient {
    client: Result<Client, OAuthError>,
    /// The keys that it proves itself with, where it does.
    keys: Option<IssuerKeys>,
    until: Timestamp,
}

/// A client that proves itself with keys, while they may be fetched.
pub(super) struct DocumentKeys<'a> {
    pub(super) client: ClientRef,
    pub(super) keys: IssuerKeys,
    _turn: SemaphorePermit<'a>,
}

/// Name of all these clients among those whose keys are fetched: strangers choose their ids.
const KEYS_OF: &str = "clients with a metadata document";

impl Documents {
    pub(super) fn new(rules: DocumentRules, tasks: TaskTracker) -> Self {
        let life = Duration::from_secs(LONGEST.unsigned_abs());
        let known = Cache::builder().max_capacity(MOST).time_to_live(life).build();
        Self { rules, known, fetching: Semaphore::new(AT_ONCE), tasks }
    }

    /// The client whose document stands at `id`.
    ///
    /// # Errors
    /// `invalid_client` for an address that is not allowed or cannot be had, and what is wrong with the document.
    /// `temporarily_unavailable` while too many are fetched.
    pub(super) async fn client(&self, id: &str, now: Timestamp) -> Result<Client, OAuthError> {
        self.fetched(id, now).await?.client.clone()
    }

    /// The client whose document is known here at this moment; nothing is fetched.
    pub(super) fn find_loaded(&self, id: &str, now: Timestamp) -> Option<Client> {
        let known = self.known.get(id).filter(|known| now < known.until)?;
        known.client.clone().ok()
    }

    /// The keys of the client whose document stands at `id`.
    ///
    /// # Errors
    /// As [`Self::client`], and `invalid_client` if the document names no keys.
    pub(super) async fn keys_of(
        &self,
        id: &str,
        now: Timestamp,
    ) -> Result<DocumentKeys<'_>, OAuthError> {
        let fetched = self.fetched(id, now).await?;
        let client = fetched.client.as_ref().map_err(OAuthError::clone)?.reference().clone();
        let told = "the metadata document of the client names no keys";
        let keys = fetched.keys.clone().ok_or_else(|| OAuthError::client(told))?;
        let turn = self.fetching.try_acquire().map_err(|_| busy())?;
        Ok(DocumentKeys { client, keys, _turn: turn })
    }

    async fn fetched(&self, id: &str, now: Timestamp) -> Result<Arc<FetchedClient>, OAuthError> {
        if !self.is_allowed(id) {
            let told = "the operator of this gateway does not allow this client";
            return Err(OAuthError::client(told));
        }
        if let Some(known) = self.known.get(id).filter(|known| now < known.until) {
            return Ok(known);
        }
        let _turn = self.fetching.try_acquire().map_err(|_| busy())?;
        let known = Arc::new(self.fetch(id, now).await);
        self.known.insert(id.to_owned(), Arc::clone(&known));
        Ok(known)
    }

    async fn fetch(&self, id: &str, now: Timestamp) -> FetchedClient {
        let unreadable = || OAuthError::client("the metadata document of the client cannot be had");
        let failed = |error| {
            let until = now.plus_seconds(FAILED);
            FetchedClient { client: Err(error), keys: None, until }
        };
        let Ok(endpoint) = self.endpoint(id) else { return failed(unreadable()) };
        let Ok(fetched) = self.rules.outbound.fetch_client_document(&endpoint).await else {
            return failed(unreadable());
        };
        let described = Client::of_document(id, &fetched.document);
        match described.and_then(|client| Ok((self.keys(&client)?, client))) {
            Ok((keys, client)) => {
                let life = fetched.max_age.unwrap_or(SHORTEST).clamp(SHORTEST, LONGEST);
                FetchedClient { client: Ok(client), keys, until: now.plus_seconds(life) }
            }
            Err(error) => failed(error),
        }
    }

    /// The keys that a client proves itself with. Those at an address are fetched when they are needed.
    fn keys(&self, client: &Client) -> Result<Option<IssuerKeys>, OAuthError> {
        let source = match client.authentication() {
            ClientAuthentication::None => return Ok(None),
            ClientAuthentication::Keys(keys) => {
                KeySet::parse(keys.to_string().as_bytes()).map(KeySource::Static).ok()
            }
            ClientAuthentication::PublishedKeys(address) => {
                let location = self.endpoint(address).map(KeyLocation::Jwks).ok();
                location.map(|location| KeySource::Published { location, stale_seconds: 0 })
            }
        };
        let told = "the keys of the client are at an address that this gateway does not go to";
        let wrong = || OAuthError::new(OAuthErrorCode::InvalidClientMetadata, told);
        let Self { rules: DocumentRules { outbound, .. }, tasks, .. } = self;
        let source = source.ok_or_else(wrong)?;
        Ok(Some(IssuerKeys::new(KEYS_OF.to_owned(), source, outbound.clone(), tasks.clone())))
    }

    fn endpoint(&self, id: &str) -> Result<Endpoint, SettingsError> {
        // An address that comes here is written as a parser would write it, and names no user.
        let host = id.strip_prefix("https://").and_then(|rest| rest.split(['/', ':']).next());
        let is_private =
            host.is_some_and(|host| self.rules.private_hosts.iter().any(|it| it == host));
        if is_private { Endpoint::allowed(id) } else { Endpoint::public(id) }
    }

    fn is_allowed(&self, id: &str) -> bool {
        let matches = |pattern: &String| match pattern.strip_suffix('*') {
            Some(beginning) => id.starts_with(beginning),
            None => id == pattern,
        };
        self.rules.allowed.as_ref().is_none_or(|allowed| allowed.iter().any(matches))
    }
}

fn busy() -> OAuthError {
    let told = "too many clients are looked up at this moment";
    OAuthError::new(OAuthErrorCode::TemporarilyUnavailable, told)
}
