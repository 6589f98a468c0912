//! Approvals as they are shown: to requesters, to those who may decide, to admins and auditors.

use portcullis_core::{
    approval::{
        Approval, ApprovalTerms, AskingPolicy, BoundTool, Decider, Decision, DecisionError,
        FoundInput, Requester, Status,
    },
    clock::Timestamp,
    id::{ApprovalId, OrgId, PrincipalId, ProviderId},
    principal::Role,
    refusal::Refusal,
};
use portcullis_store::{ApprovalFilter, StoredApproval};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::Approvals;
use crate::ctx::Ctx;

/// Rows read at most for one page: what the caller may not see is passed over. The page then ends
/// early, and the next one goes on behind it.
const READ_AT_MOST: usize = 2_000;
/// Rows read at a time.
const READ_AT_ONCE: u32 = 200;
/// Earlier approvals of the same tool that are shown with one.
const EARLIER: usize = 5;

/// An approval as the API shows it.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = Approval)]
pub struct ApprovalView {
    /// Its id.
    #[schema(value_type = String, example = "apr_01M754BKTKX1YB8Q05NMW9TP4G")]
    pub id: ApprovalId,
    /// Status at this moment.
    pub status: Status,
    /// Digest of the call that it is bound to.
    pub digest: String,
    /// Requester of the call.
    pub requester: Requester,
    /// The policy that asks for it.
    pub policy: AskingPolicy,
    /// The tool as accepted.
    pub tool: BoundTool,
    /// The connection.
    pub connection: ProviderId,
    /// Conditions of the policy.
    pub terms: ApprovalTerms,
    /// The input that will be sent, masked as an answer would be.
    ///
    /// Characters that a reader would not see are written as `[U+202E]`.
    #[schema(value_type = Object)]
    pub input: Value,
    /// What data-loss prevention found in the input; at most 20.
    pub findings: Vec<FoundInput>,
    /// Decisions so far.
    pub decisions: Vec<Decision>,
    /// Number of times that the call may still run, once approved.
    pub uses_left: u32,
    /// When it was requested.
    pub created_at: Timestamp,
    /// When it ends.
    pub expires_at: Timestamp,
    /// Latest approvals of the same tool, newest first; only where one approval is asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub earlier: Option<Vec<EarlierApproval>>,
}

/// Approval of the same tool, in short.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct EarlierApproval {
    /// Its id.
    #[schema(value_type = String, example = "apr_01M754BKTKX1YB8Q05NMW9TP4G")]
    pub id: ApprovalId,
    /// Status at this moment.
    pub status: Status,
    /// Requester of that call.
    pub requester: Requester,
    /// Its decisions.
    pub decisions: Vec<Decision>,
}

impl ApprovalView {
    pub(crate) fn new(approval: Approval, now: Timestamp) -> Self {
        Self {
            id: approval.id,
            status: approval.status_at(now),
            digest: approval.digest,
            requester: approval.requester,
            policy: approval.policy,
            tool: approval.tool,
            connection: approval.connection,
            terms: approval.terms,
            input: approval.input,
            findings: approval.findings,
            decisions: approval.decisions,
            uses_left: approval.uses_left,
            created_at: approval.created_at,
            expires_at: approval.expires_at,
            earlier: None,
        }
    }
}

/// Filter of a list of approvals.
#[derive(Debug, Clone, Copy, Default)]
pub struct ApprovalQuery {
    /// Only with this status.
    pub status: Option<Status>,
    /// Only those before this one.
    pub after: Option<ApprovalId>,
    /// At most so many.
    pub limit: usize,
}

/// A page of approvals, the newest first.
#[derive(Debug)]
pub struct ApprovalPage {
    /// The approvals.
    pub items: Vec<ApprovalView>,
    /// The approval behind which the list goes on; `None` at its end.
    pub end: Option<ApprovalId>,
}

/// Principal that looks at approvals.
pub(super) struct Looking {
    id: PrincipalId,
    /// The same as somebody who decides.
    pub(super) decider: Decider,
    /// Admins and auditors see all of the org.
    all: bool,
}

impl Looking {
    fn sees(&self, approval: &Approval) -> bool {
        let decides = |it: Result<(), DecisionError>| match it {
            Ok(()) | Err(DecisionError::SecondFactor) => true,
            Err(
                DecisionError::Service
                | DecisionError::Delegated
                | DecisionError::Requester
                | DecisionError::NotApprover
                | DecisionError::Settled(_)
                | DecisionError::Twice,
            ) => false,
        };
        self.all
            || approval.requester.includes(self.id)
            || decides(approval.may_be_decided_by(&self.decider))
    }
}

impl Approvals {
    /// The approvals that the caller may see.
    pub async fn list(&self, ctx: &Ctx, query: &ApprovalQuery) -> Result<ApprovalPage, Refusal> {
        let (looking, now) = (self.looking(ctx).await?, self.base.now());
        let (org, filter) =
            (ctx.caller().org_id, ApprovalFilter { status: query.status, requester: None, now });
        let (mut items, mut after, mut read) = (Vec::new(), query.after, 0);
        loop {
            let rows = self.base.store.list_approvals(org, &filter, after, READ_AT_ONCE).await?;
            if rows.is_empty() {
                return Ok(ApprovalPage { items, end: None });
            }
            read += rows.len();
            for StoredApproval { approval, .. } in rows {
                let sees = looking.sees(&approval);
                if sees && items.len() == query.limit {
                    return Ok(ApprovalPage { items, end: after });
                }
                after = Some(approval.id);
                if sees {
                    items.push(ApprovalView::new(approval, now));
                }
            }
            if read >= READ_AT_MOST {
                return Ok(ApprovalPage { items, end: after });
            }
        }
    }

    /// One approval, with earlier ones of the same tool.
    pub async fn get(&self, ctx: &Ctx, id: ApprovalId) -> Result<ApprovalView, Refusal> {
        let (looking, now, org) = (self.looking(ctx).await?, self.base.now(), ctx.caller().org_id);
        let found = self.seen(org, &looking, id).await?.approval;
        let filter = ApprovalFilter { status: None, requester: None, now };
        let before = self.base.store.list_approvals(org, &filter, Some(id), READ_AT_ONCE).await?;
        let same = before.into_iter().map(|it| it.approval);
        let same = same.filter(|it| it.tool.id == found.tool.id && looking.sees(it));
        let short = |it: Approval| EarlierApproval {
            id: it.id,
            status: it.status_at(now),
            requester: it.requester,
            decisions: it.decisions,
        };
        let earlier = Some(same.take(EARLIER).map(short).collect());
        Ok(ApprovalView { earlier, ..ApprovalView::new(found, now) })
    }

    /// The approval of this id, unless the caller may not see it.
    pub(super) async fn seen(
        &self,
        org: OrgId,
        looking: &Looking,
        id: ApprovalId,
    ) -> Result<StoredApproval, Refusal> {
        let unknown = || Refusal::not_found("approval", &id.to_string());
        let found = self.base.store.find_approval(org, id).await?;
        found.filter(|found| looking.sees(&found.approval)).ok_or_else(unknown)
    }

    /// The caller, who looks.
    pub(super) async fn looking(&self, ctx: &Ctx) -> Result<Looking, Refusal> {
        let all = match ctx.caller().role {
            Role::Admin | Role::Auditor => true,
            Role::Member | Role::Service(_) => false,
        };
        let decider = Decider::Principal(self.approver(ctx).await?);
        Ok(Looking { id: ctx.caller().principal_id, decider, all })
    }
}
