//! Sealed values. What is in them and how they are sealed is not known here.

use async_recursion::async_recursion as boxed;
use portcullis_core::id::OrgId;

use crate::{
    Store,
    db::{Found, Readable, all, change, find, parse, read, row, run},
    error::StoreError,
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

row!(SecretRow {
    org_id: String,
    kind: String,
    row_id: String,
    field: String,
    key_id: String,
    sealed: Vec<u8>,
});

impl From<SecretRow> for SealedSecret {
    fn from(row: SecretRow) -> Self {
        let SecretRow { org_id, kind, row_id, field, key_id, sealed } = row;
        Self { org_id, kind, row_id, field, key_id, sealed }
    }
}

impl Readable for SecretRow {
    const TABLE: &'static str = "secrets";
    type Record = SealedSecret;

    fn read(self) -> Result<SealedSecret, StoreError> {
        Ok(self.into())
    }
}

/// Writes a secret within a transaction, over the one that is there.
macro_rules! put_secret {
    ($tx:ident, $secret:expr) => {{
        let secret: &$crate::secrets::SealedSecret = $secret;
        $crate::db::run!($tx, $crate::secrets::PUT => &secret.org_id, &secret.kind,
            &secret.row_id, &secret.field, &secret.key_id, secret.sealed.as_slice())
    }};
}

/// Deletes all secrets of a thing within a transaction.
macro_rules! drop_secrets {
    ($tx:ident, $org:expr, $kind:expr, $row:expr) => {
        $crate::db::run!(
            $tx, "DELETE FROM secrets WHERE org_id = $1 AND kind = $2 AND row_id = $3" => $org,
            $kind, $row
        )
    };
}

pub(crate) use {drop_secrets, put_secret};

pub(crate) const PUT: &str = "
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
        change!(self, owner(&secret.org_id)?, |tx| {
            put_secret!(tx, secret);
        });
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
        let found: Option<SecretRow> = read!(self, unqueued owner(org)?, |conn| {
            find!(
                conn, "SELECT * FROM secrets \
                 WHERE org_id = $1 AND kind = $2 AND row_id = $3 AND field = $4"
                => org, kind, row, field
            )
        });
        Ok(found.map(Into::into))
    }

    /// Number of values sealed under each key, of all tenants: for the operator, and to
    /// refuse a start without a key that is needed.
    #[boxed]
    pub async fn count_secrets(&self) -> Result<Vec<(String, u64)>, StoreError> {
        let found: Vec<(String, i64)> = read!(self, installation, |conn| {
            all!(conn, "SELECT key_id, COUNT(*) FROM secrets GROUP BY key_id ORDER BY key_id")
        });
        Ok(found.into_iter().map(|(key, count)| (key, count.unsigned_abs())).collect())
    }

    /// Some values that say of themselves that they are sealed under this key, of all tenants.
    #[boxed]
    pub async fn secrets_under(
        &self,
        key_id: &str,
        limit: u32,
    ) -> Result<Vec<SealedSecret>, StoreError> {
        let found: Vec<Found<SecretRow>> = read!(self, installation, |conn| {
            all!(conn, "SELECT * FROM secrets WHERE key_id = $1 LIMIT $2" => key_id, limit)
        });
        Ok(self.readable(found))
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
        let found: Vec<Found<SecretRow>> = read!(self, installation, |conn| {
            all!(
                conn, "SELECT * FROM secrets WHERE key_id <> $1 \
                 AND (org_id, kind, row_id, field) > ($2, $3, $4, $5) \
                 ORDER BY org_id, kind, row_id, field LIMIT $6"
                => key_id, place(|it| &it.org_id), place(|it| &it.kind), place(|it| &it.row_id),
                place(|it| &it.field), limit
            )
        });
        Ok(self.readable(found))
    }

    /// Puts `new` in the place of `old`, unless another value was written there meanwhile.
    #[boxed]
    pub async fn swap_secret(
        &self,
        old: &SealedSecret,
        new: &SealedSecret,
    ) -> Result<bool, StoreError> {
        let swapped = change!(self, owner(&old.org_id)?, |tx| {
            run!(
                tx, "UPDATE secrets SET key_id = $6, sealed = $7 WHERE org_id = $1 AND kind = $2 \
                 AND row_id = $3 AND field = $4 AND sealed = $5"
                => &old.org_id, &old.kind, &old.row_id, &old.field, old.sealed.as_slice(),
                &new.key_id, new.sealed.as_slice()
            )
        });
        Ok(swapped > 0)
    }
}
