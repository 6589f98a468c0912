//! Proofs that the sender of a request holds the key that a token is bound to (DPoP, RFC 9449).
//!
//! **Invariant:** the key in a proof is trusted for nothing: it only has to be the one whose
//! thumbprint is kept with the token. Whether a proof was used before is for its reader to know.

mod nonce;
mod target;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::Value;

pub use self::{
    nonce::{DPOP_NONCES, DpopNonces, NonceScope, ReadNonce},
    target::TargetUri,
};
use super::{
    Algorithm, SingleUse, Thumbprint,
    claims::{BOUNDS, as_name, numeric_date},
    jwk::public_key,
    jwt::decoded,
    public_key::{is_private, required},
};
use crate::{clock::Timestamp, json, oauth};

/// Longest proof in bytes: one under an RSA key of 8192 bits has 4 KiB.
pub const MAX_PROOF_BYTES: usize = 8 << 10;
/// Seconds by which the `iat` of a proof may differ from the moment at which it comes.
pub const PROOF_SECONDS: i64 = 60;
/// Algorithms by which proofs may be signed, as metadata and challenges name them.
pub const PROOF_ALGORITHMS: [&str; 4] = [
    Algorithm::Rs256.as_str(),
    Algorithm::Ps256.as_str(),
    Algorithm::Es256.as_str(),
    Algorithm::EdDsa.as_str(),
];
/// `typ` of a proof.
const DPOP: &str = "dpop+jwt";

crate::words! {
    /// The check that a proof failed.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
    pub enum ProofFault {
        #[error("there is no header `DPoP` with one")]
        Missing = "missing",
        #[error("there are several")]
        Several = "several",
        #[error(
            "it is no JWT of the type `dpop+jwt` under RS256, PS256, ES256 or EdDSA with `jti`, `htm`, \
             `htu` and `iat`"
        )]
        Form = "form",
        #[error("its `jwk` is no public key for its `alg`")]
        Key = "jwk",
        #[error("its signature is not that of the key in `jwk`")]
        Signature = "signature",
        #[error("`htm` is not the method of the request")]
        Method = "htm",
        #[error("`htu` is not the address of the request, as clients of this gateway write it")]
        Address = "htu",
        #[error(
            "its `iat` is more than {PROOF_SECONDS} seconds away from this moment: make it with the nonce in the \
             header `DPoP-Nonce` of this answer, which stands for the time, and ask again"
        )]
        Time = "iat",
        #[error("`ath` is not the SHA-256 of the token")]
        Token = "ath",
        #[error("the token is bound to another key")]
        OtherKey = "key",
        #[error("it was used before")]
        Replayed = "replay",
        #[error("make it with the nonce in the header `DPoP-Nonce` of this answer, and ask again")]
        Nonce = "nonce",
    }
}

impl ProofFault {
    /// Returns true if a nonce is all that the proof lacks (`use_dpop_nonce`, RFC 9449 §12.2).
    #[must_use]
    pub const fn wants_nonce(self) -> bool {
        match self {
            Self::Nonce | Self::Time => true,
            Self::Missing
            | Self::Several
            | Self::Form
            | Self::Key
            | Self::Signature
            | Self::Method
            | Self::Address
            | Self::Token
            | Self::OtherKey
            | Self::Replayed => false,
        }
    }
}

/// Request that a proof has to be made for.
#[derive(Debug, Clone, Copy)]
pub struct ProofTarget<'a> {
    pub method: &'a str,
    /// The addresses of the request, of which a proof names one; none if it has none that clients can know.
    pub addresses: &'a [TargetUri],
    /// The token that comes with it, where one is used.
    pub token: Option<&'a str>,
}

/// A proof that was made for its request, with the key that is proved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DpopProof {
    pub key: Thumbprint,
    pub once: SingleUse,
    pub nonce: Option<String>,
    /// True if its `iat` is of this moment; otherwise a nonce has to stand for the time.
    pub is_timely: bool,
}

