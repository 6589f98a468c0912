//! `/v1/principals`: users and service accounts of the caller's org.

mod patch;

use std::collections::BTreeSet;

use portcullis_app::{NewPrincipal, PrincipalView};
use portcullis_core::{
    id::PrincipalKind,
    principal::{Role, ScopeSet},
    refusal::Refusal,
};
use portcullis_store::PrincipalQuery;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use self::patch::PrincipalPatchAsked;
use super::{Segment, segment};
use crate::exchange::{
    ErrorAnswer, HandlerResult, Items, Listing, NoQuery, One, Outcome, Paged, RequestBody,
    WithQuery, body, if_match,
};

/// Bytes of a text member at most, so that a name of any letters fits.
const LONGEST: usize = 1024;

/// Lists the users and service accounts of the org, by id.
#[utoipa::path(
    get, path = "/v1/principals", tag = "admin", operation_id = "list_principals",
    params(
        PrincipalQuery,
        ("limit" = Option<u32>, Query, description = "1 to 200, default 50"),
        ("cursor" = Option<String>, Query, description = "from `meta.pagination.next_cursor`"),
    ),
    responses(
        (status = 200, description = "a page of principals", body = Paged<Items<PrincipalView>>),
    )
)]
pub(crate) async fn list(WithQuery(ctx, gateway, raw): WithQuery) -> HandlerResult {
    let (wanted, list) = Listing::filtered(&gateway, &ctx, "principals", &[], raw.as_deref())?;
    let wanted = PrincipalQuery { after: list.after(), limit: list.limit, ..wanted };
    let page = gateway.app.administration.principals(&ctx, wanted).await?;
    Ok(list.answer(&Items { items: page.items }, page.end.as_ref()))
}

/// One user or service account; its version is the `ETag`.
#[utoipa::path(
    get, path = "/v1/principals/{id}", tag = "admin", operation_id = "get_principal",
    params(("id" = String, Path, description = "`usr_` or `sa_` and a ULID")),
    responses(
        (status = 200, description = "the principal", body = One<PrincipalView>,
            headers(("ETag" = String, description = "its version, for `If-Match`"))),
    )
)]
pub(crate) async fn get(NoQuery(ctx, gateway): NoQuery, path: Segment) -> HandlerResult {
    let found = gateway.app.administration.principal(&ctx, &segment(path)).await?;
    Ok(Outcome::data(&found).with_etag(&found.version))
}

/// Makes a user or a service account.
///
/// A service account that asks gives no more scopes than its own token has. Users that log in by a trust rule are made by
/// their first login and need not be made here.
#[utoipa::path(
    post, path = "/v1/principals", tag = "admin", operation_id = "create_principal",
    request_body = NewPrincipalAsked,
    responses(
        (status = 201, description = "made", body = One<PrincipalView>,
            headers(("ETag" = String, description = "its version, for `If-Match`"))),
        (status = 400, description = "not understood, or more scopes than the caller may give", body = ErrorAnswer),
        (status = 409, description = "the name is taken", body = ErrorAnswer),
    )
)]
pub(crate) async fn create(NoQuery(ctx, gateway): NoQuery, request: RequestBody) -> HandlerResult {
    let new = new_principal(request.optional_object().await?)?;
    let made = gateway.app.administration.create_principal(&ctx, new).await?;
    Ok(Outcome::created(&made).with_etag(&made.version))
}

/// Changes a user or service account by a merge patch (RFC 7396): members that are absent stay as they are.
///
/// The last admin who is not disabled can neither be disabled nor get another role. Tokens of the principal follow on
/// this node before the answer leaves, everywhere within 5 seconds.
#[utoipa::path(
    patch, path = "/v1/principals/{id}", tag = "admin", operation_id = "change_principal",
    params(
        ("id" = String, Path, description = "`usr_` or `sa_` and a ULID"),
        ("If-Match" = Option<String>, Header, description = "the `ETag` that was read: refused with 412 if the principal changed since"),
    ),
    request_body = PrincipalPatchAsked,
    responses(
        (status = 200, description = "the principal as it is now", body = One<PrincipalView>,
            headers(("ETag" = String, description = "its version, for `If-Match`"))),
        (status = 400, description = "not understood, or more scopes than the caller may give", body = ErrorAnswer),
        (status = 409, description = "the name is taken, it is the last admin, or a program changes its own groups", body = ErrorAnswer),
        (status = 412, description = "it changed since the `ETag` was read", body = ErrorAnswer),
    )
)]
pub(crate) async fn change(
    NoQuery(ctx, gateway): NoQuery,
    named: Segment,
    request: RequestBody,
) -> HandlerResult {
    let precondition = if_match(&request.headers)?;
    let members = request.merge_patch().await?;
    let id = segment(named);
    let admin = &gateway.app.administration;
    let kind = admin.principal(&ctx, &id).await?.id.kind();
    let patch = patch::read(members, kind)?;
    let changed = admin.change_principal(&ctx, &id, &precondition, patch).await?;
    Ok(Outcome::data(&changed).with_etag(&changed.version))
}

fn new_principal(mut members: Map<String, Value>) -> Result<NewPrincipal, Refusal> {
    body::only(&members, &["name", "kind", "role", "scopes", "groups"])?;
    let name = body::text(&mut members, "name", LONGEST)?;
    let name = name.ok_or_else(|| body::wrong_member("name", "is missing"))?;
    let kind = match body::text(&mut members, "kind", LONGEST)?.as_deref() {
        None | Some("user") => PrincipalKind::User,
        Some("service") => PrincipalKind::Service,
        Some(_) => return Err(body::wrong_member("kind", "has to be `user` or `service`")),
    };
    let role = body::text(&mut members, "role", LONGEST)?;
    let scopes = scopes(body::text(&mut members, "scopes", LONGEST)?.as_deref())?;
    let role = role_of(kind, role.as_deref(), scopes)?.unwrap_or(Role::Member);
    if kind == PrincipalKind::Service && scopes.is_none() {
        return Err(body::wrong_member(
            "scopes",
            "is missing: a service account may do what is listed",
        ));
    }
    let groups = members.remove("groups").map(groups).transpose()?.unwrap_or_default();
    Ok(NewPrincipal { name, kind, role, groups })
}

