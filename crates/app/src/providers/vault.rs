//! The keys that seal secrets, as this node knows them.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use arc_swap::ArcSwap;
use portcullis_core::{
    clock::Timestamp,
    refusal::{Refusal, Unavailable},
    vault::{FieldAddress, Sealed, Vault, VaultError},
};
use portcullis_store::{SealedSecret, UnreadableRow};
use zeroize::Zeroizing;

use super::Providers;

/// Seconds between two looks at the source of the keys.
const RELOAD_SECONDS: i64 = 5;

/// Reads the keys anew.
pub type KeySource = dyn Fn() -> Result<Vault, String> + Send + Sync;

/// The ring of keys, read again when a value comes under one that it does not hold: the operator
/// may have rotated while the node runs.
pub struct Vaults {
    ring: ArcSwap<Vault>,
    source: Box<KeySource>,
    looked_at: Mutex<Timestamp>,
}

impl fmt::Debug for Vaults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Vaults").field(&self.ring.load()).finish()
    }
}

impl Vaults {
    /// The keys that `source` gives now. Fails if there are none.
    pub fn open(source: Box<KeySource>) -> Result<Self, String> {
        let ring = ArcSwap::from_pointee(source()?);
        Ok(Self { ring, source, looked_at: Mutex::default() })
    }

    /// The ids of the keys, the one that seals first.
    #[must_use]
    pub fn ids(&self) -> Vec<String> {
        self.ring.load().ids().map(str::to_owned).collect()
    }

    /// True if a secret was sealed under a key that is not there.
    #[must_use]
    pub fn lack_key_of(&self, secret: &SealedSecret) -> bool {
        self.ring().missing_key(&secret.sealed).is_some()
    }

    /// The ring as it is now.
    pub(crate) fn ring(&self) -> Arc<Vault> {
        self.ring.load_full()
    }

    /// Looks at the source, unless it was looked at a moment ago.
    pub(crate) fn reload(&self, now: Timestamp) {
        {
            let mut last = self.looked_at.lock().unwrap_or_else(PoisonError::into_inner);
            if now < last.plus_seconds(RELOAD_SECONDS) {
                return;
            }
            *last = now;
        }
        match (self.source)() {
            Ok(ring) if ring.ids().eq(self.ring.load().ids()) => {}
            Ok(ring) => {
                tracing::info!(primary = ring.primary(), "other keys seal and open secrets now");
                self.ring.store(Arc::new(ring));
            }
            Err(error) => tracing::error!(%error, "the keys of the vault cannot be read"),
        }
    }
}

/// Place of a secret in the store.
#[derive(Debug, Clone)]
pub(crate) struct SecretPlace<'a> {
    pub(crate) org: &'a str,
    pub(crate) kind: &'static str,
    pub(crate) row: &'a str,
    pub(crate) field: &'static str,
}

impl Providers {
    /// Seals a value for its place.
    pub(crate) fn sealed(
        &self,
        kept: &SecretPlace<'_>,
        plain: &[u8],
    ) -> Result<SealedSecret, Refusal> {
        let place =
            FieldAddress { table: kept.kind, org: kept.org, row: kept.row, field: kept.field };
        let sealed = self.vaults.ring().seal(place, plain, &*self.base.random);
        let Sealed { key_id, bytes } = sealed.map_err(|error| failed(&error))?;
        Ok(SealedSecret {
            org_id: kept.org.to_owned(),
            kind: kept.kind.to_owned(),
            row_id: kept.row.to_owned(),
            field: kept.field.to_owned(),
            key_id,
            sealed: bytes,
        })
    }

    /// Opens a value that was found at its place; one that does not open is told by name.
    pub(crate) fn opened(&self, secret: &SealedSecret) -> Result<Zeroizing<Vec<u8>>, Refusal> {
        self.open(secret).map_err(|error| {
            self.base.store.left_out(unopened(secret, &error));
            Refusal::Unavailable { reason: Unavailable::Store }
        })
    }

    /// The same, for callers that go on without it.
    pub(crate) fn open(&self, secret: &SealedSecret) -> Result<Zeroizing<Vec<u8>>, VaultError> {
        let place = FieldAddress {
            table: &secret.kind,
            org: &secret.org_id,
            row: &secret.row_id,
            field: &secret.field,
        };
        match self.vaults.ring().open(place, &secret.sealed) {
            Err(VaultError::UnknownKey(_)) => {
                self.vaults.reload(self.base.clock.now());
                let ring = self.vaults.ring();
                let opened = ring.open(place, &secret.sealed);
                // It was sealed under a key that is here: what names another one was changed.
                let is_here = ring.ids().any(|id| id == secret.key_id);
                opened.map_err(|error| if is_here { VaultError::Damaged } else { error })
            }
            other => other,
        }
    }
}

/// Names a secret that does not open, and says why; nothing of what is in it.
pub(crate) fn unopened(secret: &SealedSecret, error: &VaultError) -> UnreadableRow {
    let SealedSecret { org_id, kind, row_id, field, .. } = secret;
    let row = format!("org_id {org_id} kind {kind} row_id {row_id} field {field}");
    UnreadableRow { table: "secrets", row, why: error.to_string() }
}

fn failed(error: &VaultError) -> Refusal {
    tracing::error!(%error, "a secret cannot be sealed");
    Refusal::Unavailable { reason: Unavailable::Store }
}
