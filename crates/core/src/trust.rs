//! Trusting the JWTs of others: the principal that each issuer's token maps to, and refusals.
//!
//! The road of a JWT: [`Jwt::parse`] looks at its form, [`TrustRules::trusts`] says whether its
//! issuer is known at all, [`Jwt::verify`] checks the signature against the issuer's [`KeySet`],
//! and [`TrustRules::admit`] turns what was [`Verified`] into a [`TrustedSubject`] by exactly one
//! [`TrustRule`]. A `TrustedSubject` has been through all of it.
//!
//! **Invariant:** time is an argument, keys are an argument, and nothing inside a JWT (no `jku`,
//! `x5u`, `jwk` or `kid`) ever decides where a key comes from. Proofs of possession are no
//! exception: the key in one is compared with that of the token.

mod advice;
mod algorithm;
mod assertion;
mod check;
mod claim;
mod claims;
mod client_assertion;
mod dpop;
mod expectation;
mod explain;
mod id_jag;
mod id_token;
mod jwk;
mod jwt;
mod login;
mod public_key;
mod rejection;
mod roles;
mod rule;
mod rules;
mod subject;
mod thumbprint;

pub use self::{
    algorithm::Algorithm,
    assertion::Recipient,
    check::CredentialCheck,
    claim::{ClaimError, ClaimPath},
    claims::{Claims, LEEWAY_SECONDS},
    client_assertion::ClientAssertion,
    dpop::{
        DPOP_NONCES, DpopNonces, DpopProof, MAX_PROOF_BYTES, NonceScope, PROOF_ALGORITHMS,
        PROOF_SECONDS, ProofFault, ProofTarget, ReadNonce, TargetUri,
    },
    expectation::{Expectation, Expectations, Pattern, PatternError},
    explain::{Fault, RuleReport},
    id_token::{IdTokenRequest, IdentifiedPerson},
    jwk::{KeySet, KeySetError, MAX_KEYS},
    jwt::{Jwt, JwtType, MAX_JWT_BYTES, Verified, is_jwt_shaped},
    login::{Login, LoginClaims},
    public_key::{MAX_PUBLIC_KEY_BYTES, PublicKey, PublicKeyError},
    rejection::Rejection,
    roles::{RoleMap, RoleMapError},
    rule::{JoinKey, MaxTtl, RuleSubject, ScimJoin, TrustRule, TtlError},
    rules::{TrustRules, TrustRulesError},
    subject::{SingleUse, Subject, TrustedSubject, TrustedUser},
    thumbprint::{Thumbprint, ThumbprintError},
};

#[cfg(test)]
mod tests;
