//! `/v1/mcps`: the catalogue as the caller sees it.

use portcullis_app::{LeftOutTool, ToolQuery, ToolStatus, ToolView};
use portcullis_core::{
    capability::{CapabilityId, CapabilityKind},
    clock::Timestamp,
    id::ProviderId,
    policy::Access,
};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::ToolPath;
use crate::exchange::{
    HandlerResult, Items, Listing, NamedBy, NoQuery, One, Outcome, Paged, WithQuery, nearest,
};

const FILTERS: [&str; 4] = ["provider", "q", "access", "view"];

/// Lists the tools the caller can see, by id.
#[utoipa::path(
    get, path = "/v1/mcps", tag = "mcps", operation_id = "list_tools",
    params(
        ("provider" = Option<String>, Query, description = "slugs, comma-separated", pattern = "[^, ]"),
        ("q" = Option<String>, Query, description = "substring of id, title or description", max_length = 100, pattern = "[^, ]"),
        ("access" = Option<String>, Query, description = "`allow`, `deny`, `conditional`, comma-separated", pattern = "^(allow|deny|conditional)(,(allow|deny|conditional))*$"),
        ("view" = Option<String>, Query, description = "`basic` (default) or `full` with schemas", pattern = "^(basic|full)$"),
        ("limit" = Option<u32>, Query, description = "1 to 200, default 50"),
        ("cursor" = Option<String>, Query, description = "from `meta.pagination.next_cursor`"),
    ),
    responses(
        (status = 200, description = "a page of tools", body = Paged<Items<Tool>>),
    )
)]
pub(crate) async fn list(WithQuery(ctx, gateway, raw): WithQuery) -> HandlerResult {
    let list = Listing::read(&gateway, &ctx, "mcps", &FILTERS, raw.as_deref())?;
    let query = &list.query;
    let full = query.choice("view", &["basic", "full"])? == Some("full");
    let access = query.any_of("access", &["allow", "deny", "conditional"])?;
    let wanted = ToolQuery {
        kind: CapabilityKind::Tool,
        providers: query.list("provider"),
        text: query.short("q", 100)?,
        access: access.iter().filter_map(|name| access_named(name)).collect(),
        after: list.after.clone(),
        limit: list.limit,
    };
    let (tools, more) = gateway.app.tools.list(&ctx, &wanted)?;
    let end = tools.last().filter(|_| more).map(|view| view.tool.id.as_str());
    let shown = if full { Tool::full } else { Tool::basic };
    Ok(list.answer(&Items { items: tools.iter().map(shown).collect() }, end))
}

/// One tool with its schemas.
#[utoipa::path(
    get, path = "/v1/mcps/{id}", tag = "mcps", operation_id = "get_tool",
    params(("id" = String, Path, description = "`<provider>:<tool_name>`")),
    responses(
        (status = 200, description = "the tool", body = One<Tool>),
    )
)]
pub(crate) async fn get(NoQuery(ctx, gateway): NoQuery, ToolPath(id): ToolPath) -> HandlerResult {
    match id.and_then(|id| gateway.app.tools.tool(&ctx, &id)) {
        Ok(view) => Ok(Outcome::data(&Tool::full(&view))),
        Err(refusal) => Err(nearest::told(&gateway, &ctx, &NamedBy::Id, refusal.into()).await),
    }
}

/// Lists what providers of the caller have and what is not in the catalogue all the same, with the reasons.
///
/// At most 50 of each provider are named.
#[utoipa::path(
    get, path = "/v1/tools/left-out", tag = "mcps", operation_id = "list_left_out_tools",
    params(
        ("provider" = Option<String>, Query, description = "slugs, comma-separated", pattern = "[^, ]"),
        ("kind" = Option<String>, Query, description = "`tool`, `prompt`, `skill`, `resource`, `resource_template`, comma-separated", pattern = "^(tool|prompt|skill|resource|resource_template)(,(tool|prompt|skill|resource|resource_template))*$"),
        ("limit" = Option<u32>, Query, description = "1 to 200, default 50"),
        ("cursor" = Option<String>, Query, description = "from `meta.pagination.next_cursor`"),
    ),
    responses(
        (status = 200, description = "a page of tools", body = Paged<Items<LeftOut>>),
    )
)]
pub(crate) async fn left_out(WithQuery(ctx, gateway, raw): WithQuery) -> HandlerResult {
    let list = Listing::read(&gateway, &ctx, "left_out", &["provider", "kind"], raw.as_deref())?;
    let (wanted, kinds) = (list.query.list("provider"), list.kinds()?);
    let mut all = gateway.app.tools.left_out(&ctx);
    all.retain(|tool| wanted.is_empty() || wanted.contains(&tool.provider));
    all.retain(|tool| kinds.is_empty() || kinds.contains(&tool.kind));
    let from = list.after.as_deref().and_then(|after| after.parse().ok()).unwrap_or(0_usize);
    let items: Vec<_> = all.iter().skip(from).take(list.limit).map(LeftOut::of).collect();
    let to = from + items.len();
    let end = (to < all.len()).then(|| to.to_string());
    Ok(list.answer(&Items { items }, end.as_deref()))
}

