//! Providers that list more tools than their limit.

use async_recursion::async_recursion as boxed;
use portcullis_core::{clock::Timestamp, id::OrgId};

use super::rows::{scope, scope_text};
use crate::{
    db::{Found, Readable, Store, all, change, read, row, run},
    error::StoreError,
};

/// A provider that lists more tools than are remembered of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Surplus {
    /// The org that the provider is kept for; `None` is a provider that every org shares.
    pub org: Option<OrgId>,
    pub provider: String,
    /// The number of those that are not remembered.
    pub tools: u64,
    /// Since when it is so many.
    pub noted_at: Timestamp,
}

row!(SurplusRow { org_id: String, provider: String, tools: i64, noted_at: i64 });

impl Readable for SurplusRow {
    const TABLE: &'static str = "tool_surplus";
    type Record = Surplus;

    fn read(self) -> Result<Surplus, StoreError> {
        Ok(Surplus {
            org: scope(&self.org_id)?,
            provider: self.provider,
            tools: self.tools.unsigned_abs(),
            noted_at: Timestamp::from_micros(self.noted_at),
        })
    }
}

impl Store {
    /// Notes how many tools a provider lists that are not remembered.
    #[boxed]
    pub async fn note_surplus(
        &self,
        org: Option<OrgId>,
        provider: &str,
        tools: u64,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let noted = i64::try_from(tools).unwrap_or(i64::MAX);
        change!(self, org, |tx| {
            match tools {
                0 => run!(tx, FITS => scope_text(org), provider),
                _ => run!(tx, NOTE_SURPLUS => scope_text(org), provider, noted, now),
            }
        });
        Ok(())
    }

    /// The providers that list more tools than are remembered of them: for the operator.
    #[boxed]
    pub async fn surplus(&self) -> Result<Vec<Surplus>, StoreError> {
        let rows: Vec<Found<SurplusRow>> = read!(self, installation, |conn| {
            all!(conn, "SELECT * FROM tool_surplus ORDER BY provider, org_id")
        });
        Ok(self.readable(rows))
    }
}

const NOTE_SURPLUS: &str = "
INSERT INTO tool_surplus (org_id, provider, tools, noted_at) VALUES ($1, $2, $3, $4)
ON CONFLICT (org_id, provider) DO UPDATE SET tools = excluded.tools, noted_at = excluded.noted_at";

const FITS: &str = "DELETE FROM tool_surplus WHERE org_id = $1 AND provider = $2";
