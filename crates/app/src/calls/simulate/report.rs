//! Report of a simulation of hypothetical calls.

use std::sync::Arc;

use portcullis_core::{
    audit::RecordedDecision,
    policy::{Errored, OrgView, PolicySet, Shadow},
    refusal::Violation,
};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{judge::Judged, request::Expectation};
use crate::policies::reload::SetChange;

/// Change of a decision under other policies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Change {
    /// Nothing.
    None,
    /// Allowed before, denied now.
    NewlyDenied,
    /// Denied before, allowed now.
    NewlyAllowed,
    /// The same decision by another policy.
    PolicyChanged,
    /// The same decision with other obligations.
    ObligationsChanged,
    /// Allowed before; what the event does not tell could deny it.
    MaybeDenied,
    /// Denied before; what the event does not tell could allow it.
    MaybeAllowed,
    /// It cannot be told.
    Indeterminate,
}

impl Change {
    /// Change from `before` to `after`.
    pub(crate) fn between(before: &Judged, after: &Judged) -> Self {
        match (before.decision, after.decision) {
            (Some(RecordedDecision::Allow), Some(RecordedDecision::Deny)) => Self::NewlyDenied,
            (Some(RecordedDecision::Deny), Some(RecordedDecision::Allow)) => Self::NewlyAllowed,
            _ if before.policy != after.policy => Self::PolicyChanged,
            _ if before.obligations != after.obligations => Self::ObligationsChanged,
            _ => Self::None,
        }
    }
}

/// A decision in short.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub(crate) struct Brief {
    pub(crate) decision: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cause: Option<&'static str>,
    pub(crate) policy: Option<Arc<str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
}

impl Brief {
    pub(crate) fn of(judged: &Judged) -> Self {
        Self {
            decision: judged.decision.map(RecordedDecision::as_str),
            cause: Some(judged.cause),
            policy: judged.policy.clone(),
            reason: judged.reason.clone(),
        }
    }
}

#[derive(Serialize)]
struct Told<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    tool: &'a str,
    decision: Option<&'static str>,
    cause: &'a str,
    policy: Option<&'a str>,
    reason: Option<&'a str>,
    determining_policies: &'a [String],
    obligations: &'a [Value],
    dlp: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    shadow: Option<&'a [Shadow]>,
    errors: &'a [Errored],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    violations: &'a [Violation],
    #[serde(skip_serializing_if = "Option::is_none")]
    explain: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    baseline: Option<Brief>,
    #[serde(skip_serializing_if = "Option::is_none")]
    change: Option<Change>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expectation: Option<Value>,
    evaluated_us: u64,
}

/// One call, judged and compared.
pub(crate) struct Item<'a> {
    pub(crate) id: Option<&'a str>,
    pub(crate) tool: &'a str,
    pub(crate) judged: Judged,
    pub(crate) before: Option<Judged>,
    pub(crate) expect: Option<&'a Expectation>,
    pub(crate) evaluated_us: u64,
}

/// Numbers of calls by result.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub(crate) struct Counts {
    pub(crate) total: usize,
    allow: usize,
    deny: usize,
    invalid: usize,
    indeterminate: usize,
    pub(crate) changed: usize,
    pub(crate) expectations_failed: usize,
}

impl Item<'_> {
    fn change(&self) -> Option<Change> {
        self.before.as_ref().map(|before| Change::between(before, &self.judged))
    }

    fn unmet(&self) -> Vec<String> {
        self.expect.map(|expected| expected.unmet(&self.judged)).unwrap_or_default()
    }

    /// Counts it.
    pub(crate) fn count(&self, counts: &mut Counts) {
        counts.total += 1;
        match self.judged.decision {
            Some(RecordedDecision::Allow) => counts.allow += 1,
            Some(RecordedDecision::Deny) => counts.deny += 1,
            None => counts.invalid += 1,
        }
        counts.changed += usize::from(self.change().is_some_and(|change| change != Change::None));
        counts.expectations_failed += usize::from(!self.unmet().is_empty());
    }

    /// As it is answered.
    pub(crate) fn told(&self, with_shadow: bool) -> Value {
        let judged = &self.judged;
        let unmet = self.unmet();
        let expectation = self.expect.map(|_| {
            if unmet.is_empty() {
                json!({ "met": true })
            } else {
                json!({ "met": false, "unmet": unmet })
            }
        });
        json!(Told {
            id: self.id,
            tool: self.tool,
            decision: judged.decision.map(RecordedDecision::as_str),
            cause: judged.cause,
            policy: judged.policy.as_deref(),
            reason: judged.reason.as_deref(),
            determining_policies: &judged.determining,
            obligations: &judged.obligations,
            dlp: json!({ "findings": judged.found, "action": judged.action }),
            shadow: with_shadow.then_some(&judged.shadow),
            errors: &judged.errors,
            violations: &judged.violations,
            explain: judged.explained.clone(),
            baseline: self.before.as_ref().map(Brief::of),
            change: self.change(),
            expectation,
            evaluated_us: self.evaluated_us,
        })
    }
}

impl Expectation {
    /// Descriptions of the expectations that are not met.
    pub(crate) fn unmet(&self, judged: &Judged) -> Vec<String> {
        let mut unmet = Vec::new();
        let mut compare = |what: &str, wanted: Option<&str>, got: Option<&str>| {
            if let Some(wanted) = wanted.filter(|wanted| got != Some(*wanted)) {
                let got = got.unwrap_or("none");
                unmet.push(format!("{what}: expected `{wanted}`, got `{got}`"));
            }
        };
        let decision = |decision: Option<RecordedDecision>| decision.map(RecordedDecision::as_str);
        compare("decision", decision(self.decision), decision(judged.decision));
        compare("policy", self.policy.as_deref(), judged.policy.as_deref());
        compare("cause", self.cause.as_deref(), Some(judged.cause));
        unmet
    }
}

/// The sets that were asked, as answers name them. An org is told of the policies that can concern
/// it.
pub(crate) fn sets(
    candidate: &PolicySet,
    live: &PolicySet,
    baseline: Option<(&PolicySet, &'static str)>,
    org: Option<&OrgView>,
) -> Value {
    let shown = |id: &Arc<str>| {
        org.is_none_or(|org| live.can_concern(id, org) || candidate.can_concern(id, org))
    };
    let change = SetChange::between(live, candidate).only(shown);
    let policies = |set: &PolicySet| {
        let concerns = |id: &Arc<str>| org.is_none_or(|org| set.can_concern(id, org));
        set.records().iter().filter(|it| !it.builtin && concerns(&it.id)).count()
    };
    let warnings: Vec<Value> = candidate
        .records()
        .iter()
        .filter(|record| change.added.contains(&record.id) || change.changed.contains(&record.id))
        .filter(|record| !record.validation.warnings.is_empty())
        .map(|record| json!({ "policy": record.id, "warnings": record.validation.warnings }))
        .collect();
    let mut told = Map::new();
    let shown = json!({
        "version": candidate.version(), "policies": policies(candidate), "added": change.added,
        "changed": change.changed, "removed": change.removed, "warnings": warnings,
    });
    told.insert("candidate".to_owned(), shown);
    if let Some((set, source)) = baseline {
        let shown =
            json!({ "version": set.version(), "policies": policies(set), "source": source });
        told.insert("baseline".to_owned(), shown);
    }
    Value::Object(told)
}
