//! Looks sessions that are in use up again before their time is over, many at once, so that no
//! request waits for it and each costs a small part of a look-up of its own.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError, atomic::Ordering},
    time::Duration,
};

use portcullis_core::{
    id::{OrgId, TokenId},
    principal::Caller,
    refusal::Refusal,
    token::TokenHash,
};
use portcullis_store::{ProviderOwner, ProviderRecord};

use super::{TRUSTED_FOR, sessions::LiveToken};
use crate::{identity::access::Access, request::session::Session, telemetry::counters};

pub(crate) const RENEW_EVERY: Duration = Duration::from_millis(500);

/// From half of the time for which it is trusted on a session that is used is renewed, at the next
/// round: so that one whose token is used every two seconds never runs out.
pub(super) const RENEWED_FROM: u32 = 2;
const _: () = assert!(
    TRUSTED_FOR.as_millis() / RENEWED_FROM as u128 + RENEW_EVERY.as_millis()
        < TRUSTED_FOR.as_millis()
);

/// Tokens that are looked up in one statement.
const TOGETHER: usize = 500;

/// Sessions that were used when they were old enough to be renewed. Each is noted once.
#[derive(Debug, Default)]
pub(super) struct Due(Mutex<Vec<(TokenHash, Arc<Session>)>>);

impl Due {
    /// Notes a session that is used, by its age and the time for which it is trusted.
    pub(super) fn note(
        &self,
        hash: TokenHash,
        session: &Arc<Session>,
        age: Duration,
        trusted: Duration,
    ) {
        if age < trusted / RENEWED_FROM || session.renewing.swap(true, Ordering::Relaxed) {
            return;
        }
        let mut due = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        due.push((hash, Arc::clone(session)));
    }

    fn take(&self) -> Vec<(TokenHash, Arc<Session>)> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Renews what is due.
pub(crate) async fn renew(access: &Arc<Access>) {
    let mut due = access.sessions.due.take();
    // A caller that comes after that is looked up on the way.
    due.retain(|(_, session)| session.look.asked.elapsed() < access.trusted_for(session));
    for due in due.chunks(TOGETHER) {
        if access.renew_sessions(due).await.is_err() {
            return;
        }
    }
}

impl Access {
    /// Looks these up. One that is good no more is forgotten, so that its next use tells why; what
    /// cannot be looked up stays as it is until its time is over.
    async fn renew_sessions(
        self: &Arc<Self>,
        due: &[(TokenHash, Arc<Session>)],
    ) -> Result<(), Refusal> {
        let look = self.look();
        let ids: Vec<TokenId> =
            due.iter().filter_map(|(_, session)| session.caller.token_id).collect();
        let known = self.base.store.find_tokens(&ids).await?;
        let living = known.into_iter().filter_map(|known| self.living(known).ok());
        let mut living: HashMap<TokenId, LiveToken> =
            living.filter_map(|token| Some((token.caller.token_id?, token))).collect();
        let all = living.values().flat_map(|token| owners(&token.caller)).collect();
        let owned = by_owner(self.base.store.providers_of(&all).await?);
        counters::tokens_renewed(living.len());
        for (hash, session) in due {
            let Some(token) = session.caller.token_id.and_then(|id| living.remove(&id)) else {
                self.sessions.cache.invalidate(hash);
                continue;
            };
            let principal = token.caller.principal_id;
            let records = owners(&token.caller).into_iter().filter_map(|owner| owned.get(&owner));
            let records: Vec<_> = records.flatten().cloned().collect();
            // An error of one of its connections is reported to the next caller that uses it.
            let Ok(connections) = self.providers.reachable_among(principal, records).await else {
                continue;
            };
            let renewed = self.session_of(token, connections, look);
            let minute = session.last_used_minute.load(Ordering::Relaxed);
            renewed.last_used_minute.store(minute, Ordering::Relaxed);
            self.quotas.sources.note_live(hash.as_bytes());
            self.sessions.cache.insert(*hash, Arc::new(renewed));
        }
        Ok(())
    }
}

/// Through whose connections a caller can call.
fn owners(caller: &Caller) -> [(OrgId, ProviderOwner); 2] {
    let own = ProviderOwner::Principal(caller.principal_id);
    [ProviderOwner::Org, own].map(|owner| (caller.org_id, owner))
}

/// The connections of each owner, by slug.
fn by_owner(records: Vec<ProviderRecord>) -> HashMap<(OrgId, ProviderOwner), Vec<ProviderRecord>> {
    let mut owned: HashMap<_, Vec<_>> = HashMap::new();
    for record in records {
        owned.entry((record.org_id, record.owner)).or_default().push(record);
    }
    owned
}
