//! The merge patch of a principal.

use portcullis_app::PrincipalPatch;
use portcullis_core::{id::PrincipalKind, refusal::Refusal};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::{LONGEST, groups, role_of, scopes};
use crate::exchange::body;

const MEMBERS: [&str; 5] = ["name", "role", "scopes", "disabled", "groups"];

/// Reads a patch. `null` takes a value away where there can be none: groups, and being disabled.
pub(super) fn read(
    mut members: Map<String, Value>,
    kind: PrincipalKind,
) -> Result<PrincipalPatch, Refusal> {
    body::only(&members, &MEMBERS)?;
    for name in ["name", "role", "scopes"] {
        if members.get(name).is_some_and(Value::is_null) {
            return Err(body::wrong_member(name, "cannot be taken away"));
        }
    }
    let role = body::text(&mut members, "role", LONGEST)?;
    let scopes = scopes(body::text(&mut members, "scopes", LONGEST)?.as_deref())?;
    Ok(PrincipalPatch {
        name: body::text(&mut members, "name", LONGEST)?,
        role: role_of(kind, role.as_deref(), scopes)?,
        disabled: members.get("disabled").map(disabled).transpose()?,
        groups: members.remove("groups").map(groups).transpose()?,
    })
}

fn disabled(value: &Value) -> Result<bool, Refusal> {
    match value {
        Value::Null => Ok(false),
        Value::Bool(disabled) => Ok(*disabled),
        Value::Number(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => {
            Err(body::wrong_member("disabled", "has to be `true` or `false`"))
        }
    }
}

/// A merge patch (RFC 7396) of a principal.
#[derive(ToSchema)]
#[expect(dead_code, reason = "the body is parsed strictly above")]
pub(crate) struct PrincipalPatchAsked {
    /// Its name, for people; unique in the org.
    #[schema(min_length = 1, max_length = 200)]
    name: Option<String>,
    /// Role of a user.
    #[schema(example = "auditor", pattern = "^(member|auditor|admin|service)$")]
    role: Option<String>,
    /// Scopes of a service account, separated by spaces.
    scopes: Option<String>,
    /// True: none of its tokens is accepted.
    disabled: Option<bool>,
    /// All groups that it is in from now on, besides those that its logins name.
    #[schema(max_items = 100)]
    groups: Option<Vec<String>>,
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use portcullis_core::principal::Role;
    use serde_json::json;

    use super::*;

    fn user(body: &Value) -> Result<PrincipalPatch, Refusal> {
        read(body.as_object().unwrap().clone(), PrincipalKind::User)
    }

    #[test]
    fn absent_members_stay_and_null_takes_away() {
        assert_eq!(user(&json!({})).unwrap(), PrincipalPatch::default());
        let patch = user(&json!({"groups": null, "disabled": null, "role": "admin"})).unwrap();

        assert_eq!(patch.groups, Some(BTreeSet::new()));
        assert_eq!((patch.disabled, patch.role), (Some(false), Some(Role::Admin)));
        assert_eq!(patch.name, None);
    }

    #[test]
    fn members_that_are_not_the_admins_to_change_are_refused() {
        for wrong in [
            json!({"name": null}),
            json!({"role": null}),
            json!({"scopes": "admin"}),
            json!({"role": "service"}),
            json!({"disabled": "yes"}),
            json!({"id": "usr_01M754BKTKX1YB8Q05NMW9TP4G"}),
            json!({"org_id": "org_01M754BKTKX1YB8Q05NMW9TP4G"}),
            json!({"kind": "service"}),
            json!({"created_at": "2026-11-20T11:02:15Z"}),
            json!({"disabled_at": null}),
            json!({"plan": "enterprise"}),
        ] {
            assert!(user(&wrong).is_err(), "{wrong}");
        }
    }
}