impl DpopProof {
    /// Reads a proof and checks all that can be checked without knowing other proofs and nonces. What costs
    /// least comes first; the signature is verified for proofs that are right in all other parts.
    pub fn check(text: &str, target: ProofTarget<'_>, now: Timestamp) -> Result<Self, ProofFault> {
        let parts = ProofParts::parse(text)?;
        let claims = &parts.claims;
        let form = |claim: &str| claims.get(claim).and_then(Value::as_str).ok_or(ProofFault::Form);
        if form("htm")? != target.method {
            return Err(ProofFault::Method);
        }
        let address = TargetUri::parse(form("htu")?);
        if !address.is_some_and(|address| target.addresses.contains(&address)) {
            return Err(ProofFault::Address);
        }
        let issued = claims.get("iat").and_then(numeric_date).ok_or(ProofFault::Form)?;
        let away = now.as_seconds().abs_diff(issued.as_seconds());
        let is_timely = away <= PROOF_SECONDS.unsigned_abs();
        let latest = if is_timely { issued } else { now };
        if let Some(token) = target.token {
            let hash = claims.get("ath").and_then(Value::as_str).ok_or(ProofFault::Token)?;
            if URL_SAFE_NO_PAD.encode(oauth::digest(token)) != hash {
                return Err(ProofFault::Token);
            }
        }
        let id = claims.get("jti").and_then(as_name).ok_or(ProofFault::Form)?;
        let key = parts.verify()?;
        Ok(Self {
            key,
            once: SingleUse {
                // No issuer has a space in its name.
                issuer: format!("dpop {key}"),
                jti: id.to_owned(),
                until: latest.plus_seconds(PROOF_SECONDS + 1),
            },
            nonce: match claims.get("nonce") {
                None => None,
                Some(nonce) => Some(nonce.as_str().ok_or(ProofFault::Form)?.to_owned()),
            },
            is_timely,
        })
    }
}

/// A proof as it is written. Nothing of it is checked but its form.
struct ProofParts<'a> {
    algorithm: Algorithm,
    jwk: Value,
    claims: Value,
    signed: &'a str,
    signature: Vec<u8>,
}

impl<'a> ProofParts<'a> {
    fn parse(text: &'a str) -> Result<Self, ProofFault> {
        if text.len() > MAX_PROOF_BYTES {
            return Err(ProofFault::Form);
        }
        let (signed, signature) = text.rsplit_once('.').ok_or(ProofFault::Form)?;
        let (header, claims) = signed.split_once('.').ok_or(ProofFault::Form)?;
        let object = |part: &str| {
            let bytes = decoded(part).ok()?;
            json::parse(&bytes, BOUNDS).ok().filter(Value::is_object)
        };
        let mut header = object(header).ok_or(ProofFault::Form)?;
        let is_proof = header.get("typ").and_then(Value::as_str) == Some(DPOP);
        let algorithm = header.get("alg").and_then(Value::as_str).and_then(Algorithm::from_word);
        let jwk = header.get_mut("jwk").map(Value::take).filter(Value::is_object);
        let (Some(algorithm), Some(jwk)) = (algorithm, jwk) else { return Err(ProofFault::Form) };
        if !is_proof || header.get("crit").is_some() {
            return Err(ProofFault::Form);
        }
        Ok(Self {
            algorithm,
            jwk,
            claims: object(claims).ok_or(ProofFault::Form)?,
            signed,
            signature: decoded(signature).map_err(|_| ProofFault::Form)?,
        })
    }

    /// The thumbprint of the key that signed.
    fn verify(&self) -> Result<Thumbprint, ProofFault> {
        if is_private(&self.jwk) {
            return Err(ProofFault::Key);
        }
        let public = public_key(&self.jwk, self.algorithm).ok_or(ProofFault::Key)?;
        let required = required(&self.jwk).ok_or(ProofFault::Key)?;
        let verified = public.verify_sig(self.signed.as_bytes(), &self.signature);
        verified.map(|()| Thumbprint::of(&required)).map_err(|_| ProofFault::Signature)
    }
}
