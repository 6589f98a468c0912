//! Policies bound to the tools there are: what each of them is about, and what does not fit.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use crate::clock::Timestamp;
use crate::policy::{
    bind::{
        check::{self, NameCheck, Problem},
        index::Policies,
        record::{PolicyRecord, Validation},
        redundant,
        slot::Slot,
    },
    engine::PrincipalKeys,
    files::PolicyError,
    load::{annotations::DeclaredNames, builtins::BUILTINS, compiled::Placed},
    tool::{catalogue::Catalogue, facts::Declared},
    watch::Watch,
};

/// Environment of a set: the tools it is bound to, and the names its policies may use.
#[derive(Debug, Clone)]
pub(in crate::policy) struct Environment {
    pub(in crate::policy) catalogue: Arc<Catalogue>,
    pub(in crate::policy) detectors: Arc<BTreeSet<String>>,
    pub(in crate::policy) declared: Arc<Declared>,
}

impl Environment {
    pub(in crate::policy) fn names(&self) -> DeclaredNames<'_> {
        DeclaredNames { detectors: &self.detectors, webhooks: self.catalogue.webhooks() }
    }
}

/// A slot for each tool.
pub(in crate::policy) type Slots = HashMap<String, Arc<Slot>>;

/// Parts of an earlier binding that the next one can take over.
#[derive(Clone, Copy)]
pub(in crate::policy) struct Bound<'a> {
    pub(in crate::policy) slots: &'a Slots,
    pub(in crate::policy) keys: &'a Arc<PrincipalKeys>,
}

/// Policies and what was found about them in their environment.
pub(in crate::policy) struct Binding {
    pub(in crate::policy) policies: Arc<Policies>,
    pub(in crate::policy) environment: Environment,
    pub(in crate::policy) slots: Slots,
    pub(in crate::policy) keys: Arc<PrincipalKeys>,
    checks: Vec<NameCheck>,
}

impl Binding {
    /// Binds the policies; what is the same in `was` is taken over.
    pub(in crate::policy) fn of<W: Watch>(
        policies: Arc<Policies>,
        environment: Environment,
        was: Option<Bound<'_>>,
        watch: &W,
    ) -> Result<Self, W::Stop> {
        let was = was.filter(|was| was.keys.len() < 1_000 + 4 * policies.len());
        let mut keys =
            was.map_or_else(PrincipalKeys::default, |was| PrincipalKeys::clone(was.keys));
        // All of them now: a slot that is built later, for a tool that changed, must find no key
        // that principals do not have.
        for placed in policies.iter() {
            keys.intern(&placed.policy.rule.scope.principal);
        }
        let Environment { catalogue, declared, .. } = &environment;
        let mut slots = Slots::new();
        for tool in catalogue.tools() {
            watch.go_on()?;
            let known = was.and_then(|was| was.slots.get(tool.id.slot()));
            let slot = Slot::build(&policies, declared, tool, known, &mut keys, watch)?;
            slots.insert(tool.id.slot().to_owned(), slot);
        }
        let mut checks: Vec<NameCheck> = Vec::with_capacity(policies.len());
        for placed in policies.iter() {
            watch.go_on()?;
            checks.push(check::names_of(&placed.policy, catalogue, declared));
        }
        for (number, warning) in redundant::warnings(&policies, watch)? {
            if let Some(check) = checks.get_mut(number) {
                check.warnings.push(warning);
            }
        }
        let keys = match was.filter(|was| was.keys.len() == keys.len()) {
            Some(same) => Arc::clone(same.keys),
            None => Arc::new(keys),
        };
        Ok(Self { policies, environment, slots, keys, checks })
    }

    /// Everything that keeps the policies from being loaded.
    pub(in crate::policy) fn errors(&self) -> Vec<PolicyError> {
        let of_names = self.policies.iter().zip(&self.checks).flat_map(|(placed, check)| {
            let error = |problem: &Problem| {
                placed.error(problem.offset, problem.code, problem.message.clone())
            };
            check.problems.iter().map(error).collect::<Vec<_>>()
        });
        of_names.chain(check::merge_errors(self.problems())).collect()
    }

