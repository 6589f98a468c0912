//! The cases that stand beside the policies, run before a set is taken and again when the tools
//! are others.

use std::sync::Arc;

use portcullis_core::{
    dlp::Engine,
    policy::{Catalogue, PolicyError, PolicyFile, PolicySet},
};
use serde::Serialize;
use utoipa::ToSchema;

use super::{Policies, reload::Ground};

/// The most failures, and the most cases that were not run, that are listed.
const MAX_LISTED: usize = 100;

/// Results of the cases beside the policies.
#[derive(Debug, Clone, Default, Serialize, ToSchema)]
#[schema(as = PolicyTests)]
pub struct CaseReport {
    /// As expected.
    pub passed: usize,
    /// Not as expected, or not understood.
    pub failed: usize,
    /// Not run: this node does not know the tool.
    pub skipped: usize,
    /// Failures, at most the first hundred.
    pub failures: Vec<PolicyError>,
    /// Cases that were not run, with the reason, at most the first hundred.
    pub not_run: Vec<PolicyError>,
}

/// End of one case.
#[derive(Debug)]
pub(crate) enum CaseEnd {
    Passed,
    Failed(Option<PolicyError>),
    /// Not run: the tool is not known here. The error names the place and the reason.
    Skipped(Option<PolicyError>),
}

/// Judges the cases of a file against a set.
pub(crate) type RunCases =
    fn(&PolicyFile, &Arc<PolicySet>, &Rehearsal<'_>) -> Result<Vec<CaseEnd>, PolicyError>;

/// DLP engine and tools to judge rehearsed calls.
pub(crate) struct Rehearsal<'a> {
    pub(crate) engine: &'a Engine,
    pub(crate) ground: Ground<'a>,
}

impl Policies {
    /// Runs the cases against a set. Takes as long as judging their calls does.
    pub(crate) fn rehearse(
        &self,
        set: &Arc<PolicySet>,
        files: &[PolicyFile],
        catalogue: &Catalogue,
    ) -> CaseReport {
        let mut report = CaseReport::default();
        if files.is_empty() {
            return report;
        }
        let dlp = self.screening.dlp();
        let detectors = dlp.engine().names();
        let ground = Ground { catalogue, detectors: &detectors, now: self.base.clock.now() };
        let rehearsal = Rehearsal { engine: dlp.engine(), ground };
        for file in files {
            match (self.run_cases)(file, set, &rehearsal) {
                Ok(cases) => cases.into_iter().for_each(|end| report.count(end)),
                Err(error) => report.fail(Some(error)),
            }
        }
        report
    }

    /// Runs the cases of the set in force again, for tools that are others now. What fails is told:
    /// the set stays, for calls need one.
    pub(crate) fn rehearse_again(&self) {
        let policies = self;
        let set = policies.written.load_full();
        let files = policies.cases.load_full();
        let report = self.rehearse(&set, &files, &self.catalogue.for_policies());
        for error in &report.failures {
            tracing::error!(%error, "the policies in force fail a test case");
        }
        report.warn_of_cases_not_run();
        policies.rehearsed.store(Arc::new(report));
    }

    /// Results of the last run of the cases.
    #[must_use]
    pub fn case_report(&self) -> Arc<CaseReport> {
        self.rehearsed.load_full()
    }
}

impl CaseReport {
    fn count(&mut self, end: CaseEnd) {
        match end {
            CaseEnd::Passed => self.passed += 1,
            CaseEnd::Failed(error) => self.fail(error),
            CaseEnd::Skipped(error) => {
                self.skipped += 1;
                if self.not_run.len() < MAX_LISTED {
                    self.not_run.extend(error);
                }
            }
        }
    }

    /// Logs the cases that say nothing about the set, because this node does not know their tools.
    pub(crate) fn warn_of_cases_not_run(&self) {
        for error in &self.not_run {
            tracing::warn!(%error, "a test case of the policies is not run");
        }
    }

    fn fail(&mut self, error: Option<PolicyError>) {
        self.failed += 1;
        if self.failures.len() < MAX_LISTED {
            self.failures.extend(error);
        }
    }
}
