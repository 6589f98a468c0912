//! The head of a policy: whom, which tools. What an index can decide without evaluating.

use std::collections::HashSet;

use cedar_policy::{
    ActionConstraint, EntityTypeName, EntityUid, Policy, PrincipalConstraint, ResourceConstraint,
};
use serde_json::{Value, json};

use super::{catalogue::ToolFacts, names::names};

/// Constraint on the principal or the resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum EntityScope {
    Any,
    Eq(EntityUid),
    In(EntityUid),
    Is(EntityTypeName),
    IsIn(EntityTypeName, EntityUid),
}

/// Constraint on the action, by action id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ActionScope {
    Any,
    Eq(String),
    In(Vec<String>),
}

/// The three constraints of a policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Scope {
    pub(super) principal: EntityScope,
    pub(super) action: ActionScope,
    pub(super) resource: EntityScope,
}

/// How closely a policy names a tool; only for choosing which name is reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Specificity {
    Any,
    Provider,
    Tool,
}

impl Scope {
    pub(super) fn of(policy: &Policy) -> Self {
        let id = |uid: &EntityUid| uid.id().unescaped().to_owned();
        let principal = match policy.principal_constraint() {
            PrincipalConstraint::Any => EntityScope::Any,
            PrincipalConstraint::Eq(uid) => EntityScope::Eq(uid),
            PrincipalConstraint::In(uid) => EntityScope::In(uid),
            PrincipalConstraint::Is(kind) => EntityScope::Is(kind),
            PrincipalConstraint::IsIn(kind, uid) => EntityScope::IsIn(kind, uid),
        };
        let resource = match policy.resource_constraint() {
            ResourceConstraint::Any => EntityScope::Any,
            ResourceConstraint::Eq(uid) => EntityScope::Eq(uid),
            ResourceConstraint::In(uid) => EntityScope::In(uid),
            ResourceConstraint::Is(kind) => EntityScope::Is(kind),
            ResourceConstraint::IsIn(kind, uid) => EntityScope::IsIn(kind, uid),
        };
        let action = match policy.action_constraint() {
            ActionConstraint::Any => ActionScope::Any,
            ActionConstraint::Eq(uid) => ActionScope::Eq(id(&uid)),
            ActionConstraint::In(uids) => ActionScope::In(uids.iter().map(id).collect()),
        };
        Self { principal, action, resource }
    }

    /// How closely the policy names the tool; `None` when it cannot apply to it.
    pub(super) fn fit(&self, tool: &ToolFacts) -> Option<Specificity> {
        let action = self.action.fit(tool)?;
        let resource = self.resource.fit_tool(tool)?;
        Some(action.max(resource))
    }

    /// The scope as it stands in a policy record.
    pub(super) fn to_json(&self) -> Value {
        let action = match &self.action {
            ActionScope::Any => json!({ "op": "any" }),
            ActionScope::Eq(id) => json!({ "op": "eq", "id": id }),
            ActionScope::In(ids) => match ids.as_slice() {
                [id] => json!({ "op": "in", "id": id }),
                _ => json!({ "op": "in", "ids": ids }),
            },
        };
        json!({
            "principal": self.principal.to_json(),
            "action": action,
            "resource": self.resource.to_json(),
        })
    }
}

impl ActionScope {
    fn fit(&self, tool: &ToolFacts) -> Option<Specificity> {
        let one = |id: &String| {
            if *id == tool.id {
                Some(Specificity::Tool)
            } else if *id == tool.provider_group {
                Some(Specificity::Provider)
            } else {
                tool.groups.contains(id).then_some(Specificity::Any)
            }
        };
        match self {
            Self::Any => Some(Specificity::Any),
            Self::Eq(id) => (*id == tool.id).then_some(Specificity::Tool),
            Self::In(ids) => ids.iter().filter_map(one).max(),
        }
    }
}

impl EntityScope {
    fn fit_tool(&self, tool: &ToolFacts) -> Option<Specificity> {
        let within = |uid: &EntityUid| {
            if *uid == tool.resource {
                Some(Specificity::Tool)
            } else {
                (*uid == tool.provider).then_some(Specificity::Provider)
            }
        };
        match self {
            Self::Any => Some(Specificity::Any),
            Self::Eq(uid) => (*uid == tool.resource).then_some(Specificity::Tool),
            Self::In(uid) => within(uid),
            Self::Is(kind) => (*kind == names().tool).then_some(Specificity::Any),
            Self::IsIn(kind, uid) => (*kind == names().tool).then(|| within(uid)).flatten(),
        }
    }

    /// Whether a principal of type `kind` with these entities (itself and its parents) is meant.
    pub(super) fn fits_principal(
        &self,
        kind: &EntityTypeName,
        entities: &HashSet<EntityUid>,
    ) -> bool {
        match self {
            Self::Any => true,
            Self::Eq(uid) | Self::In(uid) => entities.contains(uid),
            Self::Is(wanted) => wanted == kind,
            Self::IsIn(wanted, uid) => wanted == kind && entities.contains(uid),
        }
    }

    /// The entity the constraint names, and the type it asks for.
    pub(super) fn parts(&self) -> (Option<&EntityUid>, Option<&EntityTypeName>) {
        match self {
            Self::Any => (None, None),
            Self::Eq(uid) | Self::In(uid) => (Some(uid), None),
            Self::Is(kind) => (None, Some(kind)),
            Self::IsIn(kind, uid) => (Some(uid), Some(kind)),
        }
    }

    fn to_json(&self) -> Value {
        match self {
            Self::Any => json!({ "op": "any" }),
            Self::Eq(uid) => json!({ "op": "eq", "id": uid.to_string() }),
            Self::In(uid) => json!({ "op": "in", "id": uid.to_string() }),
            Self::Is(kind) => json!({ "op": "is", "type": kind.to_string() }),
            Self::IsIn(kind, uid) => {
                json!({ "op": "is_in", "type": kind.to_string(), "id": uid.to_string() })
            }
        }
    }
}
