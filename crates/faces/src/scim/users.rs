//! `/scim/v2/Users`: people whom an identity provider keeps.

use axum::{
    http::{HeaderMap, StatusCode},
    response::Response,
};
use portcullis_core::scim::{PatchRequest, UserRequest};

use super::{Rejected, list_of, no_content, one, one_unless_known, page, projection};
use crate::exchange::{RequestBody, Segment, WithQuery, if_match, segment};

/// Lists the people whom identity providers keep, by id.
#[utoipa::path(
    get, path = "/scim/v2/Users", tag = "scim", operation_id = "scim_list_users",
    params(
        ("filter" = Option<String>, Query, description = "`eq` on `userName`, `externalId`, `displayName`, `id`, `active`; two joined by `and`"),
        ("startIndex" = Option<i64>, Query, description = "of the first resource, from 1"),
        ("count" = Option<i64>, Query, description = "200 at most, default 100"),
        ("attributes" = Option<String>, Query, description = "only these"),
        ("excludedAttributes" = Option<String>, Query, description = "all but these"),
    ),
    responses((status = 200, description = "a `ListResponse`", body = Object, content_type = "application/scim+json"))
)]
pub(crate) async fn list(WithQuery(ctx, gateway, raw): WithQuery) -> Result<Response, Rejected> {
    let list = list_of(raw.as_deref())?;
    let found = gateway.app.provisioning.users(&ctx, &list).await?;
    Ok(page(&gateway, &list, found))
}

/// One person.
#[utoipa::path(
    get, path = "/scim/v2/Users/{id}", tag = "scim", operation_id = "scim_get_user",
    params(("id" = String, Path, description = "`usr_` and a ULID")),
    responses(
        (status = 200, description = "the person", body = Object, content_type = "application/scim+json"),
        (status = 304, description = "the version that `If-None-Match` names"),
        (status = 404, description = "no such person", body = Object, content_type = "application/scim+json"),
    )
)]
pub(crate) async fn get(
    WithQuery(ctx, gateway, raw): WithQuery,
    path: Segment,
    headers: HeaderMap,
) -> Result<Response, Rejected> {
    let projection = projection(raw.as_deref())?;
    let found = gateway.app.provisioning.user(&ctx, &segment(path)).await?;
    Ok(one_unless_known(&gateway, &headers, found, &projection))
}

/// Makes a person: a member of the org, or the user that the person is already.
#[utoipa::path(
    post, path = "/scim/v2/Users", tag = "scim", operation_id = "scim_create_user",
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
    let user = request.scim_object(&gateway.app, &ctx, UserRequest::parse).await?;
    let made = gateway.app.provisioning.create_user(&ctx, user).await?;
    Ok(one(&gateway, StatusCode::CREATED, made, &projection))
}

/// Replaces the attributes of a person. What is said of `active` by nothing stays.
#[utoipa::path(
    put, path = "/scim/v2/Users/{id}", tag = "scim", operation_id = "scim_replace_user",
    params(("id" = String, Path, description = "`usr_` and a ULID")),
    request_body(content = Object, content_type = "application/scim+json"),
    responses(
        (status = 200, description = "the person as it is now", body = Object, content_type = "application/scim+json"),
        (status = 404, description = "no such person", body = Object, content_type = "application/scim+json"),
        (status = 409, description = "`uniqueness`, or it is the last admin", body = Object, content_type = "application/scim+json"),
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
    let user = request.scim_object(&gateway.app, &ctx, UserRequest::parse).await?;
    let provisioning = &gateway.app.provisioning;
    let changed = provisioning.replace_user(&ctx, &segment(path), &precondition, &user).await?;
    Ok(one(&gateway, StatusCode::OK, changed, &projection))
}

/// Changes a person as Okta and Microsoft Entra ID send it.
#[utoipa::path(
    patch, path = "/scim/v2/Users/{id}", tag = "scim", operation_id = "scim_patch_user",
    params(("id" = String, Path, description = "`usr_` and a ULID")),
    request_body(content = Object, content_type = "application/scim+json"),
    responses(
        (status = 200, description = "the person as it is now", body = Object, content_type = "application/scim+json"),
        (status = 404, description = "no such person", body = Object, content_type = "application/scim+json"),
        (status = 409, description = "`uniqueness`, or it is the last admin", body = Object, content_type = "application/scim+json"),
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
    let wanted = request.scim_object(&gateway.app, &ctx, PatchRequest::parse).await?;
    let provisioning = &gateway.app.provisioning;
    let changed = provisioning.patch_user(&ctx, &segment(path), &precondition, &wanted).await?;
    Ok(one(&gateway, StatusCode::OK, changed, &projection))
}

/// Deletes a person for the provider: every access of it ends within 5 seconds, and it is in no group.
#[utoipa::path(
    delete, path = "/scim/v2/Users/{id}", tag = "scim", operation_id = "scim_delete_user",
    params(("id" = String, Path, description = "`usr_` and a ULID")),
    responses(
        (status = 204, description = "deleted"),
        (status = 404, description = "no such person", body = Object, content_type = "application/scim+json"),
        (status = 409, description = "it is the last admin", body = Object, content_type = "application/scim+json"),
        (status = 412, description = "it changed since the `ETag` was read", body = Object, content_type = "application/scim+json"),
    )
)]
pub(crate) async fn delete(
    WithQuery(ctx, gateway, _): WithQuery,
    path: Segment,
    headers: HeaderMap,
) -> Result<Response, Rejected> {
    let precondition = if_match(&headers)?;
    gateway.app.provisioning.delete_user(&ctx, &segment(path), &precondition).await?;
    Ok(no_content(None))
}
