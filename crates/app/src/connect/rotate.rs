//! Rotation of the key-encryption key: every data key is wrapped anew, no secret is opened.

use portcullis_core::{
    random::Random,
    vault::{Place, Vault, VaultError},
};
use portcullis_store::{SealedSecret, Store, StoreError};

/// Rows read at once.
const BATCH: u32 = 200;
/// Rounds after which something else keeps writing under old keys.
const MAX_ROUNDS: usize = 1_000_000;

/// Why a rotation stopped; what was done stays, and doing it again goes on from there.
#[derive(Debug, thiserror::Error)]
pub enum RotateError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A secret cannot be wrapped anew.
    #[error("the secret `{field}` of the {kind} `{row}`: {error}")]
    Secret {
        /// What kind of thing it belongs to.
        kind: String,
        /// Which of them.
        row: String,
        /// What it is of that thing.
        field: String,
        /// Why.
        error: VaultError,
    },
}

/// Wraps everything that is sealed under another key under the first one of `vault`; gives how
/// many secrets that were. Running nodes read both meanwhile.
pub async fn rotate_secrets(
    store: &Store,
    vault: &Vault,
    random: &dyn Random,
) -> Result<u64, RotateError> {
    let mut rewrapped = 0;
    for _ in 0..MAX_ROUNDS {
        let batch = store.secrets_not_under(vault.primary(), BATCH).await?;
        if batch.is_empty() {
            break;
        }
        for old in batch {
            let place =
                Place { table: &old.kind, org: &old.org_id, row: &old.row_id, field: &old.field };
            let new = vault.rewrap(place, &old.sealed, random);
            let new = new.map_err(|error| RotateError::Secret {
                kind: old.kind.clone(),
                row: old.row_id.clone(),
                field: old.field.clone(),
                error,
            })?;
            let Some(new) = new else { continue };
            let new = SealedSecret { key_id: new.key_id, sealed: new.bytes, ..old.clone() };
            // Written by somebody else meanwhile: the next round looks at that.
            rewrapped += u64::from(store.swap_secret(&old, &new).await?);
        }
    }
    Ok(rewrapped)
}
