//! Session of a caller: a live token, its principal, its plan and its connections.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicI64},
};

use portcullis_core::{
    clock::Timestamp, policy::Principal, principal::Caller, token::TokenKind, trust::Thumbprint,
};
use portcullis_store::LoginRecord;
use tokio::time::Instant;

use super::{
    permitted::PermittedLists,
    possession::{Possession, PresentedToken},
};
use crate::{
    base::tenants::{Account, Tenant},
    catalogue::connection::Reachable,
};

/// A live token and whose it is.
#[derive(Debug)]
pub struct Session {
    pub caller: Caller,
    /// The caller as policies see it.
    pub(crate) principal: Principal,
    /// Record of the login that the token comes from.
    pub(crate) login: Option<LoginRecord>,
    pub(crate) tenant: Arc<Tenant>,
    pub(crate) connections: Arc<Reachable>,
    pub(crate) kind: TokenKind,
    pub(crate) exchange_only: bool,
    pub(crate) expires_at: Timestamp,
    /// The key that the token is bound to, whose possession its sender has proved.
    pub(crate) key: Option<Thumbprint>,
    pub(crate) look: Look,
    pub(crate) last_used_minute: AtomicI64,
    pub(crate) renewing: AtomicBool,
    /// Capabilities of the lists that it looked at last, by what its policies say of them.
    pub(crate) permitted: PermittedLists,
}

/// When a look-up began: what it finds is trusted from then on, however long it takes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Look {
    /// In the order of revocations.
    pub(crate) looked_up: u64,
    /// In time.
    pub(crate) asked: Instant,
    /// By the DLP settings of this moment.
    pub(crate) settings: u64,
}

impl Session {
    /// The token of this session once more, later in the request whose sender proved its key.
    #[must_use]
    pub const fn presented_again<'a>(&self, text: Option<&'a str>) -> PresentedToken<'a> {
        PresentedToken { text, possession: Possession::Proved(self.key) }
    }

    /// Plan that pays for requests through it.
    #[must_use]
    pub fn account(&self) -> Account {
        Account { tenant: Arc::clone(&self.tenant), plan: self.caller.plan }
    }
}
