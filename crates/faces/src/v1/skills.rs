//! `/v1/skills`: skills that the caller may use. Their files are read as [resources](super::resources::read).

use portcullis_app::{ToolStatus, ToolView};
use portcullis_core::{capability::CapabilityKind, clock::Timestamp, mcp::skills, policy::Access};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::SkillPath;
use crate::exchange::{HandlerResult, Items, Listing, NoQuery, One, Outcome, Paged, WithQuery};

/// Lists the skills that the caller may use, by id.
#[utoipa::path(
    get, path = "/v1/skills", tag = "skills", operation_id = "list_skills",
    params(
        ("provider" = Option<String>, Query, description = "slugs, comma-separated", pattern = "[^, ]"),
        ("q" = Option<String>, Query, description = "substring of id or description", max_length = 100, pattern = "[^, ]"),
        ("limit" = Option<u32>, Query, description = "1 to 200, default 50"),
        ("cursor" = Option<String>, Query, description = "from `meta.pagination.next_cursor`"),
    ),
    responses(
        (status = 200, description = "a page of skills", body = Paged<Items<Skill>>),
    )
)]
pub(crate) async fn list(WithQuery(ctx, gateway, raw): WithQuery) -> HandlerResult {
    let list = Listing::read(&gateway, &ctx, "skills", &["provider", "q"], raw.as_deref())?;
    let wanted = list.usable(CapabilityKind::Skill)?;
    let (skills, more) = gateway.app.tools.list(&ctx, &wanted)?;
    let end = skills.last().filter(|_| more).map(|view| view.tool.id.as_str());
    Ok(list.answer(&Items { items: skills.iter().map(Skill::of).collect() }, end))
}

/// One skill with its frontmatter and its manifest, as they were accepted.
///
/// A skill that policies deny in any case is answered as one that does not exist.
#[utoipa::path(
    get, path = "/v1/skills/{id}", tag = "skills", operation_id = "get_skill",
    params(("id" = String, Path, description = "`<provider>:<uri>`, percent-encoded")),
    responses(
        (status = 200, description = "the skill", body = One<Skill>),
    )
)]
pub(crate) async fn get(NoQuery(ctx, gateway): NoQuery, SkillPath(id): SkillPath) -> HandlerResult {
    let view = gateway.app.tools.seen(&ctx, &id?)?;
    Ok(Outcome::data(&Skill::of(&view)))
}

/// A skill as the caller sees it.
#[derive(Serialize, ToSchema)]
pub(crate) struct Skill<'a> {
    #[schema(example = "sample:skill://refund-policy/SKILL.md")]
    id: &'a str,
    /// Slug of its provider.
    #[schema(example = "sample")]
    provider: &'a str,
    /// URI of its `SKILL.md` at the provider.
    uri: &'a str,
    /// Frontmatter of its `SKILL.md`, with `name` and `description`.
    #[schema(value_type = Object)]
    frontmatter: Value,
    /// Its files: objects with `uri`, `digest` and `size`; `dynamic` if they have no digests.
    #[schema(value_type = Value)]
    resources: Value,
    access: Access,
    status: ToolStatus,
    /// SHA-256 of its definition, which frontmatter and manifest are.
    version: &'a str,
    updated_at: Timestamp,
}

impl<'a> Skill<'a> {
    fn of(view: &'a ToolView) -> Self {
        let entry = skills::entry(&view.tool.definition.more, str::to_owned);
        let [(_, frontmatter), (_, resources)] = entry;
        Self {
            id: view.tool.id.short(),
            provider: view.tool.id.provider(),
            uri: view.tool.id.name(),
            frontmatter,
            resources,
            access: view.access,
            status: view.status,
            version: &view.tool.version,
            updated_at: view.tool.updated_at,
        }
    }
}
