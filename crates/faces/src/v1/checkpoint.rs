//! `/v1/audit/checkpoint` and the proofs of events: what outsiders verify the log with.

use axum::response::{IntoResponse, Response};
use portcullis_app::CheckpointSince;
use serde::Serialize;
use utoipa::ToSchema;

use super::{Segment, segment};
use crate::exchange::{ErrorAnswer, NoQuery, One, Outcome, Query, WithQuery};

/// The latest signed checkpoint of the org's log; with `since`, in the envelope and with the proof
/// that the log of that size is its beginning.
#[utoipa::path(
    get, path = "/v1/audit/checkpoint", tag = "audit", operation_id = "get_checkpoint",
    params(
        ("since" = Option<u64>, Query, description = "size of a tree seen before; then the answer \
            is an envelope with `data.checkpoint`, `data.since` and `data.consistency`"),
    ),
    responses(
        (status = 200, description = "a C2SP signed note (`tlog-checkpoint`); with `since`, an \
            envelope", content((String = "text/plain"), (One<Consistency> = "application/json"))),
        (status = 400, description = "`since` is no size, or larger than the log",
            body = ErrorAnswer),
    )
)]
pub(crate) async fn get(WithQuery(ctx, gateway, raw): WithQuery) -> Result<Response, Outcome> {
    let query = Query::parse(raw.as_deref(), &["since"])?;
    let Some(since) = query.parsed::<u64>("since", "the size of a tree")? else {
        return Ok(gateway.app.audit.checkpoint(&ctx).await?.into_response());
    };
    let found = gateway.app.audit.checkpoint_since(&ctx, since).await?;
    let CheckpointSince { checkpoint, since, consistency } = found;
    Ok(Outcome::data(&Consistency { checkpoint, since, consistency }).into_response())
}

/// A checkpoint and the proof that it continues an older one.
#[derive(Serialize, ToSchema)]
#[expect(clippy::struct_field_names, reason = "as the log's specification names it")]
pub(crate) struct Consistency {
    /// A C2SP signed note.
    checkpoint: String,
    /// Size of the older tree.
    since: u64,
    /// The consistency proof (RFC 6962 §2.1.2), each hash in base64.
    consistency: Vec<String>,
}

/// The proof that an event is in the log, to be verified offline with the log's verifier key.
#[utoipa::path(
    get, path = "/v1/audit/events/{id}/proof", tag = "audit", operation_id = "get_event_proof",
    params(("id" = String, Path, description = "`evt_` and a ULID")),
    responses(
        (status = 200, description = "`c2sp.org/tlog-proof@v1`: index, inclusion path, signed \
            checkpoint", body = String, content_type = "text/plain"),
        (status = 404, description = "no such event for this caller, or not covered by a signed \
            checkpoint yet", body = ErrorAnswer),
    )
)]
pub(crate) async fn proof(
    NoQuery(ctx, gateway): NoQuery,
    path: Segment,
) -> Result<String, Outcome> {
    Ok(gateway.app.audit.event_proof(&ctx, &segment(path)).await?)
}
