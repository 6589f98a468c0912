//! Making a server tell of the resources that are watched.

use std::{collections::BTreeSet, future::pending, pin::Pin, sync::Arc, time::Duration};

use portcullis_core::{
    id::OrgId,
    mcp::{Era, Method},
    refusal::UpstreamReason,
};
use tokio::{
    sync::watch,
    time::{Instant, sleep, timeout},
};

use super::{Inner, Server, link::Link};
use crate::{
    announced::Watch,
    error::{CallError, CallErrorKind},
    mcp::{era::Peer, outgoing::Outgoing},
};

const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_mins(1);
/// Changes of what is watched in this time are made together.
const TOGETHER: Duration = Duration::from_secs(1);
/// Longest time in which two streams are open.
const OVERLAP: Duration = Duration::from_secs(5);
/// Longest time until a stream is acknowledged.
const PATIENCE: Duration = Duration::from_mins(1);
/// Time between two looks whether a session is the same.
const LOOK: Duration = Duration::from_secs(2);
/// Longest time for which one stream is asked for over stdio.
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
            let (inner, stop) = (Arc::clone(&self.0), self.0.link.stop().clone());
            self.0.link.tasks().spawn(async move {
                tokio::select! {
                    () = stop.cancelled() => {}
                    () = follow(&inner) => {}
                }
            });
        }
        Some(watch)
    }

    /// Returns true if the resource is watched at this very connection.
    #[must_use]
    pub fn is_watched_by(&self, watch: &Watch) -> bool {
        watch.is_at(self.0.link.watched())
    }
}

/// Beginning of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Opening {
    Acknowledged,
    /// The server says nothing yet.
    Late,
    Ended,
}

/// Makes the server tell of what is watched, until nothing is.
async fn follow(inner: &Inner) {
    let watched = inner.link.watched();
    let mut pause = FIRST_PAUSE;
    let mut before: Option<Stream<'_>> = None;
    loop {
        let mut changes = watched.changes();
        if let (true, Some(Peer { era: Era::Legacy(_), number, .. })) =
            (watched.is_empty(), inner.link.known_peer())
        {
            // A server of the older era goes on for as long as the session lasts.
            drop(before.take());
            let _unheard = subscribe(inner, &[], number).await;
        }
        let Some(uris) = watched.followed() else { return };
        let opened = Instant::now();
        let mut acknowledged = watched.acknowledgements();
        let mut stream: Stream<'_> = Box::pin(tell(inner, uris));
        // The one before tells until this one does.
        let opening = tokio::select! {
            biased;
            () = &mut stream => Opening::Ended,
            _ = acknowledged.changed() => Opening::Acknowledged,
            () = close_late(before.take()) => Opening::Late,
        };
        if opening == Opening::Late {
            watched.fell_behind();
        }
        if opening != Opening::Ended {
            let is_kept = tokio::select! {
                () = &mut stream => false,
                () = expire(acknowledged), if opening == Opening::Late => false,
                _ = changes.changed() => timeout(TOGETHER, &mut stream).await.is_err(),
            };
            if is_kept {
                before = Some(stream);
                continue;
            }
        }
        // What is not awaited may hold what others wait for.
        drop(stream);
        watched.fell_behind();
        if opened.elapsed() > LONGEST_PAUSE {
            pause = FIRST_PAUSE;
        }
        sleep(FIRST_PAUSE).await;
        // Who comes meanwhile does not wait for the end of the pause.
        let _more = timeout(pause.saturating_sub(FIRST_PAUSE), changes.changed()).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Keeps a stream for a while beside the next one.
async fn close_late(stream: Option<Stream<'_>>) {
    match stream {
        Some(stream) => {
            let _late = timeout(OVERLAP, stream).await;
        }
        None => sleep(OVERLAP).await,
    }
}

/// Ends when the server says for too long nothing about the stream.
async fn expire(mut acknowledged: watch::Receiver<u64>) {
    if timeout(PATIENCE, acknowledged.changed()).await.is_ok() {
        pending::<()>().await;
    }
}

/// Makes the server tell of these resources, until it ends that or cannot.
async fn tell(inner: &Inner, uris: Vec<Arc<str>>) {
    let (link, watched) = (&inner.link, inner.link.watched());
    let Ok(peer) = link.peer(Instant::now() + inner.call_timeout).await else { return };
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
            if subscribe(inner, &uris, peer.number).await.is_ok() {
                watched.acknowledge(None);
                stay(inner, peer.number).await;
            }
        }
    }
}

/// Waits until there is another session than the one of this number, or none.
async fn stay(inner: &Inner, number: u64) {
    loop {
        sleep(LOOK).await;
        match inner.link.peer(Instant::now() + inner.call_timeout).await {
            Ok(peer) if peer.number == number => {}
            Ok(_) | Err(_) => return,
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

/// Tells a server of the older era what is watched in a session, and what is no more. Of what it refuses it does not tell.
async fn subscribe(inner: &Inner, uris: &[Arc<str>], session: u64) -> Result<(), CallError> {
    let watched = inner.link.watched();
    let wanted: BTreeSet<Arc<str>> = uris.iter().cloned().collect();
    let known = watched.subscribed_in(session);
    let asked = wanted.difference(&known).map(|uri| (uri, Method::Subscribe));
    let ended = known.difference(&wanted).map(|uri| (uri, Method::Unsubscribe));
    for (uri, method) in ended.chain(asked) {
        // Whether or not the answer comes, it may have taken effect.
        watched.set_subscribed(session, uri, false);
        let request = Outgoing { uri: Some(&**uri), peer: Some(session), ..Outgoing::bare(method) };
        match inner.link.exchange(&request, Instant::now() + inner.call_timeout).await {
            Ok(_) => watched.set_subscribed(session, uri, method == Method::Subscribe),
            Err(error) if is_answer(error) => watched.refuse(uri),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
