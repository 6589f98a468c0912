//! Policies: who may call which tool, decided by Cedar.
//!
//! Files become one immutable [`PolicySet`], or none when anything in them is wrong. A decision
//! evaluates only the policies whose scope can match the tool and the caller, on values that are
//! built here from the call. Without a permit the answer is no; whatever cannot be evaluated is a
//! no as well.

pub mod engine;

mod access;
mod annotations;
mod binding;
mod catalogue;
mod check;
mod decide;
mod decision;
mod draft;
mod examine;
mod explain;
mod facts;
mod identity;
mod known;
mod names;
mod nesting;
mod obligations;
mod parts;
mod policies;
mod projection;
mod question;
mod rate;
mod reads;
mod record;
mod redundant;
mod schema;
mod shape;
mod slot;
mod source;
mod tenancy;
mod values;
mod verdicts;

#[cfg(test)]
mod tests;

use std::{
    fmt, io,
    sync::{Arc, OnceLock},
};

use cedar_policy::SchemaFragment;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use self::{
    access::Board,
    binding::{Binding, Slots, Surroundings},
    catalogue::ToolFacts,
    decide::Frame,
    engine::{CORE, Evaluator, Keys},
    facts::Declared,
    policies::Policies,
    schema::Shapes,
    slot::Slot,
    source::{Parser, Placed, SourceFile},
};
pub use self::{
    access::{Access, Accesses, Somebody, SomebodyError},
    annotations::{Detectors, Severity, Status},
    catalogue::Catalogue,
    decision::{Cause, Decision, Errored, Named, Notice, Obligation, Shadow, Verdict, Would},
    draft::{Changes, Difference},
    explain::{Clause, Considered, Examined, Explain, Indeterminate, NearMiss, Outcome},
    facts::FACTS_FILE,
    identity::{Agent, Identity, Principal},
    known::Known,
    obligations::Channel,
    projection::Projection,
    question::{DlpFacts, Question},
    rate::{Full, Per, Rate},
    record::{
        DEFAULT_DENY, DLP_DEFAULT, FullRecord, Origin, POLICY_ERROR, PolicyRecord, TOKEN_SCOPES,
        TOOL_PINNING, Validation,
    },
    source::MAX_FILE_BYTES,
    tenancy::{OrgView, principals_in},
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
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, thiserror::Error, ToSchema)]
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
            message: if error.kind() == io::ErrorKind::NotFound {
                "there is no such folder; `portcullis policy init` writes a first set there"
                    .to_owned()
            } else {
                format!("the folder cannot be read: {error}")
            },
        }
    }
}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: {}", self.path, self.line, self.column, self.message)
    }
}

/// What a policy does when it is true.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Allows, unless something forbids.
    Permit,
    /// Denies, whatever permits.
    Forbid,
}

