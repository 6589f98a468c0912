//! Sealed values. What is in them and how they are sealed is not known here.

use portcullis_core::id::OrgId;

use crate::{
    db::{Session, Store, all, boxed, change, changed, find, list, parse, read, record, run},
    error::{DriverError, StoreError},
};

/// A sealed value at its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealedSecret {
    /// The org; empty for what belongs to the installation.
    pub org_id: String,
    pub kind: String,
    pub row_id: String,
    pub field: String,
    pub key_id: String,
    pub sealed: Vec<u8>,
}

record!(SealedSecret in "secrets", |row| org_id, kind, row_id, field, key_id, sealed);

/// Writes a secret within a transaction, over the one that is there.
pub(crate) async fn put_secret(tx: &mut Session, secret: &SealedSecret) -> Result<(), DriverError> {
    let SealedSecret { org_id, kind, row_id, field, key_id, sealed } = secret;
    run!(tx, PUT => org_id, kind, row_id, field, key_id, sealed);
    Ok(())
}

/// Deletes all secrets of a thing within a transaction.
pub(crate) async fn drop_secrets(
    tx: &mut Session,
    org: &str,
    kind: &str,
    row: &str,
) -> Result<(), DriverError> {
    run!(tx, "DELETE FROM secrets WHERE org_id = $1 AND kind = $2 AND row_id = $3" => org, kind, row);
    Ok(())
}

const PUT: &str = "
INSERT INTO secrets (org_id, kind, row_id, field, key_id, sealed) VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (org_id, kind, row_id, field)
DO UPDATE SET key_id = excluded.key_id, sealed = excluded.sealed";

/// Org; `None` is the installation.
fn owner(org: &str) -> Result<Option<OrgId>, StoreError> {
    (!org.is_empty()).then(|| parse(org, "secrets.org_id")).transpose()
}

impl Store {
    /// Keeps a sealed value in the place of the one that is there.
    #[boxed]
    pub async fn put_secret(&self, secret: &SealedSecret) -> Result<(), StoreError> {
        change!(self, owner(&secret.org_id)?, |tx| put_secret(&mut tx, secret).await?);
        Ok(())
    }

    /// The sealed value of a thing in the org; an empty org is the installation.
    #[boxed]
    pub async fn find_secret(
        &self,
        org: &str,
        kind: &str,
        row: &str,
        field: &str,
    ) -> Result<Option<SealedSecret>, StoreError> {
        let find = "SELECT * FROM secrets \
                    WHERE org_id = $1 AND kind = $2 AND row_id = $3 AND field = $4";
        Ok(read!(self, unqueued owner(org)?, |conn| find!(conn, find => org, kind, row, field)))
    }

    /// Number of values sealed under each key, of all tenants: for the operator, and to
    /// refuse a start without a key that is needed.
    #[boxed]
    pub async fn count_secrets(&self) -> Result<Vec<(String, u64)>, StoreError> {
        Ok(read!(self, installation, |conn| {
            all!(conn, "SELECT key_id, COUNT(*) FROM secrets GROUP BY key_id ORDER BY key_id")
        }))
    }

    /// Some values that say of themselves that they are sealed under this key, of all tenants.
    #[boxed]
    pub async fn secrets_under(
        &self,
        key_id: &str,
        limit: u32,
    ) -> Result<Vec<SealedSecret>, StoreError> {
        let list = "SELECT * FROM secrets WHERE key_id = $1 LIMIT $2";
        Ok(list!(self, installation, list => key_id, limit))
    }

    /// Some values that are sealed under another key than this one, of all tenants, in the order of
    /// their places and beyond this one. No key has an empty id: that gives all values.
    #[boxed]
    pub async fn secrets_not_under(
        &self,
        key_id: &str,
        after: Option<&SealedSecret>,
        limit: u32,
    ) -> Result<Vec<SealedSecret>, StoreError> {
        let place = |part: fn(&SealedSecret) -> &str| after.map(part).unwrap_or_default();
        let list = "SELECT * FROM secrets WHERE key_id <> $1 \
                    AND (org_id, kind, row_id, field) > ($2, $3, $4, $5) \
                    ORDER BY org_id, kind, row_id, field LIMIT $6";
        Ok(list!(self, installation, list => key_id, place(|it| &it.org_id), place(|it| &it.kind),
            place(|it| &it.row_id), place(|it| &it.field), limit))
    }

    /// Puts `new` in the place of `old`, unless another value was written there meanwhile.
    #[boxed]
    pub async fn swap_secret(
        &self,
        old: &SealedSecret,
        new: &SealedSecret,
    ) -> Result<bool, StoreError> {
        let swap = "UPDATE secrets SET key_id = $6, sealed = $7 WHERE org_id = $1 AND kind = $2 \
                    AND row_id = $3 AND field = $4 AND sealed = $5";
        Ok(changed!(self, owner(&old.org_id)?, swap => &old.org_id, &old.kind, &old.row_id,
            &old.field, &old.sealed, &new.key_id, &new.sealed)
            > 0)
    }
}
