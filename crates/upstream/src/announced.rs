//! Changes that a server announces: of its lists, and of resources that are watched.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt, mem,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use arc_swap::ArcSwap;
use portcullis_core::id::OrgId;
use serde_json::{Map, Value};
use tokio::sync::watch;

use crate::mcp::era;

/// Most resources that are watched at one connection, and those of one org.
const MOST: usize = 1_024;
const MOST_OF_ORG: usize = 64;
/// Most folders above a resource that are looked at.
const MOST_FOLDERS: usize = 32;

/// Receiver of announcements.
#[derive(Debug, Clone)]
pub(crate) struct Announcer {
    lists: watch::Sender<u64>,
    pub(crate) watched: Arc<Watched>,
    /// Kinds and extensions that the server declared last, in any connection.
    pub(crate) offered: Arc<ArcSwap<Vec<String>>>,
}

impl Announcer {
    pub(crate) fn new(lists: watch::Sender<u64>) -> Self {
        Self { lists, watched: Arc::default(), offered: Arc::default() }
    }

    /// The receiver of another connection to the same server.
    pub(crate) fn beside(&self) -> Self {
        Self { offered: Arc::clone(&self.offered), ..Self::new(self.lists.clone()) }
    }

    /// Remembers what the server declares in this answer.
    pub(crate) fn declares(&self, answer: &Map<String, Value>) {
        self.offered.store(Arc::new(era::offered(answer)));
    }

    /// The lists of the server may have changed.
    pub(crate) fn lists_changed(&self) {
        add_one(&self.lists);
    }
}

fn add_one(counter: &watch::Sender<u64>) {
    counter.send_modify(|count| *count = count.wrapping_add(1));
}

/// Resources that are watched at one connection to a server.
#[derive(Debug, Default)]
pub(crate) struct Watched {
    registry: Mutex<Registry>,
    /// Counts the changes of that.
    changes: watch::Sender<u64>,
    /// Counts how often the server said that it tells of them.
    acknowledged: watch::Sender<u64>,
    /// True while changes of resources may have gone unheard.
    is_behind: AtomicBool,
    /// Resources that a server of the older era was asked about, in the session of this number.
    subscribed: Mutex<(u64, BTreeSet<Arc<str>>)>,
}

#[derive(Debug, Default)]
struct Registry {
    by_uri: BTreeMap<Arc<str>, Resource>,
    /// True while a task makes the server tell of them.
    is_followed: bool,
}

/// A resource that is watched.
#[derive(Debug, Default)]
struct Resource {
    /// Number of watches of each org.
    orgs: BTreeMap<OrgId, usize>,
    told: Arc<ResourceNews>,
}

/// News of a resource.
#[derive(Debug, Default)]
struct ResourceNews {
    /// Counts its changes.
    changes: AtomicU64,
    /// The server was asked to tell of it.
    is_asked: AtomicBool,
    /// The server tells of it.
    is_told: AtomicBool,
}

impl ResourceNews {
    fn changed(&self) {
        self.changes.fetch_add(1, Ordering::AcqRel);
    }
}

impl Watched {
    fn registry(&self) -> MutexGuard<'_, Registry> {
        self.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Watches a resource for an org, unless too many are watched. Says too whether a task has to be started that makes the
    /// server tell of it.
    pub(crate) fn add(self: &Arc<Self>, org: OrgId, uri: &str) -> Option<(Watch, bool)> {
        let mut registry = self.registry();
        let of_org = |it: &&Resource| it.orgs.contains_key(&org);
        let known = registry.by_uri.get(uri);
        let is_full = (known.is_none() && registry.by_uri.len() >= MOST)
            || (!known.as_ref().is_some_and(of_org)
                && registry.by_uri.values().filter(of_org).count() >= MOST_OF_ORG);
        if is_full {
            return None;
        }
        let is_new = known.is_none();
        let uri: Arc<str> = uri.into();
        let resource = registry.by_uri.entry(Arc::clone(&uri)).or_default();
        *resource.orgs.entry(org).or_default() += 1;
        let told = Arc::clone(&resource.told);
        let is_followed = mem::replace(&mut registry.is_followed, true);
        drop(registry);
        if is_new {
            add_one(&self.changes);
        }
        let seen = told.changes.load(Ordering::Acquire);
        Some((Watch { watched: Arc::clone(self), org, uri, told, seen }, !is_followed))
    }