/// Before the call or after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, ToSchema)]
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
    surroundings: Surroundings,
    slots: Slots,
    keys: Arc<Keys>,
    records: Vec<PolicyRecord>,
    version: Arc<str>,
    loaded_at: Timestamp,
    evaluator: &'static dyn Evaluator,
    board: OnceLock<Board>,
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
    /// Policies that name neither principals nor actions: they are candidates for every call that
    /// their resource fits.
    pub unindexed: usize,
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
        with_stack(|| Self::build(files, surroundings(catalogue, detectors), None, loaded_at))
    }

    /// Loads a set in place of this one. What is the same is taken over, so that a small change
    /// costs little; policies that did not change keep the moment since when they are as they are.
    pub fn reload(
        &self,
        files: Vec<PolicyFile>,
        catalogue: &Catalogue,
        detectors: &[&str],
        loaded_at: Timestamp,
    ) -> Result<Self, Vec<PolicyError>> {
        let around = surroundings(catalogue, detectors);
        with_stack(|| Self::build(files, around, Some(self), loaded_at))
    }

    /// The Cedar schema of all tools, with the facts that are declared, as JSON.
    #[must_use]
    pub fn schema(&self) -> Value {
        let Surroundings { catalogue, declared, .. } = &self.surroundings;
        schema::of_tools(catalogue.tools().map(|tool| {
            let facts = declared.facts_of(&tool.id);
            (ToolFacts::of(tool, &declared.labels_of(&tool.id)), Shapes::of(tool, facts))
        }))
    }

    /// The same in Cedar's own syntax: a `.cedarschema` file. `None` if a name in it cannot be
    /// written so.
    #[must_use]
    pub fn cedarschema(&self) -> Option<String> {
        SchemaFragment::from_json_value(self.schema()).ok()?.to_cedarschema().ok()
    }

    fn build(
        files: Vec<PolicyFile>,
        mut surroundings: Surroundings,
        was: Option<&Self>,
        loaded_at: Timestamp,
    ) -> Result<Self, Vec<PolicyError>> {
        let (facts, files): (Vec<PolicyFile>, Vec<PolicyFile>) =
            files.into_iter().partition(|file| file.path == FACTS_FILE);
        let mut errors = Vec::new();
        if let Some(file) = facts.into_iter().next() {
            match Declared::parse(&SourceFile::new(file)) {
                Ok(declared) => surroundings.declared = Arc::new(declared),
                Err(found) => errors.extend(found),
            }
        }
        // Another list of names can make what was right wrong.
        let same = was.filter(|set| set.surroundings.names() == surroundings.names());
        let known = same.map(|set| set.policies.by_source()).unwrap_or_default();
        let parser = Parser { names: surroundings.names(), known };
        let (placed, found) = parser.parse(files);
        errors.extend(found);
        let policies = Arc::new(Policies::new(placed));
        let binding = Binding::of(policies, surroundings.clone(), was);
        errors.extend(binding.errors());
        if errors.is_empty() { Ok(Self::of(binding, was, loaded_at)) } else { Err(sorted(errors)) }
    }

    /// The same policies for a changed catalogue. A policy that no longer fits a tool is kept and
    /// marked: as a forbid it denies that tool, as a permit it does not permit it.
    #[must_use]
    pub fn rebind(&self, catalogue: &Catalogue) -> Self {
        let catalogue = Arc::new(catalogue.clone());
        let surroundings = Surroundings { catalogue, ..self.surroundings.clone() };
        let policies = Arc::clone(&self.policies);
        let binding = with_stack(|| Binding::of(policies, surroundings, Some(self)));
        Self::of(binding, Some(self), self.loaded_at)
    }

    /// The set of a binding. Policies that are in `was` as they are here keep their moment.
    fn of(binding: Binding, was: Option<&Self>, loaded_at: Timestamp) -> Self {
        let since = |id: &str, digest: Option<&str>| {
            let known = was.and_then(|set| set.find(id));
            let same = known.filter(|record| record.version.as_deref() == digest);
            same.map_or(loaded_at, |record| record.updated_at)
        };
        let records = binding.records(since);
        let version = version(&binding.policies, &binding.surroundings.declared);
        let Binding { policies, surroundings, slots, keys, .. } = binding;
        let evaluator = was.map_or(&CORE as &dyn Evaluator, |set| set.evaluator);
        let board = OnceLock::new();
        Self { policies, surroundings, slots, keys, records, version, loaded_at, evaluator, board }
    }

    /// The same set, evaluated by another evaluator.
    #[must_use]
    pub fn evaluated_by(mut self, evaluator: &'static dyn Evaluator) -> Self {
        self.evaluator = evaluator;
        self
    }

    /// What the policies say to `question`. Never fails: what cannot be decided is denied.
    #[must_use]
    pub fn decide(&self, question: &Question<'_>) -> Decision {
        let slot = self.slot(question.tool);
        let keys = question.principal.keys(&self.keys);
        let stage = slot.stage(question.phase);
        let evaluator = self.evaluator;
        decide::decide(&Frame { slot: &slot, stage, question, keys: &keys, evaluator })
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
            unindexed: self.policies.iter().filter(|placed| placed.policy.is_unindexed()).count(),
        }
    }

    /// The slot of exactly this tool. A tool that changed since the set was bound gets its own
    /// for this call, so that there is no moment in which it meets rules made for another.
    fn slot(&self, tool: &Tool) -> Arc<Slot> {
        let bound = self.slots.get(tool.id.as_str());
        if let Some(slot) = bound.filter(|slot| slot.tool_version == tool.version) {
            return Arc::clone(slot);
        }
        let mut keys = Keys::clone(&self.keys);
        with_stack(|| {
            let Surroundings { declared, .. } = &self.surroundings;
            Slot::build(&self.policies, declared, tool, None, &mut keys)
        })
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

fn surroundings(catalogue: &Catalogue, detectors: &[&str]) -> Surroundings {
    let detectors = detectors.iter().map(|name| (*name).to_owned()).collect();
    let (catalogue, detectors) = (Arc::new(catalogue.clone()), Arc::new(detectors));
    Surroundings { catalogue, detectors, declared: Arc::default() }
}

fn sorted(mut errors: Vec<PolicyError>) -> Vec<PolicyError> {
    errors.sort();
    errors.dedup();
    errors
}

fn version(policies: &Policies, declared: &Declared) -> Arc<str> {
    let line = |placed: &Placed| format!("{} {}\n", placed.policy.id, placed.policy.digest);
    let lines: Vec<String> = policies.iter().map(line).chain(declared.lines()).collect();
    let lines: Vec<&[u8]> = lines.iter().map(String::as_bytes).collect();
    json::sha256(&lines).into()
}
