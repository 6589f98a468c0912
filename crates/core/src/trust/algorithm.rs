//! The signature algorithms of JWTs.

use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256, RSA_PSS_2048_8192_SHA256,
    RsaParameters, VerificationAlgorithm,
};

crate::words! { listed
    /// The signature algorithms that are accepted: none with a shared secret, and not `none`.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Algorithm {
        /// RSA PKCS #1 v1.5 with SHA-256.
        Rs256 = "RS256",
        /// RSA PSS with SHA-256.
        Ps256 = "PS256",
        /// ECDSA on P-256 with SHA-256.
        Es256 = "ES256",
        EdDsa = "EdDSA",
    }
}

/// Verification method of an algorithm: RSA keys are built from their parts, the others from a
/// point.
pub(crate) enum Verification {
    Rsa(&'static RsaParameters),
    Point(&'static dyn VerificationAlgorithm),
}

impl Algorithm {
    pub(crate) fn verification(self) -> Verification {
        match self {
            Self::Rs256 => Verification::Rsa(&RSA_PKCS1_2048_8192_SHA256),
            Self::Ps256 => Verification::Rsa(&RSA_PSS_2048_8192_SHA256),
            Self::Es256 => Verification::Point(&ECDSA_P256_SHA256_FIXED),
            Self::EdDsa => Verification::Point(&ED25519),
        }
    }
}
