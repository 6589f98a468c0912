//! Notices of approvals: policies that ask for them and have `@notify` tell a webhook.
//!
//! A request is sent again until it is decided, because an approver cannot decide what they do not
//! know of; the decision is sent a few times. The notices of a node are in its memory: a
//! crash forgets those that did not arrive, and the approvals are still in every list.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use portcullis_core::{
    approval::{Approval, FoundInput, Status, Vote},
    audit::EventType,
    clock::Timestamp,
    id::{ApprovalId, EventId, OrgId, PrincipalId},
    policy::Channel,
};
use portcullis_lanes::{SharePlace, Shares};
use portcullis_upstream::{Message, Webhook};
use serde::Serialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::Approvals;
use crate::{base::Base, telemetry::counters};

/// Notices of a node, and of an org at it, that are on their way at once; what comes beyond is dropped and
/// counted. One that does not arrive may be on its way for days.
const ON_THEIR_WAY: usize = 1_024;
const PER_ORG: usize = 64;
/// Wait before a notice is sent again; each one is twice as long as the one before.
const FIRST_WAIT: Duration = Duration::from_secs(1);
/// Longest of these waits.
const LONGEST_WAIT: Duration = Duration::from_mins(5);
/// Times that a notice is sent if no call waits for the answer.
const TRIES: u32 = 3;

/// Notices under way.
#[derive(Debug)]
pub(super) struct Notices {
    places: Arc<Shares<OrgId>>,
    /// Ends the waits before something is sent again.
    stop: OnceLock<CancellationToken>,
}

impl Default for Notices {
    fn default() -> Self {
        Self { places: Arc::new(Shares::new(ON_THEIR_WAY, PER_ORG)), stop: OnceLock::new() }
    }
}

impl Approvals {
    /// From now on notices are sent again, until `stop` is cancelled.
    pub(crate) fn notify_until(&self, stop: &CancellationToken) {
        // Only the first one counts.
        let _ = self.notices.stop.set(stop.clone());
    }

    /// Tells of a change that was written by this event, if the policy in force wants it told.
    pub(super) fn tell(&self, kind: EventType, event: EventId, approval: &Approval) {
        let set = self.policies.current_of(approval.org_id);
        let Some(channel) = set.channel_of(&approval.policy.id) else { return };
        let name = match channel {
            Channel::Webhook(name) => name,
            Channel::Log => {
                tracing::info!(
                    approval = %approval.id, org = %approval.org_id, policy = %approval.policy.id,
                    tool = %approval.tool.id, kind = kind.as_str(), "an approval changed"
                );
                return counters::notice(channel, "logged");
            }
        };
        let place = self.notices.places.take(approval.org_id);
        let (Some(webhook), Some(place)) = (self.policies.webhook(name), place) else {
            return counters::notice(channel, "dropped");
        };
        let url = self.url(approval.id);
        let body = body(kind, self.base.now(), approval, url).to_string();
        let notice = Notice {
            base: Arc::clone(&self.base),
            webhook,
            channel: channel.clone(),
            message: Message { id: event.to_string(), body },
            patience: Patience::of(kind, approval),
            stop: self.notices.stop.get().cloned(),
            _place: place,
        };
        self.base.tasks.spawn(notice.deliver());
    }
}

/// End of the tries to send a notice.
enum Patience {
    /// Tried until this approval is not pending any more.
    WhilePending(OrgId, ApprovalId),
    /// Tried so often.
    Tries,
}

impl Patience {
    fn of(kind: EventType, approval: &Approval) -> Self {
        if kind == EventType::ApprovalRequested {
            Self::WhilePending(approval.org_id, approval.id)
        } else {
            Self::Tries
        }
    }
}

/// A notice on its way.
struct Notice {
    base: Arc<Base>,
    webhook: Webhook,
    channel: Channel,
    message: Message,
    patience: Patience,
    stop: Option<CancellationToken>,
    _place: SharePlace<OrgId>,
}

impl Notice {
    /// Sends it until it arrives or is no longer needed.
    async fn deliver(self) {
        let mut wait = FIRST_WAIT;
        let mut tries = 1;
        loop {
            let error = match self.webhook.send(&self.message, self.base.now()).await {
                Ok(()) => return counters::notice(&self.channel, "sent"),
                Err(error) => error,
            };
            if !self.waits(wait).await || !self.is_needed(tries).await {
                counters::notice(&self.channel, "failed");
                tracing::warn!(
                    channel = %self.channel, message = %self.message.id, tries, %error,
                    "a notice of an approval did not arrive"
                );
                return;
            }
            wait = wait.saturating_mul(2).min(LONGEST_WAIT);
            tries += 1;
        }
    }

    /// `false` if the node ends meanwhile.
    async fn waits(&self, wait: Duration) -> bool {
        let Some(stop) = &self.stop else { return false };
        stop.run_until_cancelled(tokio::time::sleep(wait)).await.is_some()
    }

    async fn is_needed(&self, tries: u32) -> bool {
        match self.patience {
            Patience::Tries => tries < TRIES,
            Patience::WhilePending(org, id) => {
                let status = |approval: Approval| approval.status_at(self.base.now());
                match self.base.store.find_approval(org, id).await {
                    Ok(found) => found.map(|it| status(it.approval)) == Some(Status::Pending),
                    // The store comes back, or the node is stopped.
                    Err(_) => true,
                }
            }
        }
    }
}

/// Content of a notice: what a decision needs. Input and findings are those which approvers are shown, and
/// only in the request.
#[derive(Serialize)]
struct NoticeContent<'a> {
    id: ApprovalId,
    org_id: OrgId,
    status: Status,
    policy: &'a str,
    reason: &'a str,
    tool: &'a str,
    requester: ToldRequester<'a>,
    /// People who have to say yes.
    approvals: u32,
    approvers: Vec<&'a str>,
    decisions: Vec<ToldDecision<'a>>,
    created_at: Timestamp,
    expires_at: Timestamp,
    url: Option<String>,
    digest: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    input: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    findings: Option<&'a [FoundInput]>,
}

#[derive(Serialize)]
struct ToldRequester<'a> {
    id: PrincipalId,
    name: &'a str,
}

/// A decision without its comment, which is for those who may read the approval.
#[derive(Serialize)]
struct ToldDecision<'a> {
    at: Timestamp,
    by: Option<PrincipalId>,
    decision: Vote,
    name: &'a str,
}

fn body(kind: EventType, at: Timestamp, approval: &Approval, url: Option<String>) -> Value {
    let is_request = kind == EventType::ApprovalRequested;
    let decisions = approval.decisions.iter().map(|it| ToldDecision {
        at: it.at,
        by: it.by,
        decision: it.decision,
        name: &it.name,
    });
    let told = NoticeContent {
        id: approval.id,
        org_id: approval.org_id,
        status: approval.status,
        policy: &approval.policy.id,
        reason: &approval.policy.reason,
        tool: &approval.tool.id,
        requester: ToldRequester {
            id: approval.requester.principal_id,
            name: &approval.requester.principal_name,
        },
        approvals: approval.terms.approvals,
        approvers: approval.terms.approvers.iter().map(String::as_str).collect(),
        decisions: decisions.collect(),
        created_at: approval.created_at,
        expires_at: approval.expires_at,
        url,
        digest: &approval.digest,
        input: is_request.then_some(&approval.input),
        findings: is_request.then_some(&approval.findings),
    };
    json!({ "type": kind.as_str(), "timestamp": at, "data": told })
}
