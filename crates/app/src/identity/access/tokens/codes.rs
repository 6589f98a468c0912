//! Tokens for an authorization code that was found good.

use std::sync::Arc;

use portcullis_core::{
    audit::{Actor, ActorClient, Auth, EventType},
    clock::Timestamp,
    id::TokenId,
    lifetime::AccessLife,
    principal::AuthMethod,
    refusal::Refusal,
    token::{Token, TokenKind},
    trust::CredentialCheck,
};
use portcullis_store::{AuthorizationCode, KnownToken, Org, Principal, TokenRecord};

use super::{
    events::TokenEvent,
    exchange::{Granted, TokenBasis},
};
use crate::{
    identity::access::{Access, proofs::ProvedKey},
    request::Origin,
};

/// The person behind a code, as it is now.
#[derive(Debug)]
pub(crate) struct CodeOwner {
    pub(crate) org: Org,
    principal: Principal,
}

/// The person and the client of a code as the actor of an event.
pub(crate) fn actor_of(code: &AuthorizationCode) -> Actor {
    let trust = match &code.method {
        AuthMethod::Oidc { trust } => Some(trust.clone()),
        AuthMethod::Operator | AuthMethod::Key { .. } | AuthMethod::Token => None,
    };
    Actor {
        act: None,
        auth: Auth { method: code.method.name(), trust },
        client: Some(ActorClient::of(&code.granted.client)),
        id: Some(code.principal_id),
        token_id: None,
        kind: code.principal_id.kind().as_str(),
        via: None,
    }
}

/// The principal and the client of a token as the actor of an event.
pub(crate) fn actor_of_known(known: &KnownToken) -> Actor {
    let KnownToken { token, client, .. } = known;
    let trust = match &token.method {
        AuthMethod::Oidc { trust } => Some(trust.clone()),
        AuthMethod::Operator | AuthMethod::Key { .. } | AuthMethod::Token => None,
    };
    Actor {
        act: token.lineage.act(),
        auth: Auth { method: token.method.name(), trust },
        client: client.as_ref().map(|granted| ActorClient::of(&granted.client)),
        id: Some(token.principal_id),
        token_id: Some(token.id),
        kind: token.principal_id.kind().as_str(),
        via: token.via,
    }
}

impl Access {
    /// The person behind a code; `None` if it, or its org, is gone.
    pub(crate) async fn code_owner(
        &self,
        code: &AuthorizationCode,
    ) -> Result<Option<CodeOwner>, Refusal> {
        let org = self.base.store.find_org(code.org_id).await?;
        let principal = self.base.store.find_principal(code.org_id, code.principal_id).await?;
        let org = org.filter(|org| org.disabled_at.is_none());
        let principal = principal.filter(|principal| principal.disabled_at.is_none());
        Ok(org.zip(principal).map(|(org, principal)| CodeOwner { org, principal }))
    }

    /// Uses a code up for an access and a refresh token. Refused with [`Refusal::TokenReused`] if it was used
    /// meanwhile, and if what it rests on is gone.
    pub(crate) async fn redeem(
        self: &Arc<Self>,
        code: &AuthorizationCode,
        owner: &CodeOwner,
        proved: Option<&ProvedKey>,
        origin: &Origin,
    ) -> Result<Granted, Refusal> {
        let bounds = code.lineage.bounds(code.org_id, self.trust.rules());
        let bounds = bounds.ok_or(Refusal::TokenRevoked)?;
        let bounds = bounds.intersection(code.granted.face.ceiling());
        let scopes = code.scopes.intersection(owner.principal.role.scopes()).intersection(bounds);
        if scopes.is_empty() {
            return Err(Refusal::InvalidScope { scope: code.scopes.to_string(), allowed: scopes });
        }
        self.use_proof(proved).await?;
        let now = self.base.clock.now();
        let access = Token::generate(TokenKind::User, &*self.base.random);
        let dpop_jkt = proved.map(|proved| proved.key);
        let record = TokenRecord { dpop_jkt, ..self.record_for(code, now) };
        let (refresh, mut refresh_record) = self.refresh_beside(&record);
        if code.granted.by_key {
            // Its client proves itself at each refresh, and may change its keys (RFC 9449 §5).
            refresh_record.dpop_jkt = None;
        }
        let refresh_ends_at = refresh_record.expires_at;
        let refresh = (refresh, refresh_record);
        let rests_on = TokenBasis {
            login: code.login.as_ref(),
            client: Some(&code.granted),
            code: Some(&code.hash),
            assertions: &[],
        };
        let issued = self.issue(&access, &record, Some(&refresh), rests_on).await;
        issued.map_err(|refusal| {
            let Refusal::InvalidCredential { check } = refusal else { return refusal };
            let was_used = check == CredentialCheck::Replay;
            if was_used { Refusal::TokenReused } else { Refusal::TokenRevoked }
        })?;
        let event = TokenEvent {
            kind: EventType::TokenIssued,
            actor: actor_of(code),
            name: Some(&owner.principal.name),
            label: record.label.as_deref(),
            token: record.id,
        };
        self.audit.record(self.token_event(record.org_id, event, origin)).await?;
        Ok(Granted { access, refresh: Some((refresh.0, refresh_ends_at)), scopes, record, now })
    }

    fn record_for(&self, code: &AuthorizationCode, now: Timestamp) -> TokenRecord {
        let rule = match &code.method {
            AuthMethod::Oidc { trust } => self.trust_rule(code.org_id, trust),
            AuthMethod::Operator | AuthMethod::Key { .. } | AuthMethod::Token => None,
        };
        let longest = rule.map(|rule| rule.max_ttl.seconds());
        let life = AccessLife::of_login(code.principal_id.kind(), longest);
        TokenRecord {
            id: TokenId::new(self.base.ids()),
            kind: TokenKind::User,
            org_id: code.org_id,
            principal_id: code.principal_id,
            via: code.lineage.via(),
            grant_id: code.grant_id,
            parent_id: None,
            via_token_id: None,
            scopes: code.scopes,
            label: Some(self.screening.recordable(&code.granted.client.name)),
            method: code.method.clone(),
            issued_at: now,
            expires_at: life.ends_at(now, None),
            revoked_at: None,
            last_used_at: None,
            allowed_cidrs: None,
            exchange_only: false,
            lineage: code.lineage.clone(),
            dpop_jkt: None,
        }
    }
}
