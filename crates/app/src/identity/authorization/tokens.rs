//! `/oauth/token`, `/oauth/revoke` and `/oauth/introspect`: what clients do with codes and tokens.

use std::sync::Arc;

use portcullis_core::{
    audit::EventType,
    authorization::{Client, Code, Face, OAuthError, OAuthErrorCode},
    principal::ScopeSet,
    refusal::Refusal,
    secret::Secret,
    token::Token,
};
use portcullis_store::{AuthorizationCode, KnownToken};
use serde_json::{Value, json};

use super::{
    Authorization, TokenClient,
    events::{Acting, EventSubject},
};
use crate::{
    base::tenants::{Account, sources::LookUp},
    identity::access::{
        proofs::ProvedKey,
        tokens::{
            Granted, OTHER_FACE, PresentedRefresh, RefreshAt,
            codes::{CodeOwner, actor_of, actor_of_known},
        },
    },
    request::{Ctx, Origin},
};

/// The request of a client that has a code.
#[derive(Debug)]
pub struct CodeRequest {
    pub client: TokenClient,
    pub code: Secret,
    pub verifier: Secret,
    pub redirect_uri: Option<String>,
    pub resource: Option<String>,
    /// The key that its sender proved to hold.
    pub proved: Option<ProvedKey>,
}

/// The request of a client that has a refresh token.
#[derive(Debug)]
pub struct RefreshRequest {
    pub client: TokenClient,
    pub refresh_token: Secret,
    pub resource: Option<String>,
    pub scope: Option<ScopeSet>,
    /// The key that its sender proved to hold.
    pub proved: Option<ProvedKey>,
}

/// Tokens for a client, or why there are none.
#[derive(Debug)]
pub enum TokenAnswer {
    Granted(Box<Granted>),
    /// The same for a resource that an assertion or the request names.
    GrantedFor {
        granted: Box<Granted>,
        resource: String,
    },
    /// An error in the words of OAuth.
    Refused(OAuthError),
    /// A refusal of the gateway: of limits, or while nothing can be recorded.
    Unavailable(Refusal),
}

impl From<OAuthError> for TokenAnswer {
    fn from(error: OAuthError) -> Self {
        Self::Refused(error)
    }
}

impl From<Refusal> for TokenAnswer {
    fn from(refusal: Refusal) -> Self {
        if refusal == Refusal::TokenReused {
            return OAuthError::grant("it was used before: log in anew").into();
        }
        if refusal == OTHER_FACE {
            return OAuthError::other_target().into();
        }
        if let Some(error) = proof_error(&refusal) {
            return error.into();
        }
        if refusal.http_status() == 401 {
            return unknown_grant().into();
        }
        if let Refusal::InvalidScope { .. } = refusal {
            let told = "the scope is more than was granted";
            return OAuthError::new(OAuthErrorCode::InvalidScope, told).into();
        }
        Self::Unavailable(refusal)
    }
}

/// The refusal of a proof of possession in the words of RFC 9449 §5; `None` for any other refusal.
#[must_use]
pub fn proof_error(refusal: &Refusal) -> Option<OAuthError> {
    let Refusal::InvalidProof { fault, .. } = refusal else { return None };
    let code = if fault.wants_nonce() {
        OAuthErrorCode::UseDpopNonce
    } else {
        OAuthErrorCode::InvalidDpopProof
    };
    Some(OAuthError::new(code, refusal.to_string()))
}

fn unknown_grant() -> OAuthError {
    OAuthError::grant("it is not known, of another client, too old, or was revoked")
}

impl Authorization {
    /// Tokens for a code. `known` is told whose plan pays, once that is known.
    pub async fn redeem(
        self: &Arc<Self>,
        request: &CodeRequest,
        known: impl FnOnce(Account) + Send,
        origin: &Origin,
    ) -> TokenAnswer {
        match self.code_of(request, origin).await {
            Ok((code, owner)) => {
                let tenant = self.quotas.tenants.tenant(code.org_id);
                let account = Account { tenant, plan: owner.org.plan };
                known(account.clone());
                let whose = || (code.org_id, actor_of(&code));
                if let Err(refusal) = self.quotas.admit(&account, whose, origin).await {
                    return refusal.into();
                }
                let this = Arc::clone(self);
                let from = origin.clone();
                let proved = request.proved.clone();
                let work = async move {
                    match this.access.redeem(&code, &owner, proved.as_ref(), &from).await {
                        Err(Refusal::TokenReused) => Err(this.reused(&code, &from).await),
                        other => other,
                    }
                };
                let granted = self.base.uncancelled(work).await;
                granted.and_then(|granted| granted).map_or_else(TokenAnswer::from, |granted| {
                    TokenAnswer::Granted(Box::new(granted))
                })
            }
            Err(answer) => self.charged(answer, origin),
        }
    }

