//! Tokens as requests bring them, with the proof that their sender may use them.

use std::sync::OnceLock;

use portcullis_core::{
    secret::Secret,
    trust::{ProofFault, TargetUri, Thumbprint},
};

/// The header `DPoP` of a request, and what it has to be made for.
#[derive(Debug)]
pub struct PresentedProof {
    pub(crate) proof: Result<Secret, ProofFault>,
    pub(crate) method: String,
    pub(crate) addresses: Vec<TargetUri>,
    /// The nonce that the answer gives the client.
    pub(crate) nonce: OnceLock<String>,
}

impl PresentedProof {
    /// The proof in a request by `method` to one of `addresses`, as clients know it; a fault if there are
    /// several.
    #[must_use]
    pub fn new(
        proof: Result<Secret, ProofFault>,
        method: String,
        addresses: Vec<TargetUri>,
    ) -> Self {
        Self { proof, method, addresses, nonce: OnceLock::new() }
    }

    /// The nonce that the answer gives the client, if it does.
    #[must_use]
    pub fn offered_nonce(&self) -> Option<&str> {
        self.nonce.get().map(String::as_str)
    }
}

/// Sign by which the sender of a token shows that it may use it.
#[derive(Debug, Clone, Copy)]
pub enum Possession<'a> {
    /// `Authorization: Bearer`.
    Bearer,
    /// `Authorization: DPoP`, with the proof if one came.
    Dpop(Option<&'a PresentedProof>),
    /// The key that was proved before in the same request; the token need not be bound.
    Proved(Option<Thumbprint>),
    /// The same, and the token has to be bound.
    ProvedDpop(Option<Thumbprint>),
}

/// A token as it came with a request.
#[derive(Debug, Clone, Copy)]
pub struct PresentedToken<'a> {
    pub text: Option<&'a str>,
    pub possession: Possession<'a>,
}

impl<'a> PresentedToken<'a> {
    /// One that its bearer sent.
    #[must_use]
    pub const fn bearer(text: Option<&'a str>) -> Self {
        Self { text, possession: Possession::Bearer }
    }
}
