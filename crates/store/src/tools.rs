//! Since when each version of a tool is known.

use portcullis_core::{clock::Timestamp, id::OrgId, tool::ToolId};

use crate::{Store, db::change, error::StoreError};

impl Store {
    /// Remembers these versions of tools and gives, in the same order, when each was first seen:
    /// `now` for those that are new, the same moment as ever for the others. `org` is the one
    /// that the provider is kept for; `None` is a provider that every org shares.
    pub async fn tool_seen(
        &self,
        org: Option<OrgId>,
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
                .bind(org.map_or_else(String::new, |org| org.to_string()))
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
