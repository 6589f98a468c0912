//! Policies that another one makes pointless: whatever they say, the other says it already.

use std::collections::HashMap;

use cedar_policy::EntityUid;

use crate::policy::{
    bind::{index::Policies, slot::reads_listed},
    engine::{ActionScope, EntityScope},
    language::entity_types::EVERYTHING,
    load::compiled::Compiled,
    terms::{Effect, Phase, Status},
    watch::Watch,
};

/// Number of wider policies that are looked at for one; a lint may overlook one, a reload may not
/// wait.
const LOOKED_AT: usize = 100;
/// The most pairs of actions that are compared for two policies.
const COMPARED: usize = 1_000;

/// Policies that always hold where their scope matches, by what they ask of the principal.
struct Wide<'a> {
    by_principal: HashMap<(Effect, Phase, &'a EntityScope), Vec<&'a Compiled>>,
}

/// Warnings about redundant policies, by the number of the policy.
pub(in crate::policy) fn warnings<W: Watch>(
    policies: &Policies,
    watch: &W,
) -> Result<HashMap<usize, String>, W::Stop> {
    let all = || policies.iter().map(|placed| &*placed.policy);
    let mut wide = Wide { by_principal: HashMap::new() };
    for policy in all().filter(|policy| holds_always(policy)) {
        let key = (policy.effect, policy.annotations.phase, &policy.rule.scope.principal);
        wide.by_principal.entry(key).or_default().push(policy);
    }
    let active = all().enumerate().filter(|(_, policy)| is_active(policy));
    let warning = |(number, policy): (usize, &Compiled)| {
        let wider = wide.of(policy)?;
        let does = match policy.effect {
            Effect::Permit => "permits",
            Effect::Forbid => "forbids",
        };
        let text = format!("it changes no decision: `{}` {does} all it does", wider.id);
        Some((number, text))
    };
    let mut found = HashMap::new();
    for one in active {
        watch.go_on()?;
        found.extend(warning(one));
    }
    Ok(found)
}

fn is_active(policy: &Compiled) -> bool {
    policy.annotations.status == Status::Active
}

fn holds_always(policy: &Compiled) -> bool {
    is_active(policy) && !policy.has_condition() && policy.annotations.obligations.is_empty()
}

impl<'a> Wide<'a> {
    fn of(&self, policy: &Compiled) -> Option<&'a Compiled> {
        let scope = &policy.rule.scope;
        let principals = wider_principals(&scope.principal);
        principals.iter().find_map(|principal| {
            let key = (policy.effect, policy.annotations.phase, principal);
            let wide = self.by_principal.get(&key)?.iter().take(LOOKED_AT);
            let covers = |wide: &&Compiled| {
                // Of two that say the same, the later by name is the pointless one.
                let same = wide.rule.scope == *scope && holds_always(policy);
                wide.id != policy.id
                    // Of resources that are not listed only policies tell that read whether they are.
                    && !(policy.effect == Effect::Permit && reads_listed(&policy.paths))
                    && !(same && wide.id > policy.id)
                    && covers_action(&wide.rule.scope.action, &scope.action)
                    && covers_resource(&wide.rule.scope.resource, &scope.resource)
            };
            wide.copied().find(|wide| covers(wide))
        })
    }
}

/// The constraint itself and those that every principal it means meets as well.
fn wider_principals(scope: &EntityScope) -> Vec<EntityScope> {
    let mut wider = vec![scope.clone(), EntityScope::Any];
    match scope {
        EntityScope::Any | EntityScope::Is(_) | EntityScope::In(_) => {}
        EntityScope::Eq(uid) => wider.push(EntityScope::Is(uid.type_name().clone())),
        EntityScope::IsIn(kind, uid) => {
            wider.extend([EntityScope::Is(kind.clone()), EntityScope::In(uid.clone())]);
        }
    }
    wider.dedup();
    wider
}

fn covers_action(wide: &ActionScope, narrow: &ActionScope) -> bool {
    match (wide, narrow) {
        (ActionScope::Any, _) => true,
        (ActionScope::In(groups), ActionScope::In(actions)) => {
            groups.len().saturating_mul(actions.len()) <= COMPARED
                && actions.iter().all(|action| groups.iter().any(|group| holds(group, action)))
        }
        (ActionScope::In(groups), ActionScope::Eq(action)) => {
            groups.iter().any(|group| holds(group, action))
        }
        (ActionScope::Eq(one), ActionScope::Eq(other)) => one == other,
        (ActionScope::Eq(_), ActionScope::In(_) | ActionScope::Any) => false,
        // Every tool is in this one group.
        (ActionScope::In(groups), ActionScope::Any) => {
            groups.iter().any(|group| group.id().unescaped() == EVERYTHING)
        }
    }
}

/// Returns true if an action group holds an action or a group, as far as their names tell.
fn holds(group: &EntityUid, action: &EntityUid) -> bool {
    let group = group.id().unescaped();
    let action = action.id().unescaped();
    let provider = |name: &str| {
        name.strip_suffix(":*").is_some_and(|provider| {
            action.strip_prefix(provider).is_some_and(|rest| rest.starts_with(':'))
        })
    };
    group == action || group == EVERYTHING || provider(group)
}

fn covers_resource(wide: &EntityScope, narrow: &EntityScope) -> bool {
    match (wide, narrow) {
        (EntityScope::Any, _) => true,
        (EntityScope::Is(kind), EntityScope::Eq(one)) => kind == one.type_name(),
        (EntityScope::Is(kind), EntityScope::IsIn(other, _)) => kind == other,
        (wide, narrow) => wide == narrow,
    }
}
