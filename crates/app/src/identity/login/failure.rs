//! Reasons that a login at an issuer comes to nothing.

use portcullis_core::{openid::StepUp, refusal::Refusal, trust::CredentialCheck};

/// Reason for a login without a session, as a person is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoginError {
    /// There is no issuer of this name.
    UnknownIssuer,
    /// The issuer cannot be reached, or does not answer as the standard says.
    IssuerDown,
    /// A token of the issuer is longer than is taken.
    TooLong { member: &'static str, kib: usize },
    /// The browser has begun no login that this answer belongs to, or too long ago.
    Stale,
    /// The answer is of another issuer than the one that was asked.
    OtherIssuer,
    /// The issuer did not log the person in.
    Refused(&'static str),
    /// The issuer does not accept the code.
    CodeRefused,
    /// The ID token is not accepted: which class of check failed.
    Untrusted(CredentialCheck),
    /// The issuer did not confirm what was asked for.
    NotEnough(StepUp),
}

/// A login that came to nothing.
#[derive(Debug, Clone)]
pub enum LoginFailure {
    /// A page says why.
    Told(LoginError),
    /// A limit, or something of this gateway that does not work at the moment.
    Refusal(Refusal),
}

impl From<LoginError> for LoginFailure {
    fn from(error: LoginError) -> Self {
        Self::Told(error)
    }
}

impl From<Refusal> for LoginFailure {
    fn from(refusal: Refusal) -> Self {
        if let Refusal::InvalidCredential { check } = refusal {
            Self::Told(LoginError::Untrusted(check))
        } else {
            Self::Refusal(refusal)
        }
    }
}
