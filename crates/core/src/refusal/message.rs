//! Texts of `error.message`: one sentence for people, with the remedy where that helps.

use std::fmt;

use super::{AskedApproval, NOT_DELEGATED, Refusal, Unavailable, UpstreamReason, Violation};
use crate::{
    approval::Status,
    capability::ProviderSlug,
    id::ApprovalId,
    limits::Resource,
    scope::ScopeSet,
    trust::{ProofFault, TargetUri},
};

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InvalidRequest { message, .. } => f.write_str(message),
            Self::InvalidInput { tool, violations } => {
                write!(f, "Input does not match the schema of {tool}{}.", First(violations))
            }
            Self::InvalidScope { scope, allowed } => excessive(f, scope, *allowed),
            Self::MissingToken => f.write_str(MISSING),
            Self::InvalidToken => f.write_str("The token is not valid here."),
            Self::TokenExpired { expired_at } => write!(f, "The token expired at {expired_at}."),
            Self::WrongTokenKind { hint } => write!(f, "The token is not valid here: {hint}."),
            Self::TokenRevoked => f.write_str("The token was revoked."),
            Self::TokenReused => f.write_str(REUSED),
            Self::InvalidCredential { check } => f.write_str(check.sentence()),
            Self::InvalidProof { fault, address } => unproved(f, *fault, address.as_ref()),
            Self::PolicyDenied { policy, reason, .. } => denied(f, policy, reason),
            Self::AwaitsApproval { policy, reason, approval } => {
                awaits(f, policy, reason, approval)
            }
            Self::InsufficientScope { required } => {
                write!(f, "The token lacks the scope {required}.")
            }
            Self::ReadOnly => f.write_str(READ_ONLY),
            Self::PreconditionFailed => f.write_str(STALE),
            Self::Conflict { reason } => f.write_str(reason.sentence()),
            Self::DelegationNotTrusted => write!(f, "Delegation is refused: {NOT_DELEGATED}."),
            Self::NoSuchProvider { slug, .. } => no_provider(f, slug),
            Self::RejectedByProvider { provider } => write!(f, "Provider '{provider}' {REJECTS}."),
            Self::ApprovalSettled { id, status } => settled(f, *id, *status),
            Self::NotRefreshable { .. } => f.write_str(NOT_REFRESHABLE),
            Self::NotFound { resource: "provider", id, hint: None } => no_provider(f, id),
            Self::NotFound { resource, id, hint } => absent(f, resource, id, hint.as_deref()),
            Self::MethodNotAllowed { allow } => methods(f, allow),
            Self::ProviderAuthRequired { provider, scopes, remedy, .. } => {
                let how = remedy.sentence();
                write!(f, "Provider '{provider}' {}; {how}.", unusable(scopes))
            }
            Self::PayloadTooLarge { limit_bytes } => too_large(f, *limit_bytes),
            Self::IdempotencyKeyReused { first } => write!(f, "{ANOTHER_REQUEST}, {first}."),
            Self::IdempotencyInProgress { first } => write!(f, "The request {first} {UNDER_WAY}."),
            Self::UnsupportedMediaType { wanted } => write!(f, "Send the body as {wanted}."),
            Self::RateLimited { resource, limit, retry_after, .. } => {
                let what = name(*resource);
                write!(f, "{what} of {limit} per minute exceeded. Retry in {retry_after} seconds.")
            }
            Self::TooManyExports { limit, .. } => write!(f, "{limit} {ENOUGH_EXPORTS}"),
            Self::ExportsFull { files, bytes, .. } => full(f, *files, *bytes),
            Self::RangeNotSatisfiable { bytes } => write!(f, "{BEHIND_END} {bytes} bytes."),
            Self::Internal => f.write_str("Something went wrong inside the gateway."),
            Self::UpstreamError { provider, reason, .. } => {
                write!(f, "Provider '{provider}' {}.", failure(*reason))
            }
            Self::Unanswerable { provider, required } => {
                write!(f, "Provider '{provider}' {UNANSWERABLE} {}.", required.declared())
            }
            Self::UpstreamResting { provider, retry_after } => resting(f, provider, *retry_after),
            Self::Unavailable { reason } => f.write_str(missing(*reason)),
            Self::UpstreamTimeout { provider, timeout_ms } => late(f, provider, *timeout_ms),
            Self::Interrupted { .. } => f.write_str(INTERRUPTED),
        }
    }
}

