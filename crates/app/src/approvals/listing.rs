//! Approvals as they are shown: to requesters, to those who may decide, to admins and auditors.

use portcullis_core::{
    approval::{
        Approval, ApprovalTerms, AskingPolicy, BoundTool, Decider, Decision, DecisionError,
        FoundInput, Requester, Status,
    },
    capability::CapabilityId,
    clock::Timestamp,
    id::{ApprovalId, OrgId, PrincipalId, ProviderId},
    principal::{Role, Scope},
    refusal::Refusal,
};
use portcullis_store::{ApprovalFilter, ApprovalGlance, ApprovalParts, StoredApproval};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::Approvals;
use crate::request::Ctx;

/// Rows looked at for one page: what the caller may not see is passed over. The page then ends early,
/// and the next one goes on behind it.
const LOOKED_AT: usize = 2_000;
/// Bytes of the approvals of one page; the first is shown whatever it takes.
const PAGE_BYTES: usize = 1 << 20;
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
    /// Findings of data-loss prevention in the input; at most 20.
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

/// A page of approvals, the newest first.
#[derive(Debug)]
pub struct ApprovalPage {
    pub items: Vec<ApprovalView>,
    /// The approval behind which the list goes on; `None` at its end.
    pub end: Option<ApprovalId>,
}

/// Principal that looks at approvals.
pub(super) struct Looking {
    id: PrincipalId,
    /// The same principal as a decider.
    pub(super) decider: Decider,
    /// Admins and auditors see all of the org, and what was handed on does with `audit:read`.
    all: bool,
    /// The provider that its token is good for, if that is one only.
    provider: Option<String>,
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
        let is_of = |only: &str| {
            approval.tool.id.parse::<CapabilityId>().is_ok_and(|tool| tool.provider() == only)
        };
        self.provider.as_deref().is_none_or(is_of)
            && (self.all
                || approval.requester.includes(self.id)
                || decides(approval.may_be_decided_by(&self.decider)))
    }

    /// Returns false if it surely does not see the approval.
    fn may_see(&self, glance: &ApprovalGlance) -> bool {
        self.all || glance.principal_id == self.id || glance.audience.may_include(&self.decider)
    }
}

/// Approvals of a page, before they are read.
#[derive(Default)]
struct PickedPage {
    ids: Vec<ApprovalId>,
    bytes: usize,
    limit: usize,
}

impl PickedPage {
    /// Takes the approval; false if the page is full.
    fn take(&mut self, glance: &ApprovalGlance) -> bool {
        let bytes = self.bytes.saturating_add(glance.bytes);
        let room = self.ids.is_empty() || bytes <= PAGE_BYTES;
        if self.ids.len() >= self.limit || !room {
            return false;
        }
        self.bytes = bytes;
        self.ids.push(glance.id);
        true
    }
}

impl Approvals {
    /// The approvals that the caller may see, going on behind `after`. Only those that are shown are read.
    pub async fn list(
        &self,
        ctx: &Ctx,
        filter: ApprovalFilter,
        after: Option<ApprovalId>,
        limit: usize,
    ) -> Result<ApprovalPage, Refusal> {
        let looking = self.looking(ctx).await?;
        let now = self.base.now();
        let org = ctx.caller().org_id;
        let filter = ApprovalFilter { now, ..filter };
        let mut picked = PickedPage { limit, ..PickedPage::default() };
        let end = self.pick(org, &looking, &filter, after, &mut picked).await?;
        let read = self.base.store.approvals_among(org, &picked.ids, ApprovalParts::All).await?;
        let seen = read.into_iter().map(|it| it.approval).filter(|it| looking.sees(it));
        Ok(ApprovalPage { items: seen.map(|it| ApprovalView::new(it, now)).collect(), end })
    }

    /// Picks the approvals of a page. Gives the one behind which the next page begins.
    async fn pick(
        &self,
        org: OrgId,
        looking: &Looking,
        filter: &ApprovalFilter,
        mut after: Option<ApprovalId>,
        picked: &mut PickedPage,
    ) -> Result<Option<ApprovalId>, Refusal> {
        let mut looked_at = 0;
        while looked_at < LOOKED_AT {
            let store = &self.base.store;
            let glances = store.glance_at_approvals(org, filter, after, READ_AT_ONCE).await?;
            if glances.is_empty() {
                return Ok(None);
            }
            looked_at += glances.len();
            for glance in &glances {
                if looking.may_see(glance) && !picked.take(glance) {
                    return Ok(after);
                }
                after = Some(glance.id);
            }
        }
        Ok(after)
    }

    /// One approval, with earlier ones of the same tool.
    pub async fn get(&self, ctx: &Ctx, id: ApprovalId) -> Result<ApprovalView, Refusal> {
        let looking = self.looking(ctx).await?;
        let now = self.base.now();
        let org = ctx.caller().org_id;
        let found = self.find_visible(org, &looking, id).await?.approval;
        let earlier = Some(self.earlier(org, &looking, &found, now).await?);
        Ok(ApprovalView { earlier, ..ApprovalView::new(found, now) })
    }

    /// The latest approvals before this one of the same tool.
    async fn earlier(
        &self,
        org: OrgId,
        looking: &Looking,
        found: &Approval,
        now: Timestamp,
    ) -> Result<Vec<EarlierApproval>, Refusal> {
        let store = &self.base.store;
        let tool = &found.tool.id;
        let filter = ApprovalFilter { status: None, now };
        let before = store.glance_at_approvals(org, &filter, Some(found.id), READ_AT_ONCE).await?;
        let may_be = |it: &&ApprovalGlance| it.capability_id == *tool && looking.may_see(it);
        let mut picked = PickedPage { limit: EARLIER, ..PickedPage::default() };
        for glance in before.iter().filter(may_be) {
            if !picked.take(glance) {
                break;
            }
        }
        let read = store.approvals_among(org, &picked.ids, ApprovalParts::WithoutInput).await?;
        let read = read.into_iter().map(|it| it.approval);
        let same = read.filter(|it| it.tool.id == *tool && looking.sees(it));
        let short = |it: Approval| EarlierApproval {
            id: it.id,
            status: it.status_at(now),
            requester: it.requester,
            decisions: it.decisions,
        };
        Ok(same.map(short).collect())
    }

    /// The approval of this id, unless the caller may not see it.
    pub(super) async fn find_visible(
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
        let caller = ctx.caller();
        let all = match caller.role {
            Role::Admin | Role::Auditor => {
                !caller.is_handed_on() || caller.scopes.contains(Scope::AuditRead)
            }
            Role::Member | Role::Service(_) => false,
        };
        let decider = if caller.is_operator {
            Decider::Operator
        } else {
            Decider::Principal(self.approver(ctx).await?)
        };
        let face = caller.client.as_deref().and_then(|granted| granted.face.provider());
        Ok(Looking { id: caller.principal_id, decider, all, provider: face.map(str::to_owned) })
    }
}
