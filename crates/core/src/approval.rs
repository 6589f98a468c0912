//! Approvals: people say yes to one very call before it runs.
//!
//! `pending → approved | denied | expired`, `approved → consumed | expired`. This module is the whole
//! law of that: who may decide, when a request ends, and how often an approved call runs. The store
//! keeps what it returns, and takes a use of an approval in the transaction of the call's intent.
//!
//! **Invariant:** an approval never changes the call that it is bound to; another call has another
//! [`digest`](BoundCall::digest).

mod audience;
mod bound;
mod decide;
mod terms;

#[cfg(test)]
mod tests;

pub use self::{
    audience::Audience,
    bound::BoundCall,
    decide::{Approver, Decider, DecisionError, OPERATOR, Vote},
    terms::ApprovalTerms,
};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::{
    clock::Timestamp,
    dlp::Action,
    id::{ApprovalId, OrgId, PrincipalId, ProviderId},
};

/// Requests of one principal that may be pending at once.
pub const MAX_PENDING: u32 = 20;

crate::words! { listed
    /// Status of an approval.
    #[derive(
        Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema,
    )]
    #[serde(rename_all = "snake_case")]
    #[schema(as = ApprovalStatus)]
    pub enum Status {
        /// The approvers have to decide.
        Pending = "pending",
        /// The call may run, as often as the policy says.
        Approved = "approved",
        /// An approver denied it.
        Denied = "denied",
        /// Not decided in time, the approval was not used in time, or what it was bound to ended.
        Expired = "expired",
        /// The call ran as often as it may.
        Consumed = "consumed",
    }
}

impl Status {
    /// True if the approval can still change: it is pending or approved.
    #[must_use]
    pub const fn is_open(self) -> bool {
        matches!(self, Self::Pending | Self::Approved)
    }
}

/// Requester of an approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = ApprovalRequester)]
pub struct Requester {
    /// Everybody who acts for the principal, the newest first.
    pub actors: Vec<PrincipalId>,
    /// The principal whose call it is.
    pub principal_id: PrincipalId,
    /// Its name.
    pub principal_name: String,
}

impl Requester {
    /// True for the principal and for everybody who acts for it.
    #[must_use]
    pub fn includes(&self, principal: PrincipalId) -> bool {
        self.principal_id == principal || self.actors.contains(&principal)
    }
}

/// Policy that asks for an approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = ApprovalPolicy)]
pub struct AskingPolicy {
    /// Its name.
    pub id: String,
    /// Its reason, for requester and approvers.
    pub reason: String,
    /// Digest of its meaning.
    pub version: String,
}

/// Tool of the call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = ApprovalTool)]
pub struct BoundTool {
    /// Description as accepted, cut to 1,000 characters.
    pub description: Option<String>,
    /// Its id.
    pub id: String,
    /// Its title.
    pub title: Option<String>,
    /// Digest of its definition.
    pub version: String,
}

/// Finding of data-loss prevention in the input of the call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = ApprovalFinding)]
pub struct FoundInput {
    /// `flag` if it is sent as it is, `redact` if it is masked before.
    #[schema(value_type = String, example = "flag")]
    pub action: Action,
    /// Number of matches there.
    pub count: u32,
    /// Name of the detector.
    pub detector: String,
    /// JSON Pointer to the place in the input.
    #[schema(example = "/note")]
    pub path: String,
}

/// One decision about an approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = ApprovalDecision)]
pub struct Decision {
    /// When it was made.
    pub at: Timestamp,
    /// The person who decided; absent for the operator's shell.
    pub by: Option<PrincipalId>,
    /// Comment of that person.
    pub comment: Option<String>,
    /// Yes or no.
    pub decision: Vote,
    /// Name of that person, or `operator`.
    pub name: String,
}

