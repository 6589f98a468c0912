//! Resources of which a stream tells that they changed (`notifications/resources/updated`).

use std::{collections::BTreeSet, time::Duration};

use portcullis_app::{Ctx, ResourceWatch};
use portcullis_core::{
    json::{JsonValue as _, Node},
    mcp::Request as Asking,
};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::{
    gateway::Gateway,
    mcp::{Face, call::inner_of},
};

/// Resources that one stream tells of.
const MOST: usize = 32;
/// Looks after which all are judged anew, whether or not they changed.
const LOOKS_PER_JUDGEMENT: u32 = 5;
/// Time in which servers say that they tell of them, before the stream is acknowledged.
const PATIENCE: Duration = Duration::from_secs(5);

/// A resource that the stream was asked to tell of.
struct Heard {
    /// The URI as the client writes it.
    uri: String,
    slug: String,
    inner: String,
    /// `None` while the caller may not read it.
    watch: Option<ResourceWatch>,
}

/// Resources that a stream tells of.
pub(super) struct HeardResources {
    all: Vec<Heard>,
    looks: u32,
}

impl HeardResources {
    /// The resources among the first that a stream is to tell of which are listed for the caller.
    pub(super) fn of(gateway: &Gateway, ctx: &Ctx, face: &Face, asking: &Asking) -> Self {
        let wanted = asking.params.root().get("notifications");
        let wanted = wanted.and_then(|all| all.get("resourceSubscriptions"));
        let wanted = wanted.and_then(Node::items).into_iter().flatten().filter_map(Node::text);
        let wanted: BTreeSet<&str> = wanted.collect();
        let heard = wanted.into_iter().take(MOST).filter_map(|uri| {
            let (slug, inner) = inner_of(face, uri)?;
            if face.provider().is_none() && gateway.app.tools.exposes_pages_alone(ctx, &slug) {
                return None;
            }
            let watch = gateway.app.tools.watch(ctx, &slug, &inner, None);
            watch.is_some().then(|| Heard { uri: uri.to_owned(), slug, inner, watch })
        });
        Self { all: heard.collect(), looks: 0 }
    }

    /// Waits a while until the servers tell of all, and forgets those of which they do not.
    pub(super) async fn settle(&mut self) {
        let all = async {
            for watch in self.all.iter().filter_map(|heard| heard.watch.as_ref()) {
                watch.wait_until_told().await;
            }
        };
        let _late = timeout(PATIENCE, all).await;
        self.all.retain(|heard| heard.watch.as_ref().is_some_and(ResourceWatch::is_told));
    }

    /// The URIs, if there are any.
    pub(super) fn uris(&self) -> Option<Value> {
        let uris: Vec<&str> = self.all.iter().map(|heard| heard.uri.as_str()).collect();
        (!uris.is_empty()).then(|| json!(uris))
    }

    /// URIs of those that may have changed and that the caller may read now.
    pub(super) fn changed(&mut self, gateway: &Gateway, ctx: &Ctx) -> Vec<String> {
        self.looks = self.looks.wrapping_add(1);
        let judges_all = self.looks.is_multiple_of(LOOKS_PER_JUDGEMENT);
        let mut changed = Vec::new();
        for heard in &mut self.all {
            let has_changed = heard.watch.as_mut().is_some_and(ResourceWatch::has_changed);
            if !has_changed && !judges_all {
                continue;
            }
            let known = heard.watch.take();
            let was_known = known.is_some();
            heard.watch = gateway.app.tools.watch(ctx, &heard.slug, &heard.inner, known);
            let is_new = heard.watch.as_mut().is_some_and(ResourceWatch::has_changed);
            // Of what could not be read for a while, changes were not heard.
            if heard.watch.is_some() && (has_changed || is_new || !was_known) {
                changed.push(heard.uri.clone());
            }
        }
        changed
    }
}
