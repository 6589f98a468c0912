//! The keys of notes: Ed25519, for logs and for witnesses.

use std::{fmt, str::FromStr, sync::Arc};

use aws_lc_rs::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};
use base64::{Engine as _, engine::general_purpose::STANDARD};

use super::Signature;
use crate::json;

/// Longer names and keys are refused.
const MAX_CHARS: usize = 512;

/// A key that cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    #[error("a verifier key has the form `name+hash+base64`")]
    Form,
    /// The hash in the middle does not belong to name and key.
    #[error("the verifier key is damaged: its hash does not fit its name and key")]
    Hash,
    /// Neither Ed25519 nor Ed25519 cosignatures.
    #[error("the verifier key is of a type that is not known here (known: 1 and 4)")]
    Kind,
    #[error("a key name has no spaces, no `+`, and is 1 to 512 characters long")]
    Name,
    #[error("the signing key is damaged")]
    Seed,
}

/// Kind of statement that a key signs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyKind {
    /// Notes: a log's key (type 1).
    Log,
    /// Checkpoints of others with the time: a witness's key (type 4, `cosignature/v1`).
    Witness,
}

impl KeyKind {
    const fn byte(self) -> u8 {
        match self {
            Self::Log => 1,
            Self::Witness => 4,
        }
    }
}

pub(super) fn is_name(name: &str) -> bool {
    let refused = |letter: char| letter.is_whitespace() || letter == '+' || letter.is_control();
    !name.is_empty() && name.len() <= MAX_CHARS && !name.chars().any(refused)
}

fn key_id(name: &str, kind: KeyKind, public: &[u8; 32]) -> [u8; 4] {
    let hash = json::digest(&[name.as_bytes(), b"\n", &[kind.byte()], public]);
    let [a, b, c, d, ..] = hash;
    [a, b, c, d]
}

/// The public half of a key, written `name+hash+base64` ("vkey").
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifierKey {
    name: String,
    kind: KeyKind,
    public: [u8; 32],
    id: [u8; 4],
}

impl VerifierKey {
    /// The key of this public half under `name`.
    pub fn new(name: &str, kind: KeyKind, public: [u8; 32]) -> Result<Self, KeyError> {
        if !is_name(name) {
            return Err(KeyError::Name);
        }
        let id = key_id(name, kind, &public);
        Ok(Self { name: name.to_owned(), kind, public, id })
    }

    /// The 32 bytes of the key itself.
    #[must_use]
    pub const fn public(&self) -> [u8; 32] {
        self.public
    }

    /// Its name: of a log's key the origin of the log.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its id in signatures and in its text, in hexadecimal.
    #[must_use]
    pub fn id(&self) -> String {
        format!("{:08x}", u32::from_be_bytes(self.id))
    }

    /// Kind of statement that the key signs.
    #[must_use]
    pub const fn kind(&self) -> KeyKind {
        self.kind
    }

    /// Returns true if `signature` claims to be by this key.
    pub(super) fn made(&self, signature: &Signature) -> bool {
        self.name == signature.name && self.id == signature.id
    }

    /// When the signature was made, if it tells; `None` if it does not hold.
    #[expect(clippy::option_option, reason = "whether it holds, and what a witness says")]
    pub(super) fn verify(&self, text: &str, signature: &[u8]) -> Option<Option<u64>> {
        match self.kind {
            KeyKind::Log => {
                self.holds(text.as_bytes(), signature)?;
                Some(None)
            }
            KeyKind::Witness => {
                let (time, signature) = signature.split_first_chunk::<8>()?;
                let time = u64::from_be_bytes(*time);
                self.holds(witnessed(time, text).as_bytes(), signature)?;
                Some(Some(time))
            }
        }
    }

    fn holds(&self, message: &[u8], signature: &[u8]) -> Option<()> {
        UnparsedPublicKey::new(&ED25519, self.public).verify(message, signature).ok()
    }
}

/// Text that a witness signs.
fn witnessed(time: u64, text: &str) -> String {
    format!("cosignature/v1\ntime {time}\n{text}")
}

impl fmt::Display for VerifierKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let id = u32::from_be_bytes(self.id);
        let key = STANDARD.encode([&[self.kind.byte()], self.public.as_slice()].concat());
        write!(f, "{}+{id:08x}+{key}", self.name)
    }
}

impl FromStr for VerifierKey {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        if text.len() > 2 * MAX_CHARS {
            return Err(KeyError::Form);
        }
        let (name, rest) = text.split_once('+').ok_or(KeyError::Form)?;
        let (id, key) = rest.split_once('+').ok_or(KeyError::Form)?;
        if !is_name(name) {
            return Err(KeyError::Name);
        }
        let hex = id.len() == 8 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
        let id = u32::from_str_radix(id, 16).ok().filter(|_| hex).ok_or(KeyError::Form)?;
        let key = STANDARD.decode(key).map_err(|_| KeyError::Form)?;
        let (kind, public) = key.split_first().ok_or(KeyError::Form)?;
        let kind = match kind {
            1 => KeyKind::Log,
            4 => KeyKind::Witness,
            _ => return Err(KeyError::Kind),
        };
        let public = public.try_into().map_err(|_| KeyError::Form)?;
        if key_id(name, kind, &public) != id.to_be_bytes() {
            return Err(KeyError::Hash);
        }
        Ok(Self { name: name.to_owned(), kind, public, id: id.to_be_bytes() })
    }
}

/// The secret half: signs notes under a name. Its `Debug` hides it.
#[derive(Clone)]
pub struct SigningKey {
    pair: Arc<Ed25519KeyPair>,
    verifier: VerifierKey,
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SigningKey").field("verifier", &self.verifier).finish_non_exhaustive()
    }
}

impl SigningKey {
    /// The key that grows from 32 random bytes, under `name`.
    pub fn new(name: &str, kind: KeyKind, seed: &[u8; 32]) -> Result<Self, KeyError> {
        let pair = Ed25519KeyPair::from_seed_unchecked(seed).map_err(|_| KeyError::Seed)?;
        let public = pair.public_key().as_ref().try_into().map_err(|_| KeyError::Seed)?;
        Ok(Self { pair: Arc::new(pair), verifier: VerifierKey::new(name, kind, public)? })
    }

    /// The same key under another name, without deriving its public half once more.
    pub fn under(&self, name: &str) -> Result<Self, KeyError> {
        let VerifierKey { kind, public, .. } = self.verifier;
        Ok(Self { pair: Arc::clone(&self.pair), verifier: VerifierKey::new(name, kind, public)? })
    }

    /// The public half.
    #[must_use]
    pub const fn verifier(&self) -> &VerifierKey {
        &self.verifier
    }

    /// A log's signature over `text`. A witness's says when: see [`Self::cosign`].
    pub(super) fn sign(&self, text: &str) -> Signature {
        match self.verifier.kind {
            KeyKind::Log => self.signature(self.pair.sign(text.as_bytes()).as_ref().to_vec()),
            KeyKind::Witness => self.cosign(text, 0),
        }
    }

    /// A witness's signature over the text of a checkpoint at `time`, in seconds since 1970.
    #[must_use]
    pub fn cosign(&self, text: &str, time: u64) -> Signature {
        let signed = self.pair.sign(witnessed(time, text).as_bytes());
        self.signature([&time.to_be_bytes(), signed.as_ref()].concat())
    }

    fn signature(&self, bytes: Vec<u8>) -> Signature {
        Signature { name: self.verifier.name.clone(), id: self.verifier.id, bytes }
    }
}
