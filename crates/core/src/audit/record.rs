//! Parts of a record. Members are declared in the order of their names, as its canonical form
//! (RFC 8785) has them.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{
    authorization::{ClientKind, ClientRef},
    id::{ApprovalId, PrincipalId, ProviderId, RequestId, TokenId},
    lineage::Act,
    principal::{AuthMethod, Caller},
    refusal::Executed,
    trace::TraceId,
};

/// Version of the record's shape.
pub const SCHEMA: u32 = 1;

/// Type of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, ToSchema)]
pub enum EventType {
    /// A tool was called, or a call was refused.
    #[serde(rename = "mcp.invocation")]
    McpInvocation,
    /// A stored answer was given again for the same idempotency key.
    #[serde(rename = "mcp.replayed")]
    McpReplayed,
    /// A token was made.
    #[serde(rename = "token.issued")]
    TokenIssued,
    /// A refresh token was spent for the next pair.
    #[serde(rename = "token.refreshed")]
    TokenRefreshed,
    /// A token and what descends from it was revoked.
    #[serde(rename = "token.revoked")]
    TokenRevoked,
    /// A refresh token was presented after it was spent; its grant was revoked.
    #[serde(rename = "token.reuse_detected")]
    TokenReuseDetected,
    /// The operator made or changed an org.
    #[serde(rename = "org.changed")]
    OrgChanged,
    /// The operator or a login made or changed a principal.
    #[serde(rename = "principal.changed")]
    PrincipalChanged,
    /// A public key of a service account was registered.
    #[serde(rename = "principal.key_added")]
    PrincipalKeyAdded,
    /// A public key of a service account was removed, and what it bought revoked.
    #[serde(rename = "principal.key_removed")]
    PrincipalKeyRemoved,
    /// An identity provider made, changed or deleted a group over SCIM.
    #[serde(rename = "group.changed")]
    GroupChanged,
    /// A token that opens nothing was presented; stands for `count` of them.
    #[serde(rename = "auth.rejected")]
    AuthRejected,
    /// The operator made an address that logs a person in once.
    #[serde(rename = "login.link_issued")]
    LoginLinkIssued,
    /// A person logged in with a browser.
    #[serde(rename = "login.succeeded")]
    LoginSucceeded,
    /// A login of a person was refused; stands for `count` of them.
    #[serde(rename = "login.failed")]
    LoginFailed,
    /// A browser session was ended: by its person, by an admin or by the operator.
    #[serde(rename = "session.ended")]
    SessionEnded,
    /// An org's request limit was exceeded; stands for `count` requests.
    #[serde(rename = "request.throttled")]
    RequestThrottled,
    /// A caller began to connect a provider.
    #[serde(rename = "provider.connect_started")]
    ProviderConnectStarted,
    /// A provider became usable.
    #[serde(rename = "provider.connected")]
    ProviderConnected,
    /// A connect did not come to its end.
    #[serde(rename = "provider.connect_failed")]
    ProviderConnectFailed,
    /// A connection has new credentials from its provider.
    #[serde(rename = "provider.refreshed")]
    ProviderRefreshed,
    /// A provider refuses the credentials of a connection; a person must act.
    #[serde(rename = "provider.needs_auth")]
    ProviderNeedsAuth,
    /// A connection and its credentials were deleted.
    #[serde(rename = "provider.disconnected")]
    ProviderDisconnected,
    /// A call waits for people to approve it.
    #[serde(rename = "approval.requested")]
    ApprovalRequested,
    /// An approver approved a call.
    #[serde(rename = "approval.granted")]
    ApprovalGranted,
    /// An approver denied a call.
    #[serde(rename = "approval.denied")]
    ApprovalDenied,
    /// An approval ended without being used up.
    #[serde(rename = "approval.expired")]
    ApprovalExpired,
    /// An approved call began.
    #[serde(rename = "approval.consumed")]
    ApprovalConsumed,
    /// An upstream changed a tool's definition.
    #[serde(rename = "tool.changed")]
    ToolChanged,
    /// An upstream lists tools that cannot be used.
    #[serde(rename = "tool.skipped")]
    ToolSkipped,
    /// Another policy set is in force.
    #[serde(rename = "policy.changed")]
    PolicyChanged,
    /// An admin switched a policy off for the org, for a while.
    #[serde(rename = "policy.override_set")]
    PolicyOverrideSet,
    /// An admin took that back.
    #[serde(rename = "policy.override_removed")]
    PolicyOverrideRemoved,
    /// A policy folder could not be taken; the last good set stays in force.
    #[serde(rename = "policy.reload_failed")]
    PolicyReloadFailed,
    /// A caller simulated policies.
    #[serde(rename = "policy.simulated")]
    PolicySimulated,
    /// A caller looked at everybody's events, which stands for `count` looks, or read an export.
    #[serde(rename = "audit.accessed")]
    AuditAccessed,
    /// A part of the log was exported.
    #[serde(rename = "audit.exported")]
    AuditExported,
    /// Erasable parts of events were erased, or a hold kept them.
    #[serde(rename = "audit.erased")]
    AuditErased,
    /// A legal hold was laid on events, or lifted.
    #[serde(rename = "audit.hold_changed")]
    AuditHoldChanged,
    /// Events beyond their retention were removed from the beginning of the log, or payloads.
    #[serde(rename = "audit.pruned")]
    AuditPruned,
    /// A node began to serve.
    #[serde(rename = "system.started")]
    SystemStarted,
    /// A person consented to what a client asked for.
    #[serde(rename = "consent.given")]
    ConsentGiven,
    /// A person refused what a client asked for.
    #[serde(rename = "consent.denied")]
    ConsentDenied,
    /// A consent was withdrawn, and the tokens that came of it were revoked.
    #[serde(rename = "consent.withdrawn")]
    ConsentWithdrawn,
    /// An authorization code was presented after it was used; what came of it was revoked.
    #[serde(rename = "code.reuse_detected")]
    CodeReuseDetected,
}

