//! Description of the server by itself (RFC 7643 §5 to §7): only attributes and operations that exist.

use serde_json::{Value, json};

use super::{GROUP_SCHEMA, MAX_PAGE, USER_SCHEMA};

/// `ServiceProviderConfig` of the server at `base`.
#[must_use]
pub fn service_provider_config(base: &str) -> Value {
    json!({
        "schemas": ["urn:ietf:params:scim:schemas:core:2.0:ServiceProviderConfig"],
        "patch": { "supported": true },
        "bulk": { "supported": false, "maxOperations": 0, "maxPayloadSize": 0 },
        "filter": { "supported": true, "maxResults": MAX_PAGE },
        "changePassword": { "supported": false },
        "sort": { "supported": false },
        "etag": { "supported": true },
        "authenticationSchemes": [{
            "type": "oauthbearertoken",
            "name": "Bearer token",
            "description": "A token of a service account with the scope `scim`.",
            "primary": true,
        }],
        "meta": {
            "resourceType": "ServiceProviderConfig",
            "location": format!("{base}/ServiceProviderConfig"),
        },
    })
}

/// The types of resources.
#[must_use]
pub fn resource_types(base: &str) -> Vec<Value> {
    let kind = |name: &str, endpoint: &str, schema: &str, about: &str| {
        json!({
            "schemas": ["urn:ietf:params:scim:schemas:core:2.0:ResourceType"],
            "id": name,
            "name": name,
            "endpoint": endpoint,
            "description": about,
            "schema": schema,
            "schemaExtensions": [],
            "meta": { "resourceType": "ResourceType", "location": format!("{base}/ResourceTypes/{name}") },
        })
    };
    vec![
        kind("User", "/Users", USER_SCHEMA, "A person of the org."),
        kind("Group", "/Groups", GROUP_SCHEMA, "A group that policies and approvals name."),
    ]
}

/// The type of this name.
#[must_use]
pub fn find_resource_type(base: &str, name: &str) -> Option<Value> {
    resource_types(base).into_iter().find(|it| it.get("id").and_then(Value::as_str) == Some(name))
}

/// The schemas of users and groups.
#[must_use]
pub fn schemas(base: &str) -> Vec<Value> {
    vec![
        schema(base, USER_SCHEMA, "User", &user_attributes()),
        schema(base, GROUP_SCHEMA, "Group", &group_attributes()),
    ]
}

/// The schema of this URN.
#[must_use]
pub fn find_schema(base: &str, urn: &str) -> Option<Value> {
    let is_it = |it: &Value| {
        it.get("id").and_then(Value::as_str).is_some_and(|id| id.eq_ignore_ascii_case(urn))
    };
    schemas(base).into_iter().find(is_it)
}

fn schema(base: &str, urn: &str, name: &str, attributes: &Value) -> Value {
    json!({
        "schemas": ["urn:ietf:params:scim:schemas:core:2.0:Schema"],
        "id": urn,
        "name": name,
        "description": name,
        "attributes": attributes,
        "meta": { "resourceType": "Schema", "location": format!("{base}/Schemas/{urn}") },
    })
}

/// Uniqueness and need of an attribute.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Need {
    /// Unique in the org, and in every resource.
    Key,
    /// Unique in the org.
    Unique,
    Optional,
}

fn text(name: &str, about: &str, need: Need) -> Value {
    json!({
        "name": name,
        "type": "string",
        "multiValued": false,
        "description": about,
        "required": need == Need::Key,
        "caseExact": need == Need::Unique,
        "mutability": "readWrite",
        "returned": "default",
        "uniqueness": if need == Need::Optional { "none" } else { "server" },
    })
}

fn flag(name: &str, about: &str) -> Value {
    json!({
        "name": name,
        "type": "boolean",
        "multiValued": false,
        "description": about,
        "required": false,
        "mutability": "readWrite",
        "returned": "default",
    })
}

fn complex(name: &str, many: bool, about: &str, parts: &Value) -> Value {
    json!({
        "name": name,
        "type": "complex",
        "multiValued": many,
        "description": about,
        "required": false,
        "subAttributes": parts,
        "mutability": "readWrite",
        "returned": "default",
        "uniqueness": "none",
    })
}

fn user_attributes() -> Value {
    let optional = |name, about| text(name, about, Need::Optional);
    json!([
        text("userName", "The name that the provider knows the person by.", Need::Key),
        text("externalId", "The provider's own id.", Need::Unique),
        optional("displayName", "The name for people."),
        complex(
            "name",
            false,
            "Parts of the name.",
            &json!([
                optional("formatted", "The whole name."),
                optional("familyName", "The family name."),
                optional("givenName", "The given name."),
                optional("middleName", "The middle names."),
            ])
        ),
        complex(
            "emails",
            true,
            "E-mail addresses; shown, never trusted.",
            &json!([
                optional("value", "The address."),
                optional("type", "Such as `work`."),
                flag("primary", "The one to use."),
            ])
        ),
        flag("active", "False: every access of the person ended."),
    ])
}

fn group_attributes() -> Value {
    let of_member = |name: &str, about: &str, mutability: &str, more: Value| {
        let mut part = json!({
            "name": name,
            "multiValued": false,
            "description": about,
            "required": false,
            "caseExact": true,
            "mutability": mutability,
            "returned": "default",
            "uniqueness": "none",
        });
        if let (Value::Object(part), Value::Object(more)) = (&mut part, more) {
            part.extend(more);
        }
        part
    };
    let reference = json!({ "type": "reference", "referenceTypes": ["User"] });
    let kind = json!({ "type": "string", "canonicalValues": ["User"] });
    json!([
        text("displayName", "The name by which policies and approvals know the group.", Need::Key),
        text("externalId", "The provider's own id.", Need::Unique),
        complex(
            "members",
            true,
            "Users of the org.",
            &json!([
                of_member("value", "The id of the user.", "immutable", json!({ "type": "string" })),
                of_member("$ref", "The address of the user.", "immutable", reference),
                of_member("display", "The user's name.", "readOnly", json!({ "type": "string" })),
                of_member("type", "Members are users.", "immutable", kind),
            ])
        ),
    ])
}