/// The words tell whether a nonce is wanted, for there are clients that take each refusal of a proof for that.
fn unproved(
    f: &mut fmt::Formatter<'_>,
    fault: ProofFault,
    address: Option<&TargetUri>,
) -> fmt::Result {
    if fault.wants_nonce() {
        return write!(f, "The DPoP proof needs a nonce: {fault}.");
    }
    write!(f, "The DPoP proof is wrong: {fault}")?;
    if let Some(address) = address {
        write!(f, ": `{}`", address.as_str())?;
    }
    f.write_str(". No nonce is wanted.")
}

fn methods(f: &mut fmt::Formatter<'_>, allow: &[String]) -> fmt::Result {
    write!(f, "This path answers {} only.", allow.join(", "))
}

fn too_large(f: &mut fmt::Formatter<'_>, limit_bytes: usize) -> fmt::Result {
    write!(f, "The body is larger than {limit_bytes} bytes.")
}

fn late(f: &mut fmt::Formatter<'_>, provider: &ProviderSlug, timeout_ms: u64) -> fmt::Result {
    write!(f, "Provider '{provider}' did not answer within {timeout_ms} ms.")
}

fn full(f: &mut fmt::Formatter<'_>, files: u32, bytes: u64) -> fmt::Result {
    write!(f, "This org has its {files} exports, or {bytes} bytes of them. {UNTIL_GONE}")
}

fn resting(f: &mut fmt::Formatter<'_>, provider: &ProviderSlug, seconds: u64) -> fmt::Result {
    write!(
        f,
        "Provider '{provider}' kept failing and is not called for now. Retry in {seconds} seconds."
    )
}

/// Refusal of a request without a token.
const MISSING: &str = "Send a token as `Authorization: Bearer <token>`; the operator makes one with \
                       `portcullis token create`.";

const READ_ONLY: &str = "Administration over the API is read-only here (`[admin] read_only`); make the change where \
                         the operator keeps the configuration, or with the command line on the node.";
const STALE: &str =
    "The resource changed since its `ETag` was read; get it again and repeat the change.";
const REUSED: &str = "The refresh token was used before, so everything that came of its login was \
                      revoked; log in again.";
const ANOTHER_REQUEST: &str = "This `Idempotency-Key` stands for another request";
const UNDER_WAY: &str = "with this `Idempotency-Key` is still under way";
const UNREACHABLE: &str = "is unreachable";
const FAILED: &str = "failed while executing the call";
const SESSION_LOST: &str =
    "does not know the session of this call any more; the call was not sent again";
const MISFIT: &str = "ran the call, and its result does not fit the output schema of the tool; \
                      `output_schema = \"note\"` of the provider lets such results pass";
const ALTERED: &str = "answered with something else than the accepted manifest of the skill says; if the skill was \
                       changed, accept its new version";
const CANCELLED: &str = "was called, and the caller did not wait for its answer";
const OTHER_ISSUER: &str =
    "names another authorization server than the operator configured, so nobody is connected";
const REJECTS: &str = "does not accept this credential";
const NOT_REFRESHABLE: &str = "There is nothing to refresh with; connect the provider again.";
const ENOUGH_EXPORTS: &str =
    "exports of this org are under way already; wait for one of them to end.";
const UNTIL_GONE: &str = "Each goes 24 hours after it was asked for; export to a file with \
                          `portcullis audit export`, or ask for less.";
const BEHIND_END: &str = "The range begins behind the end of the file, which has";
const UNANSWERABLE: &str =
    "asks something that this caller does not say it can answer; it would have to declare";
const INTERRUPTED: &str = "The gateway stopped during the call; the tool may have run.";

