//! The shapes of answers, as the OpenAPI document tells them.

use serde_json::Value;
use utoipa::ToSchema;

/// What every answer says about itself.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes the answers that `answer.rs` writes")]
pub(crate) struct Meta {
    /// `req_` and a ULID; also in `X-Request-Id`.
    request_id: String,
    /// When the answer was made, RFC 3339 in UTC with milliseconds.
    timestamp: String,
    /// On answers that have an event: how the call ended. Open set.
    outcome: Option<String>,
    /// On lists.
    pagination: Option<Pagination>,
}

/// Where a list goes on.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes the answers that `answer.rs` writes")]
pub(crate) struct Pagination {
    /// The page size in force.
    limit: u32,
    /// Pass it as `cursor` for the next page; `null` at the end.
    next_cursor: Option<String>,
}

/// One resource.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes the answers that `answer.rs` writes")]
pub(crate) struct One {
    /// The record.
    #[schema(value_type = Object)]
    data: Value,
    meta: Meta,
}

/// A page of resources.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes the answers that `answer.rs` writes")]
pub(crate) struct Many {
    data: Items,
    meta: Meta,
}

/// The resources of a page.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes the answers that `answer.rs` writes")]
pub(crate) struct Items {
    /// The records, in the order of the list.
    #[schema(value_type = Vec<Object>)]
    items: Vec<Value>,
}

/// What was decided on a call.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes the answers that `answer.rs` writes")]
pub(crate) struct Governance {
    /// `allow` or `deny`. Open set: treat anything else as not permitted.
    #[schema(example = "allow")]
    decision: String,
    /// Name of the policy that decided.
    policy: String,
    /// `passed`, `flagged`, `redacted`, `blocked` or `skipped`. Open set.
    #[schema(example = "passed")]
    dlp_result: String,
    /// `evt_` and a ULID: the recorded event.
    audit_event_id: String,
}

/// The answer of an invocation.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes the answers that `answer.rs` writes")]
pub(crate) struct InvokeAnswer {
    /// What the tool gave, as far as it may leave.
    #[schema(value_type = Object)]
    result: Value,
    governance: Governance,
    meta: Meta,
}

/// The body of an invocation.
#[derive(ToSchema)]
#[expect(dead_code, reason = "the body is parsed strictly by `body.rs`")]
pub(crate) struct InvokeRequest {
    /// Arguments of the tool; `{}` for none.
    #[schema(value_type = Object)]
    input: Value,
}

/// The body of a simulation: `requests`, or one call with `tool`, or `replay`.
#[derive(ToSchema)]
#[expect(dead_code, reason = "the body is parsed strictly by the app")]
pub(crate) struct SimulateRequest {
    /// Hypothetical calls: `{id?, principal?, agent?, tool, input, phase?, output?, context?, dlp?,
    /// expect?}`; at most 1,000.
    #[schema(value_type = Option<Vec<Object>>)]
    requests: Option<Value>,
    /// One call instead of `requests`: the tool's id.
    tool: Option<String>,
    /// One call instead of `requests`: its arguments.
    #[schema(value_type = Option<Object>)]
    input: Option<Value>,
    /// One call instead of `requests`: who calls; asking as somebody else needs `admin`.
    #[schema(value_type = Option<Object>)]
    principal: Option<Value>,
    /// Recorded calls: `{from?, to?, filter?, event_ids?, sample?, limit?, cursor?}`.
    #[schema(value_type = Option<Object>)]
    replay: Option<Value>,
    /// The policies to ask: `{base?, upsert?, remove?, set_status?}`; those in force by default.
    #[schema(value_type = Option<Object>)]
    policies: Option<Value>,
    /// What to compare with: `live`, `sha256:…` or, of a replay, `recorded`.
    baseline: Option<String>,
    /// `{explain?, include_shadow?, changed_only?, group?, max_changes?, timeout_ms?}`.
    #[schema(value_type = Option<Object>)]
    options: Option<Value>,
}

/// The body of an export; without any, the last 30 days as `jsonl`.
#[derive(ToSchema)]
#[expect(dead_code, reason = "the body is parsed strictly by `exports.rs`")]
pub(crate) struct ExportAsked {
    /// RFC 3339, inclusive, on `recorded_at`; 30 days before `to` by default.
    #[schema(format = DateTime)]
    from: Option<String>,
    /// RFC 3339, exclusive; now by default. At most 366 days after `from`.
    #[schema(format = DateTime)]
    to: Option<String>,
    /// `jsonl` (default), `csv` or `ocsf`.
    #[schema(example = "jsonl", pattern = "^(jsonl|csv|ocsf)$")]
    format: Option<String>,
    /// The filters of `GET /v1/audit/events`, each with an array of values.
    #[schema(value_type = Option<Object>)]
    filters: Option<Value>,
    /// Of `jsonl`: `payloads`, `proofs`.
    include: Option<Vec<String>>,
    /// Of `jsonl`: the size of a tree whose checkpoint you kept. The file then also proves that
    /// the log of that time is its beginning.
    since: Option<u64>,
}

/// Any answer that is not a result.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes the answers that `answer.rs` writes")]
pub(crate) struct ErrorAnswer {
    error: ErrorBody,
    /// Present exactly when a decision was reached.
    governance: Option<Governance>,
    meta: Meta,
}

/// What went wrong.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes the answers that `answer.rs` writes")]
pub(crate) struct ErrorBody {
    /// Stable, in snake case.
    #[schema(example = "policy_denied")]
    code: String,
    /// One English sentence for people; never parse it.
    message: String,
    /// Always an object.
    #[schema(value_type = Object)]
    details: Value,
}
