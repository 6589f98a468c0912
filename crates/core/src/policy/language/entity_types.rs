//! The entity types of the policy language, parsed once.

use std::sync::LazyLock;

use cedar_policy::{EntityId, EntityTypeName, EntityUid};

use crate::{
    capability::CapabilityKind,
    id::{PrincipalId, PrincipalKind},
};

/// The namespace of every type and action.
pub(in crate::policy) const NAMESPACE: &str = "Mcp";
/// The action group that everything is in.
pub(in crate::policy) const EVERYTHING: &str = "*:*";
/// The action groups that come from a tool's own hints.
pub(in crate::policy) const HINTS: [&str; 3] =
    ["hint:read_only", "hint:destructive", "hint:open_world"];

/// The action groups of all capabilities of a kind.
pub(in crate::policy) const KINDS: [&str; 4] =
    ["kind:prompt", "kind:resource", "kind:skill", "kind:tool"];
/// Begin of the action group that every capability of a provider is in, before its slug.
pub(in crate::policy) const PROVIDER: &str = "provider:";

/// The provider that the id of an action or a resource is about, if it is about one.
pub(in crate::policy) fn provider_of(id: &str) -> Option<&str> {
    if HINTS.contains(&id) || KINDS.contains(&id) || id == EVERYTHING {
        return None;
    }
    if let Some(slug) = id.strip_prefix(PROVIDER) {
        return Some(slug);
    }
    if let Some(slug) = id.strip_prefix(CapabilityKind::Resource.prefix()) {
        return slug.split(':').next();
    }
    let kinds = [CapabilityKind::Prompt, CapabilityKind::Skill];
    let id = kinds.iter().find_map(|kind| id.strip_prefix(kind.prefix())).unwrap_or(id);
    Some(id.split_once(':')?.0)
}

/// Every type a policy may name.
pub(in crate::policy) struct EntityTypes {
    pub(in crate::policy) user: EntityTypeName,
    pub(in crate::policy) service: EntityTypeName,
    pub(in crate::policy) group: EntityTypeName,
    pub(in crate::policy) role: EntityTypeName,
    pub(in crate::policy) scope: EntityTypeName,
    pub(in crate::policy) org: EntityTypeName,
    pub(in crate::policy) tool: EntityTypeName,
    pub(in crate::policy) prompt: EntityTypeName,
    pub(in crate::policy) resource: EntityTypeName,
    pub(in crate::policy) skill: EntityTypeName,
    pub(in crate::policy) provider: EntityTypeName,
    pub(in crate::policy) label: EntityTypeName,
    pub(in crate::policy) action: EntityTypeName,
}

static ENTITY_TYPES: LazyLock<EntityTypes> = LazyLock::new(|| EntityTypes {
    user: type_name("Mcp::User"),
    service: type_name("Mcp::Service"),
    group: type_name("Mcp::Group"),
    role: type_name("Mcp::Role"),
    scope: type_name("Mcp::Scope"),
    org: type_name("Mcp::Org"),
    tool: type_name("Mcp::Tool"),
    prompt: type_name("Mcp::Prompt"),
    resource: type_name("Mcp::Resource"),
    skill: type_name("Mcp::Skill"),
    provider: type_name("Mcp::Provider"),
    label: type_name("Mcp::Label"),
    action: type_name("Mcp::Action"),
});

#[expect(clippy::expect_used, reason = "only the constants above come here")]
fn type_name(text: &str) -> EntityTypeName {
    text.parse().expect("a type name")
}

/// The parsed names.
pub(in crate::policy) fn entity_types() -> &'static EntityTypes {
    &ENTITY_TYPES
}

/// The entity `id` of type `kind`; any text is an id.
pub(in crate::policy) fn uid(kind: &EntityTypeName, id: &str) -> EntityUid {
    EntityUid::from_type_name_and_id(kind.clone(), EntityId::new(id))
}

/// The type of principals of this kind.
pub(in crate::policy) fn principal_type(kind: PrincipalKind) -> &'static EntityTypeName {
    match kind {
        PrincipalKind::User => &entity_types().user,
        PrincipalKind::Service => &entity_types().service,
    }
}

/// The type of capabilities of this kind.
pub(in crate::policy) fn resource_type(kind: CapabilityKind) -> &'static EntityTypeName {
    match kind {
        CapabilityKind::Tool => &entity_types().tool,
        CapabilityKind::Prompt => &entity_types().prompt,
        CapabilityKind::Resource | CapabilityKind::Template => &entity_types().resource,
        CapabilityKind::Skill => &entity_types().skill,
    }
}

/// The kind of principals of this type; `None` if it is no type of principals.
pub(in crate::policy) fn principal_kind(kind: &EntityTypeName) -> Option<PrincipalKind> {
    [PrincipalKind::User, PrincipalKind::Service].into_iter().find(|it| principal_type(*it) == kind)
}

/// The entity of a principal.
pub(in crate::policy) fn principal_uid(id: PrincipalId) -> EntityUid {
    uid(principal_type(id.kind()), &id.to_string())
}

impl EntityTypes {
    /// Returns true if `kind` is a type that policies know.
    pub(in crate::policy) fn knows(&self, kind: &EntityTypeName) -> bool {
        let all = [
            &self.user, &self.service, &self.group, &self.role, &self.scope, &self.org, &self.tool,
            &self.prompt, &self.resource, &self.skill, &self.provider, &self.label, &self.action,
        ];
        all.contains(&kind)
    }
}
