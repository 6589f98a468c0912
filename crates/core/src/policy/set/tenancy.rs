//! Policies that can never concern an org: who cannot be concerned by a policy is not shown it.
//!
//! The answer errs on the side of showing. A policy is kept from an org only if its scope or its
//! condition is false for every call that anybody of that org can make, and cannot fail for one
//! either: a `forbid` that cannot be evaluated denies.

use std::collections::{BTreeSet, HashSet};

use cedar_policy::EntityUid;
use cedar_policy_core::ast::{self, BinaryOp, Expr, ExprKind, Literal, UnaryOp, Var};

use crate::id::{OrgId, PrincipalId};
use crate::policy::{
    engine::{ActionScope, EntityScope, RuleScope},
    language::{
        entity_types::{entity_types, provider_of, uid},
        misnamed::Misnamed,
    },
    set::PolicySet,
    terms::Effect,
};

/// An org among the others of its installation, as far as policies can name them.
#[derive(Debug)]
pub struct OrgView {
    org: EntityUid,
    members: HashSet<PrincipalId>,
    foreign_providers: BTreeSet<String>,
}

impl OrgView {
    /// The org with these of its principals, and the providers that only other orgs may use. Every
    /// other principal counts as another org's.
    #[must_use]
    pub fn new(
        org: OrgId,
        members: impl IntoIterator<Item = PrincipalId>,
        foreign_providers: impl IntoIterator<Item = String>,
    ) -> Self {
        Self {
            org: uid(&entity_types().org, &org.to_string()),
            members: members.into_iter().collect(),
            foreign_providers: foreign_providers.into_iter().collect(),
        }
    }

    /// Truth value of "the principal, action or resource of a call of this org is `entity`, or in
    /// it"; `None` if it depends on the call.
    fn within(&self, entity: &EntityUid) -> Option<bool> {
        let kind = entity.type_name();
        let id = entity.id().unescaped();
        let names = entity_types();
        if *kind == names.org {
            return Some(*entity == self.org);
        }
        let foreign = if *kind == names.user || *kind == names.service {
            // What is no id is a principal of no org: nothing to keep from anybody.
            id.parse().is_ok_and(|id| !self.members.contains(&id))
        } else if *kind == names.provider || *kind == names.resource {
            self.foreign_providers.contains(id)
        } else if [&names.tool, &names.prompt, &names.action].contains(&kind) {
            provider_of(id).is_some_and(|slug| self.foreign_providers.contains(slug))
        } else {
            false
        };
        foreign.then_some(false)
    }

    fn entity(&self, scope: &EntityScope) -> Option<bool> {
        match scope {
            EntityScope::Any => Some(true),
            EntityScope::Is(_) => None,
            EntityScope::Eq(entity) | EntityScope::In(entity) => self.within(entity),
            EntityScope::IsIn(_, entity) => self.within(entity).filter(|within| !within),
        }
    }

    fn action(&self, scope: &ActionScope) -> Option<bool> {
        match scope {
            ActionScope::Any => Some(true),
            ActionScope::Eq(action) => self.within(action),
            ActionScope::In(groups) => any(groups.iter().map(|group| self.within(group))),
        }
    }

    /// Returns true if the scope can match a call of this org.
    fn can_match(&self, RuleScope { principal, action, resource }: &RuleScope) -> bool {
        let parts = [self.entity(principal), self.action(action), self.entity(resource)];
        !parts.contains(&Some(false))
    }

    /// Value of a condition for every call of this org; `None` unless it is always the same and
    /// never fails.
    #[expect(clippy::wildcard_enum_match_arm, reason = "whatever the library adds is unknown")]
    fn says(&self, condition: &Expr) -> Option<bool> {
        match condition.expr_kind() {
            ExprKind::Lit(Literal::Bool(said)) => Some(*said),
            ExprKind::And { left, right } => match self.says(left) {
                Some(true) => self.says(right),
                Some(false) => Some(false),
                None => self.says(right).filter(|said| !said && cannot_fail(left)),
            },
            ExprKind::Or { left, right } => match self.says(left) {
                Some(false) => self.says(right),
                Some(true) => Some(true),
                None => self.says(right).filter(|said| *said && cannot_fail(left)),
            },
            ExprKind::UnaryApp { op: UnaryOp::Not, arg } => self.says(arg).map(|said| !said),
            ExprKind::BinaryApp { op: BinaryOp::In, arg1, arg2 } if is_of_the_call(arg1) => {
                let said = any(entities_of(arg2)?.iter().map(|entity| self.within(entity)));
                // It is principals that are in an org.
                said.filter(|said| !said || is_principal(arg1))
            }
            ExprKind::BinaryApp { op: BinaryOp::Eq, arg1, arg2 } if is_of_the_call(arg1) => {
                let said = any(entities_of(arg2)?.iter().map(|entity| self.within(entity)));
                // No principal is an org, and a member of one may be any principal.
                said.filter(|said| !said)
            }
            // Whatever else there is depends on the call.
            _ => None,
        }
    }

