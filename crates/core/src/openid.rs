//! Logins of people by OpenID Connect, as far as they can be judged without waiting: what an issuer says about
//! itself, a login that is under way, and the key with which the gateway proves itself to an issuer.
//!
//! The ID token is judged by the trust rules: [`crate::trust::TrustRules::admit_id_token`].

mod attempt;
mod callback;
mod client_key;
mod metadata;

pub use self::{
    attempt::{LOGIN_ATTEMPTS, LoginAttempt, LoginKey, StepUp},
    callback::{IssuerAnswer, IssuerCallback},
    client_key::{ClientKey, ClientKeyError},
    metadata::{IssuerMetadata, IssuerMethod},
};
