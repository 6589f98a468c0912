//! `/v1/approvals`: calls that wait for people, and what people decide about them.

use portcullis_app::{ApprovalView, DecisionRequest};
use portcullis_core::{approval::Vote, id::ApprovalId, refusal::Refusal};
use portcullis_store::ApprovalFilter;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::{Segment, segment};
use crate::exchange::{
    ErrorAnswer, HandlerResult, Items, Listing, NoQuery, One, Outcome, Paged, RequestBody,
    WithQuery, body,
};

/// The longest comment in characters.
const LONGEST_COMMENT: usize = 1_000;
/// The longest text of a member in bytes, so that a comment of any letters fits.
const LONGEST: usize = 4 * LONGEST_COMMENT;
const MEMBERS: [&str; 3] = ["decision", "comment", "digest"];

/// Lists approvals, the newest first: those of one's own calls, and those that one may decide.
///
/// Admins and auditors see all of their org. A page can hold fewer than `limit` and still have a `next_cursor`.
#[utoipa::path(
    get, path = "/v1/approvals", tag = "approvals", operation_id = "list_approvals",
    params(
        ApprovalFilter,
        ("limit" = Option<u32>, Query, description = "1 to 200, default 50"),
        ("cursor" = Option<String>, Query, description = "from `meta.pagination.next_cursor`"),
    ),
    responses(
        (status = 200, description = "a page of approvals", body = Paged<Items<ApprovalView>>),
    )
)]
pub(crate) async fn list(WithQuery(ctx, gateway, raw): WithQuery) -> HandlerResult {
    let (filter, list): (ApprovalFilter, _) =
        Listing::filtered(&gateway, &ctx, "approvals", &[], raw.as_deref())?;
    let page = gateway.app.approvals.list(&ctx, filter, list.after(), list.limit).await?;
    Ok(list.answer(&Items { items: page.items }, page.end.as_ref()))
}

/// One approval, with the latest ones of the same tool.
///
/// `input` is what will be sent, masked as an answer would be.
#[utoipa::path(
    get, path = "/v1/approvals/{id}", tag = "approvals", operation_id = "get_approval",
    params(("id" = String, Path, description = "`apr_` and a ULID")),
    responses(
        (status = 200, description = "the approval", body = One<ApprovalView>),
    )
)]
pub(crate) async fn get(NoQuery(ctx, gateway): NoQuery, path: Segment) -> HandlerResult {
    Ok(Outcome::data(&gateway.app.approvals.get(&ctx, parse_id(path)?).await?))
}

/// Decides about an approval.
///
/// For people in one of its groups and for admins, who neither asked for the call nor act for the
/// principal who did.
#[utoipa::path(
    post, path = "/v1/approvals/{id}/decision", tag = "approvals", operation_id = "decide_approval",
    params(("id" = String, Path, description = "`apr_` and a ULID")),
    request_body = DecisionAsked,
    responses(
        (status = 200, description = "the decision is recorded; the approval as it is now", body = One<ApprovalView>),
        (status = 400, description = "not understood, or `digest` is not that of the approval", body = ErrorAnswer),
        (status = 403, description = "the token lacks `approvals:decide`, or this caller must not decide: a service account, a delegated token, whoever asked, or somebody without the second factor that the policy wants", body = ErrorAnswer),
        (status = 409, description = "it is not pending any more, or this person decided already", body = ErrorAnswer),
    )
)]
pub(crate) async fn decide(
    NoQuery(ctx, gateway): NoQuery,
    path: Segment,
    request: RequestBody,
) -> HandlerResult {
    let decision = decision(request.optional_object().await?)?;
    Ok(Outcome::data(&gateway.app.approvals.decide(&ctx, parse_id(path)?, decision).await?))
}

/// The approval that the path names. What is malformed can name none.
pub(crate) fn parse_id(path: Segment) -> Result<ApprovalId, Refusal> {
    let text = segment(path);
    text.parse().map_err(|_| Refusal::not_found("approval", &text))
}

/// The decision in the members of a body.
pub(crate) fn decision(mut members: Map<String, Value>) -> Result<DecisionRequest, Refusal> {
    body::only(&members, &MEMBERS)?;
    let vote = match body::text(&mut members, "decision", LONGEST)?.as_deref() {
        Some("approve") => Vote::Approve,
        Some("deny") => Vote::Deny,
        Some(_) | None => {
            return Err(body::wrong_member("decision", "has to be `approve` or `deny`"));
        }
    };
    let comment = body::text(&mut members, "comment", LONGEST)?;
    if comment.as_deref().is_some_and(|text| !is_comment(text)) {
        let problem =
            "has to be 1 to 1000 characters without control characters other than line feeds";
        return Err(body::wrong_member("comment", problem));
    }
    let digest = body::text(&mut members, "digest", LONGEST)?;
    if digest.as_deref().is_some_and(|text| !is_digest(text)) {
        return Err(body::wrong_member("digest", "has to be `sha256:` and 64 hexadecimal digits"));
    }
    Ok(DecisionRequest { vote, comment, digest })
}

fn is_comment(text: &str) -> bool {
    (1..=LONGEST_COMMENT).contains(&text.chars().count())
        && text.chars().all(|c| c == '\n' || !c.is_control())
}

fn is_digest(text: &str) -> bool {
    let digits = text.strip_prefix("sha256:").unwrap_or_default();
    digits.len() == 64 && digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// The body of a decision.
#[derive(ToSchema)]
#[expect(dead_code, reason = "the body is parsed strictly above")]
pub(crate) struct DecisionAsked {
    /// Yes or no.
    decision: Vote,
    /// The reason, for everybody who may see the approval. Secrets and personal data in it are masked.
    #[schema(
        example = "Invoice 7731 was checked",
        min_length = 1,
        max_length = 1000,
        pattern = r"^[^\u0000-\u0009\u000b-\u001f\u007f-\u009f]*$"
    )]
    comment: Option<String>,
    /// Digest of the call that was looked at: the decision is refused if it is another.
    #[schema(
        example = "sha256:7793fa2d927dc2fa20b9ab42d4fe76a793d56568e68acf3a6c3f8fb5ca991873",
        pattern = "^sha256:[0-9a-f]{64}$"
    )]
    digest: Option<String>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(body: &Value) -> Result<DecisionRequest, Refusal> {
        decision(body.as_object().unwrap().clone())
    }

    #[test]
    fn a_decision_is_read_strictly() {
        let digest = format!("sha256:{}", "0a".repeat(32));
        let all = json!({"decision": "deny", "comment": "a\nb", "digest": digest});

        assert_eq!(read(&all).unwrap().vote, Vote::Deny);
        assert!(read(&json!({"decision": "approve", "comment": "ä".repeat(1_000)})).is_ok());
        for wrong in [
            json!({}),
            json!({"decision": "yes"}),
            json!({"decision": true}),
            json!({"decision": "approve", "comment": ""}),
            json!({"decision": "approve", "comment": "x".repeat(1_001)}),
            json!({"decision": "approve", "comment": "a\rb"}),
            json!({"decision": "approve", "comment": "a\u{9b}b"}),
            json!({"decision": "approve", "digest": "sha256:00"}),
            json!({"decision": "approve", "digest": digest.to_uppercase()}),
            json!({"decision": "approve", "reason": "x"}),
        ] {
            assert!(read(&wrong).is_err(), "{wrong}");
        }
    }
}
