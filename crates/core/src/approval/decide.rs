//! Decisions about an approval: people who may make one, and the approval after it.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Approval, Decision, Status};
use crate::{
    clock::Timestamp,
    id::{PrincipalId, PrincipalKind},
};

/// Name under which decisions of the operator's shell are kept.
pub const OPERATOR: &str = "operator";

crate::words! {
    /// Yes or no.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
    #[serde(rename_all = "snake_case")]
    #[schema(as = ApprovalVote)]
    pub enum Vote {
        /// The call may run.
        Approve = "approve",
        /// The call may not run.
        Deny = "deny",
    }
}

/// Principal that wants to decide, as its own token and login show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approver {
    pub id: PrincipalId,
    pub name: String,
    /// True if another principal acts for it: the token was delegated.
    pub delegated: bool,
    pub admin: bool,
    pub groups: BTreeSet<String>,
    pub mfa: bool,
}

/// Party that decides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decider {
    Principal(Approver),
    /// The operator at the shell.
    Operator,
}

/// Reason why a decision is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DecisionError {
    #[error("only people decide about approvals; a service account cannot")]
    Service,
    #[error(
        "a token through which somebody acts for a person cannot decide; use that person's own"
    )]
    Delegated,
    /// The decider asked for the call, or acts for the requester.
    #[error("whoever asks for a call, or acts for somebody who does, cannot decide about it")]
    Requester,
    #[error("deciding needs one of the groups that the policy names, or the role `admin`")]
    NotApprover,
    #[error("deciding needs a login with a second factor")]
    SecondFactor,
    #[error("the approval is not pending any more: it is {}", .0.as_str())]
    Settled(Status),
    #[error("this person has approved it already; the policy asks for several people")]
    Twice,
}

impl Approval {
    /// The approval after this decision. One no denies it; as many people as the policy asks for
    /// approve it, and from then on its time counts anew.
    pub fn decided(
        &self,
        decider: &Decider,
        vote: Vote,
        comment: Option<String>,
        now: Timestamp,
    ) -> Result<Self, DecisionError> {
        self.may_be_decided_by(decider)?;
        match self.status_at(now) {
            Status::Pending => {}
            other @ (Status::Approved | Status::Denied | Status::Expired | Status::Consumed) => {
                return Err(DecisionError::Settled(other));
            }
        }
        let (by, name) = match decider {
            Decider::Principal(person) => (Some(person.id), person.name.clone()),
            Decider::Operator => (None, OPERATOR.to_owned()),
        };
        if self.decisions.iter().any(|known| known.by == by) {
            return Err(DecisionError::Twice);
        }
        let mut next = self.clone();
        next.decisions.push(Decision { at: now, by, comment, decision: vote, name });
        let said = u32::try_from(next.decisions.len()).unwrap_or(u32::MAX);
        match vote {
            Vote::Deny => next.status = Status::Denied,
            Vote::Approve if said >= self.terms.approvals => {
                next.status = Status::Approved;
                next.expires_at = now.plus_seconds(self.terms.ttl_s.into());
            }
            Vote::Approve => {}
        }
        Ok(next)
    }

    /// Refuses a decider who must not decide, whatever the status.
    pub fn may_be_decided_by(&self, decider: &Decider) -> Result<(), DecisionError> {
        let Decider::Principal(person) = decider else { return Ok(()) };
        let Approver { id, delegated, admin, groups, mfa, name: _ } = person;
        match id.kind() {
            PrincipalKind::Service => return Err(DecisionError::Service),
            PrincipalKind::User => {}
        }
        if *delegated {
            return Err(DecisionError::Delegated);
        }
        if self.requester.includes(*id) {
            return Err(DecisionError::Requester);
        }
        if !admin && self.terms.approvers.is_disjoint(groups) {
            return Err(DecisionError::NotApprover);
        }
        if self.terms.mfa && !mfa {
            return Err(DecisionError::SecondFactor);
        }
        Ok(())
    }
}
