//! Deciding about approvals: by people of the org, over the API.

use std::collections::BTreeSet;

use portcullis_core::{
    approval::{Approval, Approver, DecisionError, Status, Vote},
    audit::EventType,
    hidden::spelled,
    id::ApprovalId,
    principal::Role,
    refusal::Refusal,
};

use super::{ApprovalView, Approvals};
use crate::{
    base::contention::{Changer, Contended},
    request::Ctx,
};

/// A decision as it was asked for.
#[derive(Debug, Clone)]
pub struct DecisionRequest {
    pub vote: Vote,
    pub comment: Option<String>,
    /// Digest of the call that was looked at, if the caller says so.
    pub digest: Option<String>,
}

impl Approvals {
    /// Decides about an approval. Refuses everybody who must not, a digest that is not that of the approval,
    /// and an approval that no call could use any more because its policy, tool or requester changed: it
    /// ends at once.
    pub async fn decide(
        &self,
        ctx: &Ctx,
        id: ApprovalId,
        request: DecisionRequest,
    ) -> Result<ApprovalView, Refusal> {
        let org = ctx.caller().org_id;
        let looking = self.looking(ctx).await?;
        let comment = request.comment.as_deref().map(|text| self.screening.recordable(text));
        let kind = kind_of(request.vote);
        let approval = Contended::Approval(id);
        let mut attempts = self.base.contention.attempts(org, Changer::Caller, approval).await?;
        loop {
            attempts.begin().await?;
            let found = self.find_visible(org, &looking, id).await?;
            if request.digest.as_ref().is_some_and(|digest| *digest != found.approval.digest) {
                let message = "The digest is not that of the approval; look at it again.";
                return Err(Refusal::bad_request(message));
            }
            let now = self.base.now();
            let next = found.approval.decided(&looking.decider, request.vote, comment.clone(), now);
            let next = next.map_err(|error| refusal(&found.approval, error))?;
            if !self.is_usable(ctx, &found.approval).await? {
                self.end(&found.approval.ended(), found.revision).await?;
                return Err(Refusal::ApprovalSettled { id, status: Status::Expired });
            }
            let event = self.event_of(ctx, kind, &next);
            if self.change(next.clone(), Some(found.revision), event).await? {
                return Ok(ApprovalView::new(next, now));
            }
        }
    }

    /// The caller as an approver. A group counts if the login of the token and the newest login
    /// both named it: a principal that lost a group since cannot decide by an older token. One that
    /// the operator or an identity provider put the caller into counts as long as the caller is in it.
    pub(super) async fn approver(&self, ctx: &Ctx) -> Result<Approver, Refusal> {
        let caller = ctx.caller();
        let identity = ctx.session.principal.identity();
        let store = &self.base.store;
        let org = caller.org_id;
        let id = caller.principal_id;
        let known = store.find_principal(org, id).await?.map(|known| known.all_groups());
        let newest = store.last_login(org, id).await?.map(|login| login.said.groups);
        let newest: Vec<_> = known.into_iter().chain(newest).collect();
        let is_kept = |group: &&String| newest.iter().any(|groups| groups.contains(*group));
        let groups: BTreeSet<String> = identity.groups.iter().filter(is_kept).cloned().collect();
        Ok(Approver {
            id: caller.principal_id,
            name: spelled(&caller.principal_name).into_owned(),
            delegated: caller.via.is_some() || !caller.lineage.actors().is_empty(),
            admin: caller.role == Role::Admin,
            groups,
            mfa: identity.mfa,
        })
    }
}

/// The event of a decision.
const fn kind_of(vote: Vote) -> EventType {
    match vote {
        Vote::Approve => EventType::ApprovalGranted,
        Vote::Deny => EventType::ApprovalDenied,
    }
}

/// The answer to a decision that is not taken.
fn refusal(approval: &Approval, error: DecisionError) -> Refusal {
    match error {
        DecisionError::Settled(status) => Refusal::ApprovalSettled { id: approval.id, status },
        DecisionError::Twice => {
            Refusal::ApprovalSettled { id: approval.id, status: Status::Pending }
        }
        DecisionError::Service
        | DecisionError::Delegated
        | DecisionError::Requester
        | DecisionError::NotApprover
        | DecisionError::SecondFactor => Refusal::PolicyDenied {
            policy: approval.policy.id.clone(),
            reason: error.to_string(),
            dlp: None,
            more: serde_json::Map::new(),
        },
    }
}
