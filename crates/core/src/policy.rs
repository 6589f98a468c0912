//! Policies: who may call which tool, decided by Cedar.
//!
//! Files become one immutable [`PolicySet`], or none when anything in them is wrong. A decision
//! evaluates only the policies whose scope can match the tool and the caller, on values that are
//! built here from the call. Without a permit the answer is no; whatever cannot be evaluated is a
//! no as well.

mod access;
mod annotations;
mod catalogue;
mod check;
mod decide;
mod draft;
mod explain;
mod identity;
mod inputs;
mod names;
mod nesting;
mod question;
mod reads;
mod record;
mod schema;
mod scope;
mod shape;
mod slot;
mod source;
mod values;

#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, HashMap},
    fmt, io,
    sync::Arc,
};

use serde::Serialize;

pub use self::{
    access::Access,
    annotations::{Detectors, Severity, Status},
    catalogue::Catalogue,
    decide::{Cause, Decision, Errored, Named, Obligation, Shadow, Verdict, Would},
    draft::{Changes, Difference},
    explain::{Clause, Considered, Examined, Explain, Indeterminate, NearMiss, Outcome},
    identity::{Agent, Identity, Principal},
    question::{DlpFacts, Question},
    record::{
        DEFAULT_DENY, DLP_DEFAULT, FullRecord, Origin, POLICY_ERROR, PolicyRecord, TOKEN_SCOPES,
        TOOL_PINNING, Validation,
    },
    source::MAX_FILE_BYTES,
};
use self::{
    check::{NameCheck, Problem},
    record::BUILTINS,
    slot::{Policies, Slot},
    source::Compiled,
};
pub use crate::dlp::Direction;
use crate::{clock::Timestamp, json, tool::Tool};

/// A file of the policies folder.
#[derive(Debug, Clone)]
pub struct PolicyFile {
    /// Its path within the folder, such as `github.cedar`.
    pub path: String,
    /// What it contains.
    pub text: String,
}

/// What is wrong with a policy file, and where.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, thiserror::Error)]
pub struct PolicyError {
    /// The file, within the policies folder.
    pub path: String,
    /// The line, from 1.
    pub line: usize,
    /// The character in the line, from 1.
    pub column: usize,
    /// What kind of error, in `snake_case`.
    pub code: &'static str,
    /// The policy's name, when it has one.
    pub policy: Option<String>,
    /// What to do about it.
    pub message: String,
}

impl PolicyError {
    /// The folder itself could not be read.
    #[must_use]
    pub fn unreadable(path: &str, error: &io::Error) -> Self {
        Self {
            path: path.to_owned(),
            line: 1,
            column: 1,
            code: "unreadable",
            policy: None,
            message: format!("the folder cannot be read: {error}"),
        }
    }
}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: {}", self.path, self.line, self.column, self.message)
    }
}

/// What a policy does when it is true.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Allows, unless something forbids.
    Permit,
    /// Denies, whatever permits.
    Forbid,
}

/// Before the call or after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// The call has not been made.
    Request,
    /// The tool has answered; a forbid suppresses the answer.
    Response,
}

/// A loaded set of policies, bound to the tools that were known. Never changes.
pub struct PolicySet {
    policies: Arc<Policies>,
    slots: HashMap<String, Arc<Slot>>,
    records: Vec<PolicyRecord>,
    version: Arc<str>,
    loaded_at: Timestamp,
}

/// A policy set in numbers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// SHA-256 of the whole set.
    pub version: Arc<str>,
    /// When it was loaded.
    pub loaded_at: Timestamp,
    /// Policies that decide.
    pub active: usize,
    /// Policies that are only reported.
    pub shadow: usize,
    /// Policies that are switched off.
    pub disabled: usize,
    /// Policies that no longer fit a tool they may apply to.
    pub invalid: usize,
}

impl PolicySet {
    /// Loads a set. Gives every error of every file at once when there is any; an empty set is a
    /// set, in which everything is denied.
    pub fn load(
        files: Vec<PolicyFile>,
        catalogue: &Catalogue,
        detectors: &[&str],
        loaded_at: Timestamp,
    ) -> Result<Self, Vec<PolicyError>> {
        with_stack(|| Self::build(files, catalogue, detectors, loaded_at))
    }

