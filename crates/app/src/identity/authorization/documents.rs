//! Clients that describe themselves in a document (Client ID Metadata Documents).
//!
//! **Invariant:** whatever strangers ask for, a node fetches only so many documents at once of a source and of
//! a host, and one that it has, or could not have, not again within five minutes, or one. Only so many requests
//! wait for them. What is kept of them is what is used, and has a bound in bytes. Clients to which somebody
//! consented have places and memory of their own, of whose places an org has its share, whoever asks; persons who
//! are signed in have places of their own.
//!
//! An old document serves only after a fetch that found its server unreachable, never because there was no
//! place to fetch a new one: a key that a client removed would prove it for as long as the places are full.

mod places;

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use moka::sync::Cache;
use portcullis_core::{
    authorization::{Client, ClientAuthentication, OAuthError, OAuthErrorCode},
    clock::Timestamp,
    id::OrgId,
    trust::KeySet,
};
use portcullis_upstream::{Endpoint, KeyLocation, NoClientDocument, Outbound, SettingsError};
use tokio::sync::watch;

pub(super) use self::places::Place;
use self::places::{FetchSource, Places, host};
use crate::{
    base::{
        Base,
        caches::{Lifetime, NodeCache},
    },
    identity::access::trust::{KeySource, keys::IssuerKeys},
    request::Origin,
};

/// Seconds for which a document is kept at least, and at most if somebody consented to its client.
const SHORTEST: i64 = 5 * 60;
const LONGEST: i64 = 24 * 60 * 60;
/// Seconds for which a failure is kept.
const FAILED: i64 = 60;
/// Seconds for which an old document of a client with a consent serves while its server cannot be reached.
const STALE: i64 = 24 * 60 * 60;

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
    base: Arc<Base>,
    rules: DocumentRules,
    consented: DocumentGroup,
    others: DocumentGroup,
    places: PlacesOfAll,
    /// The result of each fetch that is under way, by its document.
    under_way: Mutex<HashMap<String, Awaited>>,
}

/// The result of a fetch, once it is there.
type Awaited = watch::Receiver<Option<Arc<FetchedClient>>>;

/// For whom a document is fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FetchFor {
    /// Those who let the client in; the org of one of the first of them.
    Consented(OrgId),
    /// A person who is signed in and asked about the client.
    Person,
    /// A caller of whom nothing is known.
    Stranger,
}

impl FetchFor {
    /// The party whose share of the places is used, if a request from `source` asks.
    fn party(self, source: IpAddr) -> FetchSource {
        match self {
            Self::Consented(org) => FetchSource::Org(org),
            Self::Person | Self::Stranger => FetchSource::from(source),
        }
    }
}

/// The places of each.
#[derive(Debug)]
struct PlacesOfAll {
    consented: Places,
    persons: Places,
    strangers: Places,
}

/// Clients with a consent, or all others.
#[derive(Debug)]
struct DocumentGroup {
    known: Cache<String, Arc<FetchedClient>>,
    /// Seconds for which a document is kept at most, and for which an old one serves after that.
    longest: i64,
    stale: i64,
}

/// A client as its document described it.
#[derive(Debug, Clone)]
pub(super) struct FetchedClient {
    client: Result<Client, OAuthError>,
    /// The keys that it proves itself with, where it does.
    keys: Option<IssuerKeys>,
    until: Timestamp,
    /// Moment until which it serves while its server cannot be reached.
    stale_until: Timestamp,
}

impl DocumentGroup {
    fn new(cache: NodeCache, longest: i64, stale: i64) -> Self {
        let lifetime = Lifetime::Whole(Duration::from_secs((longest + stale).unsigned_abs()));
        let weight = |id: &String, known: &Arc<FetchedClient>| {
            id.len() + 200 + known.client.as_ref().map_or(0, Client::weight)
        };
        Self { known: cache.make(lifetime, weight), longest, stale }
    }
}

impl FetchedClient {
    /// A client whose document cannot be used.
    fn failed(error: OAuthError, now: Timestamp) -> Self {
        let until = now.plus_seconds(FAILED);
        Self { client: Err(error), keys: None, until, stale_until: until }
    }

    /// A client whose document cannot be had: as an `old` one describes it, while that may serve.
    fn without_document(error: NoClientDocument, old: Option<&Self>, now: Timestamp) -> Self {
        match (error, old) {
            (NoClientDocument::Absent, _) => {
                Self::failed(OAuthError::client(error.to_string()), now)
            }
            (NoClientDocument::Unreachable, Some(old)) if old.may_be_stale(now) => {
                let until = now.plus_seconds(FAILED).min(old.stale_until);
                Self { until, ..old.clone() }
            }
            (NoClientDocument::Unreachable, _) => Self::failed(unavailable(error.to_string()), now),
        }
    }

