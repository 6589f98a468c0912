//! Signed notes and their keys, as <https://c2sp.org/signed-note> and
//! <https://c2sp.org/tlog-cosignature> write them.

mod key;

pub use key::{KeyError, KeyKind, SigningKey, VerifierKey};

use std::fmt;

use base64::{Engine as _, engine::general_purpose::STANDARD};

/// Longer notes are refused unread.
pub const MAX_NOTE_BYTES: usize = 256 * 1024;
/// Notes with more signatures are refused.
const MAX_SIGNATURES: usize = 64;
const MARK: &str = "\u{2014} ";

/// Reason that a note is not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoteError {
    #[error("not a signed note: {0}")]
    Form(&'static str),
    #[error("no signature is by one of the given keys")]
    NoKnownKey,
    /// A signature names a given key and is not by it.
    #[error("the signature by `{0}` does not verify")]
    BadSignature(String),
}

/// A text and who signed it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    text: String,
    signatures: Vec<Signature>,
}

/// One signature line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature {
    /// The name of the key it claims to be by.
    pub name: String,
    /// The first four bytes of that key's hash.
    pub id: [u8; 4],
    bytes: Vec<u8>,
}

/// A signature that was verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    pub key: VerifierKey,
    /// When it was made in seconds since 1970, if it is a witness's.
    pub witnessed_at: Option<u64>,
}

impl Note {
    /// A note over `text`, which has to end with a line feed, signed by each of `keys`.
    #[must_use]
    pub fn sign(text: String, keys: &[&SigningKey]) -> Self {
        let signatures = keys.iter().map(|key| key.sign(&text)).collect();
        Self { text, signatures }
    }

    /// Reads a note. Says nothing about whether its signatures hold.
    pub fn parse(note: &str) -> Result<Self, NoteError> {
        if note.len() > MAX_NOTE_BYTES {
            return Err(NoteError::Form("it is too long"));
        }
        if note.bytes().any(|byte| byte < 0x20 && byte != b'\n') {
            return Err(NoteError::Form("it holds a control character"));
        }
        let split = note.rfind("\n\n").ok_or(NoteError::Form("it has no signatures"))?;
        let (text, lines) = note.split_at_checked(split + 1).ok_or(NoteError::Form("cut off"))?;
        let lines = lines.strip_prefix('\n').unwrap_or(lines);
        Ok(Self { text: text.to_owned(), signatures: signatures(lines)? })
    }

    /// The text that is signed, with its last line feed.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The signatures, unverified.
    #[must_use]
    pub fn signatures(&self) -> &[Signature] {
        &self.signatures
    }

    /// Adds what a witness answered. The same line twice is one.
    pub fn add(&mut self, signature: Signature) {
        if self.signatures.len() < MAX_SIGNATURES && !self.signatures.contains(&signature) {
            self.signatures.push(signature);
        }
    }

    /// The signatures by `keys`; those by others are ignored. Fails if there is none, and if one of
    /// them does not hold.
    pub fn verify(&self, keys: &[VerifierKey]) -> Result<Vec<Verified>, NoteError> {
        let mut verified = Vec::new();
        for signature in &self.signatures {
            let known = keys.iter().find(|key| key.made(signature));
            let Some(key) = known else { continue };
            let witnessed_at = key
                .verify(&self.text, &signature.bytes)
                .ok_or_else(|| NoteError::BadSignature(signature.name.clone()))?;
            verified.push(Verified { key: key.clone(), witnessed_at });
        }
        if verified.is_empty() { Err(NoteError::NoKnownKey) } else { Ok(verified) }
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.text)?;
        self.signatures.iter().try_for_each(|signature| writeln!(f, "{signature}"))
    }
}

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = [self.id.as_slice(), &self.bytes].concat();
        write!(f, "{MARK}{} {}", self.name, STANDARD.encode(whole))
    }
}

/// Signature lines, as they end a note and as a witness answers them.
pub fn signatures(lines: &str) -> Result<Vec<Signature>, NoteError> {
    if lines.len() > MAX_NOTE_BYTES {
        return Err(NoteError::Form("it is too long"));
    }
    let lines = lines.strip_suffix('\n').ok_or(NoteError::Form("its last line is cut off"))?;
    let read: Vec<_> = lines
        .split('\n')
        .take(MAX_SIGNATURES + 1)
        .map(|line| signature(line).ok_or(NoteError::Form("a signature line is malformed")))
        .collect::<Result<_, _>>()?;
    if read.len() > MAX_SIGNATURES {
        return Err(NoteError::Form("it has too many signatures"));
    }
    Ok(read)
}

fn signature(line: &str) -> Option<Signature> {
    let (name, encoded) = line.strip_prefix(MARK)?.split_once(' ')?;
    let bytes = STANDARD.decode(encoded).ok()?;
    let (id, bytes) = bytes.split_first_chunk::<4>()?;
    if !key::is_name(name) || bytes.is_empty() {
        return None;
    }
    Some(Signature { name: name.to_owned(), id: *id, bytes: bytes.to_vec() })
}