    fn remove(&self, org: OrgId, uri: &str) {
        let mut registry = self.registry();
        let Some(resource) = registry.by_uri.get_mut(uri) else { return };
        if let Some(count) = resource.orgs.get_mut(&org) {
            *count -= 1;
            if *count == 0 {
                resource.orgs.remove(&org);
            }
        }
        if resource.orgs.is_empty() {
            registry.by_uri.remove(uri);
        }
        let is_empty = registry.by_uri.is_empty();
        drop(registry);
        // Of single ones the server goes on to tell until it is asked about another.
        if is_empty {
            add_one(&self.changes);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.registry().by_uri.is_empty()
    }

    /// The resources, for the task that makes the server tell of them. It ends when there are none.
    pub(crate) fn followed(&self) -> Option<Vec<Arc<str>>> {
        let mut registry = self.registry();
        registry.is_followed = !registry.by_uri.is_empty();
        for resource in registry.by_uri.values() {
            resource.told.is_asked.store(true, Ordering::Release);
        }
        registry.is_followed.then(|| registry.by_uri.keys().cloned().collect())
    }

    /// Changes of what is watched from now on.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Acknowledgements from now on.
    pub(crate) fn acknowledgements(&self) -> watch::Receiver<u64> {
        self.acknowledged.subscribe()
    }

    /// The server tells of what is watched, or of these resources among it.
    pub(crate) fn acknowledge(&self, named: Option<&[String]>) {
        let named: Option<BTreeSet<&str>> =
            named.map(|named| named.iter().map(String::as_str).collect());
        let was_behind = self.is_behind.swap(false, Ordering::AcqRel);
        for (uri, Resource { told, .. }) in &self.registry().by_uri {
            let is_named = named.as_ref().is_none_or(|named| named.contains(&**uri));
            let is_asked = is_named && told.is_asked.load(Ordering::Acquire);
            let was_told = told.is_told.fetch_or(is_asked, Ordering::AcqRel);
            if was_told && was_behind {
                told.changed();
            }
        }
        add_one(&self.acknowledged);
    }

    /// The server does not tell of a resource, although it was asked to.
    pub(crate) fn refuse(&self, uri: &str) {
        if let Some(Resource { told, .. }) = self.registry().by_uri.get(uri) {
            told.is_asked.store(false, Ordering::Release);
        }
    }

    /// The stream of a session broke off: its server may have forgotten what it was asked about.
    pub(crate) fn interrupt(&self) {
        self.subscribed.lock().unwrap_or_else(PoisonError::into_inner).1.clear();
        self.fell_behind();
        add_one(&self.changes);
    }

    /// Changes went unheard for a while.
    pub(crate) fn fell_behind(&self) {
        self.is_behind.store(true, Ordering::Release);
    }

    /// Resources that the server was asked about in the session of this number.
    pub(crate) fn subscribed_in(&self, session: u64) -> BTreeSet<Arc<str>> {
        let mut subscribed = self.subscribed.lock().unwrap_or_else(PoisonError::into_inner);
        if subscribed.0 != session {
            *subscribed = (session, BTreeSet::new());
        }
        subscribed.1.clone()
    }

    /// Remembers that the server was asked about a resource in this session, or that it is to tell of it no more.
    pub(crate) fn set_subscribed(&self, session: u64, uri: &Arc<str>, is_told: bool) {
        let mut subscribed = self.subscribed.lock().unwrap_or_else(PoisonError::into_inner);
        if subscribed.0 != session {
            return;
        }
        if is_told {
            subscribed.1.insert(Arc::clone(uri));
        } else {
            subscribed.1.remove(uri);
        }
    }

    /// The server says that a resource changed, which may lie in a folder that is watched.
    pub(crate) fn changed(&self, uri: &str) {
        let registry = self.registry();
        let folders = uri.match_indices('/').take(MOST_FOLDERS);
        let folders = folders.flat_map(|(end, _)| [uri.get(..end), uri.get(..=end)]).flatten();
        let places: BTreeSet<&str> = folders.chain([uri]).collect();
        for resource in places.into_iter().filter_map(|place| registry.by_uri.get(place)) {
            resource.told.changed();
        }
    }
}

/// A resource that is watched until this is dropped.
pub struct Watch {
    watched: Arc<Watched>,
    org: OrgId,
    uri: Arc<str>,
    told: Arc<ResourceNews>,
    seen: u64,
}

impl Watch {
    /// Returns true if the server said that it tells of the resource.
    #[must_use]
    pub fn is_told(&self) -> bool {
        self.told.is_told.load(Ordering::Acquire)
    }