    /// The code of a request, checked against everything that it is bound to.
    async fn code_of(
        self: &Arc<Self>,
        request: &CodeRequest,
        origin: &Origin,
    ) -> Result<(AuthorizationCode, CodeOwner), TokenAnswer> {
        let client = self.client_name_of(request.client.id()?)?;
        let face = request.resource.as_deref().map(|it| self.face_of(it)).transpose()?;
        let hash = Code::hash_of(request.code.expose()).ok_or_else(unknown_grant)?;
        if !self.quotas.may_look_up_hash(LookUp::Code, &hash, origin) {
            return Err(unknown_grant().into());
        }
        let found = self.base.store.find_code(&hash).await.map_err(Refusal::from)?;
        let code = found.ok_or_else(unknown_grant)?;
        if code.spent_at.is_some() {
            let this = Arc::clone(self);
            let from = origin.clone();
            let ended = async move { this.reused(&code, &from).await };
            return Err(self.base.uncancelled(ended).await?.into());
        }
        let same_address = request
            .redirect_uri
            .as_deref()
            .is_none_or(|presented| presented == code.redirect_uri.as_str());
        let key = request.proved.as_ref().map(|proved| proved.key);
        let is_bound = code.granted.client.id == client
            && code.dpop_jkt.is_none_or(|bound| key == Some(bound))
            && same_address
            && code.challenge.is_met_by(request.verifier.expose())
            && self.base.now() < code.expires_at;
        if !is_bound {
            self.note_refused(&code, origin);
            return Err(unknown_grant().into());
        }
        if code.granted.by_key && !request.client.is_proved() {
            self.note_refused(&code, origin);
            return Err(OAuthError::unproved_client().into());
        }
        if !self.still_returns_to(&code) {
            self.note_refused(&code, origin);
            return Err(unknown_grant().into());
        }
        if face.is_some_and(|face| face != code.granted.face) {
            self.note_refused(&code, origin);
            return Err(OAuthError::other_target().into());
        }
        match self.access.code_owner(&code).await? {
            Some(owner) => Ok((code, owner)),
            None => Err(unknown_grant().into()),
        }
    }

    /// Returns false if the metadata document of the client, as it is known now, lists the address no more that
    /// the code was sent to.
    fn still_returns_to(&self, code: &AuthorizationCode) -> bool {
        let known = self.documents.find_loaded(&code.granted.client.id, self.base.now());
        let lists = |client: Client| {
            client.redirect_uris().iter().any(|uri| uri.admits(&code.redirect_uri))
        };
        known.is_none_or(lists)
    }

    pub(super) fn face_of(&self, resource: &str) -> Result<Face, OAuthError> {
        let issuer = self.issuer().unwrap_or_default();
        Face::of_resource(Some(resource), issuer, self.hosts())
    }

    fn note_refused(&self, code: &AuthorizationCode, origin: &Origin) {
        let refusal = Refusal::InvalidToken;
        let kind = EventType::AuthRejected;
        self.audit.note_refused(kind, code.org_id, actor_of(code), &refusal, origin);
    }

    /// A code came a second time: it was copied. What came of it ends, whether or not that can be recorded.
    async fn reused(&self, code: &AuthorizationCode, origin: &Origin) -> Refusal {
        let about = EventSubject { kind: "grant", id: code.grant_id.to_string() };
        let client = &code.granted.client;
        let acting = Acting { actor: actor_of(code), name: None, client };
        let kind = EventType::CodeReuseDetected;
        let event = self.client_event(kind, code.org_id, acting, about, origin);
        let recorded = self.audit.record(event).await;
        let now = self.base.now();
        let revoked = self.base.store.revoke_grant(code.org_id, code.grant_id, now).await;
        self.quotas.tenants.revoked(code.org_id);
        match (revoked, recorded) {
            (Err(error), _) => error.into(),
            (Ok(()), Err(refusal)) => refusal,
            (Ok(()), Ok(())) => Refusal::TokenReused,
        }
    }

    /// The next tokens for a refresh token. A refused one is not spent.
    pub async fn refresh(
        self: &Arc<Self>,
        request: RefreshRequest,
        known: impl FnOnce(Account) + Send,
        origin: &Origin,
    ) -> TokenAnswer {
        let proved = request.client.is_proved();
        let named = request.client.id().and_then(|id| self.client_name_of(id));
        let at = match named {
            Ok(client) => {
                match request.resource.as_deref().map(|it| self.face_of(it)).transpose() {
                    Ok(face) => RefreshAt::OAuth { client, proved, face },
                    Err(error) => return self.charged(error.into(), origin),
                }
            }
            Err(error) => return self.charged(error.into(), origin),
        };
        let RefreshRequest { refresh_token, proved, .. } = request;
        let presented = PresentedRefresh { bearer: None, token: Some(refresh_token), proved, at };
        let refreshing = match self.access.refreshing(presented, origin).await {
            Ok(refreshing) => refreshing,
            Err(refused) => return refused.refusal.into(),
        };
        known(refreshing.account().clone());
        if let Err(refusal) = self.access.admit_refresh(&refreshing, origin).await {
            return refusal.into();
        }
        match self.access.refresh_token(refreshing, request.scope, origin).await {
            Ok(granted) => TokenAnswer::Granted(Box::new(granted)),
            Err(refusal) => refusal.into(),
        }
    }

