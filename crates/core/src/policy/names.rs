//! The entity types of the policy language, parsed once.

use std::sync::LazyLock;

use cedar_policy::{EntityId, EntityTypeName, EntityUid};

use crate::id::{PrincipalId, PrincipalKind};

/// The namespace of every type and action.
pub(super) const NAMESPACE: &str = "Mcp";
/// The action group that every tool is in.
pub(super) const EVERYTHING: &str = "*:*";
/// The action groups that come from a tool's own hints.
pub(super) const HINTS: [&str; 3] = ["hint:read_only", "hint:destructive", "hint:open_world"];

/// Every type a policy may name.
pub(super) struct Names {
    pub(super) user: EntityTypeName,
    pub(super) service: EntityTypeName,
    pub(super) group: EntityTypeName,
    pub(super) role: EntityTypeName,
    pub(super) scope: EntityTypeName,
    pub(super) org: EntityTypeName,
    pub(super) tool: EntityTypeName,
    pub(super) provider: EntityTypeName,
    pub(super) label: EntityTypeName,
    pub(super) action: EntityTypeName,
}

static NAMES: LazyLock<Names> = LazyLock::new(|| Names {
    user: type_name("Mcp::User"),
    service: type_name("Mcp::Service"),
    group: type_name("Mcp::Group"),
    role: type_name("Mcp::Role"),
    scope: type_name("Mcp::Scope"),
    org: type_name("Mcp::Org"),
    tool: type_name("Mcp::Tool"),
    provider: type_name("Mcp::Provider"),
    label: type_name("Mcp::Label"),
    action: type_name("Mcp::Action"),
});

#[expect(clippy::expect_used, reason = "only the constants above come here")]
fn type_name(text: &str) -> EntityTypeName {
    text.parse().expect("a type name")
}

/// The parsed names.
pub(super) fn names() -> &'static Names {
    &NAMES
}

/// The entity `id` of type `kind`; any text is an id.
pub(super) fn uid(kind: &EntityTypeName, id: &str) -> EntityUid {
    EntityUid::from_type_name_and_id(kind.clone(), EntityId::new(id))
}

/// The type of principals of this kind.
pub(super) fn principal_type(kind: PrincipalKind) -> &'static EntityTypeName {
    match kind {
        PrincipalKind::User => &names().user,
        PrincipalKind::Service => &names().service,
    }
}

/// The entity of a principal.
pub(super) fn principal_uid(id: PrincipalId) -> EntityUid {
    uid(principal_type(id.kind()), &id.to_string())
}

impl Names {
    /// Whether `kind` is a type that policies know.
    pub(super) fn knows(&self, kind: &EntityTypeName) -> bool {
        let all = [
            &self.user,
            &self.service,
            &self.group,
            &self.role,
            &self.scope,
            &self.org,
            &self.tool,
            &self.provider,
            &self.label,
            &self.action,
        ];
        all.contains(&kind)
    }
}
