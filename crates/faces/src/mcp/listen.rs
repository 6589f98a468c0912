//! `subscriptions/listen`: a stream that tells when the tools, prompts and resources that the caller may use
//! change, and what becomes of its tasks.
//!
//! The stream looks again every two seconds with the token that opened it, so what it tells of lists is what
//! `tools/list` would show then, whatever changed: a server's list, policies, a quarantine, the
//! caller's connections. It ends with the token, by an error, and with the node, by a result.

mod resources;

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use axum::response::Response;
use bytes::Bytes;
use futures_util::stream;
use portcullis_app::{Ctx, Purpose, Stages};
use portcullis_core::{
    capability::CapabilityKind,
    id::{OrgId, PrincipalId},
    json::{JsonValue as _, Node},
    mcp::{Era, Request as Asking, meta},
    principal::Caller,
    refusal::{Refusal, Unavailable},
    secret::Secret,
};
use serde_json::{Map, Value, json};

use self::resources::HeardResources;
use super::{Face, reply, task::HeardTasks};
use crate::{
    exchange::{Outcome, message::McpMessage, sse},
    gateway::Gateway,
};

/// Time between two looks at the tools.
const LOOK: Duration = Duration::from_secs(2);
/// A comment is sent after so many looks without news, so that the connection is not taken for dead.
const LOOKS_PER_COMMENT: u32 = 5;

/// An open stream, counted until it is dropped.
pub(crate) struct Open {
    gateway: Arc<Gateway>,
    org: OrgId,
    principal: PrincipalId,
}

impl Open {
    /// Counts a stream of this caller, unless there are too many.
    pub(crate) fn count(gateway: &Arc<Gateway>, caller: &Caller) -> Option<Self> {
        let org = caller.org_id;
        let principal = caller.principal_id;
        let added = gateway.mcp.listeners.add(org, principal);
        added.then(|| Self { gateway: Arc::clone(gateway), org, principal })
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.gateway.mcp.listeners.remove(self.org, self.principal);
    }
}

/// One stream between two of its events.
struct Listener {
    open: Open,
    ctx: Ctx,
    bearer: Secret,
    face: Face,
    asked: McpMessage,
    /// Kinds that the caller wants to hear of.
    wanted: Vec<CapabilityKind>,
    resources: HeardResources,
    tasks: HeardTasks,
    /// Fingerprints that the caller saw last, one of each kind; `None` before the stream is acknowledged.
    seen: Option<Vec<u64>>,
    ended: bool,
}

/// The member by which a caller asks for announcements of a kind.
const fn member_of(kind: CapabilityKind) -> &'static str {
    match kind {
        CapabilityKind::Tool => "toolsListChanged",
        CapabilityKind::Prompt => "promptsListChanged",
        CapabilityKind::Resource | CapabilityKind::Template | CapabilityKind::Skill => {
            "resourcesListChanged"
        }
    }
}

/// Opens a stream.
pub(super) fn open(
    gateway: &Arc<Gateway>,
    mut ctx: Ctx,
    face: Face,
    asking: &Asking,
    bearer: Secret,
) -> Result<Response, Refusal> {
    let wanted = asking.params.root().get("notifications");
    let is_wanted = |kind: &CapabilityKind| {
        let told = wanted.and_then(|wanted| wanted.get(member_of(*kind)));
        told.and_then(Node::as_bool) == Some(true) && super::offers(gateway, &ctx, &face, *kind)
    };
    let wanted = CapabilityKind::ALL.into_iter().filter(is_wanted).collect();
    let open = Open::count(gateway, ctx.caller())
        .ok_or(Refusal::Unavailable { reason: Unavailable::Overloaded })?;
    let asked = McpMessage::new(asking);
    // The trace of the request ends with its head.
    Arc::make_mut(&mut ctx.origin).stages = Stages::untraced();
    let tasks = HeardTasks::of(gateway, &ctx, &face, asking);
    let (seen, ended) = (None, false);
    let resources = HeardResources::of(gateway, &ctx, &face, asking);
    let listener =
        Listener { open, ctx, bearer, face, asked, wanted, resources, tasks, seen, ended };
    let events = stream::unfold(listener, |mut listener| async {
        let event = listener.next().await?;
        Some((event, listener))
    });
    Ok(sse::response(events))
}