impl EventType {
    /// The type as it stands in the record, such as `mcp.invocation`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::McpInvocation => "mcp.invocation",
            Self::McpReplayed => "mcp.replayed",
            Self::TokenIssued => "token.issued",
            Self::TokenRefreshed => "token.refreshed",
            Self::TokenRevoked => "token.revoked",
            Self::TokenReuseDetected => "token.reuse_detected",
            Self::OrgChanged => "org.changed",
            Self::PolicyOverrideSet => "policy.override_set",
            Self::PolicyOverrideRemoved => "policy.override_removed",
            Self::PrincipalChanged => "principal.changed",
            Self::PrincipalKeyAdded => "principal.key_added",
            Self::PrincipalKeyRemoved => "principal.key_removed",
            Self::GroupChanged => "group.changed",
            Self::AuthRejected => "auth.rejected",
            Self::LoginLinkIssued => "login.link_issued",
            Self::LoginSucceeded => "login.succeeded",
            Self::LoginFailed => "login.failed",
            Self::SessionEnded => "session.ended",
            Self::RequestThrottled => "request.throttled",
            Self::ProviderConnectStarted => "provider.connect_started",
            Self::ProviderConnected => "provider.connected",
            Self::ProviderConnectFailed => "provider.connect_failed",
            Self::ProviderRefreshed => "provider.refreshed",
            Self::ProviderNeedsAuth => "provider.needs_auth",
            Self::ProviderDisconnected => "provider.disconnected",
            Self::ApprovalRequested => "approval.requested",
            Self::ApprovalGranted => "approval.granted",
            Self::ApprovalDenied => "approval.denied",
            Self::ApprovalExpired => "approval.expired",
            Self::ApprovalConsumed => "approval.consumed",
            Self::ToolChanged => "tool.changed",
            Self::ToolSkipped => "tool.skipped",
            Self::PolicyChanged => "policy.changed",
            Self::PolicyReloadFailed => "policy.reload_failed",
            Self::PolicySimulated => "policy.simulated",
            Self::AuditAccessed => "audit.accessed",
            Self::AuditErased => "audit.erased",
            Self::AuditHoldChanged => "audit.hold_changed",
            Self::AuditPruned => "audit.pruned",
            Self::AuditExported => "audit.exported",
            Self::SystemStarted => "system.started",
            Self::ConsentGiven => "consent.given",
            Self::ConsentDenied => "consent.denied",
            Self::ConsentWithdrawn => "consent.withdrawn",
            Self::CodeReuseDetected => "code.reuse_detected",
        }
    }
}

