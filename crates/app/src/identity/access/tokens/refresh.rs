//! `/v1/auth/refresh`: a refresh token for the next pair (RFC 6749 §6, RFC 9700 §4.14).

use std::sync::Arc;

use portcullis_core::{
    audit::{Actor, EventType},
    authorization::{ClientGrant, Face},
    clock::Timestamp,
    grant::{Presented, TokenPair},
    id::TokenId,
    lifetime::AccessLife,
    principal::{AuthMethod, Caller, ScopeSet},
    refusal::Refusal,
    secret::Secret,
    token::{Token, TokenKind},
};
use portcullis_store::{KnownRefresh, NewRefresh, NewToken, Rotated, Rotation, TokenRecord};

use super::{Rejected, events::TokenEvent, exchange::Granted};
use crate::{
    base::tenants::{Account, sources::LookUp},
    identity::access::{
        Access,
        proofs::{ProvedKey, unproved},
    },
    policies::limits::Refused,
    request::Origin,
};

/// A refresh token that was found good, or was a moment ago.
#[derive(Debug)]
pub struct Refreshing {
    presented: Token,
    refresh: TokenRecord,
    caller: Caller,
    account: Account,
    grant_ends_at: Timestamp,
    access_seconds: i64,
    life: AccessLife,
    /// Upper bound of the scopes of any token of the grant at this moment.
    bounds: ScopeSet,
    /// The key that its sender proved to hold, which the next pair will be bound to.
    proved: Option<ProvedKey>,
    /// True if the client proves itself at each refresh, so that only access tokens are bound.
    by_key: bool,
}

/// A refresh token as it came with a request.
#[derive(Debug)]
pub struct PresentedRefresh {
    /// The token in the header `Authorization`.
    pub bearer: Option<Secret>,
    /// The one in the body.
    pub token: Option<Secret>,
    /// The key that its sender proved to hold.
    pub proved: Option<ProvedKey>,
    pub at: RefreshAt,
}

/// The refusal of a token of a client at another endpoint than that of its grant.
pub(crate) const OTHER_FACE: Refusal =
    Refusal::WrongTokenKind { hint: "it was granted for another MCP endpoint of this gateway" };

/// Endpoint at which a refresh token is presented.
#[derive(Debug, Clone)]
pub enum RefreshAt {
    /// `POST /v1/auth/refresh`: tokens of no client.
    Api,
    /// `POST /oauth/token`: those of this client, for this face if it names one.
    OAuth {
        client: String,
        /// True if it proved that it is that client.
        proved: bool,
        face: Option<Face>,
    },
}

impl RefreshAt {
    /// Rejects a refresh token of another client, or of none, where there has to be one. Nothing is spent.
    fn admit(&self, granted: Option<&ClientGrant>) -> Result<(), Refusal> {
        match (self, granted) {
            (Self::Api, None) => Ok(()),
            (Self::Api, Some(_)) => {
                let hint = "the client that it was given to refreshes it at `POST /oauth/token`";
                Err(Refusal::WrongTokenKind { hint })
            }
            (Self::OAuth { client, proved, face }, Some(granted)) => {
                let is_itself = *proved || !granted.by_key;
                if *client != granted.client.id || !is_itself {
                    return Err(Refusal::InvalidToken);
                }
                let same_face = face.as_ref().is_none_or(|face| *face == granted.face);
                if same_face { Ok(()) } else { Err(OTHER_FACE) }
            }
            (Self::OAuth { .. }, None) => Err(Refusal::InvalidToken),
        }
    }
}

impl Refreshing {
    /// Account whose plan pays.
    #[must_use]
    pub const fn account(&self) -> &Account {
        &self.account
    }

    pub(crate) const fn caller(&self) -> &Caller {
        &self.caller
    }
}

impl Access {
    /// Finds out whose refresh token is presented, in the body or as the Bearer, or says why it is
    /// worth nothing; every no is charged to the source. One that was spent before ends its grant.
    pub async fn refreshing(
        self: &Arc<Self>,
        presented: PresentedRefresh,
        origin: &Origin,
    ) -> Result<Refreshing, Refused> {
        let this = Arc::clone(self);
        let from = origin.clone();
        let work = async move {
            let found = this.present(presented, &from).await;
            if let Ok(found) = &found {
                this.quotas.sources.note_live(found.presented.hash().as_bytes());
            }
            found
        };
        let found = self.base.uncancelled(work).await.unwrap_or_else(|failed| Err(failed.into()));
        found.map_err(|rejected| self.turned_away(rejected, origin))
    }