    /// Returns true if it serves while a new document cannot be had.
    fn may_be_stale(&self, now: Timestamp) -> bool {
        self.client.is_ok() && now < self.stale_until
    }

    /// The client.
    ///
    /// # Errors
    /// Fault of its document, or the reason why it cannot be had.
    pub(super) fn client(&self) -> Result<&Client, OAuthError> {
        self.client.as_ref().map_err(OAuthError::clone)
    }

    /// The keys that the client proves itself with.
    ///
    /// # Errors
    /// As [`Self::client`], and `invalid_client` if the document names none.
    pub(super) fn keys(&self) -> Result<&IssuerKeys, OAuthError> {
        self.client()?;
        let told = "the metadata document of the client names no keys";
        self.keys.as_ref().ok_or_else(|| OAuthError::client(told))
    }
}

impl Documents {
    pub(super) fn new(rules: DocumentRules, base: &Arc<Base>) -> Arc<Self> {
        Arc::new(Self {
            base: Arc::clone(base),
            rules,
            consented: DocumentGroup::new(NodeCache::ConsentedDocuments, LONGEST, STALE),
            others: DocumentGroup::new(NodeCache::OtherDocuments, SHORTEST, 0),
            places: PlacesOfAll {
                consented: Places::of_orgs(),
                persons: Places::of_known(),
                strangers: Places::of_strangers(),
            },
            under_way: Mutex::default(),
        })
    }

    /// Returns true if nothing is fetched for the client at this moment.
    pub(super) fn is_loaded(&self, id: &str, now: Timestamp) -> bool {
        self.fresh(id, now).is_some()
    }

    /// The client whose document is known here at this moment; nothing is fetched.
    pub(super) fn find_loaded(&self, id: &str, now: Timestamp) -> Option<Client> {
        self.fresh(id, now)?.client.clone().ok()
    }

    /// The client whose document is known here at this moment, with its keys; nothing is fetched.
    ///
    /// # Errors
    /// `invalid_client` for an address that is not allowed.
    pub(super) fn known_client(
        &self,
        id: &str,
        now: Timestamp,
    ) -> Result<Option<Arc<FetchedClient>>, OAuthError> {
        if self.is_allowed(id) {
            return Ok(self.fresh(id, now));
        }
        let told = "the operator of this gateway does not allow this client";
        Err(OAuthError::client(told))
    }

    /// For whom the document of this client is fetched, if `asker` asks for it.
    ///
    /// # Errors
    /// `temporarily_unavailable` while the store fails.
    pub(super) async fn fetch_for(
        &self,
        id: &str,
        asker: FetchFor,
    ) -> Result<FetchFor, OAuthError> {
        let org = self.base.store.find_consenting_org(id).await.map_err(|error| {
            error.log();
            busy()
        })?;
        Ok(org.map_or(asker, FetchFor::Consented))
    }

    /// The client whose document stands at `id`, which is fetched if it is not known.
    ///
    /// # Errors
    /// `temporarily_unavailable` while too many documents are fetched or waited for, of `origin`, from the host,
    /// or in all.
    pub(super) async fn fetched(
        self: &Arc<Self>,
        id: &str,
        whose: FetchFor,
        origin: &Origin,
    ) -> Result<Arc<FetchedClient>, OAuthError> {
        let places = self.places(whose);
        let _waiting = places.wait(whose.party(origin.source_ip)).ok_or_else(busy)?;
        let awaited = places.patiently(|| self.begin(id, whose, origin)).await;
        let mut awaited = awaited.ok_or_else(busy)?;
        // An error is a fetch that ended without a result: the node is about to stop.
        let fetched = awaited.wait_for(Option::is_some).await.ok().and_then(|it| it.clone());
        fetched.ok_or_else(busy)
    }

    /// A place to fetch keys of a client from the address in its document; `None` if they stand in it.
    ///
    /// # Errors
    /// `temporarily_unavailable` while there is none.
    pub(super) async fn place_for_keys(
        &self,
        client: &Client,
        origin: &Origin,
    ) -> Result<Option<Place>, OAuthError> {
        let ClientAuthentication::PublishedKeys(address) = client.authentication() else {
            return Ok(None);
        };
        let whose = self.fetch_for(&client.reference().id, FetchFor::Stranger).await?;
        let places = self.places(whose);
        let party = whose.party(origin.source_ip);
        let _waiting = places.wait(party).ok_or_else(busy)?;
        let place = places.patiently(|| places.take(party, address)).await;
        place.map(Some).ok_or_else(busy)
    }

