//! Since when each version of a tool is known.

use portcullis_core::{clock::Timestamp, id::OrgId, tool::ToolId};

use crate::{Store, db::change, error::StoreError};

impl Store {
    /// Remembers these versions of tools and gives, in the same order, when the org first saw
    /// each: `now` for those that are new, the same moment as ever for the others.
    pub async fn tool_seen(
        &self,
        org: OrgId,
        versions: &[(ToolId, String)],
        now: Timestamp,
    ) -> Result<Vec<Timestamp>, StoreError> {
        let mut seen = Vec::with_capacity(versions.len());
        change!(self, |tx| {
            for (tool, version) in versions {
                let first: i64 = sqlx::query_scalar(
                    "INSERT INTO tool_versions (org_id, tool_id, version, seen_at) \
                     VALUES ($1, $2, $3, $4) ON CONFLICT (org_id, tool_id, version) \
                     DO UPDATE SET seen_at = tool_versions.seen_at RETURNING seen_at",
                )
                .bind(org.to_string())
                .bind(tool.as_str())
                .bind(version)
                .bind(now.as_micros())
                .fetch_one(&mut *tx)
                .await?;
                seen.push(Timestamp::from_micros(first));
            }
        });
        Ok(seen)
    }
}
