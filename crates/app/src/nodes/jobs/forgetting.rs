//! Removes what is worth nothing any more: JWTs that have expired, pairs that may not be asked
//! for again, idempotency keys that are a day old, browser sessions that ended, login links that were
//! not used, tokens and approvals that ended long ago, changes that every node has seen, usage of more than a year
//! ago. A request too early or too late changes no answer.

use std::time::Duration;

use portcullis_store::ApprovalLimits;

use crate::nodes::Nodes;

/// Days after which an ended approval is forgotten. Events of it stay.
const APPROVALS_DAYS: i64 = 90;

/// Days after which a token that has expired is deleted. Events of it stay.
const TOKENS_DAYS: i64 = 30;

/// Seconds after which a browser session that has ended is forgotten. Events of it stay.
const SESSIONS: i64 = 86_400;

/// Approvals that an org keeps; the oldest that have ended are forgotten first.
const KEPT_APPROVALS: ApprovalLimits = ApprovalLimits { count: 10_000, bytes: 256 << 20 };

/// Seconds for which an authorization code that has ended is known: its second use still ends what came of it.
const CODES_SECONDS: i64 = 3_600;

pub(super) const EVERY: Duration = Duration::from_mins(1);

pub(super) async fn forget(nodes: &Nodes) {
    let now = nodes.base.clock.now();
    if let Err(error) = nodes.base.store.forget_assertions(now).await {
        error.log();
    }
    if let Err(error) = nodes.base.store.forget_sealed_pairs(now).await {
        error.log();
    }
    if let Err(error) = nodes.base.store.forget_codes(now.plus_seconds(-CODES_SECONDS)).await {
        error.log();
    }
    let ended = now.plus_seconds(-TOKENS_DAYS * 86_400);
    if let Err(error) = nodes.base.store.forget_tokens(ended).await {
        error.log();
    }
    if let Err(error) = nodes.base.store.forget_access_changes().await {
        error.log();
    }
    let long_ago = now.plus_seconds(-APPROVALS_DAYS * 86_400);
    if let Err(error) = nodes.base.store.forget_approvals(long_ago).await {
        error.log();
    }
    if let Err(error) = nodes.base.store.forget_surplus_approvals(KEPT_APPROVALS).await {
        error.log();
    }
    if let Err(error) = nodes.base.store.forget_login_links(now).await {
        error.log();
    }
    if let Err(error) = nodes.base.store.forget_sessions(now.plus_seconds(-SESSIONS)).await {
        error.log();
    }
    if let Err(error) = nodes.base.store.forget_usage(now).await {
        error.log();
    }
    if let Err(error) = nodes.base.store.forget_idempotency_keys(now).await {
        error.log();
    }
}
