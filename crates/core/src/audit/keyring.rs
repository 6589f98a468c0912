//! The signing keys of an installation's logs, as they stand in a file.
//!
//! One key signs the logs of all orgs, each under the name of its log. While a key is being
//! replaced, both sign; a retired key is kept by its public half, so that the verifier keys of old
//! checkpoints can still be told.

use std::sync::OnceLock;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use zeroize::Zeroizing;

use super::note::{KeyError, KeyKind, SigningKey, VerifierKey};
use crate::{
    clock::Timestamp,
    random::{self, Random},
    secret::Secret,
};

/// Larger files are refused.
const MAX_KEYS: usize = 64;

/// Reason that keys cannot be used. Says nothing of what the text held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum KeyringError {
    #[error(
        "line {0} is not `signing TIME BASE64`, `retired TIME BASE64` or 32 random bytes in base64"
    )]
    Line(usize),
    #[error("there is no signing key in it")]
    Empty,
    #[error("there are more than {MAX_KEYS} keys in it")]
    TooMany,
    #[error("the newest key cannot be retired: rotate first")]
    Newest,
    #[error(transparent)]
    Key(#[from] KeyError),
}

#[derive(Clone)]
enum LogKey {
    Signing { since: Timestamp, seed: Seed },
    Retired { since: Timestamp, public: [u8; 32] },
}

/// The secret of a key, and the key once it was derived.
#[derive(Clone)]
struct Seed {
    bytes: Zeroizing<[u8; 32]>,
    key: OnceLock<SigningKey>,
}

impl Seed {
    const fn new(bytes: Zeroizing<[u8; 32]>) -> Self {
        Self { bytes, key: OnceLock::new() }
    }

    /// The key that signs the log `origin`.
    fn key(&self, origin: &str) -> Result<SigningKey, KeyError> {
        if let Some(key) = self.key.get() {
            return key.under(origin);
        }
        let key = SigningKey::new(origin, KeyKind::Log, &self.bytes)?;
        self.key.get_or_init(|| key).under(origin)
    }
}

/// All keys, the oldest first. Its `Debug` hides them.
#[derive(Clone)]
pub struct Keyring {
    keys: Vec<LogKey>,
}

impl std::fmt::Debug for Keyring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Keyring").field("keys", &self.keys.len()).finish_non_exhaustive()
    }
}

/// A key as it may be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownKey {
    /// Start of its use for signing; 1970 if the key file has none.
    pub since: Timestamp,
    pub signing: bool,
    /// The verifier key under the name that was asked for.
    pub verifier: VerifierKey,
}

impl Keyring {
    /// A ring with one new key.
    #[must_use]
    pub fn generate(source: &dyn Random, now: Timestamp) -> Self {
        Self { keys: vec![fresh(source, now)] }
    }

    /// Reads what [`Self::text`] wrote, or a single line of 32 random bytes in base64.
    pub fn parse(text: &str) -> Result<Self, KeyringError> {
        let lines = text.lines().enumerate().map(|(index, line)| (index + 1, line.trim()));
        let lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        let keys: Vec<LogKey> = lines
            .take(MAX_KEYS + 1)
            .map(|(number, line)| key_of(line).ok_or(KeyringError::Line(number)))
            .collect::<Result<_, _>>()?;
        if keys.len() > MAX_KEYS {
            return Err(KeyringError::TooMany);
        }
        if !keys.iter().any(|key| matches!(key, LogKey::Signing { .. })) {
            return Err(KeyringError::Empty);
        }
        Ok(Self { keys })
    }

    /// The text of the file.
    #[must_use]
    pub fn text(&self) -> Secret {
        let mut text = Zeroizing::new(HEAD.to_owned());
        for key in &self.keys {
            let line = match key {
                LogKey::Signing { since, seed } => {
                    format!("signing {since} {}\n", STANDARD.encode(seed.bytes.as_slice()))
                }
                LogKey::Retired { since, public } => {
                    format!("retired {since} {}\n", STANDARD.encode(public))
                }
            };
            text.push_str(&Zeroizing::new(line));
        }
        Secret::new(text.to_string())
    }

    /// The same ring with one more key, which signs from now on beside the others.
    #[must_use]
    pub fn rotated(&self, source: &dyn Random, now: Timestamp) -> Self {
        let mut keys = self.keys.clone();
        keys.push(fresh(source, now));
        Self { keys }
    }

    /// The same ring in which only the newest key signs. Fails if that is so already.
    pub fn settled(&self) -> Result<Self, KeyringError> {
        let newest = self.keys.iter().rposition(|key| matches!(key, LogKey::Signing { .. }));
        let newest = newest.ok_or(KeyringError::Empty)?;
        let mut retired = 0;
        let settle = |(index, key): (usize, &LogKey)| match key {
            LogKey::Signing { since, seed } if index != newest => {
                retired += 1;
                let key = seed.key(ANY)?;
                Ok(LogKey::Retired { since: *since, public: key.verifier().public() })
            }
            LogKey::Signing { .. } | LogKey::Retired { .. } => Ok::<_, KeyringError>(key.clone()),
        };
        let keys = self.keys.iter().enumerate().map(settle).collect::<Result<_, _>>()?;
        if retired == 0 { Err(KeyringError::Newest) } else { Ok(Self { keys }) }
    }

    /// The keys that sign the log `origin`, oldest first.
    pub fn signers(&self, origin: &str) -> Result<Vec<SigningKey>, KeyError> {
        let signing = self.keys.iter().filter_map(|key| match key {
            LogKey::Signing { seed, .. } => Some(seed.key(origin)),
            LogKey::Retired { .. } => None,
        });
        signing.collect()
    }