    /// Revokes a token of a client with its whole grant (RFC 7009). A token that is not known is as good as
    /// revoked.
    ///
    /// # Errors
    /// `unauthorized_client` for a token of another client, `invalid_client`.
    pub async fn revoke(
        self: &Arc<Self>,
        client: &TokenClient,
        token: &Secret,
        origin: &Origin,
    ) -> Result<(), TokenAnswer> {
        let this = Arc::clone(self);
        let client = client.clone();
        let token = token.clone();
        let from = origin.clone();
        let work = async move { this.revoke_known(&client, &token, &from).await };
        let revoked = self.base.uncancelled(work).await.unwrap_or_else(|error| Err(error.into()));
        revoked.map_err(|answer| self.charged(answer, origin))
    }

    async fn revoke_known(
        self: &Arc<Self>,
        presented: &TokenClient,
        token: &Secret,
        origin: &Origin,
    ) -> Result<(), TokenAnswer> {
        let client = self.client_name_of(presented.id()?)?;
        let Some(known) = self.token_of(token, origin).await? else {
            return self.charge_stranger(origin).map_err(TokenAnswer::from);
        };
        let granted = known.client.clone().filter(|granted| granted.client.id == client);
        let Some(granted) = granted else {
            let told = "the token was not given to this client";
            return Err(OAuthError::new(OAuthErrorCode::UnauthorizedClient, told).into());
        };
        if granted.by_key && !presented.is_proved() {
            return Err(OAuthError::unproved_client().into());
        }
        if known.token.revoked_at.is_some() {
            return Ok(());
        }
        let about = EventSubject { kind: "token", id: known.token.id.to_string() };
        let actor = actor_of_known(&known);
        let org = known.token.org_id;
        let name = Some(known.principal.name.as_str());
        let kind = EventType::TokenRevoked;
        let acting = Acting { actor, name, client: &granted.client };
        let event = self.client_event(kind, org, acting, about, origin);
        self.audit.record(event).await?;
        let now = self.base.now();
        let revoked = self.base.store.revoke_token(org, known.token.id, now).await;
        self.quotas.tenants.revoked(org);
        revoked.map(drop).map_err(|error| Refusal::from(error).into())
    }

    async fn token_of(
        &self,
        token: &Secret,
        origin: &Origin,
    ) -> Result<Option<KnownToken>, Refusal> {
        let Ok(token) = Token::parse(token.expose()) else { return Ok(None) };
        if !self.quotas.may_look_up(LookUp::Token, origin) {
            return Ok(None);
        }
        let found = self.base.store.find_token_by_hash(&token.hash()).await?;
        Ok(found.filter(|known| known.token.kind == token.kind()))
    }

    /// The worth of a token at this moment (RFC 7662). Of tokens of other orgs it tells nothing, nor of those
    /// that are worth nothing.
    ///
    /// # Errors
    /// A failure of the store.
    pub async fn introspect(self: &Arc<Self>, ctx: &Ctx, token: &Secret) -> Result<Value, Refusal> {
        let inactive = json!({"active": false});
        let Ok(token) = Token::parse(token.expose()) else { return Ok(inactive) };
        let found = self.base.store.find_token_by_hash(&token.hash()).await?;
        let found = found.filter(|known| {
            known.token.org_id == ctx.caller().org_id && known.token.kind == token.kind()
        });
        let Some(known) = found else { return Ok(inactive) };
        let record = known.token.clone();
        let granted = known.client.clone();
        let face = granted.as_ref().map(|granted| granted.face.path()).unwrap_or_default();
        let Some(scopes) = self.access.live_scopes(known, self.base.now())? else {
            return Ok(inactive);
        };
        let issuer = self.providers.public_url().unwrap_or_default();
        let mut told = json!({
            "active": true,
            "scope": scopes.to_string(),
            "token_type": if record.dpop_jkt.is_some() { "DPoP" } else { "Bearer" },
            "exp": record.expires_at.as_seconds(),
            "iat": record.issued_at.as_seconds(),
            "sub": record.principal_id,
            "aud": format!("{issuer}{face}"),
            "iss": issuer,
            "jti": record.id,
        });
        // What is absent is left out: there are readers that take null for a value.
        let key = record.dpop_jkt.map(|key| ("cnf", json!({"jkt": key})));
        let client = granted.map(|it| ("client_id", json!(it.client_id.unwrap_or(it.client.id))));
        if let Some(members) = told.as_object_mut() {
            let optional = [key, client].into_iter().flatten();
            members.extend(optional.map(|(name, value)| (name.to_owned(), value)));
        }
        Ok(told)
    }

    /// Charges the source for a refusal; beyond its limit it is told that. What cannot be told at the moment is
    /// no fault of the source.
    pub(super) fn charged(&self, answer: TokenAnswer, origin: &Origin) -> TokenAnswer {
        let TokenAnswer::Refused(error) = answer else { return answer };
        if error.code == OAuthErrorCode::TemporarilyUnavailable {
            return TokenAnswer::Refused(error);
        }
        match self.charge_stranger(origin) {
            Ok(()) => TokenAnswer::Refused(error),
            Err(refusal) => TokenAnswer::Unavailable(refusal),
        }
    }
}
