//! Compares the logs of both sides.

use portcullis_core::audit::{Plan, tiles::TileId};

use super::{MovedLog, MovingError};
use crate::{
    audit::tree::{read_tiles, size_of},
    db::{Session, parse, row},
    error::StoreError,
};

row!(HeadRow { org_id: String, size: i64, tree_size: i64 });

const HEADS: &str = "SELECT org_id, size, tree_size FROM audit_heads ORDER BY org_id";

/// The logs as the tiles of a connection have them, each with the size of its tree.
macro_rules! logs {
    ($conn:ident) => {{
        let heads: Vec<HeadRow> = $crate::db::all!($conn, HEADS);
        let mut logs = Vec::with_capacity(heads.len());
        for head in heads {
            let plan = Plan::root(size_of(head.tree_size)?);
            let tiles = read_tiles!($conn, &head.org_id, TileId::of_plans(&[&plan]));
            let root = plan.hash(&tiles).map_err(|_| StoreError::Corrupt("audit_tiles"))?;
            let org_id = parse(&head.org_id, "audit_heads.org_id")?;
            let log = MovedLog { org_id, size: size_of(head.size)?, root };
            logs.push((log, head.tree_size));
        }
        logs
    }};
}

/// The logs, which are the same on both sides; or the first that is not.
pub(super) async fn compare(
    source: &mut Session,
    target: &mut Session,
) -> Result<Vec<MovedLog>, MovingError> {
    let before = logs!(source);
    let after = logs!(target);
    let differs = before.iter().find(|log| !after.contains(log));
    let differs = differs.or_else(|| after.iter().find(|log| !before.contains(log)));
    match differs {
        Some((log, _)) => Err(MovingError::Log(log.org_id.to_string())),
        None => Ok(before.into_iter().map(|(log, _)| log).collect()),
    }
}
