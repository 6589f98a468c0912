//! Making a server tell of the resources that are watched.

use std::{collections::BTreeSet, future::pending, pin::Pin, sync::Arc, time::Duration};

use portcullis_core::{
    id::OrgId,
    mcp::{Era, Method},
    refusal::UpstreamReason,
};
use tokio::time::{Instant, sleep, timeout};

use super::{Inner, Server, link::Link};
use crate::{
    announced::{Watch, Watched},
    error::{CallError, CallErrorKind},
    mcp::outgoing::Outgoing,
};

const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_mins(1);
/// Changes of what is watched in this time are made together.
const TOGETHER: Duration = Duration::from_millis(250);
/// Longest time for one request, and in which two streams are open.
const PATIENCE: Duration = Duration::from_secs(5);
/// Time between two looks whether the session is the same.
const LOOK: Duration = Duration::from_secs(2);
/// Longest time for which one stream is asked for.
const STREAM: Duration = Duration::from_hours(1);

type Stream<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

impl Server {
    /// Returns false if it is known that the server tells of no changes of its resources.
    #[must_use]
    pub fn tells_of_resources(&self) -> bool {
        self.0.link.known_peer().is_none_or(|peer| peer.tells_of_resources)
    }

    /// Watches a resource of this server until the answer is dropped. `None` if the server tells of no changes, or if too
    /// many are watched: 64 by an org, 1,024 in all.
    #[must_use]
    pub fn watch(&self, org: OrgId, uri: &str) -> Option<Watch> {
        if !self.tells_of_resources() {
            return None;
        }
        let (watch, is_first) = self.0.link.watched().add(org, uri)?;
        if is_first {
            self.0.link.tasks().spawn(follow(Arc::clone(&self.0)));
        }
        Some(watch)
    }

    /// Returns true if the resource is watched at this very connection.
    #[must_use]
    pub fn is_watched_by(&self, watch: &Watch) -> bool {
        watch.is_at(self.0.link.watched())
    }
}

/// Makes the server tell of what is watched, until nothing is.
async fn follow(inner: Arc<Inner>) {
    let (link, watched) = (&inner.link, inner.link.watched());
    let mut pause = FIRST_PAUSE;
    let mut before: Option<Stream<'_>> = None;
    loop {
        let mut changes = watched.changes();
        let Some(uris) = watched.followed() else { return };
        let opened = Instant::now();
        let mut acknowledged = watched.acknowledgements();
        let mut stream: Stream<'_> = Box::pin(tell(link, watched, uris));
        // The one before tells until this one does.
        let other = before.take();
        let is_over = tokio::select! {
            biased;
            () = &mut stream => true,
            () = ended(other) => false,
            _ = timeout(PATIENCE, acknowledged.changed()) => false,
        };
        if !is_over {
            tokio::select! {
                () = &mut stream => {}
                _ = changes.changed() => {
                    sleep(TOGETHER).await;
                    before = Some(stream);
                    continue;
                }
            }
        }
        watched.fell_behind();
        if opened.elapsed() > LONGEST_PAUSE {
            pause = FIRST_PAUSE;
        }
        sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

async fn ended(stream: Option<Stream<'_>>) {
    match stream {
        Some(stream) => stream.await,
        None => pending().await,
    }
}

/// Makes the server tell of these resources, until it ends that or cannot.
async fn tell(link: &Link, watched: &Watched, uris: Vec<Arc<str>>) {
    let Ok(peer) = link.peer(Instant::now() + PATIENCE).await else { return };
    if !peer.tells_of_resources {
        return sleep(LONGEST_PAUSE).await;
    }
    match (peer.era, link) {
        (Era::Modern, Link::Http { http, .. }) => http.listen(uris).await,
        (Era::Modern, Link::Stdio(stdio)) => {
            let request = Outgoing { watched: &uris, ..Outgoing::bare(Method::Listen) };
            let _ended = stdio.exchange(&request, Instant::now() + STREAM).await;
        }
        (Era::Legacy(_), _) => {
            if subscribe(link, watched, &uris, peer.number).await.is_ok() {
                watched.acknowledge();
                while link.known_peer().is_some_and(|now| now.number == peer.number) {
                    sleep(LOOK).await;
                }
            }
        }
    }
}

/// Returns true for an error by which the server itself answered.
const fn is_answer(error: CallError) -> bool {
    matches!(
        error.kind,
        CallErrorKind::Upstream(UpstreamReason::JsonrpcError) | CallErrorKind::NotFound
    )
}

/// Tells a server of the older era what is watched in a session, and what is no more. An error of its own is an answer.
async fn subscribe(
    link: &Link,
    watched: &Watched,
    uris: &[Arc<str>],
    peer: u64,
) -> Result<(), CallError> {
    let wanted: BTreeSet<Arc<str>> = uris.iter().cloned().collect();
    let known = watched.subscribed_in(peer);
    let asked = wanted.difference(&known).map(|uri| (uri, Method::Subscribe));
    let ended = known.difference(&wanted).map(|uri| (uri, Method::Unsubscribe));
    for (uri, method) in asked.chain(ended) {
        let request = Outgoing { uri: Some(&**uri), peer: Some(peer), ..Outgoing::bare(method) };
        match link.exchange(&request, Instant::now() + PATIENCE).await {
            Err(error) if !is_answer(error) => return Err(error),
            Ok(_) | Err(_) => watched.set_subscribed(uri, method == Method::Subscribe),
        }
    }
    Ok(())
}