/// A tool, prompt or resource that is not in the catalogue.
#[derive(Serialize, ToSchema)]
pub(crate) struct LeftOut<'a> {
    kind: CapabilityKind,
    /// Slug of its provider.
    #[schema(example = "github")]
    provider: &'a str,
    /// Its name at the provider, as far as it can be shown; empty if it has none.
    #[schema(example = "create issue")]
    name: &'a str,
    /// Reason.
    reason: &'a str,
}

impl<'a> LeftOut<'a> {
    fn of(tool: &'a LeftOutTool) -> Self {
        Self { kind: tool.kind, provider: &tool.provider, name: &tool.name, reason: &tool.reason }
    }
}

fn access_named(name: &str) -> Option<Access> {
    let all = [Access::Allow, Access::Deny, Access::Conditional];
    all.into_iter().find(|access| access.as_str() == name)
}

/// A tool as the caller sees it.
#[derive(Serialize, ToSchema)]
#[expect(clippy::option_option, reason = "absent in basic views, `null` where there is none")]
pub(crate) struct Tool<'a> {
    #[schema(value_type = String, example = "github:create_issue")]
    id: &'a CapabilityId,
    /// Slug of its provider.
    #[schema(example = "github")]
    provider: &'a str,
    /// Its name at the provider.
    #[schema(example = "create_issue")]
    name: &'a str,
    title: Option<&'a str>,
    description: Option<&'a str>,
    access: Access,
    status: ToolStatus,
    /// SHA-256 of its definition.
    version: &'a str,
    /// Untrusted hints of the provider, such as `readOnlyHint`; an object or `null`.
    annotations: &'a Value,
    updated_at: Timestamp,
    /// JSON Schema of `input`. In full views.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    input_schema: Option<&'a Value>,
    /// JSON Schema of structured results; `null` if the tool declares none. In full views.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    output_schema: Option<Option<&'a Value>>,
    /// JSON Pointers to patterns of `input_schema` that are not enforced, because they have lookaround or back
    /// references; left out if there are none. In full views.
    #[serde(skip_serializing_if = "Option::is_none")]
    unenforced_patterns: Option<&'a [String]>,
    /// Reason to leave out the JSON Schema that the tool declares for structured results, if it cannot be used.
    /// In full views.
    #[serde(skip_serializing_if = "Option::is_none")]
    output_schema_error: Option<String>,
    /// The connection that it is called through. In full views.
    #[serde(skip_serializing_if = "Option::is_none")]
    provider_id: Option<ProviderId>,
}

impl<'a> Tool<'a> {
    fn basic(view: &'a ToolView) -> Self {
        let definition = view.tool.listed_definition();
        Self {
            id: &view.tool.id,
            provider: view.tool.id.provider(),
            name: view.tool.id.name(),
            title: definition.title.as_deref(),
            description: definition.description.as_deref(),
            access: view.access,
            status: view.status,
            version: &view.tool.version,
            annotations: &definition.annotations,
            updated_at: view.tool.updated_at,
            input_schema: None,
            output_schema: None,
            unenforced_patterns: None,
            output_schema_error: None,
            provider_id: None,
        }
    }

    fn full(view: &'a ToolView) -> Self {
        let definition = view.tool.listed_definition();
        let unenforced = view.tool.unenforced();
        Self {
            input_schema: Some(&definition.input_schema),
            output_schema: Some(definition.output_schema.as_ref()),
            unenforced_patterns: Some(unenforced).filter(|all| !all.is_empty()),
            output_schema_error: view.tool.output_error().map(ToString::to_string),
            provider_id: Some(view.provider_id),
            ..Self::basic(view)
        }
    }
}
