//! `/v1/auth/token`: a credential for a token that can do no more (RFC 8693).

use std::sync::Arc;

use portcullis_core::{
    audit::{Actor, ActorClient, Event, EventType},
    authorization::ClientGrant,
    clock::Timestamp,
    id::{GrantId, OrgId, PrincipalId, TokenId},
    lifetime::AccessLife,
    lineage::Lineage,
    principal::{AuthMethod, ScopeSet},
    refusal::Refusal,
    token::{CidrList, Token, TokenKind},
    trust::CredentialCheck,
};
use portcullis_store::{
    Assertion, Issue, Issued, LoginRecord, MAX_ANCESTORS, MAX_LIVE_CHILDREN, NewRefresh, NewToken,
    TokenRecord,
};

use super::{
    credentials::{Credentials, Proof, ProvenIdentity},
    events::TokenEvent,
};
use crate::{
    identity::access::{
        Access,
        proofs::{ProvedKey, record_of},
    },
    request::Origin,
};

/// Properties of the new token.
#[derive(Debug, Default)]
pub struct ExchangeRequest {
    /// Its scopes; all of the subject's but `admin`, `audit:export` and those of
    /// approvals when absent.
    pub scope: Option<ScopeSet>,
    /// Number of seconds it lives.
    pub expires_in: Option<i64>,
    pub label: Option<String>,
    /// The key that the token will be bound to.
    pub key: Option<ProvedKey>,
}

/// Result of an exchange or a refresh: the only moment these texts are known.
#[derive(Debug)]
pub struct Granted {
    pub access: Token,
    /// The refresh token, and when it ends.
    pub refresh: Option<(Token, Timestamp)>,
    pub record: TokenRecord,
    /// Its scopes at this moment.
    pub scopes: ScopeSet,
    pub now: Timestamp,
}

/// Grounds of new tokens besides the tokens that they are made from.
pub(super) struct TokenBasis<'a> {
    pub(super) login: Option<&'a LoginRecord>,
    pub(super) client: Option<&'a ClientGrant>,
    /// Hash of the authorization code that they are given for.
    pub(super) code: Option<&'a [u8; 32]>,
    pub(super) assertions: &'a [Assertion],
}

/// Subject and actor after all that can be said of them together was said.
struct ExchangeTerms {
    principal: (PrincipalId, String),
    lineage: Lineage,
    life: AccessLife,
    allowed_from: Option<CidrList>,
    assertions: Vec<Assertion>,
    client: Option<ClientGrant>,
}

impl Access {
    /// Gives a token for credentials that were found good.
    pub async fn exchange(
        self: &Arc<Self>,
        credentials: Credentials,
        request: ExchangeRequest,
        origin: &Origin,
    ) -> Result<Granted, Refusal> {
        let this = Arc::clone(self);
        let from = origin.clone();
        self.base
            .uncancelled(async move { this.issue_token(&credentials, request, &from).await })
            .await?
    }

    async fn issue_token(
        &self,
        credentials: &Credentials,
        request: ExchangeRequest,
        origin: &Origin,
    ) -> Result<Granted, Refusal> {
        let Credentials { subject, actor } = credentials;
        let scopes = choose_scopes(request.scope, ceiling(subject, actor.as_ref()))?;
        let terms = self.combine_parties(subject, actor.as_ref(), origin).await?;
        let now = self.base.clock.now();
        let expires_at = terms.life.ends_at(now, request.expires_in);
        let access =
            Token::generate(TokenKind::of_principal(terms.principal.0.kind()), &*self.base.random);
        let record = TokenRecord {
            id: TokenId::new(self.base.ids()),
            kind: access.kind(),
            org_id: subject.org_id,
            principal_id: terms.principal.0,
            via: terms.lineage.via(),
            grant_id: GrantId::new(self.base.ids()),
            parent_id: subject.session().and_then(|session| session.caller.token_id),
            via_token_id: actor
                .as_ref()
                .and_then(ProvenIdentity::session)
                .and_then(|s| s.caller.token_id),
            scopes,
            // It goes into every event of the token: no place for what DLP would not let out.
            label: request.label.map(|label| self.screening.recordable(&label)),
            method: method(subject),
            issued_at: now,
            expires_at,
            revoked_at: None,
            last_used_at: None,
            allowed_cidrs: terms.allowed_from,
            exchange_only: false,
            lineage: terms.lineage,
            dpop_jkt: request.key.as_ref().map(|proved| proved.key),
        };
        self.use_proof(request.key.as_ref()).await?;
        let refresh = self.first_refresh(credentials, &record);
        let actor = owner_of(&record, terms.client.as_ref(), subject);
        let login = login(subject, now);
        let rests_on = TokenBasis {
            login: login.as_ref(),
            client: terms.client.as_ref(),
            code: None,
            assertions: &terms.assertions,
        };
        let issued = self.issue(&access, &record, refresh.as_ref(), rests_on).await;
        issued.inspect_err(|refusal| {
            if refusal.http_status() == 401 {
                let kind = EventType::AuthRejected;
                let org = subject.org_id;
                self.audit.note_refused(kind, org, actor.clone(), refusal, origin);
            }
        })?;
        self.audit.record(self.issued_event(&record, actor, &terms.principal.1, origin)).await?;
        let refresh = refresh.map(|(token, refresh)| (token, refresh.expires_at));
        Ok(Granted { access, refresh, scopes: record.scopes, record, now })
    }

