//! The policy set in force: loaded from a folder, swapped whole, read over the API.

mod folder;
mod kept;
mod last_good;
mod query;
mod reload;
mod tallies;

use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use portcullis_core::{
    clock::Timestamp,
    policy::{Catalogue, PolicyError, PolicyFile, PolicySet},
};

pub(crate) use self::reload::{load_files, reloaded};
use self::tallies::Tallies;
pub use self::{
    folder::PolicyFolder,
    last_good::{Fallback, LastGood},
    query::PolicyQuery,
    reload::{Reloading, SetChange},
    tallies::PolicyStats,
};

/// How the last attempt to load went.
#[derive(Debug, Clone)]
pub struct Reload {
    /// When it was tried.
    pub at: Timestamp,
    /// What was wrong; empty means the set was taken.
    pub errors: Vec<PolicyError>,
}

/// The set in force.
#[derive(Debug)]
pub(crate) struct Policies {
    folder: PolicyFolder,
    last_good: LastGood,
    current: ArcSwap<PolicySet>,
    last_reload: ArcSwap<Reload>,
    /// The files that the first set was loaded from, until they are kept.
    opened: Mutex<Option<Vec<PolicyFile>>>,
    /// What became of each policy.
    pub(crate) tallies: Tallies,
    changing: Mutex<()>,
}

/// Where policies come from.
#[derive(Debug)]
pub struct PolicySource {
    /// The folder; it has to exist.
    pub folder: PolicyFolder,
    /// Where the last set that loaded is kept.
    pub last_good: LastGood,
    /// What to do when the folder does not load at the start.
    pub fallback: Fallback,
}

impl Policies {
    /// Loads the folder. Says no when it does not load, unless the last good set may be used.
    pub(crate) fn open(
        source: PolicySource,
        catalogue: &Catalogue,
        now: Timestamp,
    ) -> Result<Self, Vec<PolicyError>> {
        let PolicySource { folder, last_good, fallback } = source;
        let (set, files, errors) = match (reload::load(&folder, None, catalogue, now), fallback) {
            (Ok((set, files)), _) => (set, Some(files), Vec::new()),
            (Err(errors), Fallback::Refuse) => return Err(errors),
            (Err(mut errors), Fallback::LastGood) => {
                let kept = last_good.read().map_err(|error| {
                    let kept = PolicyError::unreadable("the last good policies", &error);
                    errors.push(kept);
                    errors.clone()
                })?;
                (load_files(kept, catalogue, now)?, None, errors)
            }
        };
        let policies = Self {
            folder,
            last_good,
            tallies: Tallies::default(),
            current: ArcSwap::from_pointee(set),
            last_reload: ArcSwap::from_pointee(Reload { at: now, errors }),
            opened: Mutex::new(files),
            changing: Mutex::new(()),
        };
        policies.tallies.fit(&policies.current());
        Ok(policies)
    }

    /// The snapshot a call keeps from its first decision to its last.
    pub(crate) fn current(&self) -> Arc<PolicySet> {
        self.current.load_full()
    }

    pub(crate) fn last_reload(&self) -> Arc<Reload> {
        self.last_reload.load_full()
    }

    /// The files of the first set, once; none when it came from the last good set.
    pub(crate) fn take_opened(&self) -> Option<Vec<PolicyFile>> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    pub(crate) fn rebind(&self, catalogue: &Catalogue) {
        let _one_at_a_time = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let bound = self.current.load().rebind(catalogue);
        self.current.store(Arc::new(bound));
    }
}