    async fn present(
        &self,
        PresentedRefresh { bearer, token, proved, at }: PresentedRefresh,
        origin: &Origin,
    ) -> Result<Refreshing, Rejected> {
        let presented = token.as_ref().or(bearer.as_ref()).ok_or(Refusal::MissingToken)?;
        let presented = as_refresh_token(presented)?;
        let hash = presented.hash();
        if !self.quotas.may_look_up_hash(LookUp::Token, hash.as_bytes(), origin) {
            return Err(Refusal::InvalidToken.into());
        }
        let found = self.base.store.find_refresh(&hash).await;
        let KnownRefresh { known, grant_ends_at, access_seconds, state } =
            found?.ok_or(Refusal::InvalidToken)?;
        let refresh = known.token.clone();
        if let Some(bearer) = &bearer {
            self.is_of_same_grant(bearer, &presented, &refresh).await?;
        }
        let account =
            Account { tenant: self.quotas.tenants.tenant(refresh.org_id), plan: known.org.plan };
        let bounds = self.bounds(&known).unwrap_or(ScopeSet::EMPTY);
        let admitted = at.admit(known.client.as_ref());
        let by_key = known.client.as_ref().is_some_and(|granted| granted.by_key);
        let caller = self.caller(known)?;
        let key = proved.as_ref().map(|proved| proved.key);
        let held = if refresh.dpop_jkt.is_none_or(|bound| key == Some(bound)) {
            Ok(())
        } else {
            Err(unproved(key))
        };
        admitted.and(held).map_err(|refusal| Rejected::of(&caller, refusal))?;
        match state.presented(origin.arrived) {
            Presented::Fresh | Presented::Repeated => {}
            Presented::Expired => {
                let refusal = Refusal::TokenExpired { expired_at: refresh.expires_at };
                return Err(Rejected::of(&caller, refusal));
            }
            Presented::Revoked => return Err(Rejected::of(&caller, Refusal::TokenRevoked)),
            Presented::Reused => return Err(self.reused(&refresh, &caller, origin).await.into()),
        }
        let rule = match &refresh.method {
            AuthMethod::Oidc { trust } => self.trust_rule(refresh.org_id, trust),
            AuthMethod::Operator | AuthMethod::Key { .. } | AuthMethod::Token => None,
        };
        let rule = rule.map(|rule| rule.max_ttl.seconds());
        let life = AccessLife::of_login(caller.principal_id.kind(), rule)
            .and(AccessLife::of_token(grant_ends_at));
        let life = life.usually(access_seconds);
        Ok(Refreshing {
            presented,
            refresh,
            caller,
            account,
            grant_ends_at,
            access_seconds,
            life,
            bounds,
            proved,
            by_key,
        })
    }

    /// A Bearer beside the refresh token has to be of the same grant; it may have expired.
    async fn is_of_same_grant(
        &self,
        bearer: &Secret,
        presented: &Token,
        refresh: &TokenRecord,
    ) -> Result<(), Refusal> {
        if bearer == presented.secret() {
            return Ok(());
        }
        let bearer = Token::parse(bearer.expose()).map_err(|_| Refusal::InvalidToken)?;
        let found = self.base.store.find_token_by_hash(&bearer.hash()).await;
        let found = found?;
        let same = found.is_some_and(|known| {
            (known.token.org_id, known.token.grant_id) == (refresh.org_id, refresh.grant_id)
        });
        if same { Ok(()) } else { Err(Refusal::InvalidToken) }
    }

    /// Spends the refresh token for the next pair, or gives the pair it bought a moment ago.
    pub async fn refresh_token(
        self: &Arc<Self>,
        refreshing: Refreshing,
        scope: Option<ScopeSet>,
        origin: &Origin,
    ) -> Result<Granted, Refusal> {
        let granted = refreshing.refresh.scopes;
        let scopes = scope.unwrap_or(granted);
        if !scopes.is_subset_of(granted) || scopes.is_empty() {
            let scope = scopes.difference(granted).to_string();
            return Err(Refusal::InvalidScope { scope, allowed: granted });
        }
        let this = Arc::clone(self);
        let from = origin.clone();
        self.base.uncancelled(async move { this.spend(&refreshing, scopes, &from).await }).await?
    }

