//! Access that a principal can expect without any input, the policies that concern it, and what single
//! policies ask for.

use std::{collections::BTreeSet, str::FromStr};

use cedar_policy::{EntityTypeName, EntityUid};

use serde_json::json;

use super::PolicySet;
use crate::{
    capability::Capability,
    clock::Timestamp,
    id::PrincipalId,
    json::Document,
    policy::{
        bind::access_table::{Access, AccessRow, AccessTable, access},
        call::{
            identity::Principal,
            question::{DlpFacts, Question},
        },
        engine::EntityScope,
        language::{
            context_paths::Paths,
            entity_types::{entity_types, principal_uid},
        },
        load::obligations::{Channel, PolicyObligations},
        terms::{Phase, Status},
    },
};

/// Access of one principal to every tool.
pub struct Accesses<'a> {
    set: &'a PolicySet,
    table: &'a AccessTable,
    principal: &'a Principal,
    row: AccessRow,
}

impl Accesses<'_> {
    /// Returns the access to `tool`.
    #[must_use]
    pub fn of(&self, tool: &Capability) -> Access {
        let bound = self.set.slots.get(tool.id.slot());
        let current = bound.is_some_and(|slot| slot.tool_version == tool.slot_version());
        let expected = match self.table.numbers.get(tool.id.slot()) {
            Some(number) if current => self.row.access(*number),
            Some(_) | None => access(&self.set.slot(tool), self.principal, None),
        };
        match tool.uri() {
            Some(uri) if expected == Access::Conditional => {
                self.set.access_to(self.principal, tool, uri)
            }
            Some(_) | None => expected,
        }
    }

    /// Each tool the set is bound to, by id, and what to expect of it.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Access)> {
        let tools = self.table.tools.iter().enumerate();
        tools.map(|(number, tool)| (tool.as_str(), self.row.access(number)))
    }
}

impl PolicySet {
    /// Returns the access of `principal` to each tool. Conditional whenever anything but the scopes
    /// of policies matters.
    #[must_use]
    pub fn accesses<'a>(&'a self, principal: &'a Principal) -> Accesses<'a> {
        let table = self.table.get_or_init(|| AccessTable::of(&self.slots, &self.keys));
        let mut row = AccessRow::default();
        for key in &*principal.keys(&self.keys) {
            if let Some(of_key) = table.rows.get(key) {
                row.add(of_key);
            }
        }
        Accesses { set: self, table, principal, row }
    }

    /// Returns the access of `principal` to one tool.
    #[must_use]
    pub fn access(&self, principal: &Principal, tool: &Capability) -> Access {
        match tool.uri() {
            Some(uri) => self.access_to(principal, tool, uri),
            None => access(&self.slot(tool), principal, None),
        }
    }

    /// Returns the access of `principal` to the resource of this URI, which is read by `tool`: conditions that look at
    /// nothing but the resource count as what they say of it. What cannot be shown to the policies is denied.
    #[must_use]
    pub fn access_to(&self, principal: &Principal, tool: &Capability, uri: &str) -> Access {
        let slot = self.slot(tool);
        let expected = access(&slot, principal, None);
        if expected != Access::Conditional {
            return expected;
        }
        let mut reads = Paths::default();
        if let Some(wanted) = slot.stage(Phase::Request).active.reads.member("resource") {
            reads.add("resource", wanted);
        }
        let input = Document::of(&json!({ "uri": uri }));
        let none = DlpFacts { detectors: &[], count: 0, max_severity: 0, media: 0 };
        let question = Question {
            principal,
            tool,
            input: input.root(),
            facts: None,
            phase: Phase::Request,
            dlp: none,
            output: None,
            dlp_output: None,
            time: Timestamp::default(),
            source_ip: None,
            bytes: 0,
            mfa: false,
        };
        let context = slot.context(&question, &reads);
        match context.and_then(|context| slot.situation(principal, context)) {
            Ok(situation) => access(&slot, principal, Some(&situation)),
            Err(_) => Access::Deny,
        }
    }

    /// Returns true if the policy of this name can apply to `tool`. Built-ins apply to every tool;
    /// there is no policy of an unknown name.
    #[must_use]
    pub fn applies_to_tool(&self, id: &str, tool: &Capability) -> bool {
        if self.policies.find(id).is_none() {
            return self.find(id).is_some();
        }
        self.slot(tool).find(id).is_some()
    }

    /// Channel of the notices of the policy of this name, if it gives any.
    #[must_use]
    pub fn channel_of(&self, id: &str) -> Option<&Channel> {
        self.obligations_of(id)?.notify.as_ref()
    }

    /// Groups that approve calls for the policy of this name; `None` if it asks for no approval.
    #[must_use]
    pub fn approvers_of(&self, id: &str) -> Option<&BTreeSet<String>> {
        Some(&self.obligations_of(id)?.approval.as_deref()?.approvers)
    }

    /// True if a policy that is active can ask for approvals of calls of this tool.
    #[must_use]
    pub fn can_ask_for_approvals(&self, tool: &Capability) -> bool {
        self.policies.iter().any(|placed| {
            let annotations = &placed.policy.annotations;
            let asks =
                annotations.status == Status::Active && annotations.obligations.approval.is_some();
            asks && self.applies_to_tool(&placed.policy.id, tool)
        })
    }

    fn obligations_of(&self, id: &str) -> Option<&PolicyObligations> {
        Some(&self.policies.find(id)?.policy.annotations.obligations)
    }

    /// Returns true if the policy of this name can apply to `somebody`. Built-ins can apply to
    /// everybody.
    #[must_use]
    pub fn concerns(&self, id: &str, somebody: &Somebody) -> bool {
        match self.policies.find(id) {
            Some(placed) => concerns(&placed.policy.rule.scope.principal, &somebody.0),
            None => self.find(id).is_some(),
        }
    }
}

/// Principal or group that policies can be about: a principal, or what principals are in. What a
/// principal is a member of is not looked up, so policies about a role or group can apply to it.
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
    let principals = [&entity_types().user, &entity_types().service];
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