/// Authentication of the actor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = ActorAuth)]
pub struct Auth {
    /// `operator`, `oidc`, `key`, `token` or `system`.
    pub method: &'static str,
    /// The trust rule that admitted it, if one did.
    pub trust: Option<String>,
}

/// The OAuth client that an actor used. Its name is the label of its tokens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ActorClient {
    /// Its id, as policies see it.
    pub id: String,
    pub kind: ClientKind,
}

impl ActorClient {
    /// The client of a token.
    #[must_use]
    pub fn of(client: &ClientRef) -> Self {
        Self { id: client.id.clone(), kind: client.kind }
    }
}

/// The actor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Actor {
    /// Everybody who acted for it, nested as in RFC 8693 §4.1; absent when nobody did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub act: Option<Act>,
    /// Authentication of the actor.
    pub auth: Auth,
    /// The OAuth client that acts for it; absent when none does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<ActorClient>,
    /// The principal; absent for the system itself.
    pub id: Option<PrincipalId>,
    /// The token it used.
    pub token_id: Option<TokenId>,
    /// `user`, `service`, `system` or `anonymous`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// On whose behalf.
    pub via: Option<PrincipalId>,
}

impl Actor {
    /// The actor behind a verified token.
    #[must_use]
    pub fn of(caller: &Caller) -> Self {
        let trust = match &caller.method {
            AuthMethod::Oidc { trust } => Some(trust.clone()),
            AuthMethod::Operator | AuthMethod::Key { .. } | AuthMethod::Token => None,
        };
        Self {
            act: caller.lineage.act(),
            auth: Auth { method: caller.method.name(), trust },
            client: caller.client.as_deref().map(|grant| ActorClient::of(&grant.client)),
            id: Some(caller.principal_id),
            token_id: caller.token_id,
            kind: caller.principal_id.kind().as_str(),
            via: caller.via,
        }
    }

    /// The gateway or its operator's shell.
    #[must_use]
    pub const fn system() -> Self {
        Self {
            act: None,
            auth: Auth { method: "system", trust: None },
            client: None,
            id: None,
            token_id: None,
            kind: "system",
            via: None,
        }
    }
}

/// The HTTP request it came with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = RecordedRequest)]
pub struct Request {
    /// Ours, also in `X-Request-Id`.
    pub id: RequestId,
    /// True if an idempotency key protected it.
    pub idempotent: bool,
    /// The W3C trace id the caller sent, or that of the trace that was begun for it.
    #[schema(value_type = Option<String>, example = "4bf92f3577b34da6a3ce929d0e0e4736")]
    pub trace_id: Option<TraceId>,
}

impl Request {
    /// The same request, protected by an idempotency key.
    #[must_use]
    pub fn protected(self) -> Self {
        Self { idempotent: true, ..self }
    }
}

/// Owner of the credential that went upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Credential {
    /// The caller's own connection.
    Own,
    /// The org's connection.
    Org,
}

impl Credential {
    /// `own` or `org`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Own => "own",
            Self::Org => "org",
        }
    }
}

/// Object of an event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = EventTarget)]
pub struct Target {
    /// Owner of the credential that went upstream.
    pub credential: Option<Credential>,
    /// Tool id, provider id, token id, export id or policy set; absent when the request named nothing valid.
    pub id: Option<String>,
    /// The connection.
    pub provider_id: Option<ProviderId>,
    /// `mcp`, `approval`, `audit_event`, `audit_log`, `hold`, `token`, `principal`,
    /// `principal_key`, `org`, `provider`, `policy_set`, `export` or `node`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// Definition of the tool that was in force.
    pub version: Option<String>,
}

/// Worst outcome of the scans of input and output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum DlpResult {
    /// Not run.
    Skipped,
    /// Nothing found.
    Passed,
    /// Found, and nothing acted on it.
    Flagged,
    /// Found and masked.
    Redacted,
    /// Found, and the call or its result was stopped.
    Blocked,
}

