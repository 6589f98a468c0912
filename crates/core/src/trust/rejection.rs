//! Reasons that a JWT was not accepted, in the detail that its operator needs.

use crate::{
    clock::Timestamp,
    trust::{CredentialCheck, claim::ClaimPath},
};

/// Reason that a JWT was not accepted. Callers are told [`Rejection::check`] and nothing else; the
/// text is for `portcullis trust test` and quotes no claim's value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Rejection {
    /// The text is no JWT that this gateway reads.
    #[error("{0}")]
    Malformed(&'static str),
    #[error("no rule trusts the issuer in `iss`")]
    UnknownIssuer,
    #[error("the issuer has no key for this `kid` and `alg`")]
    UnknownKey,
    #[error("the signature does not verify with the issuer's key")]
    WrongSignature,
    #[error("{0}")]
    BadTime(&'static str),
    #[error("it expired at {0}")]
    Expired(Timestamp),
    #[error("it is not valid before {0}")]
    NotYetValid(Timestamp),
    #[error("`aud` does not hold the audience of any rule for this issuer")]
    WrongAudience,
    /// Issued for something else than to prove an identity.
    #[error("{0}")]
    WrongPurpose(&'static str),
    #[error("no rule matches its claims")]
    NoRule,
    #[error("several rules match its claims: {}", .0.join(", "))]
    SeveralRules(Vec<String>),
    /// The claim that names the user is missing or is no name.
    #[error("the claim `{0}` holds no name of a user: a text of 1 to 255 characters")]
    NoUser(ClaimPath),
    #[error("no entry of `roles` matches the claim `{0}`")]
    NoRole(ClaimPath),
    #[error("entries of `roles` that are equally exact give the claim `{0}` different roles")]
    SeveralRoles(ClaimPath),
    /// Used once only, but nothing tells it from another.
    #[error("it can be used once only, and there is no `jti` of 1 to 255 characters")]
    NoTokenId,
    #[error("`client_id` is not the client that presents it")]
    WrongClient,
    #[error("it was exchanged before")]
    Replayed,
    /// An ID token that does not belong to the login that it is presented for.
    #[error("{0}")]
    OtherLogin(&'static str),
}

impl Rejection {
    /// The class of the check that failed.
    #[must_use]
    pub const fn check(&self) -> CredentialCheck {
        match self {
            Self::Malformed(_) | Self::UnknownKey | Self::WrongSignature => {
                CredentialCheck::Signature
            }
            Self::UnknownIssuer => CredentialCheck::Issuer,
            Self::BadTime(_) | Self::Expired(_) | Self::NotYetValid(_) => CredentialCheck::Time,
            Self::WrongAudience => CredentialCheck::Audience,
            Self::WrongPurpose(_)
            | Self::NoRule
            | Self::SeveralRules(_)
            | Self::NoUser(_)
            | Self::NoRole(_)
            | Self::SeveralRoles(_)
            | Self::NoTokenId
            | Self::WrongClient => CredentialCheck::Trust,
            Self::Replayed | Self::OtherLogin(_) => CredentialCheck::Replay,
        }
    }
}
