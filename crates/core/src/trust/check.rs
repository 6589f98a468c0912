//! Class of the check that a credential failed, which is all that the caller is told.

crate::words! {
    /// The class of the check that failed: `error.details.check`.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum CredentialCheck {
        /// The form, the algorithm, the key or the signature.
        Signature = "signature",
        Issuer = "issuer",
        /// For whom it was issued.
        Audience = "audience",
        Time = "time",
        /// Replay: it must not have been used before.
        Replay = "replay",
        /// Exactly one trust rule has to admit it.
        Trust = "trust",
    }
}

impl CredentialCheck {
    /// The sentence for the caller. It names no rule, no claim and no key.
    #[must_use]
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::Signature => "The credential is no JWT with a valid signature of its issuer.",
            Self::Issuer => "The credential comes from an issuer that is not trusted here.",
            Self::Audience => "The credential was not issued for this gateway.",
            Self::Time => "The credential is not valid at this time.",
            Self::Replay => "The credential was exchanged before.",
            Self::Trust => "The credential matches no trust rule, or several.",
        }
    }
}