    fn can_hold(&self, effect: Effect, scope: &RuleScope, condition: Option<&Expr>) -> bool {
        let Some(condition) = condition else { return self.can_match(scope) };
        // A permit that does not fit a tool permits nothing; a forbid that does not fit denies
        // whatever its condition says, and what reads nothing of a tool always fits.
        let counts = match effect {
            Effect::Permit => true,
            Effect::Forbid => cannot_fail(condition),
        };
        self.can_match(scope) && !(counts && self.says(condition) == Some(false))
    }

    /// Returns true if the policy in this text can concern the org; a text that is no policy can.
    #[must_use]
    pub fn can_be_concerned_by(&self, source: &str) -> bool {
        let Some(policy) = parsed(source) else { return true };
        let effect = match policy.effect() {
            cedar_policy::Effect::Permit => Effect::Permit,
            cedar_policy::Effect::Forbid => Effect::Forbid,
        };
        let tree: &ast::Policy = policy.as_ref();
        self.can_hold(effect, &RuleScope::of(&policy), tree.non_scope_constraints())
    }
}

/// The principals that the policy in this text names.
#[must_use]
pub fn principals_in(source: &str) -> BTreeSet<PrincipalId> {
    let literals = parsed(source).map(|policy| policy.entity_literals()).unwrap_or_default();
    principals(&literals).collect()
}

impl PolicySet {
    /// The principals that its policies name.
    #[must_use]
    pub fn named_principals(&self) -> BTreeSet<PrincipalId> {
        let policies = self.policies.iter();
        policies.flat_map(|placed| principals(&placed.policy.literals)).collect()
    }

    /// The principals that the policy of this name gives by something else than their ids.
    #[must_use]
    pub fn misnamed(&self, id: &str) -> Vec<Misnamed> {
        let placed = self.policies.find(id).into_iter();
        let literals: BTreeSet<&EntityUid> =
            placed.flat_map(|placed| &placed.policy.literals).collect();
        literals.into_iter().filter_map(Misnamed::of).collect()
    }

    /// Returns true if the policy of this name can concern a call of the org. Built-ins concern
    /// every org, names that this set does not know none.
    #[must_use]
    pub fn can_concern(&self, id: &str, org: &OrgView) -> bool {
        let Some(placed) = self.policies.find(id) else { return self.find(id).is_some() };
        let policy = &placed.policy;
        org.can_hold(policy.effect, &policy.rule.scope, policy.rule.condition())
    }
}

fn parsed(source: &str) -> Option<cedar_policy::Policy> {
    let set: cedar_policy::PolicySet = source.parse().ok()?;
    let mut policies = set.policies();
    policies.next().filter(|_| policies.next().is_none()).cloned()
}

fn principals(entities: &[EntityUid]) -> impl Iterator<Item = PrincipalId> {
    let kinds = [&entity_types().user, &entity_types().service];
    let named = entities.iter().filter(move |entity| kinds.contains(&entity.type_name()));
    named.filter_map(|entity| entity.id().unescaped().parse().ok())
}

/// True if one of them is, false if all of them are.
fn any(said: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    let mut all = Some(false);
    for said in said {
        match said {
            Some(true) => return Some(true),
            Some(false) => {}
            None => all = None,
        }
    }
    all
}

fn is_of_the_call(expression: &Expr) -> bool {
    matches!(expression.expr_kind(), ExprKind::Var(Var::Principal | Var::Action | Var::Resource))
}

fn is_principal(expression: &Expr) -> bool {
    matches!(expression.expr_kind(), ExprKind::Var(Var::Principal))
}

/// The entity, or the set of entities, that an expression spells out.
#[expect(clippy::wildcard_enum_match_arm, reason = "whatever the library adds is unknown")]
fn entities_of(expression: &Expr) -> Option<Vec<EntityUid>> {
    match expression.expr_kind() {
        ExprKind::Lit(Literal::EntityUID(entity)) => {
            Some(vec![EntityUid::from(entity.as_ref().clone())])
        }
        ExprKind::Set(members) => {
            let members = members.iter().map(entities_of).collect::<Option<Vec<_>>>()?;
            Some(members.into_iter().flatten().collect())
        }
        _ => None,
    }
}

/// Returns true if an expression depends only on the principal, action and resource of a call, and
/// so has a value for every call.
#[expect(clippy::wildcard_enum_match_arm, reason = "whatever the library adds is unknown")]
fn cannot_fail(expression: &Expr) -> bool {
    match expression.expr_kind() {
        ExprKind::Lit(Literal::Bool(_)) => true,
        ExprKind::And { left, right } | ExprKind::Or { left, right } => {
            cannot_fail(left) && cannot_fail(right)
        }
        ExprKind::UnaryApp { op: UnaryOp::Not, arg } => cannot_fail(arg),
        ExprKind::BinaryApp { op: BinaryOp::In, arg1, arg2 } => {
            is_of_the_call(arg1) && entities_of(arg2).is_some()
        }
        ExprKind::BinaryApp { op: BinaryOp::Eq, arg1, arg2 } => {
            is_of_the_call(arg1) && matches!(arg2.expr_kind(), ExprKind::Lit(Literal::EntityUID(_)))
        }
        ExprKind::Is { expr, .. } => is_of_the_call(expr),
        _ => false,
    }
}
