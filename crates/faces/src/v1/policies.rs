//! `/v1/policies`: the policies in force.

use std::borrow::Cow;

use portcullis_app::{CaseReport, Ctx, PolicyPage, PolicyQuery, PolicyStats, capability_named};
use portcullis_core::{
    clock::Timestamp,
    policy::{FullRecord, PolicyError, PolicyRecord, Somebody, SomebodyError},
    refusal::Refusal,
};
use serde::Serialize;
use utoipa::ToSchema;

use super::{Segment, segment};
use crate::{
    exchange::{ErrorAnswer, HandlerResult, Listing, One, Outcome, Paged, Query, WithQuery},
    gateway::Gateway,
};

const FILTERS: [&str; 6] = ["status", "effect", "tool", "principal", "tag", "q"];

/// Lists policies by id, with the state of the whole set beside them.
#[utoipa::path(
    get, path = "/v1/policies", tag = "policies", operation_id = "list_policies",
    params(
        ("status" = Option<String>, Query, description = "`active`, `shadow`, `disabled`, comma-separated", pattern = "^(active|shadow|disabled)(,(active|shadow|disabled))*$"),
        ("effect" = Option<String>, Query, description = "`permit` or `forbid`, or both, comma-separated", pattern = "^(permit|forbid)(,(permit|forbid))*$"),
        ("tool" = Option<String>, Query, description = "policies that can apply to this tool", max_length = 200, pattern = "[^, ]"),
        ("principal" = Option<String>, Query, description = "policies that can apply to it: `usr_…`, `sa_…`, `Mcp::Group::\"…\"`", max_length = 200, pattern = "[^, ]"),
        ("tag" = Option<String>, Query, description = "policies with this tag", max_length = 100, pattern = "[^, ]"),
        ("q" = Option<String>, Query, description = "substring of id, title or description", max_length = 100, pattern = "[^, ]"),
        ("limit" = Option<u32>, Query, description = "1 to 200, default 50"),
        ("cursor" = Option<String>, Query, description = "from `meta.pagination.next_cursor`"),
    ),
    responses(
        (status = 200, description = "a page of policies", body = Paged<Policies>),
        (status = 404, description = "no such tool for this caller", body = ErrorAnswer),
    )
)]
pub(crate) async fn list(WithQuery(ctx, gateway, raw): WithQuery) -> HandlerResult {
    let list = Listing::read(&gateway, &ctx, "policies", &FILTERS, raw.as_deref())?;
    let query = &list.query;
    let effects = query.any_of("effect", &["permit", "forbid"])?;
    let wanted = PolicyQuery {
        statuses: query.any_of("status", &["active", "shadow", "disabled"])?,
        effect: effects.first().filter(|_| effects.len() == 1).cloned(),
        tool: query.short("tool", 200)?.map(|text| capability_named(&text)).transpose()?,
        principal: query.short("principal", 200)?.map(|text| somebody(&text)).transpose()?,
        tag: query.short("tag", 100)?,
        text: query.short("q", 100)?,
        after: list.after.clone(),
        limit: list.limit,
    };
    let page = gateway.app.policies.list(&ctx, &wanted).await?;
    let PolicyPage { set, found, more, .. } = &page;
    let records: Vec<_> = found.iter().filter_map(|index| set.records().get(*index)).collect();
    let end = records.last().filter(|_| *more).map(|record| &*record.id);
    let items = records.iter().map(|record| ListedPolicy {
        stats: gateway.app.policies.policy_stats(&ctx, set, &record.id),
        record: warned(as_switched(&gateway, &ctx, record), &page),
    });
    let data = Policies { items: items.collect(), policy_set: policy_set(&gateway, &page) };
    Ok(list.answer(&data, end))
}

