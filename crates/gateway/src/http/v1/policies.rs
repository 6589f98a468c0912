//! `/v1/policies`: the policies in force, read-only.

use std::sync::Arc;

use axum::extract::{RawQuery, State};
use portcullis_app::{Ctx, PolicyPage, PolicyQuery};
use portcullis_core::{
    policy::{PolicySet, Somebody, SomebodyError},
    principal::Scope,
    refusal::Refusal,
};
use serde_json::{Value, json};

use super::{
    Segment, segment,
    shapes::{ErrorAnswer, Many, One},
};
use crate::http::{Gateway, answer::Answer, caller::Known, page::Listing, query::Query};

const FILTERS: [&str; 6] = ["status", "effect", "tool", "principal", "tag", "q"];

/// Lists policies by id, with the state of the whole set beside them.
#[utoipa::path(
    get, path = "/v1/policies", tag = "policies",
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
        (status = 200, description = "a page of policies", body = Many),
        (status = 400, description = "bad parameter", body = ErrorAnswer),
        (status = 401, description = "no live token", body = ErrorAnswer),
        (status = 403, description = "the token lacks `policies:read`", body = ErrorAnswer),
        (status = 404, description = "no such tool for this caller", body = ErrorAnswer),
    )
)]
pub(crate) async fn list(
    Known(ctx): Known,
    State(gateway): State<Arc<Gateway>>,
    RawQuery(raw): RawQuery,
) -> Result<Answer, Answer> {
    ctx.require(Scope::PoliciesRead)?;
    let list = Listing::read(&gateway, &ctx, "policies", &FILTERS, raw.as_deref())?;
    let query = &list.query;
    let effects = query.any_of("effect", &["permit", "forbid"])?;
    let wanted = PolicyQuery {
        statuses: query.any_of("status", &["active", "shadow", "disabled"])?,
        effect: effects.first().filter(|_| effects.len() == 1).cloned(),
        tool: query.short("tool", 200)?,
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
    let items: Vec<Value> = records
        .iter()
        .map(|record| with_stats(&gateway, &ctx, set, &record.id, json!(record)))
        .collect();
    let data = json!({ "items": items, "policy_set": policy_set(&gateway, &page) });
    Ok(list.answer(data, end))
}

/// One policy with its source.
#[utoipa::path(
    get, path = "/v1/policies/{id}", tag = "policies",
    params(
        ("id" = String, Path, description = "the policy's `@id`, which is its name"),
        ("version" = Option<String>, Query, description = "the version an event points at", pattern = "[^, ]"),
    ),
    responses(
        (status = 200, description = "the policy", body = One),
        (status = 401, description = "no live token", body = ErrorAnswer),
        (status = 403, description = "the token lacks `policies:read`", body = ErrorAnswer),
        (status = 404, description = "no such policy, or not in that version", body = ErrorAnswer),
    )
)]
pub(crate) async fn get(
    Known(ctx): Known,
    State(gateway): State<Arc<Gateway>>,
    path: Segment,
    RawQuery(raw): RawQuery,
) -> Result<Answer, Answer> {
    ctx.require(Scope::PoliciesRead)?;
    let query = Query::parse(raw.as_deref(), &["version"])?;
    let id = segment(path);
    let found = gateway.app.policies.policy(&ctx, &id).await;
    let wanted = query.text("version");
    if let Ok((set, index)) = &found {
        let record = set.records().get(*index).ok_or(Refusal::Internal)?;
        if wanted.is_none_or(|version| record.version.as_deref() == Some(version)) {
            return Ok(Answer::Data(with_stats(&gateway, &ctx, set, &id, json!(record.full()))));
        }
    }
    // A policy that is gone can still be read in the version that an event points at.
    match (wanted, found) {
        (Some(version), _) => {
            Ok(Answer::Data(gateway.app.policies.policy_version(&ctx, &id, version).await?))
        }
        (None, found) => Err(found.err().unwrap_or(Refusal::Internal).into()),
    }
}

fn somebody(text: &str) -> Result<Somebody, Refusal> {
    let wrong = |error: SomebodyError| Refusal::bad_parameter("principal", error.to_string());
    text.parse().map_err(wrong)
}

/// The record with what became of the policy in the caller's org since this node runs.
fn with_stats(gateway: &Gateway, ctx: &Ctx, set: &PolicySet, id: &str, mut record: Value) -> Value {
    if let Value::Object(members) = &mut record {
        members.insert("stats".to_owned(), json!(gateway.app.policies.policy_stats(ctx, set, id)));
        if let (Some(until), Some(Value::Object(origin))) =
            (gateway.app.policies.switched_off_until(id), members.get_mut("origin"))
        {
            let switched = json!({ "status": "disabled", "until": until });
            origin.insert("override".to_owned(), switched);
        }
    }
    record
}

fn policy_set(gateway: &Gateway, PolicyPage { set, reload, errors, .. }: &PolicyPage) -> Value {
    let status = if reload.errors.is_empty() { "ok" } else { "failed" };
    let summary = set.summary();
    json!({
        "version": set.version(),
        "loaded_at": summary.loaded_at,
        "active": summary.active,
        "shadow": summary.shadow,
        "disabled": summary.disabled,
        "invalid": summary.invalid,
        "unindexed": summary.unindexed,
        "tests": *gateway.app.policies.case_report(),
        "last_reload": { "status": status, "at": reload.at, "errors": errors },
    })
}
