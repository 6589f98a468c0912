//! What policy would say without looking at any input, and which policies concern whom.

use cedar_policy::{EntityTypeName, EntityUid};
use serde::Serialize;

use super::{
    Effect, Phase, PolicySet,
    annotations::Status,
    catalogue::ToolFacts,
    identity::Principal,
    names::{names, principal_uid},
    scope::EntityScope,
    source::Compiled,
};
use crate::{id::PrincipalId, tool::Tool};

/// What a caller can expect of a tool; a hint, never a promise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// Permitted whatever the input.
    Allow,
    /// Denied whatever the input.
    Deny,
    /// It depends on the input, the time or what DLP finds.
    Conditional,
}

impl Access {
    /// `allow`, `deny` or `conditional`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Deny => "deny",
            Self::Conditional => "conditional",
        }
    }
}

/// Whether a policy is true for a caller, as far as its scope tells.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Applies {
    No,
    Maybe,
    Always,
}

impl PolicySet {
    /// What `principal` can expect of `tool`. Conditional whenever anything but the scopes of
    /// policies matters.
    #[must_use]
    pub fn access(&self, principal: &Principal, tool: &Tool) -> Access {
        let slot = self.slot(tool);
        let (mut permit, mut forbid) = (Applies::No, Applies::No);
        for candidate in &slot.candidates {
            let Some(policy) = self.policies.get(candidate.number) else { continue };
            if policy.annotations.status != Status::Active
                || policy.annotations.phase != Phase::Request
            {
                continue;
            }
            let applies = applies(policy, principal);
            match (policy.effect, candidate.is_valid()) {
                (Effect::Permit, true) => permit = stronger(permit, applies),
                (Effect::Permit, false) => {}
                (Effect::Forbid, true) => forbid = stronger(forbid, weakened(policy, applies)),
                (Effect::Forbid, false) => forbid = stronger(forbid, in_scope(policy, principal)),
            }
        }
        match (forbid, permit) {
            (Applies::Always, _) | (_, Applies::No) => Access::Deny,
            (Applies::No, Applies::Always) => Access::Allow,
            (Applies::No | Applies::Maybe, Applies::Maybe | Applies::Always) => Access::Conditional,
        }
    }

    /// Whether the policy of this name can apply to `tool`. Built-ins apply to every tool; there
    /// is no policy of an unknown name.
    #[must_use]
    pub fn applies_to_tool(&self, id: &str, tool: &Tool) -> bool {
        match self.policies.find(id) {
            Some(policy) => policy.scope.fit(&ToolFacts::of(tool)).is_some(),
            None => self.find(id).is_some(),
        }
    }

    /// Whether the policy of this name can apply to a principal: `usr_…`, `sa_…`, or an entity
    /// such as `Mcp::Role::"admin"`. What a principal id is a member of is not looked up, so
    /// policies about a role or scope can apply to it. No when the text names neither.
    #[must_use]
    pub fn applies_to_principal(&self, id: &str, principal: &str) -> bool {
        let entity = match principal.parse::<PrincipalId>() {
            Ok(id) => principal_uid(id),
            Err(_) => match principal.parse::<EntityUid>() {
                Ok(entity) => entity,
                Err(_) => return false,
            },
        };
        match self.policies.find(id) {
            Some(policy) => concerns(&policy.scope.principal, &entity),
            None => self.find(id).is_some(),
        }
    }
}

fn stronger(known: Applies, new: Applies) -> Applies {
    match (known, new) {
        (Applies::Always, _) | (_, Applies::Always) => Applies::Always,
        (Applies::Maybe, _) | (_, Applies::Maybe) => Applies::Maybe,
        (Applies::No, Applies::No) => Applies::No,
    }
}

/// An obligation lets the call pass when it is fulfilled.
fn weakened(policy: &Compiled, applies: Applies) -> Applies {
    match applies {
        Applies::Always if policy.annotations.redact.is_some() => Applies::Maybe,
        Applies::No | Applies::Maybe | Applies::Always => applies,
    }
}

fn applies(policy: &Compiled, asker: &Principal) -> Applies {
    match in_scope(policy, asker) {
        Applies::Always if policy.has_condition => Applies::Maybe,
        known @ (Applies::No | Applies::Maybe | Applies::Always) => known,
    }
}

fn in_scope(policy: &Compiled, asker: &Principal) -> Applies {
    let fits = policy.scope.principal.fits_principal(asker.kind, &asker.entities);
    if fits { Applies::Always } else { Applies::No }
}

fn concerns(scope: &EntityScope, entity: &EntityUid) -> bool {
    let principals = [&names().user, &names().service];
    let is_principal = principals.contains(&entity.type_name());
    let of_kind = |kind: &EntityTypeName| !is_principal || kind == entity.type_name();
    // A principal may be a member of whatever is not itself a principal.
    let may_be_in = |named: &EntityUid| {
        named == entity || (is_principal && !principals.contains(&named.type_name()))
    };
    match scope {
        EntityScope::Any => true,
        EntityScope::Eq(named) => named == entity,
        EntityScope::In(named) => may_be_in(named),
        EntityScope::Is(kind) => of_kind(kind),
        EntityScope::IsIn(kind, named) => of_kind(kind) && may_be_in(named),
    }
}
