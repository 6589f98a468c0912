//! Secrets at rest: every value is sealed under a data key of its own (AES-256-GCM), and that key
//! under a key-encryption key which is not in the database.
//!
//! **Invariant:** what is sealed for one place opens at no other: table, org, row and field are
//! authenticated with both layers, so a row that is swapped, copied or moved does not decrypt.

use std::fmt;

use aws_lc_rs::{
    aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey},
    digest,
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use zeroize::Zeroizing;

use crate::random::{self, Random};

const KEY_BYTES: usize = 32;
const TAG_BYTES: usize = 16;
const WRAPPED_BYTES: usize = KEY_BYTES + TAG_BYTES;
const VERSION: u8 = 1;
/// Keys of a ring at most: one to write with, and those that a rotation has not retired yet.
const MAX_KEYS: usize = 64;

/// Address of a sealed value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FieldAddress<'a> {
    /// The table, or the kind of thing the row is.
    pub table: &'a str,
    /// The org; empty for what belongs to the installation.
    pub org: &'a str,
    pub row: &'a str,
    pub field: &'a str,
}

impl FieldAddress<'_> {
    fn bytes(&self) -> Vec<u8> {
        let mut bytes = b"portcullis/vault/1".to_vec();
        for part in [self.table, self.org, self.row, self.field] {
            bytes.extend_from_slice(&u32::try_from(part.len()).unwrap_or(u32::MAX).to_be_bytes());
            bytes.extend_from_slice(part.as_bytes());
        }
        bytes
    }
}

/// Reason that a value cannot be sealed or opened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VaultError {
    #[error("sealed under the key `{0}`, which is not among the keys of this installation")]
    UnknownKey(String),
    #[error("a sealed value does not open: it was changed, or belongs to another row")]
    Damaged,
    #[error("line {0} of the keys is not 32 bytes in base64")]
    Line(usize),
    #[error("there have to be 1 to {MAX_KEYS} keys, each on a line of its own")]
    Count,
}

struct KeyEncryptionKey {
    id: String,
    key: LessSafeKey,
}

/// The ring of key-encryption keys: the first one seals, all of them open.
pub struct Vault {
    keys: Vec<KeyEncryptionKey>,
}

impl fmt::Debug for Vault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.ids()).finish()
    }
}

/// A sealed value and the key it is sealed under.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sealed {
    pub key_id: String,
    pub bytes: Vec<u8>,
}

/// The id of a key-encryption key: tells it from others and nothing about it.
#[must_use]
pub fn key_id(key: &[u8; KEY_BYTES]) -> String {
    let mut context = digest::Context::new(&digest::SHA256);
    context.update(b"portcullis/vault/key-id");
    context.update(key);
    let digest = context.finish();
    let hex = digest.as_ref().iter().take(6).map(|byte| format!("{byte:02x}"));
    format!("kek_{}", hex.collect::<String>())
}

/// The keys in a text: one a line in base64, the newest first. Empty lines and such that begin
/// with `#` are left out.
pub fn parse_keys(text: &str) -> Result<Vec<Zeroizing<[u8; KEY_BYTES]>>, VaultError> {
    let mut keys = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let bytes = STANDARD.decode(line).map(Zeroizing::new);
        let bytes = bytes.map_err(|_| VaultError::Line(number + 1))?;
        let mut key = Zeroizing::new([0; KEY_BYTES]);
        if bytes.len() != KEY_BYTES {
            return Err(VaultError::Line(number + 1));
        }
        key.copy_from_slice(&bytes);
        keys.push(key);
    }
    Ok(keys)
}

fn aead(key: &[u8; KEY_BYTES]) -> Result<LessSafeKey, VaultError> {
    let key = UnboundKey::new(&AES_256_GCM, key).map_err(|_| VaultError::Damaged)?;
    Ok(LessSafeKey::new(key))
}

/// Appends a fresh nonce and what `plain` becomes under `key`.
fn append_sealed(
    into: &mut Vec<u8>,
    key: &LessSafeKey,
    place: &[u8],
    plain: &[u8],
    random: &dyn Random,
) -> Result<(), VaultError> {
    let nonce = random::bytes::<NONCE_LEN>(random);
    into.extend_from_slice(&nonce);
    let mut sealed = plain.to_vec();
    key.seal_in_place_append_tag(
        Nonce::assume_unique_for_key(nonce),
        Aad::from(place),
        &mut sealed,
    )
    .map_err(|_| VaultError::Damaged)?;
    into.append(&mut sealed);
    Ok(())
}

