//! Which definition of each tool was accepted, and which other one its upstream gives now.
//!
//! A pin belongs to the org that the provider is kept for, or, for a provider that every org
//! shares, to the installation (`None`). **Invariant:** no function removes a pin, and none changes
//! what is accepted except [`Store::pin_tools`], for tools that were never accepted, and
//! [`Store::accept_tool`], for the very definition that is named.

use portcullis_core::{clock::Timestamp, id::OrgId, tool::ToolId};

use crate::{
    Store,
    db::{change, parse, read, row},
    error::StoreError,
};

/// A tool's definition as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definition {
    /// Its `sha256:…`.
    pub version: String,
    /// The definition as JSON.
    pub text: String,
    /// When it was accepted, or first found.
    pub at: Timestamp,
}

/// A definition that an upstream gives.
#[derive(Debug, Clone)]
pub struct Told {
    /// Of which tool.
    pub tool: ToolId,
    /// Its `sha256:…`.
    pub version: String,
    /// The definition as JSON.
    pub text: String,
}

/// What is known of one tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pin {
    /// The org that the provider is kept for; `None` is a provider that every org shares.
    pub org: Option<OrgId>,
    /// The tool.
    pub tool: ToolId,
    /// What was accepted; `None` while nothing was.
    pub accepted: Option<Definition>,
    /// What waits to be accepted.
    pub found: Option<Definition>,
    /// The version of `found` that events tell of already.
    pub told: Option<String>,
}

/// A pin that changed, without its definitions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PinChange {
    /// The org that the provider is kept for.
    pub org: Option<OrgId>,
    /// The tool.
    pub tool: ToolId,
    /// The accepted version.
    pub accepted: Option<String>,
    /// The version that waits.
    pub found: Option<String>,
    /// When.
    pub changed_at: Timestamp,
}

row!(PinRow {
    org_id: String,
    tool_id: String,
    version: Option<String>,
    definition: Option<String>,
    pinned_at: Option<i64>,
    found_version: Option<String>,
    found_definition: Option<String>,
    found_at: Option<i64>,
    told_version: Option<String>,
});

row!(ChangeRow {
    org_id: String,
    tool_id: String,
    version: Option<String>,
    found_version: Option<String>,
    changed_at: i64,
});

impl PinRow {
    fn read(self) -> Result<Pin, StoreError> {
        let definition = |version, text, at: Option<i64>| {
            Some(Definition { version: version?, text: text?, at: Timestamp::from_micros(at?) })
        };
        Ok(Pin {
            org: scope(&self.org_id)?,
            tool: parse(&self.tool_id, "tool_pins.tool_id")?,
            accepted: definition(self.version, self.definition, self.pinned_at),
            found: definition(self.found_version, self.found_definition, self.found_at),
            told: self.told_version,
        })
    }
}

impl ChangeRow {
    fn read(self) -> Result<PinChange, StoreError> {
        Ok(PinChange {
            org: scope(&self.org_id)?,
            tool: parse(&self.tool_id, "tool_pins.tool_id")?,
            accepted: self.version,
            found: self.found_version,
            changed_at: Timestamp::from_micros(self.changed_at),
        })
    }
}

fn scope(text: &str) -> Result<Option<OrgId>, StoreError> {
    (!text.is_empty()).then(|| parse(text, "tool_pins.org_id")).transpose()
}

fn scope_text(org: Option<OrgId>) -> String {
    org.map_or_else(String::new, |org| org.to_string())
}

impl Store {
    /// The pins of a provider's tools, by tool id.
    pub async fn list_pins(
        &self,
        org: Option<OrgId>,
        provider: &str,
    ) -> Result<Vec<Pin>, StoreError> {
        let rows: Vec<PinRow> = read!(self, org, |conn| {
            sqlx::query_as(
                "SELECT * FROM tool_pins WHERE org_id = $1 AND tool_id > $2 AND tool_id < $3 \
                 ORDER BY tool_id",
            )
            .bind(scope_text(org))
            .bind(format!("{provider}:"))
            // What follows a colon in ASCII.
            .bind(format!("{provider};"))
            .fetch_all(&mut *conn)
            .await?
        });
        rows.into_iter().map(PinRow::read).collect()
    }

    /// Every pin of the installation, by tool id and org: for the operator.
    pub async fn all_pins(&self) -> Result<Vec<Pin>, StoreError> {
        let rows: Vec<PinRow> = read!(self, installation, |conn| {
            sqlx::query_as("SELECT * FROM tool_pins ORDER BY tool_id, org_id")
                .fetch_all(&mut *conn)
                .await?
        });
        rows.into_iter().map(PinRow::read).collect()
    }

    /// The pins of all tools of this id: one for each org that has a provider of its own, and one
    /// for a shared provider.
    pub async fn pins_of(&self, tool: &ToolId) -> Result<Vec<Pin>, StoreError> {
        let rows: Vec<PinRow> = read!(self, installation, |conn| {
            sqlx::query_as("SELECT * FROM tool_pins WHERE tool_id = $1 ORDER BY org_id")
                .bind(tool.as_str())
                .fetch_all(&mut *conn)
                .await?
        });
        rows.into_iter().map(PinRow::read).collect()
    }

