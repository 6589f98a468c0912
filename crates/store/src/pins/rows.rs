//! The rows of pins, and how they are read: leniently, for a pin that cannot be read must not be taken
//! for none.

use portcullis_core::{clock::Timestamp, id::OrgId};

use super::{Pin, PinChange, PinVersion};
use crate::{
    db::{FromRow, Readable, Row, parse, row},
    error::{DriverError, StoreError},
};

pub(super) struct PinRow {
    org_id: String,
    tool_id: String,
    version: Option<String>,
    pinned_at: Option<i64>,
    found_version: Option<String>,
    found_at: Option<i64>,
    told_version: Option<String>,
}

impl FromRow for PinRow {
    /// A version that cannot be read is another one than any upstream gives: its tool waits for the
    /// operator, and is never taken for one of which nothing was accepted yet.
    fn from_row(row: Row<'_>) -> Result<Self, DriverError> {
        let text = |column: &'static str| {
            let read = row.get::<Option<String>>(column);
            read.unwrap_or_else(|_| Some(PinVersion::UNREADABLE.to_owned()))
        };
        let moment = |column: &'static str| row.get(column).unwrap_or(Some(0));
        Ok(Self {
            org_id: row.get("org_id")?,
            tool_id: row.get("tool_id")?,
            version: text("version"),
            pinned_at: moment("pinned_at"),
            found_version: text("found_version"),
            found_at: moment("found_at"),
            told_version: text("told_version"),
        })
    }
}

row!(pub(super) ChangeRow {
    org_id: String,
    tool_id: String,
    version: Option<String>,
    found_version: Option<String>,
    changed_at: i64,
});

impl Readable for PinRow {
    const TABLE: &'static str = "tool_pins";
    type Record = Pin;

    fn read(self) -> Result<Pin, StoreError> {
        let version = |version: Option<String>, at: Option<i64>| {
            (version.is_some() || at.is_some()).then(|| PinVersion {
                version: version.unwrap_or_else(|| PinVersion::UNREADABLE.to_owned()),
                at: Timestamp::from_micros(at.unwrap_or(0)),
            })
        };
        Ok(Pin {
            org: scope(&self.org_id)?,
            tool: parse(&self.tool_id, "tool_pins.tool_id")?,
            accepted: version(self.version, self.pinned_at),
            found: version(self.found_version, self.found_at),
            told: self.told_version,
        })
    }
}

impl Readable for ChangeRow {
    const TABLE: &'static str = "tool_pins";
    type Record = PinChange;

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

pub(super) fn scope(text: &str) -> Result<Option<OrgId>, StoreError> {
    (!text.is_empty()).then(|| parse(text, "tool_pins.org_id")).transpose()
}

pub(super) fn scope_text(org: Option<OrgId>) -> String {
    org.map_or_else(String::new, |org| org.to_string())
}
