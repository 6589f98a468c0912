//! Authentication of callers: from a Bearer to a session, and how Bearers come and go.

mod assertions;
pub(crate) mod codes;
mod credentials;
mod events;
pub(crate) mod exchange;
mod refresh;
pub(crate) mod renewal;
mod revoke;
mod screen;
mod sessions;
mod users;

pub use self::{
    credentials::{Credentials, Presented, SubjectType},
    exchange::{ExchangeRequest, Granted},
    refresh::{PresentedRefresh, RefreshAt, Refreshing},
    screen::Screened,
};

pub(crate) use self::refresh::OTHER_FACE;

use std::{
    net::IpAddr,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use moka::sync::Cache;
use portcullis_core::{
    audit::{Actor, EventType},
    authorization::Face,
    clock::Timestamp,
    id::OrgId,
    principal::{Caller, ScopeSet},
    refusal::Refusal,
    token::{Token, TokenHash, TokenKind},
    trust::is_jwt_shaped,
};
use portcullis_store::{KnownToken, StoreError};

use self::renewal::Due;
use super::{Access, proofs::held};
use crate::{
    base::{
        caches::{Lifetime, NodeCache},
        tenants::{Account, sources::LookUp},
    },
    policies::limits::Refused,
    request::{
        Ctx, Origin,
        possession::{Possession, PresentedToken},
        session::Session,
    },
    telemetry::counters,
};

/// Time for which a verified token is trusted without asking the store: the bound for revocation
/// on other nodes.
pub(super) const TRUSTED_FOR: Duration = Duration::from_secs(5);
/// The same while it is known that nothing changed about the callers of its org.
const UNCHANGED_FOR: Duration = Duration::from_mins(1);
/// Bytes that a session takes, about.
const SESSION_BYTES: usize = 2 << 10;

/// Purpose that a Bearer is presented for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// To use the API.
    Access,
    /// To be exchanged for another token.
    Exchange,
    /// To be revoked, or to revoke another one: the holder of any token may end it.
    Revocation,
}

impl Purpose {
    /// True if a token of this kind is good for it.
    const fn admits(self, kind: TokenKind, exchange_only: bool) -> bool {
        match self {
            Self::Revocation => true,
            Self::Exchange => !matches!(kind, TokenKind::Refresh),
            Self::Access => !matches!(kind, TokenKind::Refresh) && !exchange_only,
        }
    }
}

/// A Bearer that opens nothing, and whose it was, if that is known.
struct Rejected {
    refusal: Refusal,
    whose: Option<Box<(OrgId, Actor)>>,
    /// The plan that is used up.
    account: Option<Account>,
}

impl Rejected {
    fn of(caller: &Caller, refusal: Refusal) -> Self {
        let whose = Some(Box::new((caller.org_id, Actor::of(caller))));
        Self { refusal, whose, account: None }
    }
}

impl From<StoreError> for Rejected {
    fn from(error: StoreError) -> Self {
        Refusal::from(error).into()
    }
}

impl From<Refusal> for Rejected {
    fn from(refusal: Refusal) -> Self {
        Self { refusal, whose: None, account: None }
    }
}

/// Verified tokens by their hash.
#[derive(Debug)]
pub(crate) struct Sessions {
    cache: Cache<TokenHash, Arc<Session>>,
    due: Due,
}

impl Sessions {
    pub(crate) fn new() -> Self {
        let cache = NodeCache::Sessions.make(Lifetime::Whole(UNCHANGED_FOR), |_, _| SESSION_BYTES);
        Self { cache, due: Due::default() }
    }
}

impl Access {
    /// Counts the exchange of good credentials against the plan of the subject's org.
    pub async fn admit_exchange(
        &self,
        credentials: &Credentials,
        origin: &Origin,
    ) -> Result<(), Refusal> {
        self.quotas.admit(credentials.account(), || credentials.whose(), origin).await
    }

    /// Counts a refresh against the plan of the grant's org.
    pub async fn admit_refresh(
        &self,
        refreshing: &Refreshing,
        origin: &Origin,
    ) -> Result<(), Refusal> {
        let caller = refreshing.caller();
        self.quotas.admit(refreshing.account(), || (caller.org_id, Actor::of(caller)), origin).await
    }

