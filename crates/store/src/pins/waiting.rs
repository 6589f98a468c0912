//! Tools of an org that wait to be accepted, page by page.

use async_recursion::async_recursion as boxed;
use portcullis_core::{id::OrgId, tool::ToolId};

use super::{
    Pin,
    rows::{PinRow, scope_text},
};
use crate::{
    db::{Found, Store, all, read},
    error::StoreError,
};

impl Store {
    /// Some pins of which a definition waits, of the org's own providers and of shared ones, by tool
    /// id and owner, beyond this one.
    #[boxed]
    pub async fn page_waiting(
        &self,
        org: OrgId,
        after: Option<(&ToolId, Option<OrgId>)>,
        limit: u32,
    ) -> Result<Vec<Pin>, StoreError> {
        let tool = after.map_or("", |(tool, _)| tool.as_str());
        let owner = after.map_or_else(String::new, |(_, owner)| scope_text(owner));
        // What every org shares is outside the scope of any.
        let rows: Vec<Found<PinRow>> =
            read!(self, installation, |conn| all!(conn, WAITING => org, tool, &owner, limit));
        Ok(self.readable(rows))
    }
}

const WAITING: &str = "
SELECT org_id, tool_id, version, pinned_at, found_version, found_at, told_version FROM tool_pins
WHERE org_id IN ('', $1) AND found_version IS NOT NULL AND (tool_id, org_id) > ($2, $3)
ORDER BY tool_id, org_id LIMIT $4";
