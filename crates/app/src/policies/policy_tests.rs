//! The cases that stand beside the policies, run before a set is taken and again when the tools
//! are others.

use std::sync::Arc;

use portcullis_core::{
    dlp::Engine,
    policy::{Catalogue, PolicyError, PolicyFile, PolicySet},
};
use serde::Serialize;
use serde_json::Value;
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

/// Line and column of a file, counted from one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct CasePlace {
    pub(crate) line: usize,
    pub(crate) column: usize,
}

impl CasePlace {
    pub(crate) const FIRST: Self = Self { line: 1, column: 1 };

    /// An error at this place of the file.
    pub(crate) fn error(self, file: &str, code: &'static str, message: String) -> PolicyError {
        let Self { line, column } = self;
        PolicyError { path: file.to_owned(), line, column, code, policy: None, message }
    }
}

/// Result of one case.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CaseRun {
    pub file: String,
    /// The line its case begins in.
    pub line: usize,
    #[serde(skip)]
    pub(crate) column: usize,
    /// True if the result is as expected; absent if the case was not run because its tool is not known
    /// here.
    pub passed: Option<bool>,
    /// The simulated call, as the API answers it, or why it could not be judged.
    pub result: Value,
}

impl CaseRun {
    /// The failure as an error of the folder; none when it did not fail.
    #[must_use]
    pub fn failure(&self) -> Option<PolicyError> {
        (self.passed == Some(false)).then(|| self.error("test_failed", "is not as expected"))
    }

    /// The reason why the case was not run, with its place in the folder; none when it was run.
    #[must_use]
    pub fn not_run(&self) -> Option<PolicyError> {
        self.passed.is_none().then(|| self.error("test_not_run", "is not run"))
    }

    fn error(&self, code: &'static str, end: &str) -> PolicyError {
        let text = |name: &str| self.result.get(name).and_then(Value::as_str);
        let unmet = self.result.pointer("/expectation/unmet").and_then(Value::as_array);
        let unmet = unmet.into_iter().flatten().filter_map(Value::as_str).collect::<Vec<_>>();
        let what = if unmet.is_empty() {
            text("cause").unwrap_or("it could not be asked").to_owned()
        } else {
            unmet.join("; ")
        };
        let name = text("id").or(text("tool")).unwrap_or("a case");
        let place = CasePlace { line: self.line, column: self.column };
        place.error(&self.file, code, format!("`{name}` {end}: {what}"))
    }
}

/// Judges the cases of a file against a set.
pub(crate) type RunCases =
    fn(&PolicyFile, &Arc<PolicySet>, &Rehearsal<'_>) -> Result<Vec<CaseRun>, PolicyError>;

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
                Ok(runs) => runs.iter().for_each(|run| report.count(run)),
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
    fn count(&mut self, run: &CaseRun) {
        match run.passed {
            Some(true) => self.passed += 1,
            Some(false) => self.fail(run.failure()),
            None => {
                self.skipped += 1;
                if self.not_run.len() < MAX_LISTED {
                    self.not_run.extend(run.not_run());
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
