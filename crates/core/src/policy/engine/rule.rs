//! One rule: the head that an index can judge, and the conditions that only evaluation can.

use std::{collections::HashSet, sync::Arc};

use cedar_policy::{
    ActionConstraint, EntityTypeName, EntityUid, Policy, PrincipalConstraint, ResourceConstraint,
};
use cedar_policy_core::ast::Expr;

use super::{Closeness, Conditions, RequestTarget};

/// Groups of a list that are written out.
const MAX_WRITTEN: usize = 5;

/// Constraint on the principal or the resource.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum EntityScope {
    /// None.
    Any,
    /// `== entity`.
    Eq(EntityUid),
    /// `in entity`.
    In(EntityUid),
    /// `is type`.
    Is(EntityTypeName),
    /// `is type in entity`.
    IsIn(EntityTypeName, EntityUid),
}

/// Constraint on the action.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ActionScope {
    /// None.
    Any,
    /// `== action`.
    Eq(EntityUid),
    /// `in group` or `in [group, …]`.
    In(Vec<EntityUid>),
}

/// The three constraints of a rule.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RuleScope {
    pub principal: EntityScope,
    pub action: ActionScope,
    pub resource: EntityScope,
}

/// A static policy, taken apart for the index.
#[derive(Debug, Clone)]
pub struct Rule {
    cedar: Policy,
    lean: Option<Arc<Expr>>,
    pub scope: RuleScope,
}

impl Rule {
    /// Takes a policy without slots apart; what its condition has in common with `conditions` is
    /// shared.
    #[must_use]
    pub fn new(policy: Policy, conditions: &mut Conditions) -> Self {
        let scope = RuleScope::of(&policy);
        let mut rule = Self { cedar: policy, lean: None, scope };
        rule.lean = rule.condition().map(|condition| conditions.lean(condition));
        rule
    }

    /// The policy as the library knows it.
    #[must_use]
    pub const fn cedar(&self) -> &Policy {
        &self.cedar
    }

    /// Condition beside the scope, as it is evaluated.
    pub(in crate::policy) fn lean(&self) -> Option<&Expr> {
        self.lean.as_deref()
    }

    /// Condition beside the scope, as it is written; `None` when there is none.
    #[must_use]
    pub fn condition(&self) -> Option<&Expr> {
        let policy: &cedar_policy_core::ast::Policy = self.cedar.as_ref();
        policy.non_scope_constraints()
    }

    /// Closeness of the rule to `place`; `None` if it cannot apply there for any principal.
    #[must_use]
    pub fn fit(&self, place: &RequestTarget) -> Option<Closeness> {
        let action = self.scope.action.fit(place)?;
        Some(action.max(self.scope.resource.fit(place)?))
    }
}

impl RuleScope {
    pub(in crate::policy) fn of(policy: &Policy) -> Self {
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
            ActionConstraint::Eq(uid) => ActionScope::Eq(uid),
            ActionConstraint::In(uids) => ActionScope::In(uids),
        };
        Self { principal, action, resource }
    }
}

impl ActionScope {
    fn fit(&self, place: &RequestTarget) -> Option<Closeness> {
        match self {
            Self::Any => Some(Closeness::Far),
            Self::Eq(uid) => (*uid == place.action.uid).then_some(Closeness::Itself),
            Self::In(uids) => uids.iter().filter_map(|uid| place.action.closeness(uid)).max(),
        }
    }

    /// The constraint as policies write it; of a long list the first groups.
    #[must_use]
    pub fn written(&self) -> String {
        match self {
            Self::Any => "action".to_owned(),
            Self::Eq(uid) => format!("action == {uid}"),
            Self::In(uids) => match uids.as_slice() {
                [only] => format!("action in {only}"),
                all => {
                    let mut shown: Vec<String> =
                        all.iter().take(MAX_WRITTEN).map(ToString::to_string).collect();
                    if all.len() > MAX_WRITTEN {
                        shown.push("…".to_owned());
                    }
                    format!("action in [{}]", shown.join(", "))
                }
            },
        }
    }

    /// The actions and groups that it names.
    #[must_use]
    pub fn uids(&self) -> &[EntityUid] {
        match self {
            Self::Any => &[],
            Self::Eq(uid) => std::slice::from_ref(uid),
            Self::In(uids) => uids,
        }
    }
}

impl EntityScope {
    fn fit(&self, place: &RequestTarget) -> Option<Closeness> {
        let resource = &place.resource;
        match self {
            Self::Any => Some(Closeness::Far),
            Self::Eq(uid) => (*uid == resource.uid).then_some(Closeness::Itself),
            Self::In(uid) => resource.closeness(uid),
            Self::Is(kind) => (kind == resource.uid.type_name()).then_some(Closeness::Far),
            Self::IsIn(kind, uid) if kind == resource.uid.type_name() => resource.closeness(uid),
            Self::IsIn(..) => None,
        }
    }

    /// Returns true if a principal that is `uid` and in `within` (itself included) is meant.
    #[must_use]
    pub fn means(&self, uid: &EntityUid, within: &HashSet<EntityUid>) -> bool {
        match self {
            Self::Any => true,
            Self::Eq(named) => named == uid,
            Self::In(named) => within.contains(named),
            Self::Is(kind) => kind == uid.type_name(),
            Self::IsIn(kind, named) => kind == uid.type_name() && within.contains(named),
        }
    }

    /// The constraint on `subject`, as policies write it.
    #[must_use]
    pub fn written(&self, subject: &str) -> String {
        match self {
            Self::Any => subject.to_owned(),
            Self::Eq(uid) => format!("{subject} == {uid}"),
            Self::In(uid) => format!("{subject} in {uid}"),
            Self::Is(kind) => format!("{subject} is {kind}"),
            Self::IsIn(kind, uid) => format!("{subject} is {kind} in {uid}"),
        }
    }

    /// The entity the constraint names, and the type it asks for.
    #[must_use]
    pub const fn parts(&self) -> (Option<&EntityUid>, Option<&EntityTypeName>) {
        match self {
            Self::Any => (None, None),
            Self::Eq(uid) | Self::In(uid) => (Some(uid), None),
            Self::Is(kind) => (None, Some(kind)),
            Self::IsIn(kind, uid) => (Some(uid), Some(kind)),
        }
    }
}