fn opened(key: &LessSafeKey, place: &[u8], sealed: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
    let (nonce, sealed) = sealed.split_at_checked(NONCE_LEN)?;
    let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
    let mut bytes = Zeroizing::new(sealed.to_vec());
    let length = key.open_in_place(nonce, Aad::from(place), &mut bytes).ok()?.len();
    bytes.truncate(length);
    Some(bytes)
}

/// The parts of a sealed value.
struct Parts<'a> {
    key_id: &'a str,
    wrapped: &'a [u8],
    value: &'a [u8],
}

impl<'a> Parts<'a> {
    fn of(sealed: &'a [u8]) -> Option<Self> {
        let (&[version, length], rest) = sealed.split_first_chunk()?;
        let (key_id, rest) = rest.split_at_checked(usize::from(length))?;
        let (wrapped, value) = rest.split_at_checked(NONCE_LEN + WRAPPED_BYTES)?;
        let key_id = std::str::from_utf8(key_id).ok()?;
        (version == VERSION).then_some(Self { key_id, wrapped, value })
    }
}

impl Vault {
    /// From keys of which the first one seals.
    pub fn new(keys: &[Zeroizing<[u8; KEY_BYTES]>]) -> Result<Self, VaultError> {
        if keys.is_empty() || keys.len() > MAX_KEYS {
            return Err(VaultError::Count);
        }
        let mut ring: Vec<KeyEncryptionKey> = Vec::with_capacity(keys.len());
        for key in keys {
            let id = key_id(key);
            if !ring.iter().any(|known| known.id == id) {
                ring.push(KeyEncryptionKey { id, key: aead(key)? });
            }
        }
        Ok(Self { keys: ring })
    }

