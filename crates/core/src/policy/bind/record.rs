//! Policies as the API shows them, the built-in ones included.

use std::sync::Arc;

use crate::policy::load::builtins::Builtin;
use serde::Serialize;
use serde_json::{Value, json};

use crate::clock::Timestamp;
use crate::policy::{
    engine::{ActionScope, EntityScope, RuleScope},
    load::compiled::Placed,
    terms::{Effect, Phase, Severity, Status},
};

/// A policy as it is listed; [`PolicyRecord::full`] adds its source.
#[derive(Debug, Clone, Serialize)]
pub struct PolicyRecord {
    /// The name.
    pub id: Arc<str>,
    name: Arc<str>,
    /// A name for people.
    pub title: Option<String>,
    /// Purpose of the policy.
    pub description: Option<String>,
    /// Permit or forbid.
    pub effect: Effect,
    /// `rule`, `obligation` or `builtin`.
    pub kind: &'static str,
    /// Status of the policy.
    pub status: Status,
    /// Before the call or after it.
    pub phase: Phase,
    /// Orders which of several policies is reported; never changes a decision.
    pub priority: i32,
    /// Severity of the policy.
    pub severity: Severity,
    /// Reason that callers are told.
    pub reason: Option<String>,
    /// Labels for filters.
    pub tags: Vec<String>,
    /// Owner of the policy.
    pub owner: Option<String>,
    scope: Value,
    obligations: Vec<Value>,
    /// The parts of the context that its conditions read.
    pub reads: Vec<String>,
    /// SHA-256 of its meaning; built-ins have none.
    pub version: Option<Arc<str>>,
    /// Where it comes from.
    pub origin: Origin,
    /// Result of checking the policy against the tools there are.
    pub validation: Validation,
    /// True if it is part of Portcullis.
    pub builtin: bool,
    /// Since when it is in this version.
    pub updated_at: Timestamp,
    #[serde(skip)]
    source: Option<Arc<str>>,
}

/// A record with the policy's source.
#[derive(Debug, Serialize)]
pub struct FullRecord<'a> {
    #[serde(flatten)]
    record: &'a PolicyRecord,
    source: Option<&'a str>,
}

/// Where a policy comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Origin {
    /// A file of the policies folder.
    File {
        /// Its path, `policies/…`.
        path: String,
        /// The line on which the policy begins.
        line: usize,
    },
    /// Portcullis itself.
    Builtin,
}

/// Result of checking a policy against the tools there are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Validation {
    /// False when it no longer fits a tool that it may apply to.
    pub valid: bool,
    /// Doubts that keep nothing from working.
    pub warnings: Vec<String>,
    /// Parts that no longer fit.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<String>,
}

impl PolicyRecord {
    /// The record with the policy's source.
    #[must_use]
    pub fn full(&self) -> FullRecord<'_> {
        FullRecord { record: self, source: self.source.as_deref() }
    }

    /// The text of the policy as it stands in its file; built-ins have none.
    #[must_use]
    pub fn source(&self) -> Option<&str> {
        self.source.as_deref()
    }

    pub(in crate::policy) fn of(
        placed: &Placed,
        validation: Validation,
        updated_at: Timestamp,
    ) -> Self {
        let policy = &placed.policy;
        let annotations = policy.annotations.clone();
        let (line, _) = placed.file.place(placed.start);
        Self {
            id: Arc::clone(&policy.id),
            name: Arc::clone(&policy.id),
            title: annotations.title,
            description: annotations.description,
            effect: policy.effect,
            kind: if annotations.owed.is_empty() { "rule" } else { "obligation" },
            status: annotations.status,
            phase: annotations.phase,
            priority: annotations.priority,
            severity: annotations.severity,
            reason: annotations.reason,
            tags: annotations.tags,
            owner: annotations.owner,
            scope: scope(&policy.rule.scope),
            obligations: annotations.owed.to_json(),
            reads: policy.paths.listing(),
            version: Some(Arc::clone(&policy.digest)),
            origin: Origin::File { path: format!("policies/{}", placed.file.path()), line },
            validation,
            builtin: false,
            updated_at,
            source: Some(Arc::clone(&policy.source)),
        }
    }

    pub(in crate::policy) fn builtin(builtin: &Builtin, updated_at: Timestamp) -> Self {
        let any = json!({ "op": "any" });
        Self {
            id: builtin.id.into(),
            name: builtin.id.into(),
            title: Some(builtin.title.to_owned()),
            description: Some(builtin.description.to_owned()),
            effect: Effect::Forbid,
            kind: "builtin",
            status: Status::Active,
            phase: Phase::Request,
            priority: 0,
            severity: builtin.severity,
            reason: Some(builtin.reason.to_owned()),
            tags: Vec::new(),
            owner: None,
            scope: json!({ "principal": any, "action": any, "resource": any }),
            obligations: Vec::new(),
            reads: Vec::new(),
            version: None,
            origin: Origin::Builtin,
            validation: Validation { valid: true, warnings: Vec::new(), errors: Vec::new() },
            builtin: true,
            updated_at,
            source: None,
        }
    }
}

fn scope(scope: &RuleScope) -> Value {
    let action = match &scope.action {
        ActionScope::Any => json!({ "op": "any" }),
        ActionScope::Eq(uid) => json!({ "op": "eq", "id": uid.id().unescaped() }),
        ActionScope::In(uids) => {
            let ids: Vec<&str> = uids.iter().map(|uid| uid.id().unescaped()).collect();
            if let [id] = ids.as_slice() {
                json!({ "op": "in", "id": id })
            } else {
                json!({ "op": "in", "ids": ids })
            }
        }
    };
    json!({
        "principal": constraint(&scope.principal),
        "action": action,
        "resource": constraint(&scope.resource),
    })
}

fn constraint(scope: &EntityScope) -> Value {
    match scope {
        EntityScope::Any => json!({ "op": "any" }),
        EntityScope::Eq(uid) => json!({ "op": "eq", "id": uid.to_string() }),
        EntityScope::In(uid) => json!({ "op": "in", "id": uid.to_string() }),
        EntityScope::Is(kind) => json!({ "op": "is", "type": kind.to_string() }),
        EntityScope::IsIn(kind, uid) => {
            json!({ "op": "is_in", "type": kind.to_string(), "id": uid.to_string() })
        }
    }
}
