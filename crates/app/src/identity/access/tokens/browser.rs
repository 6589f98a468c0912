//! People who are signed in with a browser, as callers.

use std::collections::BTreeSet;

use portcullis_core::{clock::Timestamp, principal::Caller, refusal::Refusal, token::TokenKind};
use portcullis_store::LoginRecord;

use super::sessions::LiveToken;
use crate::{identity::access::Access, request::session::Session};

impl Access {
    /// The session of a caller who is signed in with a browser, until `expires_at`.
    pub(crate) async fn browser_caller(
        &self,
        caller: Caller,
        login: Option<LoginRecord>,
        groups: BTreeSet<String>,
        expires_at: Timestamp,
    ) -> Result<Session, Refusal> {
        let look = self.look();
        let connections = self.providers.reachable(caller.org_id, caller.principal_id).await?;
        let kind = TokenKind::User;
        let live =
            LiveToken { caller, kind, exchange_only: false, expires_at, login, groups, key: None };
        Ok(self.session_of(live, connections, look))
    }
}
