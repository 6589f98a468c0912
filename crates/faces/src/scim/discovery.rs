//! Discovery of the SCIM server (RFC 7644 §4), and operations that it does not offer.

use std::sync::Arc;

use axum::{extract::State, http::StatusCode, response::Response};
use portcullis_core::{
    refusal::Refusal,
    scim::{
        ScimError, find_resource_type, find_schema, resource_types as types,
        schemas as all_schemas, service_provider_config,
    },
};
use serde_json::Value;

use super::{Rejected, answer, base, listed};
use crate::{
    exchange::{Caller, Segment, segment},
    gateway::Gateway,
};

/// What the server can do.
#[utoipa::path(
    get, path = "/scim/v2/ServiceProviderConfig", tag = "scim", operation_id = "scim_config",
    responses((status = 200, description = "the configuration", body = Object, content_type = "application/scim+json"))
)]
pub(crate) async fn config(Caller(_): Caller, State(gateway): State<Arc<Gateway>>) -> Response {
    answer(StatusCode::OK, &service_provider_config(&base(&gateway)))
}

/// The schemas of users and groups.
#[utoipa::path(
    get, path = "/scim/v2/Schemas", tag = "scim", operation_id = "scim_list_schemas",
    responses((status = 200, description = "a `ListResponse`", body = Object, content_type = "application/scim+json"))
)]
pub(crate) async fn schemas(Caller(_): Caller, State(gateway): State<Arc<Gateway>>) -> Response {
    list(&all_schemas(&base(&gateway)))
}

/// One schema, by its URN.
#[utoipa::path(
    get, path = "/scim/v2/Schemas/{urn}", tag = "scim", operation_id = "scim_get_schema",
    params(("urn" = String, Path, description = "such as `urn:ietf:params:scim:schemas:core:2.0:User`")),
    responses(
        (status = 200, description = "the schema", body = Object, content_type = "application/scim+json"),
        (status = 404, description = "no such schema", body = Object, content_type = "application/scim+json"),
    )
)]
pub(crate) async fn schema(
    Caller(_): Caller,
    State(gateway): State<Arc<Gateway>>,
    path: Segment,
) -> Result<Response, Rejected> {
    let urn = segment(path);
    answer_found(find_schema(&base(&gateway), &urn), "schema", &urn)
}

/// The types of resources.
#[utoipa::path(
    get, path = "/scim/v2/ResourceTypes", tag = "scim", operation_id = "scim_list_resource_types",
    responses((status = 200, description = "a `ListResponse`", body = Object, content_type = "application/scim+json"))
)]
pub(crate) async fn resource_types(
    Caller(_): Caller,
    State(gateway): State<Arc<Gateway>>,
) -> Response {
    list(&types(&base(&gateway)))
}

/// One type of resources.
#[utoipa::path(
    get, path = "/scim/v2/ResourceTypes/{name}", tag = "scim", operation_id = "scim_get_resource_type",
    params(("name" = String, Path, description = "`User` or `Group`")),
    responses(
        (status = 200, description = "the type", body = Object, content_type = "application/scim+json"),
        (status = 404, description = "no such type", body = Object, content_type = "application/scim+json"),
    )
)]
pub(crate) async fn resource_type(
    Caller(_): Caller,
    State(gateway): State<Arc<Gateway>>,
    path: Segment,
) -> Result<Response, Rejected> {
    let name = segment(path);
    answer_found(find_resource_type(&base(&gateway), &name), "resource type", &name)
}

/// Refuses bulk requests, as `ServiceProviderConfig` says.
#[utoipa::path(
    post, path = "/scim/v2/Bulk", tag = "scim", operation_id = "scim_bulk",
    responses((status = 501, description = "always", body = Object, content_type = "application/scim+json"))
)]
pub(crate) async fn bulk(Caller(_): Caller) -> Rejected {
    ScimError::not_implemented("Bulk requests are not offered; send single ones.").into()
}

fn list(items: &[Value]) -> Response {
    let total = u64::try_from(items.len()).unwrap_or_default();
    answer(StatusCode::OK, &listed(total, 1, items))
}

fn answer_found(
    found: Option<Value>,
    kind: &'static str,
    name: &str,
) -> Result<Response, Rejected> {
    let found = found.ok_or_else(|| Refusal::not_found(kind, name))?;
    Ok(answer(StatusCode::OK, &found))
}
