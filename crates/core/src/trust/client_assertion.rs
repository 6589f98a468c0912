//! The authentication of a client by a signed JWT (`private_key_jwt`; RFC 7523 §3, OpenID Connect
//! Core §9).

use crate::{
    clock::Timestamp,
    trust::{Jwt, JwtType, KeySet, Recipient, Rejection, SingleUse, assertion::LONGEST_SECONDS},
};

/// Keys that are tried when the assertion names none: a client may have that many.
const MAX_TRIED: usize = 8;

/// A well-formed assertion whose signature is unchecked: `iss` and `sub` are the client.
#[derive(Debug, Clone)]
pub struct ClientAssertion {
    jwt: Jwt,
    client: String,
}

impl ClientAssertion {
    /// Reads an assertion. Rejects what [`Jwt::parse_typed`] does, an ID-JAG, and one whose `iss`
    /// and `sub` are not one name.
    pub fn parse(text: &str) -> Result<Self, Rejection> {
        let jwt = Jwt::parse_typed(text)?;
        match jwt.kind() {
            JwtType::Identity | JwtType::ClientAuthentication => {}
            JwtType::IdJag => {
                return Err(Rejection::WrongPurpose("an ID-JAG does not authenticate a client"));
            }
        }
        let claims = jwt.unverified();
        let client = claims.name("sub").filter(|subject| *subject == claims.issuer());
        let client = client.ok_or(Rejection::UnknownIssuer)?.to_owned();
        Ok(Self { jwt, client })
    }

    /// The id of the client that it claims to be of.
    #[must_use]
    pub fn client(&self) -> &str {
        &self.client
    }

    /// Returns true if it was refused for want of a key, which its client may have by now.
    #[must_use]
    pub fn may_be_of_newer_keys(&self, rejection: &Rejection) -> bool {
        self.jwt.may_be_of_newer_keys(rejection)
    }

    /// Checks the assertion with the keys of its client: the signature, `aud` (addresses of
    /// `recipient` and no others), the times, at most an hour of life, and `jti`. Returns the
    /// record that has to be kept so that it is used once.
    pub fn check(
        &self,
        keys: &KeySet,
        recipient: &Recipient,
        now: Timestamp,
    ) -> Result<SingleUse, Rejection> {
        let claims = self.jwt.verify_with(keys, MAX_TRIED)?.claims();
        if !recipient.is_all_of(claims) {
            return Err(Rejection::WrongAudience);
        }
        let expires_at = claims.check_short(now, LONGEST_SECONDS)?;
        claims.check_purpose()?;
        // No issuer has a space in its name, so that a client never uses up the `jti` of one.
        SingleUse::of(&format!("client {}", self.client), claims, expires_at)
    }
}
