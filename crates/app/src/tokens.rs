//! Who is asking: from a Bearer to a session, and back to nothing by revocation.

use std::{
    net::IpAddr,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use moka::sync::Cache;
use portcullis_core::{
    audit::{Actor, Event, EventType, Outcome, Target},
    clock::Timestamp,
    id::{EventId, OrgId, TokenId},
    limits::{Bucket, Resource},
    principal::{Caller, Scope},
    refusal::{Executed, Refusal},
    token::{Token, TokenHash, TokenKind},
};
use portcullis_store::KnownToken;

use crate::{App, Ctx, Origin, store_failed, tenants::Tenant};

/// How long a verified token is trusted without asking the store: the bound of contract §11.5.
const TRUSTED_FOR: Duration = Duration::from_secs(5);
const MAX_SESSIONS: u64 = 200_000;

/// A live token and whose it is.
#[derive(Debug)]
pub struct Session {
    /// Who asks.
    pub caller: Caller,
    pub(crate) tenant: Arc<Tenant>,
    expires_at: Timestamp,
    looked_up: u64,
    last_used_minute: AtomicI64,
}

/// A Bearer that opens nothing: the refusal, and the source's bucket after it was charged.
#[derive(Debug)]
pub struct Refused {
    /// What to answer.
    pub refusal: Refusal,
    /// The bucket to show.
    pub bucket: Bucket,
}

/// A Bearer that opens nothing, and whose it was, if that is known.
struct Rejected {
    refusal: Refusal,
    whose: Option<Box<(OrgId, Actor)>>,
}

impl Rejected {
    fn of(caller: &Caller, refusal: Refusal) -> Self {
        Self { refusal, whose: Some(Box::new((caller.org_id, Actor::of(caller)))) }
    }
}

impl From<Refusal> for Rejected {
    fn from(refusal: Refusal) -> Self {
        Self { refusal, whose: None }
    }
}

/// Verified tokens by their hash.
#[derive(Debug)]
pub(crate) struct Sessions {
    cache: Cache<TokenHash, Arc<Session>>,
}

impl Sessions {
    pub(crate) fn new() -> Self {
        let cache = Cache::builder().max_capacity(MAX_SESSIONS).time_to_live(TRUSTED_FOR).build();
        Self { cache }
    }
}

impl App {
    /// Opens a session for a Bearer, or says why not; every no is charged to the source.
    pub async fn authenticate(
        &self,
        bearer: Option<&str>,
        origin: &Origin,
    ) -> Result<Arc<Session>, Refused> {
        match self.session(bearer, origin).await {
            Ok(session) => {
                self.note_use(&session, origin.arrived);
                Ok(session)
            }
            Err(Rejected { refusal, whose }) => {
                if let Some(whose) = whose {
                    let (org, actor) = *whose;
                    self.note_refused(EventType::AuthRejected, org, actor, &refusal, origin);
                }
                Err(self.charged(refusal, origin))
            }
        }
    }

    async fn session(
        &self,
        bearer: Option<&str>,
        origin: &Origin,
    ) -> Result<Arc<Session>, Rejected> {
        let bearer = bearer.ok_or(Refusal::MissingToken)?;
        // A broken checksum ends here: garbage never reaches the database.
        let token = Token::parse(bearer).map_err(|_| Refusal::InvalidToken)?;
        let hash = token.hash();
        if let Some(session) = self.sessions.cache.get(&hash)
            && session.tenant.is_current(session.looked_up)
        {
            return session.usable(origin);
        }
        if !self.sources.may_look_up(origin.source_ip, origin.arrived) {
            return Err(Refusal::InvalidToken.into());
        }
        let session = Arc::new(self.look_up(&token, hash).await?);
        self.sessions.cache.insert(hash, Arc::clone(&session));
        session.usable(origin)
    }

    async fn look_up(&self, token: &Token, hash: TokenHash) -> Result<Session, Rejected> {
        let looked_up = self.tenants.now();
        let found =
            self.store.find_token_by_hash(&hash).await.map_err(|error| store_failed(&error))?;
        let known = found.ok_or(Refusal::InvalidToken)?;
        if token.kind() == TokenKind::Refresh || known.token.kind != token.kind() {
            return Err(Refusal::InvalidToken.into());
        }
        if known.token.revoked_at.is_some()
            || known.principal.disabled_at.is_some()
            || known.org.disabled_at.is_some()
        {
            return Err(Rejected::of(&caller(known), Refusal::TokenRevoked));
        }
        self.connections_of(known.org.id).await?;
        Ok(Session {
            tenant: self.tenants.tenant(known.org.id),
            expires_at: known.token.expires_at,
            looked_up,
            last_used_minute: AtomicI64::new(0),
            caller: caller(known),
        })
    }

    /// Charges the source; when its bucket is empty the answer is 429 whatever was wrong.
    fn charged(&self, refusal: Refusal, origin: &Origin) -> Refused {
        if let Refusal::Unavailable { .. } = refusal {
            return Refused { refusal, bucket: self.peek_source(origin) };
        }
        match self.sources.charge(origin.source_ip, origin.arrived) {
            Ok(bucket) => Refused { refusal, bucket },
            Err(bucket) => Refused { refusal: self.limited(bucket), bucket },
        }
    }

    /// Counts the request of a valid token against its org's plan.
    pub fn admit_request(&self, ctx: &Ctx) -> Result<(), Refusal> {
        self.take(ctx, Resource::Requests).inspect_err(|refusal| {
            let (org, actor) = (ctx.caller().org_id, Actor::of(ctx.caller()));
            self.note_refused(EventType::RequestThrottled, org, actor, refusal, &ctx.origin);
        })
    }

    /// Takes one of `resource` from the caller's org.
    pub(crate) fn take(&self, ctx: &Ctx, resource: Resource) -> Result<(), Refusal> {
        let taken = ctx.session.tenant.take(resource, ctx.caller().plan, self.clock.now());
        taken.map(|_| ()).map_err(|bucket| self.limited(bucket))
    }

    /// The caller's bucket as it stands.
    #[must_use]
    pub fn peek(&self, session: &Session, resource: Resource) -> Bucket {
        session.tenant.peek(resource, session.caller.plan, self.clock.now())
    }

    /// The bucket of an unknown caller's source as it stands.
    #[must_use]
    pub fn peek_source(&self, origin: &Origin) -> Bucket {
        self.sources.peek(origin.source_ip, self.clock.now())
    }

    fn limited(&self, bucket: Bucket) -> Refusal {
        let now = self.clock.now();
        let left = bucket.resets_at.saturating_mul(1_000_000) - now.as_micros();
        Refusal::RateLimited {
            resource: bucket.resource,
            limit: bucket.limit,
            retry_after: left.div_euclid(1_000_000).saturating_add(1).max(1),
            reset_at: Timestamp::from_micros(bucket.resets_at.saturating_mul(1_000_000)),
        }
    }

    fn note_use(&self, session: &Session, now: Timestamp) {
        let minute = now.as_seconds().div_euclid(60);
        if session.last_used_minute.swap(minute, Ordering::Relaxed) != minute {
            self.used_tokens.note(session.caller.token_id, now);
        }
    }

    /// Revokes the Bearer's own token, or `token_id`: one's own always, any of the org with
    /// `admin`. Gives the number of tokens that fell with it.
    pub async fn revoke_token(
        &self,
        ctx: &Ctx,
        token_id: Option<TokenId>,
    ) -> Result<(TokenId, u64), Refusal> {
        let caller = ctx.caller();
        let target = token_id.unwrap_or(caller.token_id);
        let unknown = || Refusal::not_found("token", &target.to_string());
        let found = self.store.find_token(caller.org_id, target).await;
        let token = found.map_err(|error| store_failed(&error))?.ok_or_else(unknown)?;
        let own = token.principal_id == caller.principal_id || target == caller.token_id;
        if !own && !caller.scopes.contains(Scope::Admin) {
            return Err(unknown());
        }
        let event = self.token_event(EventType::TokenRevoked, Actor::of(caller), target, ctx);
        self.record(event).await?;
        let revoked = self.store.revoke_token(caller.org_id, target, self.clock.now()).await;
        let revoked = revoked.map_err(|error| store_failed(&error))?.ok_or_else(unknown)?;
        self.tenants.revoked(caller.org_id);
        Ok((target, revoked))
    }

    fn token_event(&self, kind: EventType, actor: Actor, token: TokenId, ctx: &Ctx) -> Event {
        Event {
            id: EventId::new(self.ids()),
            org_id: ctx.caller().org_id,
            kind,
            occurred_at: ctx.origin.arrived,
            count: None,
            actor,
            request: Some(ctx.recorded_request()),
            target: Some(Target {
                credential: None,
                id: Some(token.to_string()),
                provider_id: None,
                kind: "token",
                version: None,
            }),
            governance: None,
            outcome: Outcome::success(Executed::Yes),
            detached: ctx.detached(self),
        }
    }
}

impl Session {
    /// Says no once the token has expired, or to an address it is not bound to.
    fn usable(self: Arc<Self>, origin: &Origin) -> Result<Arc<Self>, Rejected> {
        if self.expires_at <= origin.arrived {
            let refusal = Refusal::TokenExpired { expired_at: self.expires_at };
            return Err(Rejected::of(&self.caller, refusal));
        }
        if !self.may_come_from(origin.source_ip) {
            return Err(Rejected::of(&self.caller, Refusal::InvalidToken));
        }
        Ok(self)
    }

    fn may_come_from(&self, address: IpAddr) -> bool {
        self.caller.allowed_from.as_ref().is_none_or(|networks| networks.contains(address))
    }
}

/// Scopes are cut down to the role on each look-up, never frozen into the token.
fn caller(known: KnownToken) -> Caller {
    let scopes = known.token.scopes.intersection(known.principal.role.scopes());
    Caller {
        org_id: known.org.id,
        plan: known.org.plan,
        principal_id: known.principal.id,
        principal_name: known.principal.name,
        role: known.principal.role,
        via: known.token.via,
        token_id: known.token.id,
        label: known.token.label,
        scopes,
        method: known.token.method,
        allowed_from: known.token.allowed_cidrs,
    }
}
