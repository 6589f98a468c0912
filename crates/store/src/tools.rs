//! Since when each version of a tool is known.

use portcullis_core::{
    capability::{CapabilityId, CapabilityKind},
    clock::Timestamp,
    id::{OrgId, ProviderId},
};

use crate::{
    db::{Store, boxed, change, find, one, read, run},
    error::StoreError,
};

/// A list of tools as a connection gave it.
#[derive(Debug, Clone, Copy)]
pub struct NewToolList<'a> {
    pub digest: &'a str,
    /// The definitions, as JSON.
    pub definitions: &'a str,
    pub tools: u32,
}

impl Store {
    /// Remembers these versions of tools and gives, in the same order, when each was first seen:
    /// `now` for those that are new, the same moment as ever for the others. `org` is the one
    /// that the provider is kept for; `None` is a provider that every org shares. All are of
    /// one provider, of which of each kind `most` versions are remembered beside these: older ones are forgotten.
    #[boxed]
    pub async fn tool_seen(
        &self,
        org: Option<OrgId>,
        versions: &[(CapabilityId, String)],
        most: u32,
        now: Timestamp,
    ) -> Result<Vec<Timestamp>, StoreError> {
        let Some((tool, _)) = versions.first() else { return Ok(Vec::new()) };
        let mut seen = Vec::with_capacity(versions.len());
        let scope = org.map_or_else(String::new, |org| org.to_string());
        // What follows a colon in ASCII ends the range.
        let ranges = CapabilityKind::GOVERNED.map(|kind| {
            let start = format!("{}{}", kind.prefix(), tool.provider());
            (format!("{start}:"), format!("{start};"))
        });
        let here: Vec<String> =
            versions.iter().map(|(tool, version)| format!("{tool} {version}")).collect();
        let here = serde_json::json!(here).to_string();
        // Those that were seen first, beyond a number of them and beside those listed now.
        let forget = format!(
            "DELETE FROM capability_versions WHERE org_id = $1 AND capability_id > $2 AND capability_id < $3 \
             AND (capability_id || ' ' || version) IN (SELECT capability_id || ' ' || version \
             FROM capability_versions WHERE org_id = $1 AND capability_id > $2 AND capability_id < $3 \
             AND (capability_id || ' ' || version) NOT IN {} \
             ORDER BY seen_at DESC, capability_id, version LIMIT 1000000 OFFSET $5)",
            self.db.texts("$4")
        );
        change!(self, org, |tx| {
            for (tool, version) in versions {
                let first: Timestamp = one!(
                    tx, scalar "INSERT INTO capability_versions (org_id, capability_id, version, seen_at) \
                     VALUES ($1, $2, $3, $4) ON CONFLICT (org_id, capability_id, version) \
                     DO UPDATE SET seen_at = capability_versions.seen_at RETURNING seen_at"
                    => &scope, tool.as_str(), version, now
                );
                seen.push(first);
            }
            for (from, to) in &ranges {
                run!(tx, forget.clone() => &scope, from, to, &here, most);
            }
        });
        Ok(seen)
    }

    /// Remembers which tools a connection lists: the list is kept under its digest, once for all
    /// connections of the org. The one it listed before is forgotten unless another one lists it.
    /// `false` if nothing changed, or there is no such connection.
    pub async fn keep_tool_list(
        &self,
        org: OrgId,
        id: ProviderId,
        list: &NewToolList<'_>,
    ) -> Result<bool, StoreError> {
        let scope = org.to_string();
        Ok(change!(self, org, |tx| {
            let before: Option<Option<String>> = find!(
                tx, scalar "SELECT tool_list FROM providers WHERE org_id = $1 AND id = $2" =>
                &scope, id
            );
            let Some(before) = before else { return Ok(false) };
            run!(tx, KEEP => &scope, list.digest, list.definitions);
            let changed = run!(
                tx, "UPDATE providers SET tool_list = $3, tools = $4 \
                 WHERE org_id = $1 AND id = $2 AND (tool_list IS NULL OR tool_list <> $3)"
                => &scope, id, list.digest, list.tools
            );
            if let Some(before) = before.filter(|before| before != list.digest) {
                run!(tx, FORGET_LIST => &scope, before);
            }
            changed > 0
        }))
    }

    /// The list of tools of the org with this digest.
    #[boxed]
    pub async fn find_tool_list(
        &self,
        org: OrgId,
        digest: &str,
    ) -> Result<Option<String>, StoreError> {
        let find = "SELECT definitions FROM capability_lists WHERE org_id = $1 AND digest = $2";
        Ok(read!(self, unqueued org, |conn| find!(conn, scalar find => org, digest)))
    }
}

const KEEP: &str = "
INSERT INTO capability_lists (org_id, digest, definitions) VALUES ($1, $2, $3)
ON CONFLICT (org_id, digest) DO UPDATE SET definitions = excluded.definitions
WHERE capability_lists.definitions <> excluded.definitions";

const FORGET_LIST: &str = "
DELETE FROM capability_lists WHERE org_id = $1 AND digest = $2
    AND NOT EXISTS (SELECT 1 FROM providers WHERE org_id = $1 AND tool_list = $2)";
