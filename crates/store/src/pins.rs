//! Accepted definition of each tool, and the other one that its upstream gives now.
//!
//! A pin belongs to the org that the provider is kept for, or, for a provider that every org
//! shares, to the installation (`None`). **Invariant:** no function removes a pin of which something
//! was accepted, and none changes what is accepted except [`Store::pin_tools`], for tools that were
//! never accepted, and [`Store::accept_tool`], for the very definition that is named.

mod surplus;

pub use self::surplus::Surplus;

use portcullis_core::{
    capability::{CapabilityId, CapabilityKind},
    clock::Timestamp,
    id::OrgId,
};
use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    db::{Row, Store, UnreadableRow, all, boxed, change, changed, find, list, read, record, run},
    error::{DriverError, StoreError},
};

/// A version of a tool's definition, without the definition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct PinVersion {
    /// The `sha256:…` of the definition; `unreadable` if that cannot be read.
    pub version: String,
    /// When it was accepted, or first found.
    pub at: Timestamp,
}

impl PinVersion {
    /// The text for a version that cannot be read: no definition has it, so that whatever the
    /// upstream gives waits to be accepted.
    pub const UNREADABLE: &'static str = "unreadable";
}

/// A definition that an upstream gives.
#[derive(Debug, Clone)]
pub struct UpstreamDefinition {
    pub tool: CapabilityId,
    /// Its `sha256:…`.
    pub version: String,
    /// The definition as JSON.
    pub text: String,
}

/// A tool's pins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = PinnedTool)]
pub struct Pin {
    /// The org that the provider is kept for; none where every org shares it.
    #[schema(value_type = Option<String>)]
    pub org: Option<OrgId>,
    #[serde(rename = "id")]
    #[schema(value_type = String, example = "github:create_issue")]
    pub tool: CapabilityId,
    pub kind: CapabilityKind,
    /// The accepted definition; none before the first.
    pub accepted: Option<PinVersion>,
    /// The definition that waits for acceptance.
    #[serde(rename = "waiting")]
    pub found: Option<PinVersion>,
    /// The version of `found` that events tell of already.
    #[serde(skip)]
    pub told: Option<String>,
}

/// Pins that a list has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WantedPins {
    All,
    /// Pins of which a definition waits.
    Waiting,
}

/// The pins of one provider.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pinned {
    /// Pins that can be read, by tool id.
    pub pins: Vec<Pin>,
    /// Number of further rows whose tool cannot be read.
    pub nameless: usize,
}

/// Both definitions of a tool, as JSON.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Accepted {
    pub accepted: Option<String>,
    /// The one that waits.
    pub found: Option<String>,
}

/// A pin that changed, without its definitions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PinChange {
    /// The org that the provider is kept for.
    pub org: Option<OrgId>,
    pub tool: CapabilityId,
    pub accepted: Option<String>,
    /// The version that waits.
    pub found: Option<String>,
    pub changed_at: Timestamp,
}

/// A version that cannot be read is another one than any upstream gives: its tool waits for the operator, and is never
/// taken for one of which nothing was accepted yet.
fn text_of(row: Row<'_>, column: &'static str) -> Option<String> {
    row.get(column).unwrap_or_else(|_| Some(PinVersion::UNREADABLE.to_owned()))
}

fn version_of(row: Row<'_>, version: &'static str, at: &'static str) -> Option<PinVersion> {
    let version = text_of(row, version);
    let at: Option<Timestamp> = row.get(at).unwrap_or_else(|_| Some(Timestamp::default()));
    (version.is_some() || at.is_some()).then(|| PinVersion {
        version: version.unwrap_or_else(|| PinVersion::UNREADABLE.to_owned()),
        at: at.unwrap_or_default(),
    })
}

record!(Pin in "capability_pins", |row| org = scope_of(row, "capability_pins.org_id")?,
    tool = row.get("capability_pins.capability_id")?,
    kind = row.get::<CapabilityId>("capability_pins.capability_id")?.kind(),
    accepted = version_of(row, "version", "pinned_at"),
    found = version_of(row, "found_version", "found_at"), told = text_of(row, "told_version"));