    /// Every problem of every policy with every tool.
    fn problems(&self) -> impl Iterator<Item = (&Placed, &Problem, &str)> {
        ordered(&self.slots).into_iter().flat_map(move |(tool, slot)| {
            let doubtful = slot.candidates.iter().filter(|one| !one.is_valid());
            doubtful.flat_map(move |candidate| {
                let placed = self.policies.find(&candidate.policy.id);
                let problems = candidate.finding.problems.iter();
                problems.filter_map(move |problem| Some((placed?, problem, tool)))
            })
        })
    }

    /// The record of each policy and built-in, ordered by name. `since` tells since when a policy
    /// is in this version.
    pub(in crate::policy) fn records(
        &self,
        since: impl Fn(&str, Option<&str>) -> Timestamp,
    ) -> Vec<PolicyRecord> {
        let user = self.policies.iter().zip(self.validations()).map(|(placed, validation)| {
            let since = since(&placed.policy.id, Some(&placed.policy.digest));
            PolicyRecord::of(placed, validation, since)
        });
        let mut records: Vec<PolicyRecord> = user.collect();
        let builtin = |builtin| PolicyRecord::builtin(builtin, since(builtin.id, None));
        records.extend(BUILTINS.iter().map(builtin));
        records.sort_by(|a, b| a.id.cmp(&b.id));
        records
    }

    fn validations(&self) -> Vec<Validation> {
        let start = |(placed, check): (&Placed, &NameCheck)| PolicyChecks {
            errors: check.problems.iter().map(|problem| problem.message.clone()).collect(),
            warnings: placed.policy.lints.iter().chain(&check.warnings).cloned().collect(),
            ..PolicyChecks::default()
        };
        let mut verdicts: Vec<PolicyChecks> =
            self.policies.iter().zip(&self.checks).map(start).collect();
        for (tool, slot) in ordered(&self.slots) {
            for candidate in slot.candidates.iter().filter(|one| !one.finding.is_clean()) {
                let number = self.policies.number(&candidate.policy.id);
                let Some(verdict) = number.and_then(|at| verdicts.get_mut(at)) else { continue };
                verdict.add(tool, &candidate.finding);
            }
        }
        let pairs = self.policies.iter().zip(verdicts);
        pairs.map(|(placed, verdict)| verdict.finish(|| self.tools_of(&placed.policy.id))).collect()
    }

    /// Number of tools the policy may apply to.
    fn tools_of(&self, id: &str) -> usize {
        self.slots.values().filter(|slot| slot.find(id).is_some()).count()
    }
}

/// The slots ordered by tool, so that messages do not depend on hashing.
fn ordered(slots: &Slots) -> BTreeMap<&str, &Slot> {
    slots.iter().map(|(tool, slot)| (tool.as_str(), &**slot)).collect()
}

/// Results of checking one policy against all tools.
#[derive(Default)]
struct PolicyChecks {
    errors: Vec<String>,
    warnings: Vec<String>,
    impossible: usize,
    problems: BTreeMap<String, Vec<String>>,
}

impl PolicyChecks {
    fn add(&mut self, tool: &str, finding: &check::ToolCheck) {
        self.impossible += usize::from(finding.impossible);
        for problem in &finding.problems {
            self.problems.entry(problem.message.clone()).or_default().push(tool.to_owned());
        }
        for warning in &finding.warnings {
            if !self.warnings.contains(warning) {
                self.warnings.push(warning.clone());
            }
        }
    }

    fn finish(mut self, tools: impl Fn() -> usize) -> Validation {
        for (message, tools) in &self.problems {
            let tools: Vec<&str> = tools.iter().map(String::as_str).collect();
            self.errors.push(format!("{message} (for {})", check::some_of(&tools)));
        }
        if self.impossible > 0 && self.impossible == tools() {
            self.warnings.push("it can never be true for any tool it may apply to".to_owned());
        }
        self.warnings.dedup();
        Validation { valid: self.errors.is_empty(), warnings: self.warnings, errors: self.errors }
    }
}