/// The role that a body names: of a user by `role`, of a service account by `scopes`.
fn role_of(
    kind: PrincipalKind,
    named: Option<&str>,
    scopes: Option<ScopeSet>,
) -> Result<Option<Role>, Refusal> {
    match (kind, named, scopes) {
        (_, None, None) | (PrincipalKind::Service, Some("service"), None) => Ok(None),
        (PrincipalKind::Service, None | Some("service"), Some(scopes)) => {
            Ok(Some(Role::Service(scopes)))
        }
        (PrincipalKind::Service, Some(_), _) => {
            Err(body::wrong_member("role", "has to be `service`: a service account has `scopes`"))
        }
        (PrincipalKind::User, _, Some(_)) => {
            Err(body::wrong_member("scopes", "is of service accounts; a user has a `role`"))
        }
        (PrincipalKind::User, Some("member"), None) => Ok(Some(Role::Member)),
        (PrincipalKind::User, Some("auditor"), None) => Ok(Some(Role::Auditor)),
        (PrincipalKind::User, Some("admin"), None) => Ok(Some(Role::Admin)),
        (PrincipalKind::User, Some(_), None) => {
            Err(body::wrong_member("role", "has to be `member`, `auditor` or `admin`"))
        }
    }
}

/// Scopes separated by spaces, at least one.
pub(super) fn scopes(text: Option<&str>) -> Result<Option<ScopeSet>, Refusal> {
    let Some(text) = text else { return Ok(None) };
    let unknown = |_| Refusal::InvalidScope {
        scope: text.chars().take(200).collect(),
        allowed: ScopeSet::ALL,
    };
    let scopes: ScopeSet = text.parse().map_err(unknown)?;
    if scopes.is_empty() {
        return Err(body::wrong_member("scopes", "has to name at least one scope"));
    }
    Ok(Some(scopes))
}

/// The names of groups; `null` is none.
fn groups(value: Value) -> Result<BTreeSet<String>, Refusal> {
    let wrong = || body::wrong_member("groups", "has to be a list of names");
    match value {
        Value::Null => Ok(BTreeSet::new()),
        Value::Array(items) => {
            let name = |item: Value| item.as_str().map(str::to_owned).ok_or_else(wrong);
            items.into_iter().map(name).collect()
        }
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => Err(wrong()),
    }
}

/// The body that makes a principal.
#[derive(ToSchema)]
#[expect(dead_code, reason = "the body is parsed strictly above")]
pub(crate) struct NewPrincipalAsked {
    /// Its name, for people; recorded in every event, unique in the org.
    #[schema(
        example = "ci",
        min_length = 1,
        max_length = 200,
        pattern = r"^[^\u0000-\u001f\u007f-\u009f]*[^\s\u0000-\u001f\u007f-\u009f][^\u0000-\u001f\u007f-\u009f]*$"
    )]
    name: String,
    /// `user` (default) or `service`.
    #[schema(example = "service", pattern = "^(user|service)$")]
    kind: Option<String>,
    /// Role of a user; `member` when absent.
    #[schema(pattern = "^(member|auditor|admin|service)$")]
    role: Option<String>,
    /// Scopes of a service account, separated by spaces.
    #[schema(example = "mcps:read mcps:invoke")]
    scopes: Option<String>,
    /// Groups that policies and approvals name; 100 at most.
    #[schema(max_items = 100)]
    groups: Option<Vec<String>>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(body: &Value) -> Result<NewPrincipal, Refusal> {
        new_principal(body.as_object().unwrap().clone())
    }

    #[test]
    fn a_new_principal_is_read_strictly() {
        let service =
            read(&json!({"name": "ci", "kind": "service", "scopes": "mcps:read"})).unwrap();
        let user = read(&json!({"name": "ana", "role": "admin", "groups": ["ops"]})).unwrap();

        assert_eq!(service.role, Role::Service("mcps:read".parse().unwrap()));
        assert_eq!((user.role, user.groups.len()), (Role::Admin, 1));
        assert_eq!(read(&json!({"name": "ben"})).unwrap().role, Role::Member);
        for wrong in [
            json!({}),
            json!({"name": 7}),
            json!({"name": "a", "kind": "robot"}),
            json!({"name": "a", "role": "owner"}),
            json!({"name": "a", "role": "service"}),
            json!({"name": "a", "scopes": "mcps:read"}),
            json!({"name": "a", "kind": "service"}),
            json!({"name": "a", "kind": "service", "scopes": ""}),
            json!({"name": "a", "kind": "service", "scopes": "root"}),
            json!({"name": "a", "kind": "service", "role": "admin"}),
            json!({"name": "a", "kind": "service", "role": "admin", "scopes": "mcps:read"}),
            json!({"name": "a", "groups": "ops"}),
            json!({"name": "a", "groups": [1]}),
            json!({"name": "a", "org_id": "org_01M754BKTKX1YB8Q05NMW9TP4G"}),
            json!({"name": "a", "id": "usr_01M754BKTKX1YB8Q05NMW9TP4G"}),
        ] {
            assert!(read(&wrong).is_err(), "{wrong}");
        }
    }
}
