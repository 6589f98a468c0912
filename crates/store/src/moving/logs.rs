//! Compares the logs of both sides.

use portcullis_core::{
    audit::{Plan, tiles::TileId},
    id::OrgId,
};

use super::{MovedLog, MovingError};
use crate::{
    audit::tree::{read_tiles, size_of},
    db::{Session, all},
    error::StoreError,
};

const HEADS: &str = "SELECT org_id, size, tree_size FROM audit_heads ORDER BY org_id";

/// The logs as the tiles of a database have them, each with the size of its tree.
async fn logs(conn: &mut Session) -> Result<Vec<(MovedLog, i64)>, StoreError> {
    let heads: Vec<(OrgId, i64, i64)> = all!(conn, HEADS);
    let mut logs = Vec::with_capacity(heads.len());
    for (org_id, size, tree_size) in heads {
        let plan = Plan::root(size_of(tree_size)?);
        let tiles = read_tiles!(conn, org_id, TileId::of_plans(&[&plan]));
        let root = plan.hash(&tiles).map_err(|_| StoreError::Corrupt("audit_tiles"))?;
        logs.push((MovedLog { org_id, size: size_of(size)?, root }, tree_size));
    }
    Ok(logs)
}

/// The logs, which are the same on both sides; or the first that is not.
pub(super) async fn compare(
    source: &mut Session,
    target: &mut Session,
) -> Result<Vec<MovedLog>, MovingError> {
    let before = logs(source).await?;
    let after = logs(target).await?;
    let differs = before.iter().find(|log| !after.contains(log));
    let differs = differs.or_else(|| after.iter().find(|log| !before.contains(log)));
    match differs {
        Some((log, _)) => Err(MovingError::Log(log.org_id.to_string())),
        None => Ok(before.into_iter().map(|(log, _)| log).collect()),
    }
}