    /// The pins that changed at or after this moment, for nodes that have to follow.
    pub async fn pins_changed_since(&self, since: Timestamp) -> Result<Vec<PinChange>, StoreError> {
        let rows: Vec<ChangeRow> = read!(self, installation, |conn| {
            sqlx::query_as(
                "SELECT org_id, tool_id, version, found_version, changed_at FROM tool_pins \
                 WHERE changed_at >= $1 ORDER BY changed_at",
            )
            .bind(since.as_micros())
            .fetch_all(&mut *conn)
            .await?
        });
        rows.into_iter().map(ChangeRow::read).collect()
    }

    /// Accepts these definitions of tools of which none was ever accepted. Others stay as they are.
    pub async fn pin_tools(
        &self,
        org: Option<OrgId>,
        tools: &[Told],
        now: Timestamp,
    ) -> Result<(), StoreError> {
        self.write_told(PIN, org, tools, now).await
    }

    /// Remembers definitions that wait to be accepted, each in the place of the one that waited.
    pub async fn hold_tools(
        &self,
        org: Option<OrgId>,
        tools: &[Told],
        now: Timestamp,
    ) -> Result<(), StoreError> {
        self.write_told(HOLD, org, tools, now).await
    }

    /// Runs one of the statements below for each definition, all or none.
    async fn write_told(
        &self,
        statement: &'static str,
        org: Option<OrgId>,
        tools: &[Told],
        now: Timestamp,
    ) -> Result<(), StoreError> {
        change!(self, org, |tx| {
            for tool in tools {
                sqlx::query(statement)
                    .bind(scope_text(org))
                    .bind(tool.tool.as_str())
                    .bind(&tool.version)
                    .bind(&tool.text)
                    .bind(now.as_micros())
                    .execute(&mut *tx)
                    .await?;
            }
        });
        Ok(())
    }

    /// Forgets what waited: these upstreams give the accepted definitions again.
    pub async fn release_tools(
        &self,
        org: Option<OrgId>,
        tools: &[ToolId],
        now: Timestamp,
    ) -> Result<(), StoreError> {
        change!(self, org, |tx| {
            for tool in tools {
                sqlx::query(
                    "UPDATE tool_pins SET found_version = NULL, found_definition = NULL, \
                     found_at = NULL, told_version = NULL, changed_at = $3 \
                     WHERE org_id = $1 AND tool_id = $2 AND version IS NOT NULL",
                )
                .bind(scope_text(org))
                .bind(tool.as_str())
                .bind(now.as_micros())
                .execute(&mut *tx)
                .await?;
            }
        });
        Ok(())
    }

    /// Remembers that events tell of these versions that wait.
    pub async fn told_of_tools(
        &self,
        org: Option<OrgId>,
        tools: &[(ToolId, String)],
    ) -> Result<(), StoreError> {
        change!(self, org, |tx| {
            for (tool, version) in tools {
                sqlx::query(
                    "UPDATE tool_pins SET told_version = found_version \
                     WHERE org_id = $1 AND tool_id = $2 AND found_version = $3",
                )
                .bind(scope_text(org))
                .bind(tool.as_str())
                .bind(version)
                .execute(&mut *tx)
                .await?;
            }
        });
        Ok(())
    }

    /// Accepts the definition that waits, if it is this version. `false` if it is not.
    pub async fn accept_tool(
        &self,
        org: Option<OrgId>,
        tool: &ToolId,
        version: &str,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let changed = change!(self, org, |tx| {
            sqlx::query(
                "UPDATE tool_pins SET version = found_version, definition = found_definition, \
                 pinned_at = $4, found_version = NULL, found_definition = NULL, found_at = NULL, \
                 told_version = NULL, changed_at = $4 \
                 WHERE org_id = $1 AND tool_id = $2 AND found_version = $3",
            )
            .bind(scope_text(org))
            .bind(tool.as_str())
            .bind(version)
            .bind(now.as_micros())
            .execute(&mut *tx)
            .await?
            .rows_affected()
        });
        Ok(changed > 0)
    }
}

const PIN: &str = "
INSERT INTO tool_pins (org_id, tool_id, version, definition, pinned_at, changed_at)
VALUES ($1, $2, $3, $4, $5, $5)
ON CONFLICT (org_id, tool_id) DO UPDATE SET
    version = excluded.version, definition = excluded.definition, pinned_at = excluded.pinned_at,
    found_version = NULL, found_definition = NULL, found_at = NULL, told_version = NULL,
    changed_at = excluded.changed_at
WHERE tool_pins.version IS NULL";

const HOLD: &str = "
INSERT INTO tool_pins (org_id, tool_id, found_version, found_definition, found_at, changed_at)
VALUES ($1, $2, $3, $4, $5, $5)
ON CONFLICT (org_id, tool_id) DO UPDATE SET
    found_version = excluded.found_version, found_definition = excluded.found_definition,
    found_at = excluded.found_at, changed_at = excluded.changed_at
WHERE tool_pins.found_version IS DISTINCT FROM excluded.found_version
    AND tool_pins.version IS DISTINCT FROM excluded.found_version";
