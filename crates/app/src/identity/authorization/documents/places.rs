//! Places of fetches at addresses that strangers choose: so many of one source or org, and so many of one host.

use std::{net::IpAddr, sync::Arc, time::Duration};

use portcullis_core::{id::OrgId, oauth};
use portcullis_lanes::{SharePlace, Shares};
use tokio::{sync::Notify, time::timeout};

use crate::base::tenants::sources::subnet;

/// Fetches at once for clients to which somebody consented, for persons who are signed in, and for strangers.
const AT_ONCE: usize = 64;
/// Those of them that one stranger causes, that the clients of one org need, and that one host answers.
const OF_A_STRANGER: usize = 2;
const OF_AN_ORG: usize = 8;
const OF_A_HOST: usize = 2;
/// Requests that wait for fetches or for a place, of all sources.
const WAITING: usize = 256;
/// Those of them of one source: of strangers, and of those of whom something is known, or else of one org.
const WAITING_OF_A_STRANGER: usize = 8;
const WAITING_OF_A_SOURCE: usize = 64;
/// The longest that anybody waits for a place.
const PATIENCE: Duration = Duration::from_secs(1);

/// Party that has a share of the places.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum FetchSource {
    /// A network.
    Source(IpAddr),
    /// An org that let the client in, for any caller.
    Org(OrgId),
}

impl From<IpAddr> for FetchSource {
    fn from(source: IpAddr) -> Self {
        Self::Source(subnet(source))
    }
}

/// Places of fetches.
#[derive(Debug)]
pub(super) struct Places {
    parties: Arc<Shares<FetchSource>>,
    hosts: Arc<Shares<[u8; 32]>>,
    waiting: Arc<Shares<FetchSource>>,
    freed: Arc<Notify>,
}

/// A place of one fetch, until it is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    _party: SharePlace<FetchSource>,
    _host: SharePlace<[u8; 32]>,
    /// The last: it tells of the others, which are free then.
    _freed: Freed,
}

/// Wakes those who wait for a place, when it is dropped.
#[derive(Debug)]
struct Freed(Arc<Notify>);

impl Drop for Freed {
    fn drop(&mut self) {
        self.0.notify_waiters();
    }
}

impl Places {
    /// Places for strangers, of which each source has its share.
    pub(super) fn of_strangers() -> Self {
        Self::new(OF_A_STRANGER, WAITING_OF_A_STRANGER)
    }

    /// Places for those of whom something is known: a neighbour takes none of them away.
    pub(super) fn of_known() -> Self {
        Self::new(AT_ONCE, WAITING_OF_A_SOURCE)
    }

    /// Places for clients with a consent, of which each org has its share.
    pub(super) fn of_orgs() -> Self {
        Self::new(OF_AN_ORG, WAITING_OF_A_SOURCE)
    }

    fn new(of_a_party: usize, waiting_of_a_party: usize) -> Self {
        Self {
            parties: Arc::new(Shares::new(AT_ONCE, of_a_party)),
            hosts: Arc::new(Shares::new(AT_ONCE, OF_A_HOST)),
            waiting: Arc::new(Shares::new(WAITING, waiting_of_a_party)),
            freed: Arc::default(),
        }
    }

    /// Room for a request of `party` to wait; `None` while too many do.
    pub(super) fn wait(&self, party: FetchSource) -> Option<SharePlace<FetchSource>> {
        self.waiting.take(party)
    }

    /// Tries something that needs a place until there is one, for a second at most.
    pub(super) async fn patiently<T>(&self, mut attempt: impl FnMut() -> Option<T>) -> Option<T> {
        let tried = timeout(PATIENCE, async {
            loop {
                let freed = self.freed.notified();
                if let Some(done) = attempt() {
                    return done;
                }
                freed.await;
            }
        });
        let tried = tried.await.ok();
        tried.or_else(attempt)
    }

    /// A place for what is fetched for `party` from `address`; `None` while there is none.
    pub(super) fn take(&self, party: FetchSource, address: &str) -> Option<Place> {
        let party = self.parties.take(party)?;
        let host = self.hosts.take(oauth::digest(host(address).unwrap_or_default()))?;
        Some(Place { _party: party, _host: host, _freed: Freed(Arc::clone(&self.freed)) })
    }
}

/// The host of an address as a parser would write it, which names no user.
pub(super) fn host(address: &str) -> Option<&str> {
    address.strip_prefix("https://").and_then(|rest| rest.split(['/', ':']).next())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(text: &str) -> FetchSource {
        text.parse::<IpAddr>().unwrap().into()
    }

    #[test]
    fn an_org_has_eight_places_whatever_else_its_clients_need() {
        let places = Places::of_orgs();
        let take = |org: &str, n: usize| {
            let party = FetchSource::Org(org.parse().unwrap());
            places.take(party, &format!("https://{n}.{org}.example/client.json"))
        };
        let [one, two] = ["org_01M754BKTKX1YB8Q05NMW9TP4G", "org_01M754BKTKX1YB8Q05NMW9TP4H"];

        let held: Vec<_> = (0..20).map_while(|n| take(one, n)).collect();

        assert_eq!(held.len(), 8);
        assert!(take(two, 0).is_some());
        drop(held);
        assert!(take(one, 9).is_some());
    }

    #[test]
    fn a_source_and_a_host_have_two_places_each_whatever_else_is_asked_for() {
        let places = Places::of_strangers();
        let take = |from: &str, host: &str| {
            places.take(source(from), &format!("https://{host}/client.json"))
        };

        let of_source: Vec<_> =
            (0..5).map_while(|n| take("203.0.113.7", &format!("{n}.example"))).collect();
        let of_host: Vec<_> =
            (0..5).map_while(|n| take(&format!("203.0.113.1{n}"), "app.example:8443")).collect();

        assert_eq!((of_source.len(), of_host.len()), (2, 2));
        assert!(take("203.0.113.8", "other.example").is_some());
        drop(of_source);
        assert!(take("203.0.113.7", "5.example").is_some());
    }

    #[test]
    fn those_of_whom_something_is_known_share_hosts_only() {
        let places = Places::of_known();
        let source = source("203.0.113.7");
        let take = |host: &str| places.take(source, &format!("https://{host}/client.json"));

        let held: Vec<_> = (0..5).map_while(|n| take(&format!("{n}.example"))).collect();
        let of_host: Vec<_> = (0..5).map_while(|_| take("app.example")).collect();

        assert_eq!((held.len(), of_host.len()), (5, 2));
    }

    #[test]
    fn few_requests_of_a_stranger_wait_and_others_have_the_rest() {
        let places = Places::of_strangers();
        let wait = |number: u8| places.wait(IpAddr::from([203, 0, 113, number]).into());

        let held: Vec<_> = (0..40).flat_map(|number| [number; 9]).filter_map(wait).collect();

        assert_eq!(held.len(), WAITING);
        assert!(wait(50).is_none());
        drop(held);
        let of_one: Vec<_> = (0..20).map_while(|_| wait(1)).collect();
        assert_eq!(of_one.len(), WAITING_OF_A_STRANGER);
    }

    #[tokio::test(start_paused = true)]
    async fn a_place_that_is_freed_in_time_is_taken_by_who_waits() {
        let places = Places::of_strangers();
        let take = || places.take(source("203.0.113.7"), "https://app.example/c.json");
        let first = take().unwrap();
        let _second = take().unwrap();
        let free = async {
            tokio::task::yield_now().await;
            drop(first);
        };

        let (taken, ()) = tokio::join!(places.patiently(take), free);

        assert!(taken.is_some());
        assert!(places.patiently(take).await.is_none());
    }
}
