//! `/v1/mcps`: the catalogue as the caller sees it.

use std::sync::Arc;

use axum::extract::{RawQuery, State};
use portcullis_app::{ToolQuery, ToolView};
use portcullis_core::policy::Access;
use serde_json::{Value, json};

use super::{
    Segment, segment,
    shapes::{ErrorAnswer, Many, One},
};
use crate::http::{Gateway, answer::Answer, caller::Known, page::Listing, query::Query};

const FILTERS: [&str; 4] = ["provider", "q", "access", "view"];

/// Lists the tools the caller can see, by id.
#[utoipa::path(
    get, path = "/v1/mcps", tag = "mcps",
    params(
        ("provider" = Option<String>, Query, description = "slugs, comma-separated", pattern = "[^, ]"),
        ("q" = Option<String>, Query, description = "substring of id, title or description", max_length = 100, pattern = "[^, ]"),
        ("access" = Option<String>, Query, description = "`allow`, `deny`, `conditional`, comma-separated", pattern = "^(allow|deny|conditional)(,(allow|deny|conditional))*$"),
        ("view" = Option<String>, Query, description = "`basic` (default) or `full` with schemas", pattern = "^(basic|full)$"),
        ("limit" = Option<u32>, Query, description = "1 to 200, default 50"),
        ("cursor" = Option<String>, Query, description = "from `meta.pagination.next_cursor`"),
    ),
    responses(
        (status = 200, description = "a page of tools", body = Many),
        (status = 400, description = "bad parameter", body = ErrorAnswer),
        (status = 401, description = "no live token", body = ErrorAnswer),
        (status = 403, description = "the token lacks `mcps:read`", body = ErrorAnswer),
    )
)]
pub(crate) async fn list(
    Known(ctx): Known,
    State(gateway): State<Arc<Gateway>>,
    RawQuery(raw): RawQuery,
) -> Result<Answer, Answer> {
    ctx.require(portcullis_core::principal::Scope::McpsRead)?;
    let list = Listing::read(&gateway, &ctx, "mcps", &FILTERS, raw.as_deref())?;
    let query = &list.query;
    let full = query.choice("view", &["basic", "full"])? == Some("full");
    let access = query.any_of("access", &["allow", "deny", "conditional"])?;
    let wanted = ToolQuery {
        providers: query.list("provider"),
        text: query.short("q", 100)?,
        access: access.iter().filter_map(|name| access_named(name)).collect(),
        after: list.after.clone(),
        limit: list.limit,
    };
    let (tools, more) = gateway.app.tools.list(&ctx, &wanted)?;
    let end = tools.last().filter(|_| more).map(|view| view.tool.id.as_str());
    let items: Vec<Value> = tools.iter().map(|view| record(view, full)).collect();
    Ok(list.answer(json!({ "items": items }), end))
}

/// One tool with its schemas.
#[utoipa::path(
    get, path = "/v1/mcps/{id}", tag = "mcps",
    params(("id" = String, Path, description = "`<provider>:<tool_name>`")),
    responses(
        (status = 200, description = "the tool", body = One),
        (status = 401, description = "no live token", body = ErrorAnswer),
        (status = 403, description = "the token lacks `mcps:read`", body = ErrorAnswer),
        (status = 404, description = "no such tool for this caller", body = ErrorAnswer),
    )
)]
pub(crate) async fn get(
    Known(ctx): Known,
    State(gateway): State<Arc<Gateway>>,
    path: Segment,
    RawQuery(raw): RawQuery,
) -> Result<Answer, Answer> {
    ctx.require(portcullis_core::principal::Scope::McpsRead)?;
    Query::parse(raw.as_deref(), &[])?;
    let view = gateway.app.tools.tool(&ctx, &segment(path))?;
    Ok(Answer::Data(record(&view, true)))
}

fn access_named(name: &str) -> Option<Access> {
    let all = [Access::Allow, Access::Deny, Access::Conditional];
    all.into_iter().find(|access| access.as_str() == name)
}

fn record(view: &ToolView, full: bool) -> Value {
    let tool = &view.tool;
    let definition = &tool.definition;
    let mut record = json!({
        "id": tool.id,
        "provider": tool.id.provider(),
        "name": tool.id.name(),
        "title": definition.title,
        "description": definition.description,
        "access": view.access.as_str(),
        "status": view.status.as_str(),
        "version": tool.version,
        "annotations": definition.annotations,
        "updated_at": tool.updated_at,
    });
    if let (true, Value::Object(record)) = (full, &mut record) {
        record.insert("input_schema".to_owned(), definition.input_schema.clone());
        record.insert("output_schema".to_owned(), json!(definition.output_schema));
        record.insert("provider_id".to_owned(), json!(view.provider_id));
    }
    record
}
