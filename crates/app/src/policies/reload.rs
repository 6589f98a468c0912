//! Loading the folder anew: all of it or nothing, and never less by accident.

use std::sync::{Arc, PoisonError};

use portcullis_core::{
    clock::Timestamp,
    policy::{Catalogue, PolicyError, PolicyFile, PolicySet},
};

use super::{
    Policies, Reload,
    folder::{FolderFiles, PolicyFolder},
    set_archive::others,
    set_change::SetChange,
};
use crate::{base::low_priority::at_low_priority, request::dlp::Dlp, telemetry::counters};

/// Trigger of a reload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reloading {
    /// The folder changed. A set that lost more than half of its policies is not taken: an
    /// emptied mount is not a decision.
    Noticed,
    /// The operator asked for it: what the folder holds is meant.
    Ordered,
}

/// Facts that policies are checked against.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ground<'a> {
    pub(crate) catalogue: &'a Catalogue,
    /// The names of the DLP detectors.
    pub(crate) detectors: &'a [&'a str],
    pub(crate) now: Timestamp,
}

/// Reads and loads a folder.
pub(crate) fn load(
    folder: &PolicyFolder,
    was: Option<&PolicySet>,
    ground: Ground<'_>,
) -> Result<(PolicySet, FolderFiles), Vec<PolicyError>> {
    let files = folder
        .read()
        .map_err(|error| vec![PolicyError::unreadable(&folder.path().to_string_lossy(), &error)])?;
    let set = match was {
        Some(was) => reloaded(was, files.policies.clone(), ground)?,
        None => load_files(files.policies.clone(), ground)?,
    };
    Ok((set, files))
}

/// Loads files and takes from another set what is the same.
pub(crate) fn reloaded(
    was: &PolicySet,
    files: Vec<PolicyFile>,
    ground: Ground<'_>,
) -> Result<PolicySet, Vec<PolicyError>> {
    was.reload(files, ground.catalogue, ground.detectors, ground.now)
}

pub(crate) fn load_files(
    files: Vec<PolicyFile>,
    ground: Ground<'_>,
) -> Result<PolicySet, Vec<PolicyError>> {
    PolicySet::load(files, ground.catalogue, ground.detectors, ground.now)
}

fn policies_of(set: &PolicySet) -> usize {
    set.records().iter().filter(|record| !record.builtin).count()
}

/// Rejects a set that is less than half of the one in force.
fn guard(current: &PolicySet, next: &PolicySet, folder: &PolicyFolder) -> Result<(), PolicyError> {
    let before = policies_of(current);
    let after = policies_of(next);
    if after * 2 >= before {
        return Ok(());
    }
    Err(PolicyError {
        path: folder.path().to_string_lossy().into_owned(),
        line: 1,
        column: 1,
        code: "too_few_policies",
        policy: None,
        message: format!(
            "only {after} of {before} policies are left; if that is meant, run \
             `portcullis policy reload` or send SIGHUP"
        ),
    })
}

impl Policies {
    /// Puts other settings of DLP in force. Fails if the policies name a detector that there would
    /// no longer be; then everything stays as it is.
    pub fn replace_dlp(&self, dlp: Dlp) -> Result<(), Vec<PolicyError>> {
        let _one_at_a_time = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        self.policies_fit(&dlp)?;
        self.screening.replace(dlp);
        tracing::info!("other DLP settings are in force");
        Ok(())
    }

    /// Fails if the policies in the folder do not go with other DLP settings.
    pub(crate) fn policies_fit(&self, dlp: &Dlp) -> Result<(), Vec<PolicyError>> {
        let catalogue = self.catalogue.for_policies();
        let detectors = dlp.engine().names();
        let ground = Ground { catalogue: &catalogue, detectors: &detectors, now: self.base.now() };
        load(&self.folder, Some(&self.written.load_full()), ground).map(|_| ())
    }

    /// Loads the folder anew, off the threads that serve requests. On any error the set in force
    /// stays, and the errors are kept to be shown.
    pub async fn reload_policies(
        self: &Arc<Self>,
        reloading: Reloading,
    ) -> Result<(), Vec<PolicyError>> {
        let this = Arc::clone(self);
        at_low_priority(move || this.reload_now(reloading)).await.unwrap_or_else(|| {
            tracing::error!("loading the policies ended in a panic; the last good set stays");
            Ok(())
        })
    }

