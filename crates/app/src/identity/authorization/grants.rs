//! Grants without a browser: `jwt-bearer` (RFC 7523 §2.1, ID-JAG) and `client_credentials` (RFC 6749 §4.4).

use std::sync::Arc;

use portcullis_core::{
    authorization::{ClientGrant, ClientKind, ClientRef, Face, OAuthError, OAuthErrorCode},
    principal::{Scope, ScopeSet},
    refusal::Refusal,
    secret::Secret,
    trust::{ClientAssertion, Jwt, JwtType},
};

use super::{Authorization, TokenAnswer, TokenClient};
use crate::{
    base::tenants::Account,
    identity::access::{
        proofs::ProvedKey,
        tokens::{Credentials, ExchangeRequest},
    },
    request::Origin,
};

/// The use of the token of a grant without a browser.
#[derive(Debug, Default)]
pub struct GrantRequest {
    pub resource: Option<String>,
    pub scope: Option<ScopeSet>,
    /// The key that its sender proved to hold.
    pub proved: Option<ProvedKey>,
}

impl Authorization {
    /// A token for the assertion of a trusted issuer: for a person if it is an ID-JAG, which only the client
    /// that it names may present, otherwise for a workload. `known` is told whose plan pays.
    pub async fn jwt_bearer(
        self: &Arc<Self>,
        assertion: &Secret,
        client: &TokenClient,
        request: GrantRequest,
        known: impl FnOnce(Account) + Send,
        origin: &Origin,
    ) -> TokenAnswer {
        let kind = Jwt::parse_typed(assertion.expose()).map(|jwt| jwt.kind());
        let declared = match client {
            TokenClient::Proved(client) if client.kind == ClientKind::Declared => Some(client),
            TokenClient::Proved(_) | TokenClient::Public(_) | TokenClient::Unnamed => None,
        };
        let client = match (kind, declared) {
            (Ok(JwtType::IdJag), Some(client)) => Some(client),
            (Ok(JwtType::IdJag), None) => {
                let told = "an ID-JAG is presented by a client of the configuration that proves itself \
                            with a key";
                return self.charged(OAuthError::client(told).into(), origin);
            }
            (Ok(JwtType::Identity | JwtType::ClientAuthentication) | Err(_), _) => None,
        };
        let id = client.map(|client| client.id.as_str());
        let credentials = match self.access.assertion_credentials(assertion, id, origin).await {
            Ok(credentials) => credentials,
            Err(refused) => return not_good(refused.refusal, OAuthError::grant),
        };
        self.granted(credentials, client, request, known, origin).await
    }

    /// A token for a service account that signed `assertion` with a registered key, and has the id `named` if
    /// one is named.
    pub async fn client_credentials(
        self: &Arc<Self>,
        assertion: &Secret,
        named: Option<&str>,
        request: GrantRequest,
        known: impl FnOnce(Account) + Send,
        origin: &Origin,
    ) -> TokenAnswer {
        let signed = ClientAssertion::parse(assertion.expose());
        if signed.is_ok_and(|signed| named.is_some_and(|named| named != signed.client())) {
            let told = "client_id is not the client of the assertion";
            return self.charged(OAuthError::client(told).into(), origin);
        }
        let credentials = match self.access.key_credentials(assertion, origin).await {
            Ok(credentials) => credentials,
            Err(refused) => return not_good(refused.refusal, OAuthError::client),
        };
        self.granted(credentials, None, request, known, origin).await
    }

    async fn granted(
        self: &Arc<Self>,
        credentials: Credentials,
        client: Option<&ClientRef>,
        request: GrantRequest,
        known: impl FnOnce(Account) + Send,
        origin: &Origin,
    ) -> TokenAnswer {
        known(credentials.account().clone());
        if let Err(refusal) = self.access.admit_exchange(&credentials, origin).await {
            return refusal.into();
        }
        let GrantRequest { resource, scope, proved } = request;
        let may_have = |face: &Face| *face != Face::Rest || client.is_none();
        let face = match self.face_among(credentials.resources(), resource.as_deref(), may_have) {
            Ok(face) => face,
            Err(error) => return error.into(),
        };
        let scope = credentials.narrowed(scope).without(Scope::ApprovalsDecide);
        let scope = scope.intersection(face.ceiling());
        if scope.is_empty() {
            let told = "nothing is left of the scope that was asked for";
            return OAuthError::new(OAuthErrorCode::InvalidScope, told).into();
        }
        let client = client.cloned().unwrap_or_else(|| credentials.as_client());
        let label = Some(client.name.clone());
        let resource = format!("{}{}", self.issuer().unwrap_or_default(), face.path());
        let grant = ClientGrant { client, face, consent: None, by_key: false, client_id: None };
        let credentials = credentials.granted_to(grant);
        let request = ExchangeRequest { scope: Some(scope), expires_in: None, label, key: proved };
        match self.access.exchange(credentials, request, origin).await {
            Ok(granted) => TokenAnswer::GrantedFor { granted: Box::new(granted), resource },
            Err(refusal) => refusal.into(),
        }
    }

    /// The face that a token is good for: the one that is asked for, if the assertion leaves it; otherwise the
    /// one that the assertion names; `/mcp` if neither says anything. Resources of others, and those that its
    /// client may not have, are left out.
    fn face_among(
        &self,
        asserted: &[String],
        asked: Option<&str>,
        may_have: impl Fn(&Face) -> bool,
    ) -> Result<Face, OAuthError> {
        let face_of = |it: &str| {
            self.face_of(it)
                .and_then(|face| may_have(&face).then_some(face).ok_or_else(OAuthError::target))
        };
        let asked = asked.map(face_of).transpose()?;
        if asserted.is_empty() {
            return Ok(asked.unwrap_or(Face::All));
        }
        let mut left = asserted.iter().filter_map(|it| face_of(it).ok());
        let face = match &asked {
            Some(asked) => {
                left.find_map(|face| face.intersection(asked).filter(|common| common == asked))
            }
            None => left.next(),
        };
        face.ok_or_else(OAuthError::target)
    }
}

/// A refusal of credentials as `error` says it; other refusals as they are.
fn not_good(refusal: Refusal, error: fn(&'static str) -> OAuthError) -> TokenAnswer {
    if let Refusal::InvalidCredential { check } = refusal {
        return error(check.sentence()).into();
    }
    refusal.into()
}