/// One policy with its source.
#[utoipa::path(
    get, path = "/v1/policies/{id}", tag = "policies", operation_id = "get_policy",
    params(
        ("id" = String, Path, description = "the policy's `@id`, which is its name"),
        ("version" = Option<String>, Query, description = "the version an event points at", pattern = "[^, ]"),
    ),
    responses(
        (status = 200, description = "the policy", body = One<Policy>,
            headers(("ETag" = String, description = "changes with the policy and its override; absent for an earlier version"))),
        (status = 404, description = "no such policy, or not in that version", body = ErrorAnswer),
    )
)]
pub(crate) async fn get(WithQuery(ctx, gateway, raw): WithQuery, path: Segment) -> HandlerResult {
    let query = Query::parse(raw.as_deref(), &["version"])?;
    let id = segment(path);
    let found = gateway.app.policies.policy(&ctx, &id).await;
    let wanted = query.text("version");
    if let Ok((set, record)) = &found
        && wanted.is_none_or(|version| record.version.as_deref() == Some(version))
    {
        let etag = gateway.app.administration.policy_version_tag(&ctx, record);
        let record = as_switched(&gateway, &ctx, record);
        let stats = Some(gateway.app.policies.policy_stats(&ctx, set, &id));
        return Ok(Outcome::data(&Policy { record: record.full(), stats }).with_etag(&etag));
    }
    // A policy that is gone can still be read in the version that an event points at.
    match (wanted, found) {
        (Some(version), _) => {
            Ok(Outcome::data(&gateway.app.policies.policy_version(&ctx, &id, version).await?))
        }
        (None, found) => Err(found.err().unwrap_or(Refusal::Internal).into()),
    }
}

fn somebody(text: &str) -> Result<Somebody, Refusal> {
    let wrong = |error: SomebodyError| Refusal::bad_parameter("principal", error.to_string());
    text.parse().map_err(wrong)
}

/// The record as it counts now: a policy can be switched off for a while.
fn as_switched<'a>(
    gateway: &Gateway,
    ctx: &Ctx,
    record: &'a PolicyRecord,
) -> Cow<'a, PolicyRecord> {
    let off = gateway.app.policies.switched_off(ctx.caller().org_id, &record.id);
    off.map_or(Cow::Borrowed(record), |off| Cow::Owned(record.switched_off(off)))
}

/// The record with what is to be said about it to the caller's org.
fn warned<'a>(record: Cow<'a, PolicyRecord>, page: &PolicyPage) -> Cow<'a, PolicyRecord> {
    match page.warnings.get(&record.id) {
        Some(warnings) => Cow::Owned(record.warning(warnings.clone())),
        None => record,
    }
}

/// A policy in a list.
#[derive(Serialize, ToSchema)]
struct ListedPolicy<'a> {
    #[serde(flatten)]
    #[schema(value_type = PolicyRecord)]
    record: Cow<'a, PolicyRecord>,
    /// Its counters in the caller's org since this node runs.
    stats: PolicyStats,
}

/// A policy with its source.
#[derive(Serialize, ToSchema)]
pub(crate) struct Policy<'a> {
    #[serde(flatten)]
    record: FullRecord<'a>,
    /// Its counters in the caller's org since this node runs; absent for an earlier version.
    #[serde(skip_serializing_if = "Option::is_none")]
    stats: Option<PolicyStats>,
}

/// Policies and the set that they are in.
#[derive(Serialize, ToSchema)]
pub(crate) struct Policies<'a> {
    items: Vec<ListedPolicy<'a>>,
    policy_set: PolicySetView<'a>,
}

/// The set in force.
#[derive(Serialize, ToSchema)]
#[schema(as = PolicySet)]
struct PolicySetView<'a> {
    /// SHA-256 of the whole set.
    version: &'a str,
    loaded_at: Timestamp,
    /// Policies that decide.
    active: usize,
    /// Policies that are only reported.
    shadow: usize,
    /// Policies that are switched off.
    disabled: usize,
    /// Policies that no longer fit a tool they may apply to.
    invalid: usize,
    /// Policies that name neither principals nor actions.
    unindexed: usize,
    tests: CaseReport,
    last_reload: LastReload<'a>,
}

/// The last attempt to load the policies.
#[derive(Serialize, ToSchema)]
struct LastReload<'a> {
    status: ReloadStatus,
    at: Timestamp,
    #[schema(value_type = Vec<PolicyError>)]
    errors: &'a [PolicyError],
}

/// Result of a reload.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum ReloadStatus {
    /// The files are in force.
    Ok,
    /// The policies have errors; the set before them stays in force.
    Failed,
}

fn policy_set<'a>(gateway: &Gateway, page: &'a PolicyPage) -> PolicySetView<'a> {
    let PolicyPage { set, reload, errors, .. } = page;
    let failed = !reload.errors.is_empty();
    let summary = set.summary();
    PolicySetView {
        version: set.version(),
        loaded_at: summary.loaded_at,
        active: summary.active,
        shadow: summary.shadow,
        disabled: summary.disabled,
        invalid: summary.invalid,
        unindexed: summary.unindexed,
        tests: CaseReport::clone(&gateway.app.policies.case_report()),
        last_reload: LastReload {
            status: if failed { ReloadStatus::Failed } else { ReloadStatus::Ok },
            at: reload.at,
            errors,
        },
    }
}
