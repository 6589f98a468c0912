//! OCSF's closed numbers for the gateway's types and outcomes.

use crate::audit::row::Stored;

/// A number of a closed set and its caption.
pub(super) type Caption = (u32, &'static str);

/// Activity of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Activity<'a> {
    Create,
    Read,
    Update,
    Delete,
    /// None of these; under a name of its own.
    Other(&'a str),
}

impl<'a> Activity<'a> {
    pub(super) const fn id(self) -> u32 {
        match self {
            Self::Create => 1,
            Self::Read => 2,
            Self::Update => 3,
            Self::Delete => 4,
            Self::Other(_) => 99,
        }
    }

    pub(super) const fn name(self) -> &'a str {
        match self {
            Self::Create => "Create",
            Self::Read => "Read",
            Self::Update => "Update",
            Self::Delete => "Delete",
            Self::Other(name) => name,
        }
    }
}

/// Returns the activity of an event type. A call of a tool is never a `Read`: only the upstream
/// says that it is one, and it is not trusted to.
pub(super) fn activity(kind: &str) -> Activity<'_> {
    match kind {
        "mcp.invocation" => Activity::Other("Invoke"),
        "mcp.replayed" => Activity::Other("Replay"),
        "mcp.task_ended" => Activity::Other("End"),
        "auth.rejected" | "login.failed" => Activity::Other("Authenticate"),
        "access.refused" => Activity::Other("Authorize"),
        "request.throttled" => Activity::Other("Throttle"),
        "system.started" => Activity::Other("Start"),
        "audit.rows_refused" => Activity::Other("Refuse"),
        "approval.consumed" => Activity::Other("Use"),
        "approval.requested"
        | "token.issued"
        | "consent.given"
        | "login.link_issued"
        | "login.succeeded"
        | "provider.connect_started"
        | "provider.connected"
        | "provider.connect_failed"
        | "principal.key_added" => Activity::Create,
        "policy.simulated" | "audit.accessed" | "audit.exported" => Activity::Read,
        "approval.granted"
        | "approval.denied"
        | "approval.expired"
        | "consent.denied"
        | "token.refreshed"
        | "org.changed"
        | "policy.override_set"
        | "policy.override_removed"
        | "principal.changed"
        | "group.changed"
        | "provider.refreshed"
        | "provider.needs_auth"
        | "tool.changed"
        | "policy.changed"
        | "policy.reload_failed"
        | "audit.hold_changed"
        | "audit.reindexed" => Activity::Update,
        "token.revoked"
        | "consent.withdrawn"
        | "code.reuse_detected"
        | "session.ended"
        | "token.reuse_detected"
        | "provider.disconnected"
        | "audit.erased"
        | "audit.pruned"
        | "principal.key_removed" => Activity::Delete,
        other => Activity::Other(other),
    }
}

pub(super) fn status(outcome: &str) -> Caption {
    match outcome {
        "success" => (1, "Success"),
        "unknown" => (0, "Unknown"),
        "input_required" | "task" | "approval_pending" => (99, "Other"),
        _ => (2, "Failure"),
    }
}

/// Returns the severity of an event for those who monitor.
pub(super) fn severity(stored: &Stored<'_>) -> Caption {
    let decision = stored.governance.as_ref().and_then(|it| it.decision.as_deref());
    match &*stored.kind {
        "token.reuse_detected" | "code.reuse_detected" | "audit.rows_refused" => (4, "High"),
        "policy.reload_failed" | "audit.reindexed" => (3, "Medium"),
        "auth.rejected" | "access.refused" | "login.failed" | "request.throttled"
        | "audit.erased" | "audit.hold_changed" => (2, "Low"),
        _ if decision == Some("deny") => (3, "Medium"),
        _ => (1, "Informational"),
    }
}

/// Returns action and disposition of the gateway.
pub(super) fn action(stored: &Stored<'_>) -> (Caption, Caption) {
    const ALLOWED: Caption = (1, "Allowed");
    const DENIED: Caption = (2, "Denied");
    const OBSERVED: Caption = (3, "Observed");
    let governance = stored.governance.as_ref();
    let decision = governance.and_then(|it| it.decision.as_deref());
    let redacted = governance.is_some_and(|it| it.dlp_result == "redacted");
    match (decision, &*stored.kind, &*stored.outcome.status) {
        (Some("allow"), ..) if redacted => ((4, "Modified"), (11, "Corrected")),
        (Some("allow"), ..) => (ALLOWED, ALLOWED),
        (Some(_), ..) => (DENIED, (2, "Blocked")),
        (None, "auth.rejected" | "access.refused" | "login.failed", _) => {
            (DENIED, (26, "Unauthorized"))
        }
        (None, "token.reuse_detected" | "code.reuse_detected", _) => {
            (DENIED, (24, "Access Revoked"))
        }
        (None, _, "rate_limited" | "invalid" | "not_found" | "denied") => {
            (DENIED, (25, "Rejected"))
        }
        (None, _, "unavailable" | "upstream_error" | "upstream_timeout") => (DENIED, (27, "Error")),
        (None, ..) => (OBSERVED, (17, "Logged")),
    }
}
