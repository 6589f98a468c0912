//! Events as they happen, sent to pages that are open.
//!
//! Rows are read and rendered once for all viewers of an org who see the same: a viewer costs a look at
//! its session every two seconds, and no query. Each of them is recorded as one who looks. A stream ends with its session and the node.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use askama::Template;
use axum::{
    extract::State,
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use futures_util::stream;
use portcullis_core::{
    principal::Scope,
    refusal::{Refusal, Unavailable},
};
use tokio::time::Instant;

use super::{api::Problem, json::Json, signed_in::Guest, table::Filters};
use crate::{
    exchange::{Outcome, sse},
    gateway::{
        Gateway,
        feeds::{Audience, Feed, LatestRows, LiveRow},
    },
    mcp::listen::Open,
    pages::html::visible,
    v1,
};

/// Time between two looks at the log.
const LOOK: Duration = Duration::from_secs(2);
/// A comment is sent after so many looks without news, so that the connection is not taken for dead.
const LOOKS_PER_COMMENT: u32 = 5;

impl Feed {
    /// The newest rows: those that another viewer asked for a moment ago, or new ones.
    async fn look(&self, guest: &Guest, filters: &Filters) -> Result<Arc<[LiveRow]>, Problem> {
        let mut shown = self.0.lock().await;
        if shown.looked.is_none_or(|looked| looked.elapsed() >= LOOK) {
            let listed = guest.read(None, filters.query(), v1::events::list).await?;
            let rows = listed.items().into_iter().filter_map(row);
            *shown = LatestRows { looked: Some(Instant::now()), rows: rows.collect() };
        } else {
            let noted = guest.gateway.app.audit.note_look(&guest.ctx).await;
            noted.or_else(|refusal| Problem::or_reply(refusal.into()).map(drop))?;
        }
        Ok(Arc::clone(&shown.rows))
    }
}

#[derive(Template)]
#[template(path = "event_row.html")]
struct EventRow {
    event: Json,
}

fn row(event: Json) -> Option<LiveRow> {
    let sequence = event.at("/sequence").0.as_i64()?;
    let html = visible(EventRow { event }.render().ok()?);
    // A line feed would end the event of the stream.
    Some(LiveRow { sequence, html: html.replace(['\n', '\r'], " ") })
}

/// A page that is open.
struct Viewer {
    /// Counted until the stream ends.
    _open: Open,
    guest: Guest,
    audience: Audience,
    filters: Filters,
    feed: Arc<Feed>,
    /// The newest event that was sent.
    seen: Option<i64>,
    has_begun: bool,
}

/// Rows of the list of events as they happen: first the newest, then those that are new.
#[utoipa::path(
    get, path = "/console/live", tag = "console", operation_id = "console_live",
    responses(
        (status = 200, description = "server-sent events, of which each holds rows of the page of events; takes its filters", content_type = "text/event-stream"),
        (status = 303, description = "to the login, if nobody is signed in"),
        (status = 503, description = "too many streams are open", body = crate::exchange::ErrorAnswer),
    )
)]
pub(crate) async fn stream(
    guest: Guest,
    State(gateway): State<Arc<Gateway>>,
    filters: Filters,
) -> Response {
    let audience = audience(&guest, &filters);
    let feed = gateway.feeds.of(&audience);
    if let Err(problem) = feed.look(&guest, &filters).await {
        return problem.page(&guest);
    }
    let Some(open) = Open::count(&gateway, guest.ctx.caller()) else {
        let overloaded = Refusal::Unavailable { reason: Unavailable::Overloaded };
        return Outcome::from(overloaded).into_response();
    };
    let viewer =
        Viewer { _open: open, guest, audience, filters, feed, seen: None, has_begun: false };
    sse::response(stream::unfold(viewer, |mut viewer| async {
        let event = viewer.next().await?;
        Some((event, viewer))
    }))
}

fn audience(guest: &Guest, filters: &Filters) -> Audience {
    let caller = guest.ctx.caller();
    let own = (!guest.may(Scope::AuditRead)).then_some(caller.principal_id);
    (caller.org_id, own, filters.query().unwrap_or_default())
}

impl Viewer {
    /// The next rows, or a comment; `None` when the session or the node ends.
    async fn next(&mut self) -> Option<Bytes> {
        for _ in 0..LOOKS_PER_COMMENT {
            if std::mem::replace(&mut self.has_begun, true) {
                tokio::time::sleep(LOOK).await;
            }
            if self.guest.gateway.draining.load(Ordering::Acquire)
                || !self.guest.look_again().await
                || audience(&self.guest, &self.filters) != self.audience
            {
                return None;
            }
            let rows = self.feed.look(&self.guest, &self.filters).await.ok()?;
            let news = rows.iter().filter(|row| self.seen.is_none_or(|seen| row.sequence > seen));
            let html: String = news.map(|row| row.html.as_str()).collect();
            if !html.is_empty() {
                self.seen = rows.iter().map(|row| row.sequence).max();
                return Some(sse::event(html.as_bytes()));
            }
        }
        Some(sse::COMMENT)
    }
}
