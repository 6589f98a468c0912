//! The policy set in force: loaded from a folder, swapped whole, read over the API; and the limits of
//! plans.

pub(crate) mod folder;
pub(crate) mod last_good;
pub(crate) mod limits;
pub(crate) mod notices;
mod org_overrides;
pub(crate) mod overrides;
pub(crate) mod policy_tests;
pub(crate) mod private_file;
pub(crate) mod query;
pub(crate) mod rates;
pub(crate) mod reload;
mod set_archive;
pub(crate) mod set_change;

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

use arc_swap::ArcSwap;
use portcullis_core::{
    clock::Timestamp,
    policy::{Catalogue, PolicyError, PolicyFile, PolicySet},
};
use portcullis_store::PolicyOverride;
use portcullis_upstream::Webhook;

use self::{
    folder::PolicyFolder,
    last_good::{Fallback, LastGood},
    limits::Quotas,
    notices::Notices,
    org_overrides::InForce,
    overrides::{Overrides, OverridesInForce},
    policy_tests::{CaseReport, RunCases},
    rates::Rates,
    reload::{Ground, load_files},
};
use crate::{audit::Audit, base::Base, catalogue::Capabilities, request::screening::Screening};

/// Result of the last attempt to load.
#[derive(Debug, Clone)]
pub struct Reload {
    pub at: Timestamp,
    /// Errors found; empty means the set was taken.
    pub errors: Vec<PolicyError>,
}

/// The set in force, and what it comes from.
#[derive(Debug)]
pub struct Policies {
    pub(crate) base: Arc<Base>,
    pub(crate) screening: Arc<Screening>,
    pub(crate) audit: Arc<Audit>,
    pub(crate) quotas: Arc<Quotas>,
    pub(crate) catalogue: Arc<Capabilities>,
    run_cases: RunCases,
    notices: Notices,
    rates: Rates,
    folder: PolicyFolder,
    last_good: LastGood,
    overrides: Overrides,
    applied: ArcSwap<OverridesInForce>,
    /// The set as its files say.
    written: ArcSwap<PolicySet>,
    /// Content of that set besides its policies.
    others: ArcSwap<String>,
    /// The set in force: that one without what is switched off, by the operator for all and by orgs for themselves.
    current: ArcSwap<InForce>,
    /// Policies that orgs switched off: as they were read last, and as they are in force.
    org_overrides: tokio::sync::Mutex<Arc<Vec<PolicyOverride>>>,
    overrides_in_force: ArcSwap<Vec<PolicyOverride>>,
    last_reload: ArcSwap<Reload>,
    /// The cases beside the set in force, and what became of them.
    cases: ArcSwap<Vec<PolicyFile>>,
    rehearsed: ArcSwap<CaseReport>,
    /// The set before the one in force: calls that still hold it need not take it apart when they
    /// end, which takes long for a large one.
    replaced: Mutex<Option<Arc<InForce>>>,
    /// The files that the first set was loaded from, until they are kept.
    opened: Mutex<Option<Vec<PolicyFile>>>,
    /// The version of the set that the store holds whole; empty if that is not known.
    kept: tokio::sync::Mutex<String>,
    changing: Mutex<()>,
    /// True if other tools came after a reload that failed: the folder may load now.
    has_other_tools: AtomicBool,
}

/// Source of policies.
#[derive(Debug)]
pub struct PolicySource {
    /// The folder; it has to exist.
    pub folder: PolicyFolder,
    pub last_good: LastGood,
    /// Record of the policies that are switched off for a while.
    pub overrides: Overrides,
    /// Rule for a folder that does not load at the start.
    pub fallback: Fallback,
}

impl PolicySource {
    /// No policies, for a process that makes no calls.
    #[must_use]
    pub const fn none() -> Self {
        Self {
            folder: PolicyFolder::new(PathBuf::new()),
            last_good: LastGood::new(PathBuf::new()),
            overrides: Overrides::new(PathBuf::new()),
            fallback: Fallback::Nothing,
        }
    }
}

/// The set that was last in force; one without policies where there is none.
fn kept_or_none(last_good: &LastGood, ground: Ground<'_>) -> Result<PolicySet, Vec<PolicyError>> {
    let kept = last_good.read().ok().and_then(|kept| load_files(kept, ground).ok());
    kept.map_or_else(|| load_files(Vec::new(), ground), Ok)
}