/// Request that people approve a call, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Approval {
    pub id: ApprovalId,
    pub org_id: OrgId,
    /// Status when it was last written; [`Self::status_at`] also looks at the time.
    pub status: Status,
    /// Digest of the call that it is bound to.
    pub digest: String,
    pub requester: Requester,
    pub policy: AskingPolicy,
    pub tool: BoundTool,
    pub connection: ProviderId,
    pub terms: ApprovalTerms,
    /// The input as approvers see it; `null` where it was not read.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub input: Value,
    pub findings: Vec<FoundInput>,
    pub decisions: Vec<Decision>,
    pub created_at: Timestamp,
    /// When it ends: the time to decide and, once approved, the time to use it.
    pub expires_at: Timestamp,
    /// Number of times that the call may still run, once approved.
    pub uses_left: u32,
    /// True if its requester gave the call up.
    #[serde(default, skip_serializing_if = "is_false")]
    pub withdrawn: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks in this way")]
const fn is_false(value: &bool) -> bool {
    !*value
}

/// An approval that is asked for.
#[derive(Debug, Clone)]
pub struct NewApproval {
    pub id: ApprovalId,
    pub org_id: OrgId,
    pub digest: String,
    pub requester: Requester,
    pub policy: AskingPolicy,
    pub tool: BoundTool,
    pub connection: ProviderId,
    pub terms: ApprovalTerms,
    /// The input as approvers see it.
    pub input: Value,
    pub findings: Vec<FoundInput>,
}

impl Approval {
    /// A pending approval.
    #[must_use]
    pub fn request(new: NewApproval, now: Timestamp) -> Self {
        let NewApproval { id, org_id, digest, requester, policy, tool, connection, .. } = new;
        let NewApproval { terms, input, findings, .. } = new;
        Self {
            id,
            org_id,
            status: Status::Pending,
            digest,
            requester,
            policy,
            tool,
            connection,
            input,
            findings,
            decisions: Vec::new(),
            created_at: now,
            expires_at: now.plus_seconds(terms.ttl_s.into()),
            uses_left: terms.uses,
            terms,
            withdrawn: false,
        }
    }

    /// The status at this moment. An approval whose time is over is expired, whether or not that has
    /// been written yet.
    #[must_use]
    pub fn status_at(&self, now: Timestamp) -> Status {
        if self.status.is_open() && self.expires_at <= now { Status::Expired } else { self.status }
    }

    /// The approval as expired, if it is over its time and not written so yet.
    #[must_use]
    pub fn expired(&self, now: Timestamp) -> Option<Self> {
        (self.status.is_open() && self.status_at(now) == Status::Expired).then(|| self.ended())
    }

    /// The approval as expired, because what it was bound to ended.
    #[must_use]
    pub fn ended(&self) -> Self {
        Self { status: Status::Expired, ..self.clone() }
    }

    /// The approval as expired, because its requester gave the call up. `None` if it has ended already.
    #[must_use]
    pub fn withdraw(&self, now: Timestamp) -> Option<Self> {
        self.status_at(now).is_open().then(|| Self { withdrawn: true, ..self.ended() })
    }

    /// The approval after one more run of the call. `None` if it permits none at this moment. The store
    /// does the same in the transaction of the intent.
    #[must_use]
    pub fn used(&self, now: Timestamp) -> Option<Self> {
        if self.status_at(now) != Status::Approved {
            return None;
        }
        let uses_left = self.uses_left.checked_sub(1)?;
        let status = if uses_left == 0 { Status::Consumed } else { Status::Approved };
        Some(Self { status, uses_left, ..self.clone() })
    }

    /// Ids of those who said yes; `operator` for the operator's shell.
    #[must_use]
    pub fn approver_ids(&self) -> Vec<String> {
        let yes = self.decisions.iter().filter(|decision| decision.decision == Vote::Approve);
        let id = |decision: &Decision| {
            decision.by.map_or_else(|| OPERATOR.to_owned(), |id| id.to_string())
        };
        yes.map(id).collect()
    }

    /// Names of those who said yes.
    pub fn approvers(&self) -> impl Iterator<Item = &str> {
        let yes = self.decisions.iter().filter(|decision| decision.decision == Vote::Approve);
        yes.map(|decision| decision.name.as_str())
    }
}
