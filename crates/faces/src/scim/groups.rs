//! `/scim/v2/Groups`: groups that an identity provider keeps.

use axum::{
    http::{HeaderMap, StatusCode},
    response::Response,
};
use portcullis_core::scim::{GroupPatch, NewGroup, PatchRequest};

use super::{Rejected, list_of, no_content, one, one_unless_known, page, projection};
use crate::exchange::{RequestBody, Segment, WithQuery, if_match, segment};

/// Lists the groups that identity providers keep, by id. A page of large groups has fewer than were asked for.
#[utoipa::path(
    get, path = "/scim/v2/Groups", tag = "scim", operation_id = "scim_list_groups",
    params(
        ("filter" = Option<String>, Query, description = "`eq` on `displayName`, `externalId`, `id`; two joined by `and`"),
        ("startIndex" = Option<i64>, Query, description = "of the first resource, from 1"),
        ("count" = Option<i64>, Query, description = "200 at most, default 100"),
        ("attributes" = Option<String>, Query, description = "only these"),
        ("excludedAttributes" = Option<String>, Query, description = "all but these"),
    ),
    responses((status = 200, description = "a `ListResponse`", body = Object, content_type = "application/scim+json"))
)]
pub(crate) async fn list(WithQuery(ctx, gateway, raw): WithQuery) -> Result<Response, Rejected> {
    let list = list_of(raw.as_deref())?;
    let found = gateway.app.provisioning.groups(&ctx, &list).await?;
    Ok(page(&gateway, &list, found))
}

/// One group.
#[utoipa::path(
    get, path = "/scim/v2/Groups/{id}", tag = "scim", operation_id = "scim_get_group",
    params(("id" = String, Path, description = "`grp_` and a ULID")),
    responses(
        (status = 200, description = "the group", body = Object, content_type = "application/scim+json"),
        (status = 304, description = "the version that `If-None-Match` names"),
        (status = 404, description = "no such group", body = Object, content_type = "application/scim+json"),
    )
)]
pub(crate) async fn get(
    WithQuery(ctx, gateway, raw): WithQuery,
    path: Segment,
    headers: HeaderMap,
) -> Result<Response, Rejected> {
    let projection = projection(raw.as_deref())?;
    let found = gateway.app.provisioning.group(&ctx, &segment(path), &projection).await?;
    Ok(one_unless_known(&gateway, &headers, found, &projection))
}

/// Makes a group. Policies and approvals know it by its `displayName`; it gives no role.
#[utoipa::path(
    post, path = "/scim/v2/Groups", tag = "scim", operation_id = "scim_create_group",
    request_body(content = Object, content_type = "application/scim+json"),
    responses(
        (status = 201, description = "made", body = Object, content_type = "application/scim+json"),
        (status = 409, description = "`uniqueness`", body = Object, content_type = "application/scim+json"),
    )
)]
pub(crate) async fn create(
    WithQuery(ctx, gateway, raw): WithQuery,
    request: RequestBody,
) -> Result<Response, Rejected> {
    let projection = projection(raw.as_deref())?;
    let group = request.scim_object(&gateway.app, &ctx, NewGroup::parse).await?;
    let made = gateway.app.provisioning.create_group(&ctx, group, &projection).await?;
    Ok(one(&gateway, StatusCode::CREATED, made, &projection))
}

/// Replaces a group. Its members stay if the body does not name `members`.
#[utoipa::path(
    put, path = "/scim/v2/Groups/{id}", tag = "scim", operation_id = "scim_replace_group",
    params(("id" = String, Path, description = "`grp_` and a ULID")),
    request_body(content = Object, content_type = "application/scim+json"),
    responses(
        (status = 200, description = "the group as it is now", body = Object, content_type = "application/scim+json"),
        (status = 404, description = "no such group", body = Object, content_type = "application/scim+json"),
        (status = 409, description = "`uniqueness`", body = Object, content_type = "application/scim+json"),
        (status = 412, description = "it changed since the `ETag` was read", body = Object, content_type = "application/scim+json"),
    )
)]
pub(crate) async fn replace(
    WithQuery(ctx, gateway, raw): WithQuery,
    path: Segment,
    request: RequestBody,
) -> Result<Response, Rejected> {
    let projection = projection(raw.as_deref())?;
    let precondition = if_match(&request.headers)?;
    let wanted = request.scim_object(&gateway.app, &ctx, NewGroup::parse).await?;
    let provisioning = &gateway.app.provisioning;
    let id = segment(path);
    provisioning.replace_group(&ctx, &id, &precondition, &wanted).await?;
    let changed = provisioning.group(&ctx, &id, &projection).await?;
    Ok(one(&gateway, StatusCode::OK, changed, &projection))
}

/// Changes a group as Okta and Microsoft Entra ID send it.
#[utoipa::path(
    patch, path = "/scim/v2/Groups/{id}", tag = "scim", operation_id = "scim_patch_group",
    params(
        ("id" = String, Path, description = "`grp_` and a ULID"),
        ("attributes" = Option<String>, Query, description = "answers with these; without it there is no body"),
        ("excludedAttributes" = Option<String>, Query, description = "all but these"),
    ),
    request_body(content = Object, content_type = "application/scim+json"),
    responses(
        (status = 200, description = "the group as it is now, where `attributes` are named", body = Object, content_type = "application/scim+json"),
        (status = 204, description = "changed"),
        (status = 404, description = "no such group", body = Object, content_type = "application/scim+json"),
        (status = 409, description = "`uniqueness`", body = Object, content_type = "application/scim+json"),
        (status = 412, description = "it changed since the `ETag` was read", body = Object, content_type = "application/scim+json"),
    )
)]
pub(crate) async fn patch(
    WithQuery(ctx, gateway, raw): WithQuery,
    path: Segment,
    request: RequestBody,
) -> Result<Response, Rejected> {
    let projection = projection(raw.as_deref())?;
    let precondition = if_match(&request.headers)?;
    let wanted = request
        .scim_object(&gateway.app, &ctx, |body| {
            PatchRequest::parse(body).and_then(|patch| GroupPatch::parse(&patch))
        })
        .await?;
    let provisioning = &gateway.app.provisioning;
    let id = segment(path);
    let version = provisioning.patch_group(&ctx, &id, &precondition, &wanted).await?;
    if raw.is_none_or(|raw| !raw.contains("attributes=")) {
        return Ok(no_content(Some(&version)));
    }
    let changed = provisioning.group(&ctx, &id, &projection).await?;
    Ok(one(&gateway, StatusCode::OK, changed, &projection))
}

/// Deletes a group: its people leave it.
#[utoipa::path(
    delete, path = "/scim/v2/Groups/{id}", tag = "scim", operation_id = "scim_delete_group",
    params(("id" = String, Path, description = "`grp_` and a ULID")),
    responses(
        (status = 204, description = "deleted"),
        (status = 404, description = "no such group", body = Object, content_type = "application/scim+json"),
        (status = 412, description = "it changed since the `ETag` was read", body = Object, content_type = "application/scim+json"),
    )
)]
pub(crate) async fn delete(
    WithQuery(ctx, gateway, _): WithQuery,
    path: Segment,
    headers: HeaderMap,
) -> Result<Response, Rejected> {
    let precondition = if_match(&headers)?;
    gateway.app.provisioning.delete_group(&ctx, &segment(path), &precondition).await?;
    Ok(no_content(None))
}
