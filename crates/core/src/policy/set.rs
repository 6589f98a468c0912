//! The set of policies in force: loaded, bound to the tools, and asked.

use std::{
    fmt,
    sync::{Arc, OnceLock},
};

use cedar_policy::SchemaFragment;
use serde::Serialize;
use serde_json::Value;

use crate::{
    capability::Capability,
    clock::Timestamp,
    json,
    policy::{
        bind::{
            access_table::AccessTable,
            binding::{Binding, Bound, Environment, Slots},
            index::Policies,
            record::PolicyRecord,
            slot::Slot,
        },
        call::question::Question,
        decide::{
            decision::Decision,
            order::{self, Frame},
        },
        engine::PrincipalKeys,
        files::{PolicyError, PolicyFile, SourceFile, sorted},
        load::{compiled::Placed, parser::Parser},
        terms::Status,
        tool::{
            catalogue::{Catalogue, ToolFacts},
            facts::{Declared, FACTS_FILE},
            schema::{self, Shapes},
        },
        watch::{DraftBounds, DraftError, Unwatched, Watch},
    },
};

pub(super) mod access;
pub(super) mod draft;
pub(super) mod projection;
pub(super) mod tenancy;

/// A loaded set of policies, bound to the tools that were known. Never changes.
pub struct PolicySet {
    pub(in crate::policy) policies: Arc<Policies>,
    environment: Environment,
    pub(in crate::policy) slots: Slots,
    pub(in crate::policy) keys: Arc<PrincipalKeys>,
    pub(in crate::policy) records: Vec<PolicyRecord>,
    version: Arc<str>,
    loaded_at: Timestamp,
    table: OnceLock<AccessTable>,
}

/// A policy set in numbers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// SHA-256 of the whole set.
    pub version: Arc<str>,
    pub loaded_at: Timestamp,
    /// Policies that decide.
    pub active: usize,
    /// Policies that are only reported.
    pub shadow: usize,
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
        let around = environment(catalogue, detectors);
        let Ok(built) = with_stack(|| Self::build(files, around, None, loaded_at, &Unwatched));
        built
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
        let around = environment(catalogue, detectors);
        let was = Some(self);
        let Ok(built) = with_stack(|| Self::build(files, around, was, loaded_at, &Unwatched));
        built
    }

    /// The same, unless it is told to stop. The number of checks is not bounded.
    pub fn reload_within(
        &self,
        files: Vec<PolicyFile>,
        catalogue: &Catalogue,
        detectors: &[&str],
        loaded_at: Timestamp,
        bounds: &DraftBounds<'_>,
    ) -> Result<Self, DraftError> {
        let around = environment(catalogue, detectors);
        with_stack(|| Self::build(files, around, Some(self), loaded_at, bounds))?
            .map_err(DraftError::Policies)
    }

    /// The Cedar schema of all tools, with the facts that are declared, as JSON.
    #[must_use]
    pub fn schema(&self) -> Value {
        let Environment { catalogue, declared, .. } = &self.environment;
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

    fn build<W: Watch>(
        files: Vec<PolicyFile>,
        mut environment: Environment,
        was: Option<&Self>,
        loaded_at: Timestamp,
        watch: &W,
    ) -> Result<Result<Self, Vec<PolicyError>>, W::Stop> {
        let (facts, files): (Vec<PolicyFile>, Vec<PolicyFile>) =
            files.into_iter().partition(|file| file.path == FACTS_FILE);
        let mut errors = Vec::new();
        if let Some(file) = facts.into_iter().next() {
            match Declared::parse(&SourceFile::new(file)) {
                Ok(declared) => environment.declared = Arc::new(declared),
                Err(found) => errors.extend(found),
            }
        }
        // Another list of names can make what was right wrong.
        let same = was.filter(|set| set.environment.names() == environment.names());
        let known = same.map(|set| set.policies.by_source()).unwrap_or_default();
        let parser = Parser { names: environment.names(), known };
        let (placed, found) = parser.parse(files, watch)?;
        errors.extend(found);
        let policies = Arc::new(Policies::new(placed));
        let binding = Binding::of(policies, environment.clone(), was.map(Self::bound), watch)?;
        errors.extend(binding.errors());
        Ok(if errors.is_empty() {
            Ok(Self::of(binding, was, loaded_at))
        } else {
            Err(sorted(errors))
        })
    }

    /// The same policies for a changed catalogue. A policy that no longer fits a tool is kept and
    /// marked: as a forbid it denies that tool, as a permit it does not permit it.
    #[must_use]
    pub fn rebind(&self, catalogue: &Catalogue) -> Self {
        let catalogue = Arc::new(catalogue.clone());
        let environment = Environment { catalogue, ..self.environment.clone() };
        let policies = Arc::clone(&self.policies);
        let was = Some(self.bound());
        let Ok(binding) = with_stack(|| Binding::of(policies, environment, was, &Unwatched));
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
        let version = version(&binding.policies, &binding.environment.declared);
        let Binding { policies, environment, slots, keys, .. } = binding;
        let table = OnceLock::new();
        Self { policies, environment, slots, keys, records, version, loaded_at, table }
    }

    /// Parts that the next binding can take over.
    fn bound(&self) -> Bound<'_> {
        Bound { slots: &self.slots, keys: &self.keys }
    }

    /// Decides `question`. Never fails: a call that cannot be decided is denied.
    #[must_use]
    pub fn decide(&self, question: &Question<'_>) -> Decision {
        self.put(question, |frame| order::decide(&frame))
    }

    /// Puts `question` before the policies of its tool.
    pub(in crate::policy) fn put<T>(
        &self,
        question: &Question<'_>,
        judge: impl FnOnce(Frame<'_>) -> T,
    ) -> T {
        let slot = self.slot(question.tool);
        let keys = question.principal.keys(&self.keys);
        let stage = slot.stage(question.phase);
        judge(Frame { slot: &slot, stage, question, keys: &keys })
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
    pub(in crate::policy) fn slot(&self, tool: &Capability) -> Arc<Slot> {
        let bound = self.slots.get(tool.id.slot());
        if let Some(slot) = bound.filter(|slot| slot.tool_version == tool.slot_version()) {
            return Arc::clone(slot);
        }
        let mut keys = PrincipalKeys::clone(&self.keys);
        with_stack(|| {
            let Environment { declared, .. } = &self.environment;
            let Ok(slot) = Slot::build(&self.policies, declared, tool, None, &mut keys, &Unwatched);
            slot
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

fn environment(catalogue: &Catalogue, detectors: &[&str]) -> Environment {
    let detectors = detectors.iter().map(|name| (*name).to_owned()).collect();
    let catalogue = Arc::new(catalogue.clone());
    let detectors = Arc::new(detectors);
    Environment { catalogue, detectors, declared: Arc::default() }
}

fn version(policies: &Policies, declared: &Declared) -> Arc<str> {
    let line = |placed: &Placed| format!("{} {}\n", placed.policy.id, placed.policy.digest);
    let lines: Vec<String> = policies.iter().map(line).chain(declared.lines()).collect();
    let lines: Vec<&[u8]> = lines.iter().map(String::as_bytes).collect();
    json::sha256(&lines).into()
}