    /// The event of a new token; it names the registered key that bought it, if one did.
    fn issued_event(
        &self,
        record: &TokenRecord,
        actor: Actor,
        name: &str,
        origin: &Origin,
    ) -> Event {
        let event = TokenEvent {
            kind: EventType::TokenIssued,
            actor,
            name: Some(name),
            label: record.label.as_deref(),
            token: record.id,
        };
        let mut event = self.token_event(record.org_id, event, origin);
        if let AuthMethod::Key { thumbprint } = &record.method {
            event.detached = event.detached.keep("key", Some(&**thumbprint), &*self.base.random);
        }
        event
    }

    /// Stores what was made, all or nothing. A crash after this line leaves tokens that no client
    /// has ever seen.
    pub(super) async fn issue(
        &self,
        access: &Token,
        record: &TokenRecord,
        refresh: Option<&(Token, TokenRecord)>,
        rests_on: TokenBasis<'_>,
    ) -> Result<(), Refusal> {
        let refresh_hash = refresh.map(|(token, _)| token.hash());
        let refresh = refresh.zip(refresh_hash.as_ref()).map(|((_, refresh), hash)| NewRefresh {
            token: NewToken { record: refresh, hash },
            grant_ends_at: self.grant_life.ends_at(record.issued_at),
            access_seconds: record.expires_at.as_seconds() - record.issued_at.as_seconds(),
        });
        let access_hash = access.hash();
        let access = NewToken { record, hash: &access_hash };
        let TokenBasis { login, client, code, assertions } = rests_on;
        let issue = Issue { access, refresh, login, client, code, assertions };
        let issued = self.base.store.issue_tokens(issue).await;
        match issued? {
            Issued::Done => {
                for hash in [Some(access_hash), refresh_hash].into_iter().flatten() {
                    self.quotas.sources.note_live(hash.as_bytes());
                }
                Ok(())
            }
            Issued::Replayed => Err(Refusal::InvalidCredential { check: CredentialCheck::Replay }),
            Issued::ParentRevoked => Err(Refusal::TokenRevoked),
            Issued::PrincipalEnded => {
                Err(Refusal::InvalidCredential { check: CredentialCheck::Trust })
            }
            Issued::TooManyAncestors => Err(Refusal::bad_request(format!(
                "The token was made from {MAX_ANCESTORS} others, one from another; exchange an earlier one."
            ))),
            Issued::TooManyChildren => Err(Refusal::bad_request(format!(
                "{MAX_LIVE_CHILDREN} tokens made from this one are live; use them again, ask for a shorter \
                 `expires_in`, or exchange another token."
            ))),
        }
    }

    /// A refresh token is for people who logged in themselves (RFC 6749 §4.4.3): the client of an
    /// ID-JAG asks their issuer again.
    fn first_refresh(
        &self,
        credentials: &Credentials,
        access: &TokenRecord,
    ) -> Option<(Token, TokenRecord)> {
        let login = match &credentials.subject.proof {
            Proof::Jwt(trusted) => !trusted.rule.id_jag,
            Proof::Key(_) | Proof::Token(_) => false,
        };
        if !login || credentials.actor.is_some() || access.kind != TokenKind::User {
            return None;
        }
        Some(self.refresh_beside(access))
    }

    /// The first refresh token of the grant of a new access token.
    pub(super) fn refresh_beside(&self, access: &TokenRecord) -> (Token, TokenRecord) {
        let ends_at = self.grant_life.ends_at(access.issued_at);
        let record = TokenRecord {
            id: TokenId::new(self.base.ids()),
            kind: TokenKind::Refresh,
            expires_at: self.grant_life.refresh_expiry(access.issued_at, ends_at),
            ..access.clone()
        };
        (Token::generate(TokenKind::Refresh, &*self.base.random), record)
    }

