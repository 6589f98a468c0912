//! The Merkle tree of an org's log, in tiles: what a proof is made of.
//!
//! **Invariant:** nothing here is removed with old events, and nothing is changed: a tile only
//! grows.

use async_recursion::async_recursion as boxed;
use portcullis_core::{
    audit::{
        Hash, Plan,
        tiles::{TileId, Tiles},
    },
    id::OrgId,
};

use crate::{
    db::{Store, read},
    error::StoreError,
};

/// Stores tiles within a transaction.
macro_rules! put_tiles {
    ($tx:ident, $org:expr, $tiles:expr) => {
        for (id, hashes) in $tiles {
            $crate::db::run!(
                $tx, $crate::audit::tree::PUT => $org, i64::from(id.level),
                $crate::audit::tree::number(id.index), hashes.as_slice()
            );
        }
    };
}

/// Reads the tiles with these ids, as far as there are any, from a connection of either database.
macro_rules! read_tiles {
    ($conn:ident, $org:expr, $ids:expr) => {{
        let mut tiles = portcullis_core::audit::tiles::Tiles::default();
        for id in $ids {
            let tile: Option<Vec<u8>> = $crate::db::find!(
                $conn, scalar $crate::audit::tree::TILE => $org, i64::from(id.level),
                $crate::audit::tree::number(id.index)
            );
            if let Some(hashes) = tile {
                tiles.insert(id, hashes);
            }
        }
        tiles
    }};
}

pub(crate) use {put_tiles, read_tiles};

pub(crate) const PUT: &str = "
INSERT INTO audit_tiles (org_id, level, tile, hashes) VALUES ($1, $2, $3, $4)
ON CONFLICT (org_id, level, tile) DO UPDATE SET hashes = excluded.hashes";

pub(crate) const TILE: &str = "
SELECT hashes FROM audit_tiles WHERE org_id = $1 AND level = $2 AND tile = $3";

impl Store {
    /// The hashes of a proof. Reads at most two tiles for each factor of 256 of the log's size.
    #[boxed]
    pub async fn prove(&self, org: OrgId, plan: &Plan) -> Result<Vec<Hash>, StoreError> {
        let tiles = self.tiles(org, TileId::of_plans(&[plan])).await?;
        plan.hashes(&tiles).map_err(|_| StoreError::Corrupt("audit_tiles"))
    }

    /// The root of the first `size` leaves, as the stored tree has it.
    #[boxed]
    pub async fn root_at(&self, org: OrgId, size: u64) -> Result<Hash, StoreError> {
        let plan = Plan::root(size);
        let tiles = self.tiles(org, TileId::of_plans(&[&plan])).await?;
        plan.hash(&tiles).map_err(|_| StoreError::Corrupt("audit_tiles"))
    }

    /// The tiles with these ids, as far as there are any: what several proofs are made of.
    pub async fn tiles(
        &self,
        org: OrgId,
        ids: impl IntoIterator<Item = TileId>,
    ) -> Result<Tiles, StoreError> {
        let id = org.to_string();
        Ok(read!(self, unqueued org, |conn| read_tiles!(conn, &id, ids)))
    }
}

/// Database type of sizes and indices. No tree of ours is too large for it.
pub(crate) fn number(size: u64) -> i64 {
    i64::try_from(size).unwrap_or(i64::MAX)
}

pub(crate) fn size_of(stored: i64) -> Result<u64, StoreError> {
    u64::try_from(stored).map_err(|_| StoreError::Corrupt("audit_heads.size"))
}