    const fn places(&self, whose: FetchFor) -> &Places {
        match whose {
            FetchFor::Consented(_) => &self.places.consented,
            FetchFor::Person => &self.places.persons,
            FetchFor::Stranger => &self.places.strangers,
        }
    }

    const fn group(&self, whose: FetchFor) -> &DocumentGroup {
        match whose {
            FetchFor::Consented(_) => &self.consented,
            FetchFor::Person | FetchFor::Stranger => &self.others,
        }
    }

    fn known(&self, id: &str) -> impl Iterator<Item = Arc<FetchedClient>> {
        [&self.consented, &self.others].into_iter().filter_map(move |it| it.known.get(id))
    }

    fn fresh(&self, id: &str, now: Timestamp) -> Option<Arc<FetchedClient>> {
        self.known(id).find(|known| now < known.until)
    }

    /// An old document that serves while a new one cannot be had.
    fn stale(&self, id: &str, now: Timestamp) -> Option<Arc<FetchedClient>> {
        self.known(id).find(|known| known.may_be_stale(now))
    }

    fn under_way(&self) -> MutexGuard<'_, HashMap<String, Awaited>> {
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins to fetch a document on a task of its own, which does not end with the request that asks for it.
    /// `None` if there is no place for it.
    fn begin(self: &Arc<Self>, id: &str, whose: FetchFor, origin: &Origin) -> Option<Awaited> {
        let mut under_way = self.under_way();
        if let Some(awaited) = under_way.get(id) {
            return Some(awaited.clone());
        }
        let place = self.places(whose).take(whose.party(origin.source_ip), id)?;
        let (tell, awaited) = watch::channel(None);
        under_way.insert(id.to_owned(), awaited.clone());
        let fetch = Fetch { documents: Arc::clone(self), id: id.to_owned(), _place: place };
        let now = origin.arrived;
        self.base.spawn(async move {
            let known = fetch.run(whose, now).await;
            drop(fetch);
            let _ = tell.send(Some(known));
        });
        Some(awaited)
    }

    async fn fetch(&self, id: &str, group: &DocumentGroup, now: Timestamp) -> FetchedClient {
        let fetched = match self.endpoint(id) {
            Ok(endpoint) => self.rules.outbound.fetch_client_document(&endpoint).await,
            Err(_) => Err(NoClientDocument::Absent),
        };
        let fetched = match fetched {
            Ok(fetched) => fetched,
            Err(error) => {
                return FetchedClient::without_document(error, self.stale(id, now).as_deref(), now);
            }
        };
        let described = Client::of_document(id, &fetched.document);
        match described.and_then(|client| Ok((self.keys(&client)?, client))) {
            Ok((keys, client)) => {
                let life = fetched.max_age.unwrap_or(SHORTEST).clamp(SHORTEST, group.longest);
                let until = now.plus_seconds(life);
                let stale_until = until.plus_seconds(group.stale);
                FetchedClient { client: Ok(client), keys, until, stale_until }
            }
            Err(error) => FetchedClient::failed(error, now),
        }
    }

    /// The keys that a client proves itself with. Those at an address are fetched when they are needed.
    fn keys(&self, client: &Client) -> Result<Option<IssuerKeys>, OAuthError> {
        let outbound = self.rules.outbound.clone();
        let tasks = self.base.tasks.clone();
        match client.authentication() {
            ClientAuthentication::None => Ok(None),
            ClientAuthentication::Keys(keys) => {
                let keys = KeySource::Static(KeySet::of_registered(keys));
                Ok(Some(IssuerKeys::new(String::new(), keys, outbound, tasks)))
            }
            ClientAuthentication::PublishedKeys(address) => {
                let told =
                    "the keys of the client are at an address that this gateway does not go to";
                let wrong = |_| OAuthError::new(OAuthErrorCode::InvalidClientMetadata, told);
                let location = self.endpoint(address).map(KeyLocation::Jwks).map_err(wrong)?;
                Ok(Some(IssuerKeys::of_client(location, outbound, tasks)))
            }
        }
    }