    /// All keys as verifiers of the log `origin` know them, oldest first.
    pub fn known(&self, origin: &str) -> Result<Vec<KnownKey>, KeyError> {
        let known = |key: &LogKey| {
            let (since, signing, verifier) = match key {
                LogKey::Signing { since, seed } => {
                    let key = seed.key(origin)?;
                    (*since, true, key.verifier().clone())
                }
                LogKey::Retired { since, public } => {
                    (*since, false, VerifierKey::new(origin, KeyKind::Log, *public)?)
                }
            };
            Ok(KnownKey { since, signing, verifier })
        };
        self.keys.iter().map(known).collect()
    }
}

const HEAD: &str = "\
# Portcullis signs the audit logs of all orgs with these keys. Whoever has them can forge a log.
# `portcullis audit key list|rotate|retire`
";

/// A name for keys of which only the public half is wanted.
const ANY: &str = "any";

fn fresh(source: &dyn Random, now: Timestamp) -> LogKey {
    LogKey::Signing { since: now, seed: Seed::new(Zeroizing::new(random::bytes::<32>(source))) }
}

fn key_of(line: &str) -> Option<LogKey> {
    let bytes = |text: &str| -> Option<[u8; 32]> { STANDARD.decode(text).ok()?.try_into().ok() };
    let mut words = line.split_ascii_whitespace();
    let key = match (words.next()?, words.next(), words.next()) {
        ("signing", Some(since), Some(seed)) => {
            let since = Timestamp::parse_rfc3339(since)?;
            LogKey::Signing { since, seed: Seed::new(Zeroizing::new(bytes(seed)?)) }
        }
        ("retired", Some(since), Some(public)) => {
            LogKey::Retired { since: Timestamp::parse_rfc3339(since)?, public: bytes(public)? }
        }
        (seed, None, None) => {
            let since = Timestamp::default();
            LogKey::Signing { since, seed: Seed::new(Zeroizing::new(bytes(seed)?)) }
        }
        _ => return None,
    };
    words.next().is_none().then_some(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Filled(u8);

    impl Random for Filled {
        fn fill(&self, bytes: &mut [u8]) {
            bytes.fill(self.0);
        }
    }

    const NOW: Timestamp = Timestamp::from_micros(1_795_172_535_123_000);

    fn vkeys(ring: &Keyring) -> Vec<(bool, String)> {
        let known = ring.known("log.example/audit/a").unwrap();
        known.into_iter().map(|key| (key.signing, key.verifier.to_string())).collect()
    }

    #[test]
    fn while_a_key_is_replaced_both_sign_and_afterwards_both_are_known() {
        let first = Keyring::generate(&Filled(1), NOW);
        let both = first.rotated(&Filled(2), NOW.plus_seconds(60));
        let settled = both.settled().unwrap();

        assert_eq!(both.signers("a").unwrap().len(), 2);
        assert_eq!(settled.signers("a").unwrap().len(), 1);
        let old = vkeys(&first).remove(0).1;
        let new = vkeys(&both).remove(1).1;
        assert_eq!(vkeys(&both), [(true, old.clone()), (true, new.clone())]);
        assert_eq!(vkeys(&settled), [(false, old), (true, new)]);
        assert_eq!(settled.settled().unwrap_err(), KeyringError::Newest);
    }

    #[test]
    fn each_log_is_signed_under_its_own_name() {
        let ring = Keyring::generate(&Filled(1), NOW);

        for origin in ["a", "b", "a"] {
            let fresh = SigningKey::new(origin, KeyKind::Log, &[1; 32]).unwrap();

            let signer = ring.signers(origin).unwrap().remove(0);

            assert_eq!(signer.verifier(), fresh.verifier());
        }
    }

    #[test]
    fn a_ring_survives_its_file_and_its_debug_tells_nothing() {
        let ring = Keyring::generate(&Filled(1), NOW).rotated(&Filled(2), NOW).settled().unwrap();

        let text = ring.text();
        let read = Keyring::parse(text.expose()).unwrap();

        assert_eq!(vkeys(&read), vkeys(&ring));
        assert_eq!(read.text().expose(), text.expose());
        assert!(!text.expose().contains(&STANDARD.encode([1; 32])), "a retired seed is gone");
        assert!(!format!("{ring:?}").contains("02"));
        let bare = Keyring::parse(&STANDARD.encode([2; 32])).unwrap();
        assert_eq!(vkeys(&bare)[0].1, vkeys(&ring)[1].1);
    }

    #[test]
    fn what_is_no_ring_is_refused_without_an_echo() {
        let retired = format!("retired 2026-11-20T11:02:15.123Z {}", STANDARD.encode([1; 32]));
        let seed = STANDARD.encode([1; 32]);
        for (text, expected) in [
            ("", KeyringError::Empty),
            ("# nothing\n\n", KeyringError::Empty),
            (retired.as_str(), KeyringError::Empty),
            ("hunter2", KeyringError::Line(1)),
            ("# a\nsigning now AAAA", KeyringError::Line(2)),
            ("signing 2026-11-20T11:02:15.123Z AAAA", KeyringError::Line(1)),
            (&format!("signing 2026-11-20T11:02:15.123Z {seed} x"), KeyringError::Line(1)),
            (&format!("{seed}\n").repeat(65), KeyringError::TooMany),
        ] {
            let error = Keyring::parse(text).unwrap_err();

            assert_eq!(error, expected, "{text}");
            assert!(!error.to_string().contains("hunter2"));
        }
    }
}