    async fn spend(
        &self,
        refreshing: &Refreshing,
        scopes: ScopeSet,
        origin: &Origin,
    ) -> Result<Granted, Refusal> {
        let Refreshing { refresh, caller, .. } = refreshing;
        let now = self.base.clock.now();
        self.use_proof(refreshing.proved.as_ref()).await?;
        let next = self.next_pair(refreshing, scopes, now);
        let given = match self.rotate(refreshing, &next, now).await? {
            Rotated::Done => next,
            Rotated::Repeated(pair) => {
                let opened = TokenPair::open(&pair.sealed, &refreshing.presented, refresh.id);
                let tokens = opened.ok_or(Refusal::Internal)?;
                Next { tokens, access: pair.access, refresh: pair.refresh }
            }
            Rotated::Refused(Presented::Reused) => {
                return Err(self.reused(refresh, caller, origin).await);
            }
            Rotated::Refused(Presented::Expired) => {
                return Err(Refusal::TokenExpired { expired_at: refresh.expires_at });
            }
            Rotated::Refused(Presented::Revoked | Presented::Fresh | Presented::Repeated) => {
                return Err(Refusal::TokenRevoked);
            }
        };
        for hash in [given.tokens.access.hash(), given.tokens.refresh.hash()] {
            self.quotas.sources.note_live(hash.as_bytes());
        }
        // A crash before this line leaves a pair that no client has seen; the retry gives it.
        let event = self.grant_event(EventType::TokenRefreshed, caller, given.access.id, origin);
        self.audit.record(event).await?;
        let scopes = given.access.scopes.intersection(refreshing.bounds);
        let refresh = Some((given.tokens.refresh, given.refresh.expires_at));
        Ok(Granted { access: given.tokens.access, refresh, record: given.access, scopes, now })
    }

    async fn rotate(
        &self,
        refreshing: &Refreshing,
        next: &Next,
        now: Timestamp,
    ) -> Result<Rotated, Refusal> {
        let Refreshing { presented, refresh, grant_ends_at, .. } = refreshing;
        let sealed = next.tokens.seal(presented, refresh.id, &*self.base.random);
        let sealed = sealed.ok_or(Refusal::Internal)?;
        let access_hash = next.tokens.access.hash();
        let refresh_hash = next.tokens.refresh.hash();
        let rotation = Rotation {
            presented: &presented.hash(),
            access: NewToken { record: &next.access, hash: &access_hash },
            refresh: NewRefresh {
                token: NewToken { record: &next.refresh, hash: &refresh_hash },
                grant_ends_at: *grant_ends_at,
                access_seconds: refreshing.access_seconds,
            },
            sealed: &sealed,
            now,
        };
        self.base.store.rotate(rotation).await.map_err(Refusal::from)
    }

    fn next_pair(&self, refreshing: &Refreshing, scopes: ScopeSet, now: Timestamp) -> Next {
        let Refreshing { refresh: spent, grant_ends_at, life, .. } = refreshing;
        let tokens = TokenPair {
            access: Token::generate(TokenKind::User, &*self.base.random),
            refresh: Token::generate(TokenKind::Refresh, &*self.base.random),
        };
        let key = refreshing.proved.as_ref().map(|proved| proved.key);
        let refresh = TokenRecord {
            id: TokenId::new(self.base.ids()),
            issued_at: now,
            expires_at: self.grant_life.refresh_expiry(now, *grant_ends_at),
            last_used_at: None,
            dpop_jkt: key.filter(|_| !refreshing.by_key),
            ..spent.clone()
        };
        let access = TokenRecord {
            id: TokenId::new(self.base.ids()),
            kind: TokenKind::User,
            scopes,
            expires_at: life.ends_at(now, None),
            dpop_jkt: key,
            ..refresh.clone()
        };
        Next { tokens, access, refresh }
    }

    /// A spent refresh token came back: it was copied. The grant ends, whether or not that can be
    /// recorded.
    async fn reused(&self, refresh: &TokenRecord, caller: &Caller, origin: &Origin) -> Refusal {
        let event = self.grant_event(EventType::TokenReuseDetected, caller, refresh.id, origin);
        let recorded = self.audit.record(event).await;
        let now = self.base.clock.now();
        let revoked = self.base.store.revoke_token(refresh.org_id, refresh.id, now).await;
        self.quotas.tenants.revoked(refresh.org_id);
        match (revoked, recorded) {
            (Err(error), _) => error.into(),
            (Ok(_), Err(refusal)) => refusal,
            (Ok(_), Ok(())) => Refusal::TokenReused,
        }
    }

    fn grant_event(
        &self,
        kind: EventType,
        caller: &Caller,
        token: TokenId,
        origin: &Origin,
    ) -> portcullis_core::audit::Event {
        let event = TokenEvent {
            kind,
            actor: Actor::of(caller),
            name: Some(&caller.principal_name),
            label: caller.label.as_deref(),
            token,
        };
        self.token_event(caller.org_id, event, origin)
    }
}

/// A pair with all that is stored of it.
struct Next {
    tokens: TokenPair,
    access: TokenRecord,
    refresh: TokenRecord,
}

/// Rejects anything but a refresh token, and says what to do with it instead.
fn as_refresh_token(presented: &Secret) -> Result<Token, Refusal> {
    let token = Token::parse(presented.expose()).map_err(|_| Refusal::InvalidToken)?;
    let hint = match token.kind() {
        TokenKind::Refresh => return Ok(token),
        TokenKind::Service => {
            "service tokens are exchanged at `POST /v1/auth/token`, not refreshed"
        }
        TokenKind::User => "present the refresh token that was given beside this access token",
    };
    Err(Refusal::WrongTokenKind { hint })
}