impl Policies {
    /// Loads the folder. Fails if it does not load, unless the last good set may be used.
    pub(crate) fn open(
        screening: &Arc<Screening>,
        quotas: &Arc<Quotas>,
        catalogue: &Arc<Capabilities>,
        source: PolicySource,
        webhooks: BTreeMap<String, Webhook>,
        run_cases: RunCases,
    ) -> Result<Arc<Self>, Vec<PolicyError>> {
        let Quotas { base, audit, .. } = &**quotas;
        let bound = catalogue.for_policies();
        let dlp = screening.dlp();
        let detectors = dlp.engine().names();
        let ground = Ground { catalogue: &bound, detectors: &detectors, now: base.now() };
        let PolicySource { folder, last_good, overrides, fallback } = source;
        let (set, files, errors) = match (reload::load(&folder, None, ground), fallback) {
            (Ok((set, files)), _) => (set, Some(files), Vec::new()),
            (Err(errors), Fallback::Refuse) => return Err(errors),
            (Err(errors), Fallback::Nothing) => (kept_or_none(&last_good, ground)?, None, errors),
            (Err(mut errors), Fallback::LastGood) => {
                let kept = last_good.read().map_err(|error| {
                    let kept = PolicyError::unreadable("the last good policies", &error);
                    errors.push(kept);
                    errors.clone()
                })?;
                (load_files(kept, ground)?, None, errors)
            }
        };
        let set = Arc::new(set);
        let others = set_archive::others(files.as_ref().map_or(&[], |files| &files.policies));
        let cases = files.as_ref().map(|files| files.cases.clone()).unwrap_or_default();
        let now = ground.now;
        let policies = Self {
            base: Arc::clone(base),
            screening: Arc::clone(screening),
            audit: Arc::clone(audit),
            quotas: Arc::clone(quotas),
            catalogue: Arc::clone(catalogue),
            run_cases,
            notices: Notices::new(webhooks),
            rates: Rates::new(),
            folder,
            overrides,
            applied: ArcSwap::default(),
            last_good,
            written: ArcSwap::new(Arc::clone(&set)),
            others: ArcSwap::from_pointee(others),
            current: ArcSwap::default(),
            org_overrides: tokio::sync::Mutex::default(),
            overrides_in_force: ArcSwap::default(),
            last_reload: ArcSwap::from_pointee(Reload { at: now, errors }),
            cases: ArcSwap::from_pointee(cases),
            rehearsed: ArcSwap::default(),
            opened: Mutex::new(files.map(|files| files.policies)),
            replaced: Mutex::default(),
            changing: Mutex::new(()),
            has_other_tools: AtomicBool::new(false),
            kept: tokio::sync::Mutex::default(),
        };
        policies.put_in_force(policies.switched(now)?);
        Ok(Arc::new(policies))
    }

    /// The set for orgs that switched nothing off.
    pub(crate) fn current(&self) -> Arc<PolicySet> {
        self.base_of(&self.current.load())
    }

    pub(crate) fn last_reload(&self) -> Arc<Reload> {
        self.last_reload.load_full()
    }

    /// The files of the first set, once; none when it came from the last good set.
    pub(crate) fn take_opened(&self) -> Option<Vec<PolicyFile>> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Binds the policies to other tools. Not to be called on a thread that serves requests.
    pub(crate) fn rebind(&self, catalogue: &Catalogue, now: Timestamp) {
        let _one_at_a_time = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        self.written.store(Arc::new(self.written.load().rebind(catalogue)));
        let bound = self.switched(now);
        // What is in force stays in force, for the new tools.
        let bound = bound.unwrap_or_else(|_| Arc::new(self.current().rebind(catalogue)));
        self.put_in_force(bound);
        self.has_other_tools.store(true, Relaxed);
    }

    /// Returns true once after other tools came while the folder does not load: it may name one of them.
    pub fn may_load_now(&self) -> bool {
        self.has_other_tools.swap(false, Relaxed) && !self.last_reload.load().errors.is_empty()
    }

    /// Makes `set` the one that calls are decided by from now on. Not to be called on a thread that
    /// serves requests.
    fn put_in_force(&self, set: Arc<PolicySet>) {
        let overrides = self.overrides_in_force.load();
        let in_force = InForce::of(set, &self.written.load(), &overrides, self.base.now());
        let before = self.current.swap(Arc::new(in_force));
        *self.replaced.lock().unwrap_or_else(PoisonError::into_inner) = Some(before);
    }
}
