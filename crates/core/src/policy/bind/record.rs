//! Policies as the API shows them, the built-in ones included.

use std::sync::Arc;

use crate::policy::load::builtins::Builtin;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::policy::{
    engine::{ActionScope, EntityScope, RuleScope},
    load::compiled::Placed,
    terms::{Effect, Phase, Severity, Status},
};
use crate::{clock::Timestamp, id::PrincipalId};

/// A policy as it is listed; [`PolicyRecord::full`] adds its source.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct PolicyRecord {
    /// The name.
    #[schema(value_type = String, example = "no-prod-writes")]
    pub id: Arc<str>,
    /// The same as `id`.
    #[schema(value_type = String)]
    name: Arc<str>,
    /// A name for people.
    pub title: Option<String>,
    /// Purpose of the policy.
    pub description: Option<String>,
    /// Permit or forbid.
    pub effect: Effect,
    /// `rule`, `obligation` or `builtin`.
    #[schema(pattern = "^(rule|obligation|builtin)$")]
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
    /// Present if no org may switch it off for itself.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub locked: bool,
    /// Principals, actions and resources of its head.
    scope: PolicyScope,
    /// Its obligations: `type` and what each of them takes.
    #[schema(value_type = Vec<Object>)]
    obligations: Vec<Value>,
    /// The parts of the context that its conditions read.
    pub reads: Vec<String>,
    /// SHA-256 of its meaning; built-ins have none.
    #[schema(value_type = Option<String>)]
    pub version: Option<Arc<str>>,
    /// Origin of the policy.
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
#[derive(Debug, Serialize, ToSchema)]
pub struct FullRecord<'a> {
    #[serde(flatten)]
    record: &'a PolicyRecord,
    source: Option<&'a str>,
}

/// Origin of a policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
#[schema(as = PolicyOrigin)]
pub enum Origin {
    /// A file of the policies folder.
    File {
        /// Its path, `policies/…`.
        path: String,
        /// The line on which the policy begins.
        line: usize,
        /// Present while the operator, or an admin of the org for the org, has switched the policy off.
        #[serde(rename = "override", skip_serializing_if = "Option::is_none")]
        switched_off: Option<SwitchedOff>,
    },
    /// Portcullis itself.
    Builtin,
}

/// A policy that is switched off for a while.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = PolicyOverride)]
pub struct SwitchedOff {
    /// Always `disabled`.
    pub status: Status,
    /// When it counts again.
    pub until: Timestamp,
    /// The reason that the admin gave; absent where the operator switched it off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The admin who switched it off for the org; absent where the operator did, for every org.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub set_by: Option<PrincipalId>,
}

impl SwitchedOff {
    /// Switched off by the operator until then.
    #[must_use]
    pub const fn by_operator(until: Timestamp) -> Self {
        Self { status: Status::Disabled, until, reason: None, set_by: None }
    }
}

/// Result of checking a policy against the tools there are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = PolicyValidation)]
pub struct Validation {
    /// False when it no longer fits a tool that it may apply to.
    pub valid: bool,
    /// Warnings about the policy.
    pub warnings: Vec<String>,
    /// Errors: parts that no longer fit the tools.
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

    /// The same record of a policy that is switched off.
    #[must_use]
    pub fn switched_off(&self, off: SwitchedOff) -> Self {
        let mut record = self.clone();
        if let Origin::File { switched_off, .. } = &mut record.origin {
            *switched_off = Some(off);
        }
        record
    }

    /// The same record with these warnings after its own.
    #[must_use]
    pub fn warning(&self, warnings: Vec<String>) -> Self {
        let mut record = self.clone();
        record.validation.warnings.extend(warnings);
        record
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
            kind: if annotations.obligations.is_empty() { "rule" } else { "obligation" },
            status: annotations.status,
            phase: annotations.phase,
            priority: annotations.priority,
            severity: annotations.severity,
            reason: annotations.reason,
            tags: annotations.tags,
            owner: annotations.owner,
            locked: annotations.locked,
            scope: PolicyScope::of(&policy.rule.scope),
            obligations: annotations.obligations.to_json(),
            reads: policy.paths.listing(),
            version: Some(Arc::clone(&policy.digest)),
            origin: Origin::File {
                path: format!("policies/{}", placed.file.path()),
                line,
                switched_off: None,
            },
            validation,
            builtin: false,
            updated_at,
            source: Some(Arc::clone(&policy.source)),
        }
    }

    pub(in crate::policy) fn builtin(builtin: &Builtin, updated_at: Timestamp) -> Self {
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
            locked: true,
            scope: PolicyScope::any(),
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

/// Principals, actions and resources that the head of a policy names.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(in crate::policy) struct PolicyScope {
    principal: Constraint,
    action: Constraint,
    resource: Constraint,
}

/// One part of a policy's head.
#[derive(Debug, Clone, Default, Serialize, ToSchema)]
#[schema(as = PolicyConstraint)]
struct Constraint {
    /// `any`, `eq`, `in`, `is` or `is_in`.
    #[schema(pattern = "^(any|eq|in|is|is_in)$")]
    op: &'static str,
    /// The type of entity, of `is` and `is_in`.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    kind: Option<String>,
    /// The entity or action.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    /// The actions, where `in` names several or none.
    #[serde(skip_serializing_if = "Option::is_none")]
    ids: Option<Vec<String>>,
}

impl PolicyScope {
    fn any() -> Self {
        let any = Constraint { op: "any", ..Constraint::default() };
        Self { principal: any.clone(), action: any.clone(), resource: any }
    }

    fn of(scope: &RuleScope) -> Self {
        Self {
            principal: Constraint::of_entity(&scope.principal),
            action: Constraint::of_action(&scope.action),
            resource: Constraint::of_entity(&scope.resource),
        }
    }
}

impl Constraint {
    fn of_action(scope: &ActionScope) -> Self {
        let (op, id, ids) = match scope {
            ActionScope::Any => ("any", None, None),
            ActionScope::Eq(uid) => ("eq", Some(uid.id().unescaped().to_owned()), None),
            ActionScope::In(uids) => {
                let ids: Vec<_> = uids.iter().map(|uid| uid.id().unescaped().to_owned()).collect();
                match <[String; 1]>::try_from(ids) {
                    Ok([id]) => ("in", Some(id), None),
                    Err(ids) => ("in", None, Some(ids)),
                }
            }
        };
        Self { op, kind: None, id, ids }
    }

    fn of_entity(scope: &EntityScope) -> Self {
        let (op, kind, id) = match scope {
            EntityScope::Any => ("any", None, None),
            EntityScope::Eq(uid) => ("eq", None, Some(uid.to_string())),
            EntityScope::In(uid) => ("in", None, Some(uid.to_string())),
            EntityScope::Is(kind) => ("is", Some(kind.to_string()), None),
            EntityScope::IsIn(kind, uid) => {
                ("is_in", Some(kind.to_string()), Some(uid.to_string()))
            }
        };
        Self { op, kind, id, ids: None }
    }
}
