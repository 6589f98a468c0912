//! The sets that a simulation asks: the one in force, an earlier one, or a draft of either.

use std::sync::Arc;

use portcullis_core::{
    clock::Timestamp,
    policy::{Catalogue, Origin, PolicyError, PolicyFile, PolicySet, Status},
    refusal::Violation,
};

use super::{
    members::violation,
    request::{Base, Draft},
};
use crate::policies::load_files;

/// What a draft may begin with, read from where it is kept.
pub(crate) enum Origins {
    /// The set in force.
    Live(Arc<PolicySet>),
    /// Nothing.
    Empty,
    /// The files of an earlier set.
    Kept(Vec<PolicyFile>),
}

/// Path of the files that a request brings along.
const DRAFT: &str = "upsert/";

/// Makes the set of a draft. Gives every error of it.
pub(crate) fn drafted(
    draft: &Draft,
    origins: Origins,
    catalogue: &Catalogue,
    now: Timestamp,
) -> Result<Arc<PolicySet>, Vec<Violation>> {
    let base = match origins {
        Origins::Live(set) if draft.is_base() => return Ok(set),
        Origins::Live(set) => set,
        Origins::Empty => load(Vec::new(), catalogue, now)?,
        Origins::Kept(files) => load(files, catalogue, now)?,
    };
    let fresh = draft
        .upsert
        .iter()
        .enumerate()
        .map(|(at, text)| PolicyFile { path: format!("{DRAFT}{at}"), text: text.clone() });
    let fresh: Vec<PolicyFile> = fresh.collect();
    let added = load(fresh.clone(), catalogue, now)?;
    check_names(draft, &base, &added)?;
    let mut files: Vec<PolicyFile> = base
        .records()
        .iter()
        .filter(|record| !record.builtin)
        .filter(|record| !draft.remove.iter().any(|id| **id == *record.id))
        .filter(|record| added.find(&record.id).is_none_or(|record| record.builtin))
        .filter_map(|record| {
            let text = record.source()?;
            let path = match &record.origin {
                Origin::File { path, .. } => path.clone(),
                Origin::Builtin => return None,
            };
            Some(PolicyFile { path, text: with_status(text, status_of(draft, &record.id)) })
        })
        .collect();
    files.extend(fresh.into_iter().map(|file| restated(file, draft, &added)));
    load(files, catalogue, now)
}

fn load(
    files: Vec<PolicyFile>,
    catalogue: &Catalogue,
    now: Timestamp,
) -> Result<Arc<PolicySet>, Vec<Violation>> {
    let loaded = load_files(files, catalogue, now);
    loaded.map(Arc::new).map_err(|errors| errors.iter().take(100).map(told).collect())
}

/// An error of a draft, at the text of the request it stands in.
fn told(error: &PolicyError) -> Violation {
    let place = match error.path.strip_prefix(DRAFT) {
        Some(at) => format!("/policies/upsert/{at}/source"),
        None => "/policies/base".to_owned(),
    };
    let PolicyError { path, line, column, message, .. } = error;
    let message = if path.starts_with(DRAFT) {
        format!("line {line}, column {column}: {message}")
    } else {
        format!("{path}:{line}:{column}: {message}")
    };
    Violation { path: place, keyword: Some(error.code.to_owned()), message }
}

fn check_names(draft: &Draft, base: &PolicySet, added: &PolicySet) -> Result<(), Vec<Violation>> {
    let known = |id: &str| {
        [base, added].iter().any(|set| set.find(id).is_some_and(|record| !record.builtin))
    };
    let removed = draft.remove.iter().enumerate();
    let removed = removed.filter(|(_, id)| base.find(id).is_none_or(|record| record.builtin));
    let mut wrong: Vec<Violation> = removed
        .map(|(at, _)| violation(&format!("/policies/remove/{at}"), "is no policy of the base"))
        .collect();
    let restated = draft.set_status.iter().filter(|(id, _)| !known(id));
    wrong.extend(restated.map(|(id, _)| {
        let token = id.replace('~', "~0").replace('/', "~1");
        violation(&format!("/policies/set_status/{token}"), "is no policy of the draft")
    }));
    if wrong.is_empty() { Ok(()) } else { Err(wrong) }
}

fn status_of(draft: &Draft, id: &str) -> Option<Status> {
    draft.set_status.iter().rev().find(|(named, _)| named == id).map(|(_, status)| *status)
}

/// A text of the request with the statuses that the same request sets.
fn restated(file: PolicyFile, draft: &Draft, added: &PolicySet) -> PolicyFile {
    let mut text = file.text;
    for record in added.records() {
        let Origin::File { path, .. } = &record.origin else { continue };
        let source = record.source().filter(|_| path.ends_with(&file.path));
        if let (Some(source), Some(status)) = (source, status_of(draft, &record.id)) {
            text = text.replace(source, &with_status(source, Some(status)));
        }
    }
    PolicyFile { path: file.path, text }
}

/// The policy in another status: its `@mode` is replaced, or put in front of it.
fn with_status(source: &str, status: Option<Status>) -> String {
    let Some(status) = status else { return source.to_owned() };
    let mode = format!("@mode(\"{}\")", status.as_str());
    match source.find("@mode").and_then(|at| Some((at, source.get(at..)?.find(')')?))) {
        Some((at, length)) => {
            let (before, rest) = source.split_at(at);
            format!("{before}{mode}{}", rest.get(length + 1..).unwrap_or_default())
        }
        None => format!("{mode} {source}"),
    }
}

impl Draft {
    /// The digest of the kept set that it begins with.
    pub(crate) fn kept_base(&self) -> Option<&str> {
        match &self.base {
            Base::Kept(version) => Some(version),
            Base::Live | Base::Empty => None,
        }
    }
}
