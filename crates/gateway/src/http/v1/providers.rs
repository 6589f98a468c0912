//! `/v1/providers`: the connections the caller may use.

use std::sync::Arc;

use axum::extract::{RawQuery, State};
use portcullis_app::{ProviderQuery, ProviderView};
use portcullis_core::principal::Scope;
use serde_json::{Value, json};

use super::{
    Segment, segment,
    shapes::{ErrorAnswer, Many, One},
};
use crate::http::{Gateway, answer::Answer, caller::Known, page::Listing, query::Query};

const FILTERS: [&str; 3] = ["slug", "status", "owner"];
const STATUSES: [&str; 4] = ["pending", "connected", "needs_auth", "error"];

/// Lists connections by slug.
#[utoipa::path(
    get, path = "/v1/providers", tag = "providers",
    params(
        ("slug" = Option<String>, Query, description = "slugs, comma-separated"),
        ("status" = Option<String>, Query, description = "statuses; default all but `pending`"),
        ("owner" = Option<String>, Query, description = "`org` or `me`"),
        ("limit" = Option<u32>, Query, description = "1 to 200, default 50"),
        ("cursor" = Option<String>, Query, description = "from `meta.pagination.next_cursor`"),
    ),
    responses(
        (status = 200, description = "a page of connections", body = Many),
        (status = 400, description = "bad parameter", body = ErrorAnswer),
        (status = 401, description = "no live token", body = ErrorAnswer),
        (status = 403, description = "the token lacks `providers:read`", body = ErrorAnswer),
    )
)]
pub(crate) async fn list(
    Known(ctx): Known,
    State(gateway): State<Arc<Gateway>>,
    RawQuery(raw): RawQuery,
) -> Result<Answer, Answer> {
    ctx.require(Scope::ProvidersRead)?;
    let list = Listing::read(&gateway, &ctx, "providers", &FILTERS, raw.as_deref())?;
    let query = &list.query;
    let statuses = query.any_of("status", &STATUSES)?;
    let wanted = ProviderQuery {
        slugs: query.list("slug"),
        statuses: (!statuses.is_empty()).then_some(statuses),
        after: list.after.clone(),
        limit: list.limit,
    };
    // Connections declared in the configuration belong to the org; nobody has one of their own.
    let (found, more) = match query.choice("owner", &["org", "me"])? {
        None | Some("org") => gateway.app.providers(&ctx, &wanted).await?,
        Some(_) => (Vec::new(), false),
    };
    let end = found.last().filter(|_| more).map(|view| view.slug.as_str());
    let items: Vec<Value> = found.iter().map(record).collect();
    Ok(list.answer(json!({ "items": items }), end))
}

/// One connection.
#[utoipa::path(
    get, path = "/v1/providers/{id}", tag = "providers",
    params(("id" = String, Path, description = "`prv_` and a ULID")),
    responses(
        (status = 200, description = "the connection", body = One),
        (status = 401, description = "no live token", body = ErrorAnswer),
        (status = 403, description = "the token lacks `providers:read`", body = ErrorAnswer),
        (status = 404, description = "no such connection for this caller", body = ErrorAnswer),
    )
)]
pub(crate) async fn get(
    Known(ctx): Known,
    State(gateway): State<Arc<Gateway>>,
    path: Segment,
    RawQuery(raw): RawQuery,
) -> Result<Answer, Answer> {
    ctx.require(Scope::ProvidersRead)?;
    Query::parse(raw.as_deref(), &[])?;
    let view = gateway.app.provider(&ctx, &segment(path)).await?;
    Ok(Answer::Data(record(&view)))
}

fn record(view: &ProviderView) -> Value {
    json!({
        "id": view.id,
        "slug": view.slug,
        "name": view.name,
        "status": view.status.as_str(),
        "owner": { "type": "org", "id": view.owner },
        "auth": {
            "type": view.auth,
            "scopes": [],
            "expires_at": null,
            "refreshable": false,
            "last_refreshed_at": null,
        },
        "account": null,
        "tools": view.tools,
        "last_error": view.last_error,
        "connected_at": view.connected_at,
        "updated_at": view.updated_at,
    })
}