record!(PinChange in "capability_pins", |row| org = scope_of(row, "capability_pins.org_id")?,
    tool = row.get("capability_pins.capability_id")?, accepted = row.get("capability_pins.version")?,
    found = row.get("capability_pins.found_version")?, changed_at);

record!(Accepted in "capability_pins", |row| accepted = row.get("capability_pins.definition")?,
    found = row.get("capability_pins.found_definition")?);

fn scope_of(row: Row<'_>, column: &'static str) -> Result<Option<OrgId>, DriverError> {
    let text: String = row.get(column)?;
    let org = (!text.is_empty()).then(|| text.parse()).transpose();
    org.map_err(|_| DriverError::Corrupt(column))
}

fn scope_text(org: Option<OrgId>) -> String {
    org.map_or_else(String::new, |org| org.to_string())
}

/// The SQL for some pins without their definitions.
fn select(which: &str) -> String {
    format!(
        "SELECT org_id, capability_id, version, pinned_at, found_version, found_at, told_version \
         FROM capability_pins WHERE {which}"
    )
}

/// The SQL that leaves the ids of these kinds, to stand after another condition; nothing if none is named.
fn of_kinds(kinds: &[CapabilityKind]) -> String {
    let condition = |kind: &CapabilityKind| match kind {
        CapabilityKind::Tool => {
            "capability_id NOT LIKE 'prompt:%' AND capability_id NOT LIKE 'resource:%' \
             AND capability_id NOT LIKE 'skill:%'"
        }
        CapabilityKind::Prompt => "capability_id LIKE 'prompt:%'",
        CapabilityKind::Resource => {
            "capability_id LIKE 'resource:%' AND capability_id NOT LIKE '%{%'"
        }
        CapabilityKind::Template => "capability_id LIKE 'resource:%{%'",
        CapabilityKind::Skill => "capability_id LIKE 'skill:%'",
    };
    let any: Vec<&str> = kinds.iter().map(condition).collect();
    if any.is_empty() { String::new() } else { format!("AND ({})", any.join(" OR ")) }
}

/// Pins that are read at once.
const PAGE: u32 = 500;

impl Store {
    /// The pins of a provider's tools and prompts, by kind and id, without the definitions.
    #[boxed]
    pub async fn list_pins(
        &self,
        org: Option<OrgId>,
        provider: &str,
    ) -> Result<Pinned, StoreError> {
        let mut pinned = Pinned::default();
        for kind in CapabilityKind::GOVERNED {
            self.add_pins(org, &format!("{}{provider}", kind.prefix()), &mut pinned).await?;
        }
        Ok(pinned)
    }

    /// Adds the pins of ids that begin so, in front of a colon.
    async fn add_pins(
        &self,
        org: Option<OrgId>,
        start: &str,
        pinned: &mut Pinned,
    ) -> Result<(), StoreError> {
        // What follows a colon in ASCII ends the range.
        let mut after = format!("{start}:");
        let end = format!("{start};");
        let page = select(
            "org_id = $1 AND capability_id > $2 AND capability_id < $3 ORDER BY capability_id LIMIT $4",
        );
        loop {
            let rows = read!(self, unqueued org, |conn| {
                all!(conn, page.clone() => scope_text(org), &after, &end, PAGE)
            });
            let found = rows.len();
            let pins: Vec<Pin> = self.records(rows);
            pinned.nameless += found - pins.len();
            let last = pins.last().map(|pin| pin.tool.to_string());
            pinned.pins.extend(pins);
            match last {
                Some(last) if u32::try_from(found) == Ok(PAGE) && last > after => after = last,
                Some(_) | None => return Ok(()),
            }
        }
    }

