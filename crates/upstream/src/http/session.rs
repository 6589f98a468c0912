//! A session with a server: the era and the headers that were agreed on.

use std::sync::Arc;

use http::HeaderMap;
use portcullis_core::mcp::Era;
use tokio_util::sync::DropGuard;

use super::connection::Connection;
use crate::{forms::FormCalls, mcp::era::Peer, session_health::SessionHealth};

/// Agreement with a server.
#[derive(Debug)]
pub(super) struct Session {
    /// No other session has it.
    pub(super) number: u64,
    pub(super) era: Era,
    /// The headers of every message in it.
    pub(super) headers: HeaderMap,
    /// True if the server gave it an id, so that it can also forget it.
    pub(super) has_id: bool,
    /// Doubt whether the server still knows it.
    pub(super) health: SessionHealth,
    /// The calls that wait in it, if forms of the server are answered.
    pub(super) forms: Option<Arc<FormCalls>>,
    /// Changes of resources are announced in it.
    pub(super) tells_of_resources: bool,
    pub(super) _listener: Option<DropGuard>,
}

impl Session {
    /// State that is known before anything is agreed on.
    pub(super) fn bare(era: Era) -> Self {
        Self {
            number: 0,
            era,
            headers: Connection::headers(),
            has_id: false,
            health: SessionHealth::default(),
            forms: None,
            tells_of_resources: false,
            _listener: None,
        }
    }

    pub(super) const fn peer(&self) -> Peer {
        let Self { number, era, tells_of_resources, .. } = *self;
        Peer { number, era, tells_of_resources }
    }
}