impl Listener {
    /// The next event, or a comment; `None` after the answer to the request.
    async fn next(&mut self) -> Option<Bytes> {
        if self.ended {
            return None;
        }
        let gateway = Arc::clone(&self.open.gateway);
        let told = tokio::select! {
            biased;
            () = gateway.app.base.ending() => Err(self.farewell()),
            told = self.news() => told,
        };
        Some(told.unwrap_or_else(|answer| {
            self.ended = true;
            let request_id = self.ctx.origin.request_id;
            sse::event(&reply::body(&answer, Some(&self.asked), request_id))
        }))
    }

    /// The next event, or a comment. Fails with the answer to the request, which is the last event.
    async fn news(&mut self) -> Result<Bytes, Outcome> {
        let Some(seen) = self.seen.clone() else {
            self.seen = Some(Box::pin(self.look()).await?);
            Box::pin(self.resources.settle()).await;
            let honoured =
                self.wanted.iter().map(|kind| (member_of(*kind).to_owned(), json!(true)));
            let tasks = self.tasks.ids().map(|ids| ("taskIds".to_owned(), ids));
            let uris = self.resources.uris().map(|uris| ("resourceSubscriptions".to_owned(), uris));
            let honoured = Value::Object(honoured.chain(uris).chain(tasks).collect());
            let more = Map::from_iter([("notifications".to_owned(), honoured)]);
            return Ok(self.note("notifications/subscriptions/acknowledged", more));
        };
        for _ in 0..LOOKS_PER_COMMENT {
            tokio::time::sleep(LOOK).await;
            if self.open.gateway.draining.load(Ordering::Acquire) {
                return Err(self.farewell());
            }
            let now = Box::pin(self.look()).await?;
            let mut pairs = self.wanted.iter().zip(now.iter().zip(&seen));
            if let Some((kind, (print, _))) = pairs.find(|(_, (now, seen))| now != seen) {
                // What else changed is told with the next look.
                let kept = seen.iter().zip(&self.wanted);
                let kept = kept.map(|(seen, it)| if it == kind { *print } else { *seen });
                let method = match kind {
                    CapabilityKind::Tool => "notifications/tools/list_changed",
                    CapabilityKind::Prompt => "notifications/prompts/list_changed",
                    CapabilityKind::Resource | CapabilityKind::Template | CapabilityKind::Skill => {
                        "notifications/resources/list_changed"
                    }
                };
                self.seen = Some(kept.collect());
                return Ok(self.note(method, Map::new()));
            }
            let gateway = Arc::clone(&self.open.gateway);
            let changed = self.resources.changed(&gateway, &self.ctx);
            let updated = |uri: String| {
                let more = Map::from_iter([("uri".to_owned(), json!(uri))]);
                self.note("notifications/resources/updated", more)
            };
            let mut told: Vec<u8> = changed.into_iter().flat_map(updated).collect();
            let news = Box::pin(self.tasks.news(&gateway, &self.ctx, &self.face)).await;
            if let Some(mut state) = news {
                state.remove("resultType");
                told.extend(self.note("notifications/tasks", state));
            }
            if !told.is_empty() {
                return Ok(Bytes::from(told));
            }
        }
        Ok(sse::COMMENT)
    }

    /// Fingerprints of what the caller may use of each kind. Fails when its token has ended. Callers box it: a stream
    /// waits much longer than it looks.
    async fn look(&mut self) -> Result<Vec<u64>, Refusal> {
        let app = &self.open.gateway.app;
        // The stream is judged by the present moment, and not by that at which it was opened.
        Arc::make_mut(&mut self.ctx.origin).arrived = app.base.now();
        let token = self.ctx.session.presented_again(Some(self.bearer.expose()));
        let session = app.access.authenticate(token, Purpose::Access, &self.ctx.origin).await;
        self.ctx.session = session.map_err(|refused| refused.refusal)?;
        let mut prints = Vec::new();
        for kind in &self.wanted {
            let provider = self.face.provider();
            let offered =
                app.tools.offered_tools(&self.ctx, provider, *kind, provider.is_some()).await?;
            prints.push(offered.fingerprint());
        }
        Ok(prints)
    }

    fn note(&self, method: &str, mut params: Map<String, Value>) -> Bytes {
        params.insert(meta::META.to_owned(), json!({(meta::SUBSCRIPTION_ID): self.asked.id}));
        let message = json!({"jsonrpc": "2.0", "method": method, "params": params});
        sse::event(message.to_string().as_bytes())
    }

    /// The answer to the request: the node ends, and the client may ask another one.
    fn farewell(&self) -> Outcome {
        let subscription = json!({(meta::SUBSCRIPTION_ID): self.asked.id});
        reply::result(json!({(meta::META): subscription}), Era::Modern)
    }
}