    /// Some pins of the installation, by tool id and org, beyond this one: for the operator.
    #[boxed]
    pub async fn page_pins(
        &self,
        after: Option<(&CapabilityId, Option<OrgId>)>,
        limit: u32,
    ) -> Result<Vec<Pin>, StoreError> {
        let (tool, org) =
            after.map_or(("", String::new()), |(tool, org)| (tool.as_str(), scope_text(org)));
        let list =
            select("(capability_id, org_id) > ($1, $2) ORDER BY capability_id, org_id LIMIT $3");
        Ok(list!(self, installation, list => tool, &org, limit))
    }

    /// Some pins of these kinds, or of all if none is named, of the org's own providers and of shared ones, by tool id
    /// and owner, beyond this one.
    #[boxed]
    pub async fn page_pins_of_org(
        &self,
        org: OrgId,
        wanted: WantedPins,
        kinds: &[CapabilityKind],
        after: Option<(&CapabilityId, Option<OrgId>)>,
        limit: u32,
    ) -> Result<Vec<Pin>, StoreError> {
        let tool = after.map_or("", |(tool, _)| tool.as_str());
        let owner = after.map_or_else(String::new, |(_, owner)| scope_text(owner));
        let waits = match wanted {
            WantedPins::All => "",
            WantedPins::Waiting => "AND found_version IS NOT NULL",
        };
        let list = select(&format!(
            "org_id IN ('', $1) {waits} {} AND (capability_id, org_id) > ($2, $3) \
             ORDER BY capability_id, org_id LIMIT $4",
            of_kinds(kinds),
        ));
        // What every org shares is outside the scope of any.
        Ok(list!(self, installation, list => org, tool, &owner, limit))
    }

    /// The pins of all tools of this id: one for each org that has a provider of its own, and one
    /// for a shared provider.
    #[boxed]
    pub async fn pins_of(&self, tool: &CapabilityId) -> Result<Vec<Pin>, StoreError> {
        let list = select("capability_id = $1 ORDER BY org_id");
        Ok(list!(self, installation, list => tool.as_str()))
    }

    /// The definitions that stand about a tool. One that cannot be read is none.
    #[boxed]
    pub async fn definitions_of(
        &self,
        org: Option<OrgId>,
        tool: &CapabilityId,
    ) -> Result<Accepted, StoreError> {
        let found: Result<Option<Accepted>, StoreError> = async {
            Ok(read!(self, unqueued org, |conn| find!(conn, TEXTS => scope_text(org), tool.as_str())))
        }
        .await;
        match found {
            Ok(found) => Ok(found.unwrap_or_default()),
            Err(error @ StoreError::Corrupt(_)) => {
                let row = format!("org_id {} capability_id {tool}", scope_text(org));
                self.left_out(UnreadableRow {
                    table: "capability_pins",
                    row,
                    why: error.to_string(),
                });
                Ok(Accepted::default())
            }
            Err(error) => Err(error),
        }
    }

    /// Forgets tools of which nothing was ever accepted. Others stay as they are.
    #[boxed]
    pub async fn forget_waiting(
        &self,
        org: Option<OrgId>,
        tools: &[CapabilityId],
    ) -> Result<(), StoreError> {
        change!(self, org, |tx| {
            for tool in tools {
                run!(tx, FORGET => scope_text(org), tool.as_str());
            }
        });
        Ok(())
    }

    /// The pins that changed at or after this moment, for nodes that have to follow.
    #[boxed]
    pub async fn pins_changed_since(&self, since: Timestamp) -> Result<Vec<PinChange>, StoreError> {
        let list = "SELECT org_id, capability_id, version, found_version, changed_at FROM capability_pins \
                    WHERE changed_at >= $1 ORDER BY changed_at";
        Ok(list!(self, installation, list => since))
    }

    /// Accepts these definitions of tools of which none was ever accepted. Others stay as they are.
    #[boxed]
    pub async fn pin_tools(
        &self,
        org: Option<OrgId>,
        tools: &[UpstreamDefinition],
        now: Timestamp,
    ) -> Result<(), StoreError> {
        self.write_told(PIN, org, tools, now).await
    }