impl DlpResult {
    /// `skipped`, `passed`, `flagged`, `redacted` or `blocked`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Skipped => "skipped",
            Self::Passed => "passed",
            Self::Flagged => "flagged",
            Self::Redacted => "redacted",
            Self::Blocked => "blocked",
        }
    }
}

/// One DLP finding as it may be told: where and what kind, never the value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct DlpFinding {
    /// `flag`, `redact` or `block`.
    pub action: &'static str,
    /// Number of findings.
    pub count: u32,
    /// Id of the detector.
    pub detector: String,
    /// Of the distinct values that matched, the first few: equal values of one org have equal
    /// fingerprints.
    pub fingerprints: Vec<String>,
    /// JSON Pointer.
    pub path: String,
    /// `input` or `output`.
    pub stage: &'static str,
}

/// Decision of the policies.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, ToSchema,
)]
#[serde(rename_all = "snake_case")]
#[schema(as = Decision)]
pub enum RecordedDecision {
    /// The call was permitted.
    Allow,
    /// The call, or its result, was stopped.
    Deny,
}

impl RecordedDecision {
    /// `allow` or `deny`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Deny => "deny",
        }
    }
}

/// Approval that a call was made with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct UsedApproval {
    /// People who said yes: principals, or `operator`.
    pub approvers: Vec<String>,
    /// The approval.
    #[schema(value_type = String, example = "apr_01M754BKTKX1YB8Q05NMW9TP4G")]
    pub id: ApprovalId,
}

/// Governance of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = RecordedGovernance)]
pub struct Governance {
    /// Approvals that a call was made with.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub approvals: Vec<UsedApproval>,
    /// Absent when none was reached.
    pub decision: Option<RecordedDecision>,
    /// Every policy that took part in the decision.
    pub determining_policies: Vec<String>,
    /// Findings of DLP.
    pub dlp_findings: Vec<DlpFinding>,
    /// Worst DLP outcome.
    pub dlp_result: DlpResult,
    /// The policy that decided.
    pub policy: Option<String>,
    /// Digest of the whole set in force.
    pub policy_set: Option<String>,
    /// Digest of the deciding policy; absent for built-ins.
    pub policy_version: Option<String>,
    /// The policy's reason, for a denial.
    pub reason: Option<String>,
    /// Shadow policies that would have changed the decision.
    pub shadow: Vec<String>,
}

/// Status of an outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum OutcomeStatus {
    /// Done.
    Success,
    /// The tool ran and reported an error.
    ToolError,
    /// The tool asked something before it ends the call.
    InputRequired,
    /// People have to approve the call first.
    ApprovalPending,
    /// Denied by policy or DLP.
    Denied,
    /// The request or its input was invalid.
    Invalid,
    /// No such tool for this caller.
    NotFound,
    /// A limit was exceeded.
    RateLimited,
    /// The provider failed.
    UpstreamError,
    /// The provider was too slow.
    UpstreamTimeout,
    /// The gateway could not do it.
    Unavailable,
    /// The node died between intent and outcome.
    Unknown,
}

impl OutcomeStatus {
    /// The status as it stands in the record.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::ToolError => "tool_error",
            Self::InputRequired => "input_required",
            Self::ApprovalPending => "approval_pending",
            Self::Denied => "denied",
            Self::Invalid => "invalid",
            Self::NotFound => "not_found",
            Self::RateLimited => "rate_limited",
            Self::UpstreamError => "upstream_error",
            Self::UpstreamTimeout => "upstream_timeout",
            Self::Unavailable => "unavailable",
            Self::Unknown => "unknown",
        }
    }
}

/// The end of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = RecordedOutcome)]
pub struct Outcome {
    /// `error.code` of the answer, if it was an error.
    pub error_code: Option<&'static str>,
    /// State of the upstream effect: happened, not happened, or unknown.
    pub executed: Executed,
    /// The status the caller was answered with; 0 when there was no answer.
    pub http_status: u16,
    /// In one word.
    pub status: OutcomeStatus,
}

impl Outcome {
    /// Done, answered 200.
    #[must_use]
    pub const fn success(executed: Executed) -> Self {
        let status = OutcomeStatus::Success;
        Self { error_code: None, executed, http_status: 200, status }
    }
}
