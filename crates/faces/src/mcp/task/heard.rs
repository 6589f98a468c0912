//! Tasks that a stream of `subscriptions/listen` tells of (`notifications/tasks`).

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use portcullis_app::{Ctx, FollowUp};
use portcullis_core::{
    idempotency::fingerprint,
    json::{Document, JsonValue as _, Node},
    mcp::{Request as Asking, interaction::ClientCapabilities, meta::CLIENT_CAPABILITIES},
    principal::Scope,
};
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use super::{Question, is_known, tell};
use crate::{
    exchange::message::McpMessage,
    gateway::Gateway,
    mcp::{Face, reply},
};

/// Tasks that one stream tells of.
const MOST: usize = 16;
/// Time after which a task is asked about again that could not be asked about.
const LATER: Duration = Duration::from_secs(10);

/// A task, what was told of it last, and when it is asked about again.
struct Heard {
    id: String,
    /// Digest of that.
    last: String,
    next: Instant,
}

/// Tasks that a stream tells of.
pub(in crate::mcp) struct HeardTasks {
    /// The request without its parameters, if there are any.
    asking: Option<Asking>,
    tasks: Vec<Heard>,
}

/// A request without its parameters, which may have a megabyte: streams stay open for long.
fn without_params(asking: &Asking, capabilities: ClientCapabilities) -> Asking {
    Asking {
        id: asking.id.clone(),
        method: asking.method,
        params: Document::of(&json!({})),
        arguments: None,
        meta: Document::of(&json!({ (CLIENT_CAPABILITIES): capabilities.declared() })),
        era: asking.era,
    }
}

impl HeardTasks {
    /// The tasks of the caller among those that a stream is to tell of.
    pub(in crate::mcp) fn of(gateway: &Gateway, ctx: &Ctx, face: &Face, asking: &Asking) -> Self {
        let wanted = asking.params.root().get("notifications").and_then(|all| all.get("taskIds"));
        let wanted = wanted.and_then(Node::items).into_iter().flatten().filter_map(Node::text);
        let wanted: BTreeSet<_> = wanted.collect();
        let question = Question::of(face, asking, None);
        let may_ask = ctx.require(Scope::McpsInvoke).is_ok();
        let known =
            wanted.into_iter().filter(|id| may_ask && is_known(gateway, ctx, &question, id));
        let heard =
            known.map(|id| Heard { id: id.to_owned(), last: String::new(), next: Instant::now() });
        let tasks: Vec<_> = heard.take(MOST).collect();
        let asking = (!tasks.is_empty()).then(|| without_params(asking, question.capabilities));
        Self { asking, tasks }
    }

    /// The ids, if there are any.
    pub(in crate::mcp) fn ids(&self) -> Option<Value> {
        let ids: Vec<_> = self.tasks.iter().map(|task| task.id.as_str()).collect();
        (!ids.is_empty()).then(|| json!(ids))
    }

    /// The answer of `tasks/get` about the first task that is due, if it changed. A task that ended is told of once.
    pub(in crate::mcp) async fn news(
        &mut self,
        gateway: &Arc<Gateway>,
        ctx: &Ctx,
        face: &Face,
    ) -> Option<Map<String, Value>> {
        let asking = self.asking.as_ref()?;
        // One in each look, for the session is that of the look; the next one is asked about in the next.
        let due = |heard: &Heard| heard.next <= Instant::now();
        let place = self.tasks.iter().position(due)?;
        let mut heard = self.tasks.remove(place);
        // Each question costs a request, as one of the caller's does.
        let quotas = &gateway.app.quotas;
        let is_charged =
            quotas.admit_invoker(ctx).is_ok() && quotas.charge_request(ctx).await.is_ok();
        if !is_charged || ctx.require(Scope::McpsInvoke).is_err() {
            heard.next = Instant::now() + LATER;
            self.tasks.push(heard);
            return None;
        }
        let message = McpMessage::new(asking);
        let question = Question::of(face, asking, Some(&message));
        let asked = tell(gateway, ctx.clone(), &question, &heard.id, FollowUp::State).await;
        let answer = asked.unwrap_or_else(|answer| answer);
        let text = reply::body(&answer, Some(&message), ctx.origin.request_id);
        let answer: Value = serde_json::from_slice(&text).unwrap_or_default();
        let Some(Value::Object(state)) = answer.get("result").cloned() else {
            // What its provider or the log cannot do now may go well later; of others no more is told.
            let code = answer.pointer("/error/code").and_then(Value::as_i64);
            if code.is_some_and(|code| (500..600).contains(&code)) {
                heard.next = Instant::now() + LATER;
                self.tasks.push(heard);
            }
            return None;
        };
        let pause = state.get("pollIntervalMs").and_then(Value::as_u64).unwrap_or_default();
        heard.next = Instant::now() + Duration::from_millis(pause);
        let seen = ["status", "statusMessage", "inputRequests"].map(|name| state.get(name));
        let seen = fingerprint(&json!(seen).to_string());
        let is_news = seen != heard.last;
        heard.last = seen;
        let goes_on = ["working", "input_required"].map(|status| json!(status));
        if state.get("status").is_some_and(|status| goes_on.contains(status)) {
            self.tasks.push(heard);
        }
        is_news.then_some(state)
    }
}

#[cfg(test)]
mod tests {
    use portcullis_core::mcp::{Message, Mirror, MirroredHeaders};

    use super::*;

    #[test]
    fn of_a_request_a_stream_keeps_no_more_than_it_needs() {
        let declared = json!({"extensions": {"io.modelcontextprotocol/tasks": {}, "a/b": {"x": "x".repeat(1 << 19)}}});
        let told = json!({"jsonrpc": "2.0", "id": "a", "method": "subscriptions/listen", "params": {
            "notifications": {"taskIds": ["x".repeat(1 << 19)]},
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                CLIENT_CAPABILITIES: declared,
            },
        }});
        let headers = MirroredHeaders {
            version: Mirror::Once("2026-07-28"),
            method: Mirror::Once("subscriptions/listen"),
            name: Mirror::Absent,
        };
        let Ok(Message::Request(asking)) = Message::read(&Document::of(&told), &headers) else {
            panic!("a request")
        };
        let capabilities =
            ClientCapabilities::read(asking.meta.root().get(CLIENT_CAPABILITIES).unwrap());

        let kept = without_params(&asking, capabilities);

        assert_eq!((&kept.id, kept.method, kept.era), (&asking.id, asking.method, asking.era));
        let read = ClientCapabilities::read(kept.meta.root().get(CLIENT_CAPABILITIES).unwrap());
        assert!(read.tasks && read == capabilities);
        assert!(kept.arguments.is_none());
        assert!([&kept.params, &kept.meta].iter().all(|part| part.root().raw().len() < 200));
    }
}
