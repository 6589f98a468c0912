//! Resources as they are told, without the address of the server.

use portcullis_core::{
    clock::Timestamp,
    scim::{GROUP_SCHEMA, USER_SCHEMA},
};
use portcullis_store::{ScimGroup, ScimMember, ScimUser};
use serde_json::{Map, Value, json};

/// A user or group.
#[derive(Debug, Clone)]
pub struct ScimResource {
    /// `User` or `Group`.
    pub kind: &'static str,
    pub id: String,
    /// Its members but `meta`.
    pub members: Map<String, Value>,
    pub created_at: Timestamp,
    pub changed_at: Timestamp,
    /// Its version, unquoted.
    pub version: String,
}

/// Resources of a list, and how many there are in all.
#[derive(Debug)]
pub struct ListedResources {
    pub items: Vec<ScimResource>,
    pub total: u64,
}

/// Version of a person: what the provider wrote, and whether others ended the access.
pub(super) fn user_version(user: &ScimUser) -> String {
    let active = if user.principal.disabled_at.is_none() { "a" } else { "i" };
    format!("{}{active}", user.revision)
}

pub(super) fn user_resource(user: &ScimUser) -> ScimResource {
    let id = user.principal.id.to_string();
    let mut members = Map::new();
    members.insert("schemas".to_owned(), json!([USER_SCHEMA]));
    members.insert("id".to_owned(), Value::from(id.as_str()));
    if let Value::Object(attributes) = json!(user.attributes) {
        members.extend(attributes);
    }
    members.insert("active".to_owned(), Value::from(user.principal.disabled_at.is_none()));
    ScimResource {
        kind: "User",
        id,
        members,
        created_at: user.created_at,
        changed_at: user.changed_at,
        version: user_version(user),
    }
}

pub(super) fn group_version(group: &ScimGroup) -> String {
    group.revision.to_string()
}

/// The group, with its members where they are asked for.
pub(super) fn group_resource(group: &ScimGroup, of: Option<&[ScimMember]>) -> ScimResource {
    let id = group.id.to_string();
    let mut members = Map::new();
    members.insert("schemas".to_owned(), json!([GROUP_SCHEMA]));
    members.insert("id".to_owned(), Value::from(id.as_str()));
    if let Some(external) = &group.attributes.external_id {
        members.insert("externalId".to_owned(), Value::from(external.as_str()));
    }
    members.insert("displayName".to_owned(), Value::from(group.attributes.display_name.as_str()));
    if let Some(of) = of {
        let own = of.iter().filter(|member| member.group_id == group.id);
        let told =
            own.map(|it| json!({ "value": it.principal_id, "display": it.name, "type": "User" }));
        members.insert("members".to_owned(), told.collect());
    }
    ScimResource {
        kind: "Group",
        id,
        members,
        created_at: group.created_at,
        changed_at: group.changed_at,
        version: group_version(group),
    }
}
