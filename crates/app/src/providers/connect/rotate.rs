//! Rotation of the key-encryption key: every data key is wrapped anew, no secret is opened.

use portcullis_core::{
    random::Random,
    vault::{FieldAddress, Vault, VaultError},
};
use portcullis_store::{SealedSecret, Store, StoreError};

/// Rows read at once.
const BATCH: u32 = 200;
/// Rounds after which something else keeps writing under old keys.
const MAX_ROUNDS: usize = 1_000_000;

/// Reason that a rotation stopped; what was done stays, and doing it again goes on from there.
#[derive(Debug, thiserror::Error)]
pub enum RotateError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the secret `{field}` of the {kind} `{row}`: {error}")]
    Secret { kind: String, row: String, field: String, error: VaultError },
}

/// Wraps everything that is sealed under another key under the first one of `vault`; gives how many
/// secrets that were. Running nodes read both meanwhile. Fails, when all others are done, on a
/// secret that cannot be wrapped anew.
pub async fn rotate_secrets(
    store: &Store,
    vault: &Vault,
    random: &dyn Random,
) -> Result<u64, RotateError> {
    let mut rewrapped = 0;
    for _ in 0..MAX_ROUNDS {
        let (some, failed) = rotate_all(store, vault, random).await?;
        rewrapped += some;
        if some == 0 {
            return failed.map_or(Ok(rewrapped), Err);
        }
    }
    Ok(rewrapped)
}

/// One round: how many were wrapped anew, and the first that cannot be.
async fn rotate_all(
    store: &Store,
    vault: &Vault,
    random: &dyn Random,
) -> Result<(u64, Option<RotateError>), StoreError> {
    let mut rewrapped = 0;
    let mut failed = None;
    let mut after: Option<SealedSecret> = None;
    loop {
        let batch = store.secrets_not_under(vault.primary(), after.as_ref(), BATCH).await?;
        for old in &batch {
            match wrapped_anew(vault, old, random) {
                // Written by another node meanwhile: the next round looks at that.
                Ok(new) => rewrapped += u64::from(store.swap_secret(old, &new).await?),
                Err(error) => {
                    failed.get_or_insert(error);
                }
            }
        }
        let Some(last) = batch.into_iter().next_back() else { return Ok((rewrapped, failed)) };
        after = Some(last);
    }
}

fn wrapped_anew(
    vault: &Vault,
    old: &SealedSecret,
    random: &dyn Random,
) -> Result<SealedSecret, RotateError> {
    let place =
        FieldAddress { table: &old.kind, org: &old.org_id, row: &old.row_id, field: &old.field };
    match vault.rewrap(place, &old.sealed, random) {
        Ok(Some(new)) => Ok(SealedSecret { key_id: new.key_id, sealed: new.bytes, ..old.clone() }),
        // Only its row says otherwise.
        Ok(None) => Ok(SealedSecret { key_id: vault.primary().to_owned(), ..old.clone() }),
        Err(error) => Err(RotateError::Secret {
            kind: old.kind.clone(),
            row: old.row_id.clone(),
            field: old.field.clone(),
            error,
        }),
    }
}
