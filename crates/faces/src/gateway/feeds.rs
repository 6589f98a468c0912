//! Rows of events as the console shows them while they happen, shared by all who see the same.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use portcullis_core::id::{OrgId, PrincipalId};
use tokio::{sync, time::Instant};

/// Viewers who see the same: the org, whose events unless all, and the filters.
pub(crate) type Audience = (OrgId, Option<PrincipalId>, String);

/// A row of the list and the place of its event in the log.
#[derive(Debug)]
pub(crate) struct LiveRow {
    pub(crate) sequence: i64,
    pub(crate) html: String,
}

/// The feeds that have viewers.
#[derive(Debug, Default)]
pub struct Feeds(Mutex<HashMap<Audience, Weak<Feed>>>);

impl Feeds {
    /// The feed of an audience. Those without viewers are forgotten.
    pub(crate) fn of(&self, audience: &Audience) -> Arc<Feed> {
        let mut feeds = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(feed) = feeds.get(audience).and_then(Weak::upgrade) {
            return feed;
        }
        feeds.retain(|_, feed| feed.strong_count() > 0);
        let feed = Arc::new(Feed::default());
        feeds.insert(audience.clone(), Arc::downgrade(&feed));
        feed
    }
}

/// Rows that one audience was shown last.
#[derive(Debug, Default)]
pub(crate) struct Feed(pub(crate) sync::Mutex<LatestRows>);

#[derive(Debug, Default)]
pub(crate) struct LatestRows {
    pub(crate) looked: Option<Instant>,
    /// The newest first.
    pub(crate) rows: Arc<[LiveRow]>,
}