/// The word for people of what the API calls `resource`.
fn absent(f: &mut fmt::Formatter<'_>, resource: &str, id: &str, hint: Option<&str>) -> fmt::Result {
    write!(f, "There is no {} `{id}` here.", noun(resource))?;
    hint.map_or(Ok(()), |hint| write!(f, " {hint}"))
}

fn noun(resource: &str) -> &str {
    if resource == "mcp" { "tool" } else { resource }
}

const fn unusable(scopes: &[String]) -> &'static str {
    if scopes.is_empty() { "refuses its credentials" } else { "asks for more scopes" }
}

/// The first violation as the end of a sentence; nothing when there is none.
struct First<'a>(&'a [Violation]);

impl fmt::Display for First<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.first() {
            None => Ok(()),
            Some(first) if first.path.is_empty() => write!(f, ": {}", first.message),
            Some(first) => write!(f, ": {} {}", first.path, first.message),
        }
    }
}

const fn name(resource: Resource) -> &'static str {
    match resource {
        Resource::Requests => "Request limit",
        Resource::Invocations => "Invocation limit",
        Resource::Unauthenticated => "Limit for requests without a valid token",
    }
}

const fn failure(reason: UpstreamReason) -> &'static str {
    match reason {
        UpstreamReason::ConnectFailed => UNREACHABLE,
        UpstreamReason::SessionLost => SESSION_LOST,
        UpstreamReason::IssuerMismatch => OTHER_ISSUER,
        UpstreamReason::Cancelled => CANCELLED,
        UpstreamReason::OutputMismatch => MISFIT,
        UpstreamReason::DigestMismatch => ALTERED,
        UpstreamReason::ConnectionReset
        | UpstreamReason::ProtocolError
        | UpstreamReason::InteractionRequired
        | UpstreamReason::ResponseTooLarge
        | UpstreamReason::Http5xx
        | UpstreamReason::JsonrpcError => FAILED,
    }
}

fn excessive(f: &mut fmt::Formatter<'_>, scope: &str, allowed: ScopeSet) -> fmt::Result {
    write!(f, "The scope `{scope}` cannot be had here; `{allowed}` can.")
}

fn awaits(
    f: &mut fmt::Formatter<'_>,
    policy: &str,
    reason: &str,
    approval: &AskedApproval,
) -> fmt::Result {
    let reason = reason.trim_end_matches('.');
    write!(f, "Policy '{policy}' asks for an approval: {reason}. {approval}.")
}

fn no_provider(f: &mut fmt::Formatter<'_>, slug: &str) -> fmt::Result {
    write!(f, "There is no provider `{slug}` here; `GET /v1/providers` lists those there are.")
}

fn settled(f: &mut fmt::Formatter<'_>, id: ApprovalId, status: Status) -> fmt::Result {
    match status {
        Status::Pending => write!(f, "You have decided about {id} already; it waits for others."),
        Status::Expired => write!(
            f,
            "{id} cannot be decided any more: its time is over, or the policy, the tool or the requester \
             changed. The same call asks anew."
        ),
        Status::Approved | Status::Denied | Status::Consumed => {
            write!(f, "{id} cannot be decided any more: it is {}.", status.as_str())
        }
    }
}

fn denied(f: &mut fmt::Formatter<'_>, policy: &str, reason: &str) -> fmt::Result {
    write!(f, "Denied by policy '{policy}': {}.", reason.trim_end_matches('.'))
}

const fn missing(reason: Unavailable) -> &'static str {
    match reason {
        Unavailable::Audit => "The audit log cannot be written, so nothing is invoked.",
        Unavailable::Store => "The store cannot be read.",
        Unavailable::Limits => {
            "The counters of the limits cannot be reached, so nothing is let through; retry shortly."
        }
        Unavailable::Shutdown => "This node is shutting down.",
        Unavailable::Overloaded => "Too much work is in flight; retry shortly.",
        Unavailable::FileElsewhere => {
            "The file lies on another node of this installation; ask again, or ask that node."
        }
        Unavailable::Space => {
            "Too little is free on the disk for exports; ask again once the operator made room."
        }
        Unavailable::IssuerKeys => "The issuer's keys cannot be fetched; retry shortly.",
    }
}