    /// Brings subject and actor together; makes the principals that are not there yet.
    async fn combine_parties(
        &self,
        subject: &ProvenIdentity,
        actor: Option<&ProvenIdentity>,
        origin: &Origin,
    ) -> Result<ExchangeTerms, Refusal> {
        let principal = self.ensure_principal(subject, origin).await?;
        let mut lineage = subject.lineage(principal.0);
        if let Some(actor) = actor {
            let (id, _) = self.ensure_principal(actor, origin).await?;
            lineage = self.acted_by(lineage, principal.0, id, actor)?;
        }
        let life = actor.map_or(subject.life, |actor| subject.life.and(actor.life));
        let allowed_from =
            match (subject.allowed_from(), actor.and_then(ProvenIdentity::allowed_from)) {
                // Both came from this address, so it is in both.
                (Some(one), Some(two)) => one.intersection(two),
                (one, two) => one.or(two).cloned(),
            };
        let client = client(subject, actor)?;
        let proofs = [Some(subject), actor];
        let assertions = proofs.into_iter().flatten().filter_map(assertion).collect();
        Ok(ExchangeTerms { principal, lineage, life, allowed_from, assertions, client })
    }

    /// Refuses unless the trust rules of the whole chain let every actor act for the subject. A
    /// token made in the operator's shell belongs to no rule; its holder may differ from its
    /// principal.
    fn acted_by(
        &self,
        lineage: Lineage,
        subject: PrincipalId,
        id: PrincipalId,
        actor: &ProvenIdentity,
    ) -> Result<Lineage, Refusal> {
        let lineage = lineage
            .acted_by(subject, id, &actor.lineage(id))
            .map_err(|error| Refusal::bad_request(format!("The chain is too long: {error}.")))?;
        let permitted = lineage.bounds(actor.org_id, self.trust.rules());
        permitted.map(|_| lineage).ok_or(Refusal::DelegationNotTrusted)
    }

    /// The trust rule of that name, if the configuration still has it for this org.
    pub(super) fn trust_rule(
        &self,
        org: OrgId,
        name: &str,
    ) -> Option<&portcullis_core::trust::TrustRule> {
        self.trust.rules().find(org, name).map(AsRef::as_ref)
    }
}

/// The client that a token is granted to which is made from tokens of clients: it stays theirs, for a face that
/// all of them are good for.
fn client(
    subject: &ProvenIdentity,
    actor: Option<&ProvenIdentity>,
) -> Result<Option<ClientGrant>, Refusal> {
    let granted = |party: &ProvenIdentity| {
        let of_token = || party.session()?.caller.client.as_deref().cloned();
        party.granted.clone().or_else(of_token)
    };
    match (granted(subject), actor.and_then(granted)) {
        (Some(subject), Some(actor)) => match subject.face.intersection(&actor.face) {
            Some(face) => Ok(Some(ClientGrant { face, ..subject })),
            None => Err(Refusal::DelegationNotTrusted),
        },
        (one, two) => Ok(one.or(two)),
    }
}

/// The owner of a new token as the actor of its event, with the client that it is granted to.
fn owner_of(record: &TokenRecord, client: Option<&ClientGrant>, subject: &ProvenIdentity) -> Actor {
    Actor {
        act: record.lineage.act(),
        client: client.map(|granted| ActorClient::of(&granted.client)),
        id: Some(record.principal_id),
        via: record.via,
        ..subject.actor()
    }
}

/// Upper bound of the scopes of a token for `subject` when `actor` acts through it.
fn ceiling(subject: &ProvenIdentity, actor: Option<&ProvenIdentity>) -> ScopeSet {
    actor.map_or(subject.scopes, |actor| subject.scopes.intersection(actor.scopes))
}

/// The scopes asked for, or the usual ones if none were. Never more than `allowed`, never none.
fn choose_scopes(asked: Option<ScopeSet>, allowed: ScopeSet) -> Result<ScopeSet, Refusal> {
    let scopes = asked.unwrap_or(allowed.unless_asked_for());
    if !scopes.is_subset_of(allowed) || scopes.is_empty() {
        let scope = scopes.difference(allowed).to_string();
        return Err(Refusal::InvalidScope { scope, allowed });
    }
    Ok(scopes)
}

fn method(subject: &ProvenIdentity) -> AuthMethod {
    match &subject.proof {
        Proof::Jwt(trusted) => AuthMethod::Oidc { trust: trusted.rule.name.clone() },
        Proof::Key(thumbprint) => AuthMethod::Key { thumbprint: thumbprint.clone() },
        Proof::Token(_) => AuthMethod::Token,
    }
}

/// Record of the subject's login. A token that is exchanged brings along the record it had: it does
/// not become fresher by that.
fn login(subject: &ProvenIdentity, now: Timestamp) -> Option<LoginRecord> {
    match &subject.proof {
        Proof::Jwt(trusted) => Some(LoginRecord { said: trusted.login.clone(), said_at: now }),
        Proof::Key(_) => None,
        Proof::Token(session) => session.login.clone(),
    }
}

/// Record that makes a single-use JWT fail the second time; `None` for other credentials.
fn assertion(party: &ProvenIdentity) -> Option<Assertion> {
    let Proof::Jwt(trusted) = &party.proof else { return None };
    trusted.single_use.as_ref().map(record_of)
}