    fn reload_now(self: &Arc<Self>, reloading: Reloading) -> Result<(), Vec<PolicyError>> {
        let now = self.base.clock.now();
        let policies = self;
        // Held while loading: a catalogue that changes meanwhile is bound after this, not lost.
        let _one_at_a_time = policies.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let dlp = self.screening.dlp();
        let catalogue = self.catalogue.for_policies();
        let detectors = dlp.engine().names();
        let ground = Ground { catalogue: &catalogue, detectors: &detectors, now };
        let written = policies.written.load_full();
        let loaded = load(&policies.folder, Some(&written), ground);
        let loaded = loaded.and_then(|(set, files)| {
            match reloading {
                Reloading::Noticed => {
                    guard(&written, &set, &policies.folder).map_err(|error| vec![error])?;
                }
                Reloading::Ordered => {}
            }
            let set = Arc::new(set);
            // As it is written: what is switched off for an hour is no reason to refuse a set.
            let report = self.rehearse(&set, &files.cases, &catalogue);
            if report.failed > 0 {
                return Err(report.failures);
            }
            policies.cases.store(Arc::new(files.cases));
            policies.rehearsed.store(Arc::new(report));
            policies.others.store(Arc::new(others(&files.policies)));
            policies.written.store(set);
            Ok(files.policies)
        });
        // A policy is switched off also while the folder is broken.
        let switched = policies.switched(now).map(|set| self.take_set(&set));
        match (loaded, switched) {
            (Ok(files), Ok(())) => {
                policies.last_reload.store(Arc::new(Reload { at: now, errors: Vec::new() }));
                self.keep_last_good(&files);
                Ok(())
            }
            (Err(errors), Ok(())) | (Ok(_), Err(errors)) => Err(self.reload_failed(errors, now)),
            (Err(mut errors), Err(more)) => {
                errors.extend(more);
                Err(self.reload_failed(errors, now))
            }
        }
    }

    /// Puts the set in force, if it is another one or bound to other tools.
    fn take_set(self: &Arc<Self>, set: &Arc<PolicySet>) {
        let policies = self;
        let current = policies.current();
        policies.put_in_force(Arc::clone(set));
        self.quotas.tenants.forget_tallies(set);
        if set.version() == current.version() {
            return;
        }
        tracing::info!(version = set.version(), "another policy set is in force");
        let change = SetChange::between(&current, set);
        self.keep_set(set, current.version(), &change);
        self.policy_set_changed(set, current.version(), &change);
    }

    /// Keeps the files for a start with a broken folder. That they cannot be kept stops nothing.
    pub(crate) fn keep_last_good(&self, files: &[PolicyFile]) {
        if let Err(error) = self.last_good.keep(files) {
            tracing::error!(%error, "the last good policies cannot be kept for a later start");
        }
    }

    fn reload_failed(&self, errors: Vec<PolicyError>, now: Timestamp) -> Vec<PolicyError> {
        for error in &errors {
            tracing::error!(%error, "the policy folder cannot be loaded; the last good set stays");
        }
        counters::reload_failed();
        let reload = Reload { at: now, errors: errors.clone() };
        let known = self.last_reload.swap(Arc::new(reload));
        // A folder that stays broken is told once, however often its files are touched.
        if known.errors != errors {
            self.policy_reload_failed(&errors);
        }
        errors
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn permits(count: usize) -> PolicySet {
        let policy = |n| format!("@id(\"p{n}\") permit (principal, action, resource);\n");
        let text = (0..count).map(policy).collect();
        let file = PolicyFile { path: "test.cedar".to_owned(), text };
        let catalogue = Catalogue::default();
        let ground = Ground { catalogue: &catalogue, detectors: &[], now: Timestamp::default() };
        load_files(vec![file], ground).unwrap()
    }

    #[test]
    fn a_set_that_lost_more_than_half_is_not_taken() {
        let folder = PolicyFolder::new("policies".into());
        for (before, after, taken) in
            [(0, 0, true), (1, 0, false), (2, 1, true), (3, 1, false), (10, 5, true), (5, 9, true)]
        {
            let said = guard(&permits(before), &permits(after), &folder);

            assert_eq!(said.is_ok(), taken, "{before} to {after}: {said:?}");
        }
    }
}
