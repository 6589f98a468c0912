//! Parts of a record. Members are declared in the order of their names, as its canonical form
//! (RFC 8785) has them.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{
    authorization::{ClientKind, ClientRef},
    capability::CapabilityKind,
    id::{ApprovalId, PrincipalId, ProviderId, RequestId, TokenId},
    lineage::Act,
    principal::{AuthMethod, Caller},
    refusal::Executed,
    trace::TraceId,
};

/// Version of the record's shape.
pub const SCHEMA: u32 = 1;

crate::words! {
    /// Type of an event.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, ToSchema)]
    pub enum EventType {
        /// A tool or prompt was used, or its use was refused.
        #[serde(rename = "mcp.invocation")]
        McpInvocation = "mcp.invocation",
        /// A stored answer was given again for the same idempotency key.
        #[serde(rename = "mcp.replayed")]
        McpReplayed = "mcp.replayed",
        /// A call that went on as a task of its provider ended.
        #[serde(rename = "mcp.task_ended")]
        McpTaskEnded = "mcp.task_ended",
        /// A token was made.
        #[serde(rename = "token.issued")]
        TokenIssued = "token.issued",
        /// A refresh token was spent for the next pair.
        #[serde(rename = "token.refreshed")]
        TokenRefreshed = "token.refreshed",
        /// A token and what descends from it was revoked.
        #[serde(rename = "token.revoked")]
        TokenRevoked = "token.revoked",
        /// A refresh token was presented after it was spent; its grant was revoked.
        #[serde(rename = "token.reuse_detected")]
        TokenReuseDetected = "token.reuse_detected",
        /// The operator made or changed an org.
        #[serde(rename = "org.changed")]
        OrgChanged = "org.changed",
        /// The operator or a login made or changed a principal.
        #[serde(rename = "principal.changed")]
        PrincipalChanged = "principal.changed",
        /// A public key of a service account was registered.
        #[serde(rename = "principal.key_added")]
        PrincipalKeyAdded = "principal.key_added",
        /// A public key of a service account was removed, and what it bought revoked.
        #[serde(rename = "principal.key_removed")]
        PrincipalKeyRemoved = "principal.key_removed",
        /// An identity provider made, changed or deleted a group over SCIM.
        #[serde(rename = "group.changed")]
        GroupChanged = "group.changed",
        /// A token that opens nothing was presented; stands for `count` of them.
        #[serde(rename = "auth.rejected")]
        AuthRejected = "auth.rejected",
        /// A caller asked for what its token or role does not permit; stands for `count` of them.
        #[serde(rename = "access.refused")]
        AccessRefused = "access.refused",
        /// The operator made an address that logs a person in once.
        #[serde(rename = "login.link_issued")]
        LoginLinkIssued = "login.link_issued",
        /// A person logged in with a browser.
        #[serde(rename = "login.succeeded")]
        LoginSucceeded = "login.succeeded",
        /// A login of a person was refused; stands for `count` of them.
        #[serde(rename = "login.failed")]
        LoginFailed = "login.failed",
        /// A browser session was ended: by its person, by an admin or by the operator.
        #[serde(rename = "session.ended")]
        SessionEnded = "session.ended",
        /// An org's request limit was exceeded; stands for `count` requests.
        #[serde(rename = "request.throttled")]
        RequestThrottled = "request.throttled",
        /// A caller began to connect a provider.
        #[serde(rename = "provider.connect_started")]
        ProviderConnectStarted = "provider.connect_started",
        /// A provider became usable.
        #[serde(rename = "provider.connected")]
        ProviderConnected = "provider.connected",
        /// A connect did not come to its end.
        #[serde(rename = "provider.connect_failed")]
        ProviderConnectFailed = "provider.connect_failed",
        /// A connection has new credentials from its provider.
        #[serde(rename = "provider.refreshed")]
        ProviderRefreshed = "provider.refreshed",
        /// A provider refuses the credentials of a connection; a person must act.
        #[serde(rename = "provider.needs_auth")]
        ProviderNeedsAuth = "provider.needs_auth",
        /// A connection and its credentials were deleted.
        #[serde(rename = "provider.disconnected")]
        ProviderDisconnected = "provider.disconnected",
        /// A call waits for people to approve it.
        #[serde(rename = "approval.requested")]
        ApprovalRequested = "approval.requested",
        /// An approver approved a call.
        #[serde(rename = "approval.granted")]
        ApprovalGranted = "approval.granted",
        /// An approver denied a call.
        #[serde(rename = "approval.denied")]
        ApprovalDenied = "approval.denied",
        /// An approval ended without being used up.
        #[serde(rename = "approval.expired")]
        ApprovalExpired = "approval.expired",
        /// An approved call began.
        #[serde(rename = "approval.consumed")]
        ApprovalConsumed = "approval.consumed",
        /// An upstream changed a tool's definition.
        #[serde(rename = "tool.changed")]
        ToolChanged = "tool.changed",
        /// An upstream lists tools that cannot be used.
        #[serde(rename = "tool.skipped")]
        ToolSkipped = "tool.skipped",
        /// Another policy set is in force.
        #[serde(rename = "policy.changed")]
        PolicyChanged = "policy.changed",
        /// An admin switched a policy off for the org, for a while.
        #[serde(rename = "policy.override_set")]
        PolicyOverrideSet = "policy.override_set",
        /// An admin took that back.
        #[serde(rename = "policy.override_removed")]
        PolicyOverrideRemoved = "policy.override_removed",
        /// A policy folder could not be taken; the last good set stays in force.
        #[serde(rename = "policy.reload_failed")]
        PolicyReloadFailed = "policy.reload_failed",
        /// A caller simulated policies.
        #[serde(rename = "policy.simulated")]
        PolicySimulated = "policy.simulated",
        /// A caller looked at everybody's events, which stands for `count` looks, or read an export.
        #[serde(rename = "audit.accessed")]
        AuditAccessed = "audit.accessed",
        /// A part of the log was exported.
        #[serde(rename = "audit.exported")]
        AuditExported = "audit.exported",
        /// Erasable parts of events were erased, or a hold kept them.
        #[serde(rename = "audit.erased")]
        AuditErased = "audit.erased",
        /// A legal hold was laid on events, or lifted.
        #[serde(rename = "audit.hold_changed")]
        AuditHoldChanged = "audit.hold_changed",
        /// Events beyond their retention were removed from the beginning of the log, or payloads.
        #[serde(rename = "audit.pruned")]
        AuditPruned = "audit.pruned",
        /// The index or the counts of events did not follow from their records, and were made anew of them.
        #[serde(rename = "audit.reindexed")]
        AuditReindexed = "audit.reindexed",
        /// Rows that waited for their places in the log were added, copied or changed from outside, and got none.
        #[serde(rename = "audit.rows_refused")]
        AuditRowsRefused = "audit.rows_refused",
        /// A node began to serve.
        #[serde(rename = "system.started")]
        SystemStarted = "system.started",
        /// A person consented to what a client asked for.
        #[serde(rename = "consent.given")]
        ConsentGiven = "consent.given",
        /// A person refused what a client asked for.
        #[serde(rename = "consent.denied")]
        ConsentDenied = "consent.denied",
        /// A consent was withdrawn, and the tokens that came of it were revoked.
        #[serde(rename = "consent.withdrawn")]
        ConsentWithdrawn = "consent.withdrawn",
        /// An authorization code was presented after it was used; what came of it was revoked.
        #[serde(rename = "code.reuse_detected")]
        CodeReuseDetected = "code.reuse_detected",
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
    /// Principals that acted for it, nested as in RFC 8693 §4.1; absent without any.
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
        if caller.is_operator {
            return Self::operator();
        }
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

    /// The operator, who is told apart from the gateway itself by the method.
    #[must_use]
    pub fn operator() -> Self {
        Self { auth: Auth { method: "operator", trust: None }, ..Self::system() }
    }

    /// The gateway itself.
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

crate::words! {
    /// Owner of the credential that went upstream.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum Credential {
        /// The caller's own connection.
        Own = "own",
        /// The org's connection.
        Org = "org",
    }
}

/// Object of an event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = EventTarget)]
pub struct Target {
    /// Owner of the credential that went upstream.
    pub credential: Option<Credential>,
    /// Tool id, prompt id with its kind, provider id, token id, export id or policy set; absent when the request named nothing valid.
    pub id: Option<String>,
    /// Kind of a capability, if the object is one.
    #[serde(rename = "kind", skip_serializing_if = "Option::is_none")]
    pub capability: Option<CapabilityKind>,
    /// The connection.
    pub provider_id: Option<ProviderId>,
    /// `mcp`, `approval`, `audit_event`, `audit_log`, `hold`, `token`, `principal`,
    /// `principal_key`, `org`, `provider`, `policy_set`, `export` or `node`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// Definition of the tool or prompt that was in force.
    pub version: Option<String>,
}

crate::words! {
    /// Worst outcome of the scans of input and output.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum DlpResult {
        /// Not run.
        Skipped = "skipped",
        /// Nothing found.
        Passed = "passed",
        /// Found, and nothing acted on it.
        Flagged = "flagged",
        /// Found and masked.
        Redacted = "redacted",
        /// Found, and the call or its result was stopped.
        Blocked = "blocked",
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

crate::words! {
    /// Decision of the policies.
    #[derive(
        Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, ToSchema,
    )]
    #[serde(rename_all = "snake_case")]
    #[schema(as = Decision)]
    pub enum RecordedDecision {
        /// The call was permitted.
        Allow = "allow",
        /// The call, or its result, was stopped.
        Deny = "deny",
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

crate::words! {
    /// Status of an outcome.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum OutcomeStatus {
        /// Done.
        Success = "success",
        /// The tool ran and reported an error.
        ToolError = "tool_error",
        /// The tool asked something before it ends the call.
        InputRequired = "input_required",
        /// The call goes on as a task of its provider.
        Task = "task",
        /// People have to approve the call first.
        ApprovalPending = "approval_pending",
        /// Denied by policy or DLP.
        Denied = "denied",
        /// The request or its input was invalid.
        Invalid = "invalid",
        /// No such tool for this caller.
        NotFound = "not_found",
        /// A limit was exceeded.
        RateLimited = "rate_limited",
        /// The provider failed.
        UpstreamError = "upstream_error",
        /// The provider was too slow.
        UpstreamTimeout = "upstream_timeout",
        /// The gateway could not do it.
        Unavailable = "unavailable",
        /// The node died between intent and outcome.
        Unknown = "unknown",
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
