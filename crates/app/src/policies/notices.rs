//! Notices that a policy was true: best effort, and never in the way of the call.

use std::{collections::BTreeMap, sync::Arc};

use portcullis_core::{
    call::Ruling,
    id::MessageId,
    policy::{Channel, Notice},
};
use portcullis_upstream::{Message, Webhook};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use super::Policies;
use crate::{request::Ctx, telemetry::counters};

/// Messages that are on their way at once; what comes beyond is dropped and counted.
const ON_THEIR_WAY: usize = 64;

/// Destinations of notices.
#[derive(Debug)]
pub(crate) struct Notices {
    webhooks: BTreeMap<String, Webhook>,
    room: Arc<Semaphore>,
}

impl Notices {
    pub(crate) fn new(webhooks: BTreeMap<String, Webhook>) -> Self {
        counters::start_channel(&Channel::Log);
        for name in webhooks.keys() {
            counters::start_channel(&Channel::Webhook(name.as_str().into()));
        }
        Self { webhooks, room: Arc::new(Semaphore::new(ON_THEIR_WAY)) }
    }
}

portcullis_core::words! {
    /// Decision that a notice reports.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(crate) enum Verdict {
        Allowed = "allow",
        Denied = "deny",
    }
}

impl Policies {
    pub(crate) fn webhook(&self, name: &str) -> Option<Webhook> {
        self.notices.webhooks.get(name).cloned()
    }

    /// Gives the notices that policies ask for.
    pub(crate) fn give_notices(&self, ctx: &Ctx, tool: &str, ruling: &Ruling, verdict: Verdict) {
        for Notice { policy, channel } in &ruling.notices {
            tracing::info!(
                policy = %policy.id,
                channel = %channel,
                org = %ctx.caller().org_id,
                principal = %ctx.caller().principal_id,
                tool,
                decision = verdict.as_str(),
                request = %ctx.origin.request_id,
                "a policy asks to be told of a call"
            );
            match channel {
                Channel::Log => counters::notice(channel, "logged"),
                Channel::Webhook(name) => {
                    self.post(channel, name, &body(ctx, &policy.id, tool, verdict));
                }
            }
        }
    }

    /// Sends the message on a task of its own, when there is room.
    fn post(&self, channel: &Channel, name: &str, body: &Value) {
        let room = Arc::clone(&self.notices.room).try_acquire_owned();
        let (Some(webhook), Ok(room)) = (self.notices.webhooks.get(name), room) else {
            counters::notice(channel, "dropped");
            return;
        };
        let id = MessageId::new(self.base.ids()).to_string();
        let message = Message { id, body: body.to_string() };
        let webhook = webhook.clone();
        let channel = channel.clone();
        let now = self.base.now();
        self.base.tasks.spawn(async move {
            match webhook.send(&message, now).await {
                Ok(()) => counters::notice(&channel, "sent"),
                Err(error) => {
                    counters::notice(&channel, "failed");
                    tracing::warn!(channel = %channel, %error, "a notice did not arrive");
                }
            }
            drop(room);
        });
    }
}

/// Body of a message to a webhook: names and ids, no contents of the call.
fn body(ctx: &Ctx, policy: &str, tool: &str, verdict: Verdict) -> Value {
    json!({
        "type": "policy.notice",
        "policy": policy,
        "decision": verdict.as_str(),
        "tool": tool,
        "org_id": ctx.caller().org_id,
        "principal_id": ctx.caller().principal_id,
        "request_id": ctx.origin.request_id,
        "occurred_at": ctx.origin.arrived,
    })
}