    fn build(
        files: Vec<PolicyFile>,
        catalogue: &Catalogue,
        detectors: &[&str],
        loaded_at: Timestamp,
    ) -> Result<Self, Vec<PolicyError>> {
        let (compiled, mut errors) = source::parse(files, detectors);
        let policies = Arc::new(Policies::new(compiled));
        let slots = slots(&policies, catalogue, None);
        let checks = name_checks(&policies, catalogue);
        for (policy, check) in policies.iter().zip(&checks) {
            let error = |problem: &Problem| {
                policy.error(problem.offset, problem.code, problem.message.clone())
            };
            errors.extend(check.problems.iter().map(error));
        }
        errors.extend(check::merge_errors(problems(&policies, &slots)));
        if !errors.is_empty() {
            errors.sort();
            errors.dedup();
            return Err(errors);
        }
        let records = records(&policies, &slots, &checks, |_| loaded_at);
        let version = version(&policies);
        Ok(Self { policies, slots, records, version, loaded_at })
    }

    /// The same policies for a changed catalogue. A policy that no longer fits a tool is kept and
    /// marked: as a forbid it denies that tool, as a permit it does not permit it.
    #[must_use]
    pub fn rebind(&self, catalogue: &Catalogue) -> Self {
        let policies = Arc::clone(&self.policies);
        let slots = with_stack(|| slots(&policies, catalogue, Some(&self.slots)));
        let checks = name_checks(&policies, catalogue);
        let since = |id: &str| self.find(id).map_or(self.loaded_at, |record| record.updated_at);
        let records = records(&policies, &slots, &checks, since);
        Self { policies, slots, records, version: self.version.clone(), loaded_at: self.loaded_at }
    }

    /// This set as the successor of `previous`: policies that did not change keep the moment since
    /// when they are as they are.
    #[must_use]
    pub fn after(mut self, previous: &Self) -> Self {
        for record in &mut self.records {
            let earlier = previous.find(&record.id);
            if let Some(earlier) = earlier.filter(|earlier| earlier.version == record.version) {
                record.updated_at = earlier.updated_at;
            }
        }
        self
    }

    /// What the policies say to `question`. Never fails: what cannot be decided is denied.
    #[must_use]
    pub fn decide(&self, question: &Question<'_>) -> Decision {
        decide::decide(&self.policies, &self.slot(question.tool), question)
    }

    /// SHA-256 of the set, `sha256:…`; white space and comments do not change it.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Every policy and built-in, ordered by name.
    #[must_use]
    pub fn records(&self) -> &[PolicyRecord] {
        &self.records
    }

    /// The policy or built-in of this name.
    #[must_use]
    pub fn find(&self, id: &str) -> Option<&PolicyRecord> {
        let at = self.records.binary_search_by(|record| (*record.id).cmp(id)).ok()?;
        self.records.get(at)
    }

    /// The set in numbers; built-ins are not counted.
    #[must_use]
    pub fn summary(&self) -> Summary {
        let count = |test: &dyn Fn(&PolicyRecord) -> bool| {
            self.records.iter().filter(|record| !record.builtin && test(record)).count()
        };
        Summary {
            version: Arc::clone(&self.version),
            loaded_at: self.loaded_at,
            active: count(&|record| record.status == Status::Active),
            shadow: count(&|record| record.status == Status::Shadow),
            disabled: count(&|record| record.status == Status::Disabled),
            invalid: count(&|record| !record.validation.valid),
        }
    }

    /// The slot of exactly this tool. A tool that changed since the set was bound gets its own
    /// for this call, so that there is no moment in which it meets rules made for another.
    fn slot(&self, tool: &Tool) -> Arc<Slot> {
        let bound = self.slots.get(tool.id.as_str());
        match bound.filter(|slot| slot.tool_version == tool.version) {
            Some(slot) => Arc::clone(slot),
            None => with_stack(|| Arc::new(Slot::build(&self.policies, tool))),
        }
    }
}

impl fmt::Debug for PolicySet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PolicySet").field("summary", &self.summary()).finish_non_exhaustive()
    }
}

/// Parsing and validating recurse as deep as a policy nests: [`nesting`] bounds the depth, and
/// this gives it room, whatever is left of the thread's own stack.
fn with_stack<T>(work: impl FnOnce() -> T) -> T {
    const ROOM: usize = 32 << 20;
    stacker::maybe_grow(ROOM, 2 * ROOM, work)
}

type Slots = HashMap<String, Arc<Slot>>;