    /// Opens a session for a token, or says why not; every no is charged to the source.
    pub async fn authenticate(
        self: &Arc<Self>,
        token: PresentedToken<'_>,
        purpose: Purpose,
        origin: &Origin,
    ) -> Result<Arc<Session>, Refused> {
        let session = self.session(token, purpose, origin).await;
        session.map_err(|rejected| self.turned_away(rejected, origin))
    }

    /// Rejects the token of a client that was granted another MCP endpoint than `face`; the rejection is charged
    /// to the source.
    pub fn admit_at(&self, ctx: &Ctx, face: &Face) -> Result<(), Refused> {
        let caller = ctx.caller();
        if caller.client.as_deref().is_none_or(|granted| granted.face == *face) {
            return Ok(());
        }
        let rejected = Rejected::of(caller, OTHER_FACE);
        Err(self.turned_away(rejected, &ctx.origin))
    }

    /// The scopes that a token has at this moment; `None` if it is worth nothing.
    ///
    /// # Errors
    /// The refusal while this node cannot know what others revoked.
    pub(crate) fn live_scopes(
        &self,
        known: KnownToken,
        now: Timestamp,
    ) -> Result<Option<ScopeSet>, Refusal> {
        self.in_touch()?;
        let granted = known.token.scopes;
        let living = self.living(known).ok().filter(|token| now < token.expires_at);
        Ok(living.map(|token| match token.kind {
            TokenKind::User | TokenKind::Service => token.caller.scopes,
            TokenKind::Refresh => granted,
        }))
    }

    /// Notes the no in the log of the org whose credential it was, and charges the source.
    fn turned_away(&self, mut rejected: Rejected, origin: &Origin) -> Refused {
        if let account @ Some(_) = rejected.account.take() {
            let refusal = self.noted(EventType::RequestThrottled, rejected, origin);
            return Refused { refusal, account };
        }
        let refusal = self.noted(EventType::AuthRejected, rejected, origin);
        self.quotas.charged(refusal, origin)
    }

    /// Notes the no in the log of the org whose credential it was.
    fn noted(
        &self,
        kind: EventType,
        Rejected { refusal, whose, .. }: Rejected,
        origin: &Origin,
    ) -> Refusal {
        if let Some(whose) = whose {
            let (org, actor) = *whose;
            self.audit.note_refused(kind, org, actor, &refusal, origin);
        }
        refusal
    }

    async fn session(
        self: &Arc<Self>,
        token: PresentedToken<'_>,
        purpose: Purpose,
        origin: &Origin,
    ) -> Result<Arc<Session>, Rejected> {
        let session = self.known_session(token.text, origin).await?.usable(purpose, origin)?;
        if session.key.is_some() || !matches!(token.possession, Possession::Bearer) {
            // Boxed, so that tokens which are bound to no key carry no room for it.
            Box::pin(self.possess(&session, token, origin.arrived)).await?;
        }
        self.note_use(&session, origin.arrived);
        Ok(session)
    }

    /// Rejects a token whose sender does not prove that it holds the key that it is bound to. Only one who does is
    /// told of the plan.
    async fn possess(
        self: &Arc<Self>,
        session: &Session,
        token: PresentedToken<'_>,
        now: Timestamp,
    ) -> Result<(), Rejected> {
        let rejected = |refusal: Refusal| {
            // A store that failed says nothing about the token.
            let is_failure = refusal.http_status() >= 500;
            if is_failure { refusal.into() } else { Rejected::of(&session.caller, refusal) }
        };
        let held = held(session.key, token, now).map_err(rejected)?;
        let Some((presented, proof)) = held else { return Ok(()) };
        self.spare(session)?;
        self.use_once(presented, &proof, now).await.map_err(rejected)
    }

    /// Rejects a token whose plan is known to be used up, before its proof is remembered, which is a write.
    fn spare(&self, session: &Session) -> Result<(), Rejected> {
        let account = session.account();
        self.quotas.spare(&account).map_err(|refusal| Rejected {
            account: Some(account),
            ..Rejected::of(&session.caller, refusal)
        })
    }