    /// Waits for that.
    pub async fn wait_until_told(&self) {
        let mut acknowledged = self.watched.acknowledgements();
        while !self.is_told() {
            if acknowledged.changed().await.is_err() {
                return;
            }
        }
    }

    /// Returns true if the resource may have changed since this was asked last.
    pub fn has_changed(&mut self) -> bool {
        let now = self.told.changes.load(Ordering::Acquire);
        mem::replace(&mut self.seen, now) != now
    }

    pub(crate) fn is_at(&self, watched: &Arc<Watched>) -> bool {
        Arc::ptr_eq(&self.watched, watched)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.watched.remove(self.org, &self.uri);
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Watch").field(&self.uri).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn org(number: u8) -> OrgId {
        format!("org_01M754BKTKX1YB8Q05NMW9T{number:03}").parse().unwrap()
    }

    #[test]
    fn a_change_is_told_to_those_who_watch_the_resource_or_a_folder_around_it() {
        let watched = Arc::<Watched>::default();
        let org = org(1);
        let uris = ["x://a/b", "x://a/", "x://a/bc", "x://c", "x://a/b?c=d"];
        let mut all: Vec<Watch> =
            uris.iter().map(|uri| watched.add(org, uri).expect("room").0).collect();
        for (changed, told) in [
            ("x://a/b", &["x://a/b", "x://a/"][..]),
            ("x://a/b/c", &["x://a/b", "x://a/"]),
            ("x://a/b?c=d", &["x://a/", "x://a/b?c=d"]),
            ("x://c", &["x://c"]),
            ("x://cd", &[]),
            ("", &[]),
        ] {
            watched.changed(changed);

            let heard =
                all.iter_mut().zip(uris).filter_map(|(it, uri)| it.has_changed().then_some(uri));
            assert_eq!(heard.collect::<Vec<_>>(), told, "{changed}");
        }
        watched.followed();
        watched.acknowledge(Some(&["x://c".to_owned()]));
        assert_eq!(all.iter().filter(|it| it.is_told()).count(), 1);
        watched.acknowledge(None);
        assert!(all.iter_mut().all(|it| it.is_told() && !it.has_changed()));
        watched.fell_behind();
        watched.acknowledge(None);
        assert!(all.iter_mut().all(Watch::has_changed));
    }

    #[test]
    fn no_org_takes_the_room_of_another() {
        let watched = Arc::<Watched>::default();
        let orgs: Vec<OrgId> = (1..18).map(org).collect();
        let fill = |org: OrgId| -> Vec<Watch> {
            let all = (0..100).filter_map(|it| watched.add(org, &format!("x://{org}/{it}")));
            all.map(|(watch, _)| watch).collect()
        };
        let mut all: Vec<Vec<Watch>> = orgs.iter().map(|org| fill(*org)).collect();

        let counts: Vec<usize> = all.iter().map(Vec::len).collect();
        assert_eq!(counts, [&[MOST_OF_ORG; 16][..], &[0]].concat());
        let twice = watched.add(orgs[0], &format!("x://{}/0", orgs[0]));
        assert!(twice.is_some(), "what is watched already takes no room");
        all.clear();
        assert_eq!(watched.followed().map(|uris| uris.len()), Some(1));
        drop(twice);
        assert_eq!(watched.followed(), None);
        assert!(watched.add(orgs[16], "x://a").is_some_and(|(_, starts)| starts));
    }
}