    /// The ids of the keys, the one that seals first.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        self.keys.iter().map(|key| key.id.as_str())
    }

    /// The id of the key that seals.
    #[must_use]
    pub fn primary(&self) -> &str {
        self.ids().next().unwrap_or_default()
    }

    /// Seals `plain` for its place.
    pub fn seal(
        &self,
        place: FieldAddress<'_>,
        plain: &[u8],
        random: &dyn Random,
    ) -> Result<Sealed, VaultError> {
        let data_key = Zeroizing::new(random::bytes::<KEY_BYTES>(random));
        let place = place.bytes();
        let mut bytes = self.wrapped(&place, &data_key, random)?;
        append_sealed(&mut bytes, &aead(&data_key)?, &place, plain, random)?;
        Ok(Sealed { key_id: self.primary().to_owned(), bytes })
    }

    /// Version, key id and the data key under the key that seals.
    fn wrapped(
        &self,
        place: &[u8],
        data_key: &[u8; KEY_BYTES],
        random: &dyn Random,
    ) -> Result<Vec<u8>, VaultError> {
        let primary = self.keys.first().ok_or(VaultError::Count)?;
        let length = u8::try_from(primary.id.len()).map_err(|_| VaultError::Count)?;
        let mut bytes = vec![VERSION, length];
        bytes.extend_from_slice(primary.id.as_bytes());
        append_sealed(&mut bytes, &primary.key, place, data_key, random)?;
        Ok(bytes)
    }

    fn data_key(
        &self,
        place: &[u8],
        parts: &Parts<'_>,
    ) -> Result<Zeroizing<[u8; KEY_BYTES]>, VaultError> {
        let known = self.keys.iter().find(|key| key.id == parts.key_id);
        let known = known.ok_or_else(|| VaultError::UnknownKey(parts.key_id.to_owned()))?;
        let bytes = opened(&known.key, place, parts.wrapped).ok_or(VaultError::Damaged)?;
        let mut key = Zeroizing::new([0; KEY_BYTES]);
        if bytes.len() != KEY_BYTES {
            return Err(VaultError::Damaged);
        }
        key.copy_from_slice(&bytes);
        Ok(key)
    }

    /// The key that a sealed value names, if that is not in the ring.
    #[must_use]
    pub fn missing_key<'a>(&self, sealed: &'a [u8]) -> Option<&'a str> {
        let named = Parts::of(sealed)?.key_id;
        self.ids().all(|id| id != named).then_some(named)
    }

    /// Opens what was sealed for this place. Rejects everything else.
    pub fn open(
        &self,
        place: FieldAddress<'_>,
        sealed: &[u8],
    ) -> Result<Zeroizing<Vec<u8>>, VaultError> {
        let parts = Parts::of(sealed).ok_or(VaultError::Damaged)?;
        let place = place.bytes();
        let data_key = self.data_key(&place, &parts)?;
        opened(&aead(&data_key)?, &place, parts.value).ok_or(VaultError::Damaged)
    }

    /// The same value with its data key under the key that seals now; `None` if it is already.
    /// The value itself is not opened.
    pub fn rewrap(
        &self,
        place: FieldAddress<'_>,
        sealed: &[u8],
        random: &dyn Random,
    ) -> Result<Option<Sealed>, VaultError> {
        let parts = Parts::of(sealed).ok_or(VaultError::Damaged)?;
        if parts.key_id == self.primary() {
            return Ok(None);
        }
        let place = place.bytes();
        let data_key = self.data_key(&place, &parts)?;
        let mut bytes = self.wrapped(&place, &data_key, random)?;
        bytes.extend_from_slice(parts.value);
        Ok(Some(Sealed { key_id: self.primary().to_owned(), bytes }))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU8, Ordering};

    use super::*;

    #[derive(Debug, Default)]
    struct Counting(AtomicU8);

    impl Random for Counting {
        fn fill(&self, bytes: &mut [u8]) {
            bytes.fill_with(|| self.0.fetch_add(1, Ordering::Relaxed));
        }
    }

    const HERE: FieldAddress<'static> =
        FieldAddress { table: "connection", org: "org_a", row: "prv_1", field: "credential" };

    fn key(byte: u8) -> Zeroizing<[u8; 32]> {
        Zeroizing::new([byte; 32])
    }

    fn vault(keys: &[u8]) -> Vault {
        Vault::new(&keys.iter().map(|byte| key(*byte)).collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn what_is_sealed_opens_at_its_place_and_at_no_other() {
        let vault = vault(&[1]);
        let random = Counting::default();

        let sealed = vault.seal(HERE, b"hunter2", &random).unwrap();

        assert_eq!(&**vault.open(HERE, &sealed.bytes).unwrap(), b"hunter2");
        for swapped in [
            FieldAddress { org: "org_b", ..HERE },
            FieldAddress { row: "prv_2", ..HERE },
            FieldAddress { field: "verifier", ..HERE },
            FieldAddress { table: "attempt", ..HERE },
            // The same text cut elsewhere.
            FieldAddress { org: "org_aprv", row: "_1", ..HERE },
        ] {
            assert_eq!(vault.open(swapped, &sealed.bytes), Err(VaultError::Damaged), "{swapped:?}");
            assert!(vault.rewrap(swapped, &sealed.bytes, &random).is_ok_and(|it| it.is_none()));
        }
        assert!(!sealed.bytes.windows(7).any(|window| window == b"hunter2"));
    }

    #[test]
    fn every_changed_byte_is_noticed() {
        let vault = vault(&[1]);
        let sealed = vault.seal(HERE, b"hunter2", &Counting::default()).unwrap().bytes;

        for at in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[at] ^= 1;
            assert!(vault.open(HERE, &changed).is_err(), "byte {at}");
            assert!(vault.open(HERE, &sealed[..at]).is_err(), "cut at {at}");
        }
    }

    #[test]
    fn a_rotation_rewraps_and_both_keys_read_meanwhile() {
        let random = Counting::default();
        let before = vault(&[1]);
        let during = vault(&[2, 1]);
        let after = vault(&[2]);
        let old = before.seal(HERE, b"hunter2", &random).unwrap();

        let new = during.rewrap(HERE, &old.bytes, &random).unwrap().unwrap();

        assert_eq!(&**during.open(HERE, &old.bytes).unwrap(), b"hunter2");
        assert_eq!(&**during.open(HERE, &new.bytes).unwrap(), b"hunter2");
        assert_eq!(&**after.open(HERE, &new.bytes).unwrap(), b"hunter2");
        assert_eq!((new.key_id.as_str(), during.primary()), (after.primary(), after.primary()));
        assert_eq!(during.rewrap(HERE, &new.bytes, &random), Ok(None));
        let unknown = VaultError::UnknownKey(old.key_id.clone());
        assert_eq!(after.open(HERE, &old.bytes), Err(unknown));
        let moved = FieldAddress { row: "prv_2", ..HERE };
        assert_eq!(during.rewrap(moved, &old.bytes, &random), Err(VaultError::Damaged));
    }

    #[test]
    fn keys_are_lines_of_base64() {
        let text =
            format!("# newest\n{}\n\n{}\n", STANDARD.encode([1; 32]), STANDARD.encode([2; 32]));

        assert_eq!(parse_keys(&text).unwrap().len(), 2);
        assert_eq!(parse_keys("AAAA"), Err(VaultError::Line(1)));
        assert_eq!(parse_keys("#\nx y"), Err(VaultError::Line(2)));
        assert_eq!(Vault::new(&[]).unwrap_err(), VaultError::Count);
        assert!(!format!("{:?}", vault(&[7])).contains("7, 7"));
    }
}