    /// The session of a token that was not revoked when it was last looked up.
    async fn known_session(
        self: &Arc<Self>,
        bearer: Option<&str>,
        origin: &Origin,
    ) -> Result<Arc<Session>, Rejected> {
        let bearer = bearer.ok_or(Refusal::MissingToken)?;
        // A broken checksum ends here: garbage never reaches the database.
        let token = Token::parse(bearer).map_err(|_| no_token(bearer))?;
        self.in_touch()?;
        let hash = token.hash();
        if let Some(session) = self.sessions.cache.get(&hash)
            && self.quotas.tenants.is_current(&session.tenant, session.look.looked_up)
        {
            let age = session.look.asked.elapsed();
            let is_young = age < TRUSTED_FOR / renewal::RENEWED_FROM;
            let trusted = if is_young { TRUSTED_FOR } else { self.trusted_for(&session) };
            if age < trusted {
                self.sessions.due.note(hash, &session, age, trusted);
                return Ok(session);
            }
        }
        if !self.quotas.may_look_up_hash(LookUp::Token, hash.as_bytes(), origin) {
            return Err(Refusal::InvalidToken.into());
        }
        counters::token_looked_up();
        // Boxed, so that those who are known carry no room for it.
        let session = Box::pin(self.look_up(&token, hash)).await.inspect_err(|rejected| {
            // A store that failed says nothing about the token.
            if rejected.refusal.http_status() < 500 {
                self.quotas.sources.note_unknown(hash.as_bytes());
            }
        })?;
        let session = Arc::new(session);
        self.quotas.sources.note_live(hash.as_bytes());
        self.sessions.cache.insert(hash, Arc::clone(&session));
        Ok(session)
    }

    /// For how long a session is trusted after it was looked up.
    fn trusted_for(&self, session: &Session) -> Duration {
        let is_unchanged = self.watch.is_current()
            && session.look.settings == self.screening.settings()
            && session.connections.is_settled();
        if is_unchanged { UNCHANGED_FOR } else { TRUSTED_FOR }
    }

    fn note_use(&self, session: &Session, now: Timestamp) {
        let minute = now.as_seconds().div_euclid(60);
        if session.last_used_minute.swap(minute, Ordering::Relaxed) != minute
            && let Some(token) = session.caller.token_id
        {
            self.used_tokens.note(token, now);
        }
    }
}

impl Session {
    /// Rejects a kind of token that is not good for `purpose`, an expired token, and an address
    /// that the token is not bound to.
    fn usable(self: Arc<Self>, purpose: Purpose, origin: &Origin) -> Result<Arc<Self>, Rejected> {
        if !purpose.admits(self.kind, self.exchange_only) {
            return Err(Rejected::of(&self.caller, self.wrong_kind()));
        }
        if self.expires_at <= origin.arrived {
            let refusal = Refusal::TokenExpired { expired_at: self.expires_at };
            return Err(Rejected::of(&self.caller, refusal));
        }
        if !self.may_come_from(origin.source_ip) {
            return Err(Rejected::of(&self.caller, Refusal::InvalidToken));
        }
        Ok(self)
    }

    fn wrong_kind(&self) -> Refusal {
        let hint = match self.kind {
            TokenKind::Refresh => "a refresh token is for `POST /v1/auth/refresh`",
            TokenKind::User | TokenKind::Service => {
                "it can only be exchanged for another one at `POST /v1/auth/token`"
            }
        };
        Refusal::WrongTokenKind { hint }
    }

    fn may_come_from(&self, address: IpAddr) -> bool {
        self.caller.allowed_from.as_ref().is_none_or(|networks| networks.contains(address))
    }
}

/// Refusal of what is no token of ours, with the remedy where it can be told.
fn no_token(bearer: &str) -> Refusal {
    let is_placeholder = bearer.starts_with(['$', '<'])
        || bearer.starts_with("{{")
        || bearer.len() > 2 && bearer.starts_with('%') && bearer.ends_with('%');
    let hint = if bearer.is_empty() {
        "send it as `Authorization: Bearer …`, in one header"
    } else if is_placeholder {
        "it is a placeholder that the client did not fill in; set the variable where the client is started"
    } else if is_jwt_shaped(bearer) {
        "it is a JWT, which is exchanged for a token at `POST /v1/auth/token`"
    } else {
        return Refusal::InvalidToken;
    };
    Refusal::WrongTokenKind { hint }
}
