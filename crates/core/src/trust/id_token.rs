//! ID tokens of a login with a browser (OpenID Connect Core §3.1.3.7): the person that the issuer says has logged
//! in, for this login of ours and no other.

use std::collections::BTreeSet;

use aws_lc_rs::digest::{self, SHA256, SHA512};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};

use crate::{
    clock::Timestamp,
    id::PrincipalKind,
    oauth::digest as sha256,
    secret::Secret,
    trust::{
        Algorithm, Claims, JwtType, LEEWAY_SECONDS, Rejection, RuleSubject, TrustRules,
        TrustedSubject, Verified,
    },
};

/// Methods of authentication that are kept of one login.
const MAX_METHODS: usize = 32;

/// The request that an ID token has to answer.
#[derive(Debug, Clone, Copy)]
pub struct IdTokenRequest<'a> {
    pub issuer: &'a str,
    /// The gateway, as the issuer knows it.
    pub client_id: &'a str,
    pub nonce: &'a str,
    /// The access token that came with it.
    pub access_token: &'a Secret,
    /// Seconds before now within which the person has to have been asked for credentials, if any.
    pub max_age: Option<i64>,
}

/// Person that logged in, and how.
#[derive(Debug, Clone)]
pub struct IdentifiedPerson {
    pub subject: TrustedSubject,
    /// `acr`: the level of the authentication.
    pub acr: Option<String>,
    /// `amr`: the methods of it (RFC 8176).
    pub amr: BTreeSet<String>,
    /// Moment at which the person was asked for credentials; that of the token, if the issuer does not say.
    pub auth_time: Timestamp,
}

impl TrustRules {
    /// Returns the person that a verified ID token says has logged in.
    ///
    /// Exactly one rule must match, of those for people whose `audience` is the client. `iss` is the issuer that
    /// was asked, `nonce` that of the request, `azp` the client if it is there and wherever `aud` names several,
    /// `at_hash` the hash of the access token if it is there, and `auth_time` recent if the request said so.
    pub fn admit_id_token(
        &self,
        verified: Verified<'_>,
        request: &IdTokenRequest<'_>,
        now: Timestamp,
    ) -> Result<IdentifiedPerson, Rejection> {
        let claims = verified.claims_of(JwtType::Identity)?;
        if claims.issuer() != request.issuer {
            return Err(Rejection::UnknownIssuer);
        }
        if !claims.is_for(request.client_id) {
            return Err(Rejection::WrongAudience);
        }
        let admitted = self.admitted(claims, None, now, |rule| {
            let person = match &rule.who {
                RuleSubject::Fixed(principal) => principal.kind() == PrincipalKind::User,
                RuleSubject::User { .. } => true,
            };
            person && !rule.id_jag && rule.audience == request.client_id
        })?;
        request.check_party(claims)?;
        request.check_binding(claims, verified.algorithm())?;
        let auth_time = request.auth_time(claims, now)?;
        let methods = claims.texts("amr", MAX_METHODS).unwrap_or_default();
        Ok(IdentifiedPerson {
            subject: admitted.rule.subject(claims, admitted.expires_at)?,
            acr: claims.name("acr").map(str::to_owned),
            amr: methods.into_iter().map(str::to_owned).collect(),
            auth_time,
        })
    }
}

impl IdTokenRequest<'_> {
    /// The authorized party is the client. Where the token is for several, it has to be named.
    fn check_party(&self, claims: &Claims) -> Result<(), Rejection> {
        match claims.members().get("azp") {
            Some(party) if party.as_str() == Some(self.client_id) => Ok(()),
            None if claims.is_only_for(self.client_id) => Ok(()),
            Some(_) | None => Err(Rejection::WrongAudience),
        }
    }

    /// The token is of this request, and of the access token that came with it.
    fn check_binding(&self, claims: &Claims, algorithm: Algorithm) -> Result<(), Rejection> {
        let nonce = claims.members().get("nonce").and_then(|nonce| nonce.as_str());
        if nonce.is_none_or(|nonce| sha256(nonce) != sha256(self.nonce)) {
            return Err(Rejection::OtherLogin("`nonce` is not that of the login"));
        }
        let hash = claims.members().get("at_hash");
        if hash.is_some_and(|hash| hash.as_str() != Some(&*self.access_token_hash(algorithm))) {
            return Err(Rejection::OtherLogin("`at_hash` is not that of the access token"));
        }
        Ok(())
    }

    /// The left half of the hash that belongs to the algorithm of the signature, in base64url.
    fn access_token_hash(&self, algorithm: Algorithm) -> String {
        let hash = match algorithm {
            Algorithm::Rs256 | Algorithm::Ps256 | Algorithm::Es256 => &SHA256,
            Algorithm::EdDsa => &SHA512,
        };
        let hash = digest::digest(hash, self.access_token.expose().as_bytes());
        let (left, _) = hash.as_ref().split_at(hash.as_ref().len() / 2);
        URL_SAFE_NO_PAD.encode(left)
    }

    fn auth_time(&self, claims: &Claims, now: Timestamp) -> Result<Timestamp, Rejection> {
        let told = claims.time("auth_time", "`auth_time` is no date")?;
        let recent = |seconds: i64| {
            told.is_some_and(|at| now < at.plus_seconds(seconds.saturating_add(LEEWAY_SECONDS)))
        };
        if self.max_age.is_some_and(|seconds| !recent(seconds)) {
            return Err(Rejection::BadTime(
                "`auth_time` does not say that the person was asked within `max_age`",
            ));
        }
        let issued = claims.time("iat", "`iat` is no date")?;
        Ok(told.or(issued).unwrap_or(now).min(now))
    }
}
