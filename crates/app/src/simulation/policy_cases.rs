//! Judges the cases beside the policies as simulated calls.

use std::sync::Arc;

use portcullis_core::policy::{PolicyError, PolicyFile, PolicySet};

use super::CaseFile;
use crate::policies::rehearsed::{CaseEnd, Rehearsal};

/// Runs the cases of a file against a set. Takes as long as judging their calls does.
pub(crate) fn run_cases(
    file: &PolicyFile,
    set: &Arc<PolicySet>,
    rehearsal: &Rehearsal<'_>,
) -> Result<Vec<CaseEnd>, PolicyError> {
    let runs = CaseFile::read(file)?.run(set, rehearsal)?;
    let ends = runs.into_iter().map(|run| match run.passed {
        Some(true) => CaseEnd::Passed,
        Some(false) => CaseEnd::Failed(run.failure()),
        None => CaseEnd::Skipped(run.not_run()),
    });
    Ok(ends.collect())
}