    fn endpoint(&self, id: &str) -> Result<Endpoint, SettingsError> {
        let is_private =
            host(id).is_some_and(|host| self.rules.private_hosts.iter().any(|it| it == host));
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

/// A fetch under way. Dropped, also by a panic, it lets the next one begin.
struct Fetch {
    documents: Arc<Documents>,
    id: String,
    _place: Place,
}

impl Fetch {
    async fn run(&self, whose: FetchFor, now: Timestamp) -> Arc<FetchedClient> {
        let Self { documents, id, .. } = self;
        let group = documents.group(whose);
        let known = Arc::new(documents.fetch(id, group, now).await);
        group.known.insert(id.clone(), Arc::clone(&known));
        known
    }
}

impl Drop for Fetch {
    fn drop(&mut self) {
        self.documents.under_way().remove(&self.id);
    }
}

fn busy() -> OAuthError {
    unavailable("too many clients are looked up at this moment")
}

fn unavailable(told: impl Into<String>) -> OAuthError {
    OAuthError::new(OAuthErrorCode::TemporarilyUnavailable, told)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use portcullis_core::{
        authorization::{ClientKind, RedirectUri},
        clock::Clock,
        id::{Ids, RequestId},
        random::Random,
    };
    use portcullis_lanes::Workers;
    use portcullis_store::{DatabaseSettings, DatabaseUrl, RowKey, Store};
    use tokio_util::task::TaskTracker;

    use super::*;
    use crate::telemetry::stages::Stages;

    const NOW: Timestamp = Timestamp::from_micros(1_795_172_535_123_000);
    const ID: &str = "https://app.example/client.json";

    #[derive(Debug)]
    struct Fixed;

    impl Random for Fixed {
        fn fill(&self, bytes: &mut [u8]) {
            bytes.fill(7);
        }
    }

    impl Clock for Fixed {
        fn now(&self) -> Timestamp {
            NOW
        }
    }

    /// A client whose document has to be fetched anew.
    fn old_client() -> FetchedClient {
        let uri = RedirectUri::parse("https://app.example/cb").unwrap();
        let kind = ClientKind::MetadataDocument;
        let client = Client::new(ID.to_owned(), kind, None, vec![uri]).unwrap();
        let stale_until = NOW.plus_seconds(STALE);
        FetchedClient { client: Ok(client), keys: None, until: NOW, stale_until }
    }

    async fn no_documents(folder: &Path) -> Arc<Documents> {
        let url = DatabaseUrl::sqlite(folder.join("portcullis.db"));
        let settings = DatabaseSettings::new(url, RowKey::derive(&[7; 32]));
        let store = Store::open(&settings).await.unwrap();
        let (clock, random) = (Arc::new(Fixed), Arc::new(Fixed));
        let tasks = TaskTracker::new();
        let base = Base::new(clock, random, store, "node".to_owned(), Workers::none(), tasks);
        let outbound = Outbound::new(Arc::new(Fixed));
        let rules = DocumentRules { allowed: None, private_hosts: Vec::new(), outbound };
        Documents::new(rules, &Arc::new(base))
    }

    #[tokio::test]
    async fn an_old_document_does_not_serve_because_the_places_are_full() {
        let folder = tempfile::tempdir().unwrap();
        let documents = no_documents(folder.path()).await;
        documents.consented.known.insert(ID.to_owned(), Arc::new(old_client()));
        let source = IpAddr::from([203, 0, 113, 7]);
        let places = &documents.places.consented;
        let whose = FetchFor::Consented("org_01M754BKTKX1YB8Q05NMW9TP4G".parse().unwrap());
        let party = whose.party(source);
        let held: Vec<_> = (0..2).map(|_| places.take(party, ID).unwrap()).collect();
        let origin = Origin {
            request_id: RequestId::new(Ids { clock: &Fixed, random: &Fixed }),
            arrived: NOW.plus_seconds(1),
            source_ip: source,
            user_agent: None,
            traceparent: None,
            tracestate: None,
            stages: Stages::untraced(),
            is_internal: false,
        };

        let refused = documents.fetched(ID, whose, &origin).await;

        assert_eq!(refused.unwrap_err().code, OAuthErrorCode::TemporarilyUnavailable);
        drop(held);
    }

    #[test]
    fn an_old_document_serves_while_its_server_cannot_be_reached_and_not_after_a_day() {
        let old = old_client();
        let later = |seconds| NOW.plus_seconds(seconds);
        let (unreachable, absent) = (NoClientDocument::Unreachable, NoClientDocument::Absent);
        let unavailable = Some(OAuthErrorCode::TemporarilyUnavailable);
        for (error, old, seconds, code, kept) in [
            (unreachable, Some(&old), 0, None, FAILED),
            (unreachable, Some(&old), STALE - 10, None, 10),
            (unreachable, Some(&old), STALE, unavailable, FAILED),
            (unreachable, None, 0, unavailable, FAILED),
            (absent, Some(&old), 0, Some(OAuthErrorCode::InvalidClient), FAILED),
        ] {
            let known = FetchedClient::without_document(error, old, later(seconds));

            let told = known.client().err().map(|error| error.code);
            assert_eq!((told, known.until), (code, later(seconds + kept)), "{error:?} {seconds}");
        }
    }
}
