//! Session of a caller: a live token, its principal, its plan and its connections.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicI64},
};

use portcullis_core::{clock::Timestamp, policy::Principal, principal::Caller, token::TokenKind};
use portcullis_store::LoginRecord;
use tokio::time::Instant;

use super::tenants::{Account, Tenant};
use crate::providers::connection::Reachable;

/// A live token and whose it is.
#[derive(Debug)]
pub struct Session {
    pub caller: Caller,
    /// The caller as policies see it.
    pub(crate) principal: Principal,
    /// Record of the login that the token comes from.
    pub(super) login: Option<LoginRecord>,
    pub(crate) tenant: Arc<Tenant>,
    pub(crate) connections: Arc<Reachable>,
    pub(super) kind: TokenKind,
    pub(super) exchange_only: bool,
    pub(super) expires_at: Timestamp,
    pub(super) look: Look,
    pub(super) last_used_minute: AtomicI64,
    pub(super) renewing: AtomicBool,
}

/// When a look-up began: what it finds is trusted from then on, however long it takes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Look {
    /// In the order of revocations.
    pub(super) looked_up: u64,
    /// In time.
    pub(super) asked: Instant,
    /// By the DLP settings of this moment.
    pub(super) settings: u64,
}

impl Session {
    /// Plan that pays for requests through it.
    #[must_use]
    pub fn account(&self) -> Account {
        Account { tenant: Arc::clone(&self.tenant), plan: self.caller.plan }
    }
}