/// A slot for each tool; those of `bound` whose tool is the same are kept.
fn slots(policies: &Policies, catalogue: &Catalogue, bound: Option<&Slots>) -> Slots {
    let slot = |tool: &Arc<Tool>| {
        let known = bound.and_then(|slots| slots.get(tool.id.as_str()));
        let slot = match known.filter(|slot| slot.tool_version == tool.version) {
            Some(slot) => Arc::clone(slot),
            None => Arc::new(Slot::build(policies, tool)),
        };
        (tool.id.as_str().to_owned(), slot)
    };
    catalogue.tools().map(slot).collect()
}

fn name_checks(policies: &Policies, catalogue: &Catalogue) -> Vec<NameCheck> {
    policies.iter().map(|policy| check::names_of(policy, catalogue)).collect()
}

/// The slots ordered by tool, so that messages do not depend on hashing.
fn ordered(slots: &Slots) -> BTreeMap<&str, &Slot> {
    slots.iter().map(|(tool, slot)| (tool.as_str(), &**slot)).collect()
}

/// Every problem of every policy with every tool.
fn problems<'a>(
    policies: &'a Policies,
    slots: &'a Slots,
) -> impl Iterator<Item = (&'a Compiled, &'a Problem, &'a str)> {
    let of_slot = move |(tool, slot): (&'a str, &'a Slot)| {
        slot.candidates.iter().flat_map(move |candidate| {
            let policy = policies.get(candidate.number);
            let problems = candidate.finding.problems.iter();
            problems.filter_map(move |problem| Some((policy?, problem, tool)))
        })
    };
    ordered(slots).into_iter().flat_map(of_slot)
}

fn version(policies: &Policies) -> Arc<str> {
    let lines: Vec<String> =
        policies.iter().map(|policy| format!("{} {}\n", policy.id, policy.digest)).collect();
    let lines: Vec<&[u8]> = lines.iter().map(String::as_bytes).collect();
    json::sha256(&lines).into()
}

fn records(
    policies: &Policies,
    slots: &Slots,
    checks: &[NameCheck],
    since: impl Fn(&str) -> Timestamp,
) -> Vec<PolicyRecord> {
    let mut validations = validations(policies, slots, checks).into_iter();
    let user = policies.iter().map(|policy| {
        let validation = validations.next().unwrap_or_else(|| Verdicts::default().finish());
        PolicyRecord::of(policy, validation, since(&policy.id))
    });
    let mut records: Vec<PolicyRecord> = user.collect();
    let builtin = |builtin| PolicyRecord::builtin(builtin, since(builtin.id));
    records.extend(BUILTINS.iter().map(builtin));
    records.sort_by(|a, b| a.id.cmp(&b.id));
    records
}

/// What was found about one policy over all tools.
#[derive(Default)]
struct Verdicts {
    errors: Vec<String>,
    warnings: Vec<String>,
    tools: usize,
    impossible: usize,
    problems: BTreeMap<String, Vec<String>>,
}

impl Verdicts {
    fn finish(mut self) -> Validation {
        for (message, tools) in &self.problems {
            let tools: Vec<&str> = tools.iter().map(String::as_str).collect();
            self.errors.push(format!("{message} (for {})", check::some_of(&tools)));
        }
        if self.tools > 0 && self.impossible == self.tools {
            self.warnings.push("it can never be true for any tool it may apply to".to_owned());
        }
        self.warnings.dedup();
        Validation { valid: self.errors.is_empty(), warnings: self.warnings, errors: self.errors }
    }
}

fn validations(policies: &Policies, slots: &Slots, checks: &[NameCheck]) -> Vec<Validation> {
    let start = |(policy, check): (&Compiled, &NameCheck)| Verdicts {
        errors: check.problems.iter().map(|problem| problem.message.clone()).collect(),
        warnings: policy.lints.iter().chain(&check.warnings).cloned().collect(),
        ..Verdicts::default()
    };
    let mut verdicts: Vec<Verdicts> = policies.iter().zip(checks).map(start).collect();
    for (tool, slot) in ordered(slots) {
        for candidate in &slot.candidates {
            let Some(verdict) = verdicts.get_mut(candidate.number) else { continue };
            verdict.tools += 1;
            verdict.impossible += usize::from(candidate.finding.impossible);
            for problem in &candidate.finding.problems {
                let tools = verdict.problems.entry(problem.message.clone()).or_default();
                tools.push(tool.to_owned());
            }
            for warning in &candidate.finding.warnings {
                if !verdict.warnings.contains(warning) {
                    verdict.warnings.push(warning.clone());
                }
            }
        }
    }
    verdicts.into_iter().map(Verdicts::finish).collect()
}