    /// Remembers definitions that wait to be accepted, each in the place of the one that waited.
    #[boxed]
    pub async fn hold_tools(
        &self,
        org: Option<OrgId>,
        tools: &[UpstreamDefinition],
        now: Timestamp,
    ) -> Result<(), StoreError> {
        self.write_told(HOLD, org, tools, now).await
    }

    /// Runs one of the statements below for each definition, all or none.
    async fn write_told(
        &self,
        statement: &'static str,
        org: Option<OrgId>,
        tools: &[UpstreamDefinition],
        now: Timestamp,
    ) -> Result<(), StoreError> {
        change!(self, org, |tx| {
            for tool in tools {
                run!(tx, statement => scope_text(org), tool.tool.as_str(), &tool.version,
                    &tool.text, now);
            }
        });
        Ok(())
    }

    /// Forgets what waited: these upstreams give the accepted definitions again.
    #[boxed]
    pub async fn release_tools(
        &self,
        org: Option<OrgId>,
        tools: &[CapabilityId],
        now: Timestamp,
    ) -> Result<(), StoreError> {
        change!(self, org, |tx| {
            for tool in tools {
                run!(
                    tx, "UPDATE capability_pins SET found_version = NULL, found_definition = NULL, \
                     found_at = NULL, told_version = NULL, changed_at = $3 \
                     WHERE org_id = $1 AND capability_id = $2 AND version IS NOT NULL"
                    => scope_text(org), tool.as_str(), now
                );
            }
        });
        Ok(())
    }

    /// Remembers that events tell of these versions that wait.
    #[boxed]
    pub async fn told_of_tools(
        &self,
        org: Option<OrgId>,
        tools: &[(CapabilityId, String)],
    ) -> Result<(), StoreError> {
        change!(self, org, |tx| {
            for (tool, version) in tools {
                run!(
                    tx, "UPDATE capability_pins SET told_version = found_version \
                     WHERE org_id = $1 AND capability_id = $2 AND found_version = $3"
                    => scope_text(org), tool.as_str(), version
                );
            }
        });
        Ok(())
    }

    /// Accepts the definition that waits, if it is this version. `false` if it is not.
    #[boxed]
    pub async fn accept_tool(
        &self,
        org: Option<OrgId>,
        tool: &CapabilityId,
        version: &str,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let accept = "UPDATE capability_pins SET version = found_version, definition = found_definition, \
                      pinned_at = $4, found_version = NULL, found_definition = NULL, \
                      found_at = NULL, told_version = NULL, changed_at = $4 \
                      WHERE org_id = $1 AND capability_id = $2 AND found_version = $3";
        Ok(changed!(self, org, accept => scope_text(org), tool.as_str(), version, now) > 0)
    }
}

const TEXTS: &str = "SELECT definition, found_definition FROM capability_pins WHERE org_id = $1 AND capability_id = $2";

const FORGET: &str = "
DELETE FROM capability_pins
WHERE org_id = $1 AND capability_id = $2 AND version IS NULL AND pinned_at IS NULL
    AND definition IS NULL";

const PIN: &str = "
INSERT INTO capability_pins (org_id, capability_id, version, definition, pinned_at, changed_at)
VALUES ($1, $2, $3, $4, $5, $5)
ON CONFLICT (org_id, capability_id) DO UPDATE SET
    version = excluded.version, definition = excluded.definition, pinned_at = excluded.pinned_at,
    found_version = NULL, found_definition = NULL, found_at = NULL, told_version = NULL,
    changed_at = excluded.changed_at
WHERE capability_pins.version IS NULL";

const HOLD: &str = "
INSERT INTO capability_pins (org_id, capability_id, found_version, found_definition, found_at, changed_at)
VALUES ($1, $2, $3, $4, $5, $5)
ON CONFLICT (org_id, capability_id) DO UPDATE SET
    found_version = excluded.found_version, found_definition = excluded.found_definition,
    found_at = excluded.found_at, changed_at = excluded.changed_at
WHERE capability_pins.found_version IS DISTINCT FROM excluded.found_version
    AND capability_pins.version IS DISTINCT FROM excluded.found_version";
