//! Since when each version of a tool is known.

use portcullis_core::{clock::Timestamp, id::OrgId, tool::ToolId};

use crate::{
    Store,
    db::{change, read},
    error::StoreError,
};

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
        change!(self, org, |tx| {
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

    /// Keeps a list of tools of an org under its digest.
    pub async fn keep_tool_list(
        &self,
        org: OrgId,
        digest: &str,
        definitions: &str,
    ) -> Result<(), StoreError> {
        change!(self, org, |tx| {
            sqlx::query(
                "INSERT INTO tool_lists (org_id, digest, definitions) VALUES ($1, $2, $3) \
                 ON CONFLICT (org_id, digest) DO NOTHING",
            )
            .bind(org.to_string())
            .bind(digest)
            .bind(definitions)
            .execute(&mut *tx)
            .await?;
        });
        Ok(())
    }

    /// The list of tools of the org with this digest.
    pub async fn find_tool_list(
        &self,
        org: OrgId,
        digest: &str,
    ) -> Result<Option<String>, StoreError> {
        let found = read!(self, org, |conn| {
            sqlx::query_scalar(
                "SELECT definitions FROM tool_lists WHERE org_id = $1 AND digest = $2",
            )
            .bind(org.to_string())
            .bind(digest)
            .fetch_optional(&mut *conn)
            .await?
        });
        Ok(found)
    }
}
