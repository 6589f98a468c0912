//! What policy would say without looking at any input, and which policies concern whom.

use std::{collections::HashMap, str::FromStr};

use cedar_policy::{EntityTypeName, EntityUid};
use serde::Serialize;
use utoipa::ToSchema;

use super::{
    Effect, Phase, PolicySet,
    annotations::Status,
    binding::Slots,
    engine::{EntityScope, Key, Keys},
    identity::Principal,
    names::{names, principal_uid},
    slot::{Candidate, Slot},
    source::Compiled,
};
use crate::{id::PrincipalId, tool::Tool};

/// What a caller can expect of a tool; a hint, never a promise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, ToSchema)]
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

    const fn of(said: [bool; 4]) -> Self {
        let [permit, may_permit, forbid, may_forbid] = said;
        if forbid || !(permit || may_permit) {
            Self::Deny
        } else if permit && !may_forbid {
            Self::Allow
        } else {
            Self::Conditional
        }
    }
}

/// What the scopes of policies alone say about tools: one bit for each tool in each of four sets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Row {
    /// Permitted, may be permitted, forbidden, may be forbidden.
    sets: [Vec<u64>; 4],
}

/// The place of a policy's word among the four sets; none when it has no say in a request.
fn column(candidate: &Candidate) -> Option<usize> {
    let policy: &Compiled = &candidate.policy;
    let Status::Active = policy.annotations.status else { return None };
    let Phase::Request = policy.annotations.phase else { return None };
    let depends = policy.has_condition() || !policy.annotations.owed.is_empty();
    match (policy.effect, candidate.is_valid()) {
        (Effect::Permit, true) => Some(usize::from(depends)),
        (Effect::Permit, false) => None,
        (Effect::Forbid, true) => Some(2 + usize::from(depends)),
        (Effect::Forbid, false) => Some(2),
    }
}

impl Row {
    fn set(&mut self, column: usize, tool: usize, words: usize) {
        let Some(set) = self.sets.get_mut(column) else { return };
        set.resize(words, 0);
        if let Some(word) = set.get_mut(tool / 64) {
            *word |= 1 << (tool % 64);
        }
    }

    fn add(&mut self, other: &Self) {
        for (set, more) in self.sets.iter_mut().zip(&other.sets) {
            if set.len() < more.len() {
                set.resize(more.len(), 0);
            }
            for (word, more) in set.iter_mut().zip(more) {
                *word |= more;
            }
        }
    }

    fn access(&self, tool: usize) -> Access {
        let bit = |set: &Vec<u64>| set.get(tool / 64).is_some_and(|w| w & (1 << (tool % 64)) != 0);
        let [permit, may_permit, forbid, may_forbid] = &self.sets;
        Access::of([bit(permit), bit(may_permit), bit(forbid), bit(may_forbid)])
    }
}

/// What each key of a principal means for each tool.
#[derive(Debug, Default)]
pub(super) struct Board {
    tools: Vec<String>,
    numbers: HashMap<String, usize>,
    rows: HashMap<Key, Row>,
}

impl Board {
    fn of(slots: &Slots, keys: &Keys) -> Self {
        let mut tools: Vec<String> = slots.keys().cloned().collect();
        tools.sort_unstable();
        let words = tools.len().div_ceil(64);
        let mut rows: HashMap<Key, Row> = HashMap::new();
        for (number, tool) in tools.iter().enumerate() {
            let candidates = slots.get(tool).into_iter().flat_map(|slot| &slot.candidates);
            for candidate in candidates {
                let scope = &candidate.policy.rule.scope.principal;
                if let (Some(column), Some(key)) = (column(candidate), keys.find(scope)) {
                    rows.entry(key).or_default().set(column, number, words);
                }
            }
        }
        let numbers = tools.iter().cloned().zip(0..).collect();
        Self { tools, numbers, rows }
    }
}

/// What one principal can expect of every tool.
pub struct Accesses<'a> {
    set: &'a PolicySet,
    board: &'a Board,
    principal: &'a Principal,
    row: Row,
}

impl Accesses<'_> {
    /// What to expect of `tool`.
    #[must_use]
    pub fn of(&self, tool: &Tool) -> Access {
        let bound = self.set.slots.get(tool.id.as_str());
        let current = bound.is_some_and(|slot| slot.tool_version == tool.version);
        match self.board.numbers.get(tool.id.as_str()) {
            Some(number) if current => self.row.access(*number),
            Some(_) | None => access(&self.set.slot(tool), self.principal),
        }
    }

    /// Each tool the set is bound to, by id, and what to expect of it.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Access)> {
        let tools = self.board.tools.iter().enumerate();
        tools.map(|(number, tool)| (tool.as_str(), self.row.access(number)))
    }
}

fn access(slot: &Slot, principal: &Principal) -> Access {
    let mut said = [false; 4];
    for candidate in &slot.candidates {
        let scope = &candidate.policy.rule.scope.principal;
        if scope.means(principal.party.uid(), &principal.entities)
            && let Some(said) = column(candidate).and_then(|column| said.get_mut(column))
        {
            *said = true;
        }
    }
    Access::of(said)
}

impl PolicySet {
    /// What `principal` can expect of each tool. Conditional whenever anything but the scopes of
    /// policies matters.
    #[must_use]
    pub fn accesses<'a>(&'a self, principal: &'a Principal) -> Accesses<'a> {
        let board = self.board.get_or_init(|| Board::of(&self.slots, &self.keys));
        let mut row = Row::default();
        for key in &*principal.keys(&self.keys) {
            if let Some(of_key) = board.rows.get(key) {
                row.add(of_key);
            }
        }
        Accesses { set: self, board, principal, row }
    }

    /// What `principal` can expect of one tool.
    #[must_use]
    pub fn access(&self, principal: &Principal, tool: &Tool) -> Access {
        access(&self.slot(tool), principal)
    }

    /// Whether the policy of this name can apply to `tool`. Built-ins apply to every tool; there
    /// is no policy of an unknown name.
    #[must_use]
    pub fn applies_to_tool(&self, id: &str, tool: &Tool) -> bool {
        if self.policies.find(id).is_none() {
            return self.find(id).is_some();
        }
        self.slot(tool).find(id).is_some()
    }

    /// Whether the policy of this name can apply to somebody. Built-ins can apply to everybody.
    #[must_use]
    pub fn concerns(&self, id: &str, somebody: &Somebody) -> bool {
        match self.policies.find(id) {
            Some(placed) => concerns(&placed.policy.rule.scope.principal, &somebody.0),
            None => self.find(id).is_some(),
        }
    }
}

/// Somebody whom policies can be about: a principal, or what principals are in. What a principal is
/// a member of is not looked up, so policies about a role or group can apply to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Somebody(EntityUid);

/// The text names neither a principal nor an entity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("has to be an id such as `usr_…` or an entity such as `Mcp::Role::\"admin\"`")]
pub struct SomebodyError;

impl FromStr for Somebody {
    type Err = SomebodyError;
    fn from_str(text: &str) -> Result<Self, SomebodyError> {
        let principal = text.parse::<PrincipalId>().map(principal_uid);
        principal.or_else(|_| text.parse()).map(Self).map_err(|_| SomebodyError)
    }
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
