//! Providers that list more tools than their limit.

use portcullis_core::{clock::Timestamp, id::OrgId};
use serde::Serialize;
use utoipa::ToSchema;

use super::{scope_of, scope_text};
use crate::{
    db::{Store, boxed, change, list, record, run},
    error::StoreError,
};

/// A provider that lists more tools than are remembered of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = SurplusTools)]
pub struct Surplus {
    /// The org that the provider is kept for; none where every org shares it.
    #[schema(value_type = Option<String>)]
    pub org: Option<OrgId>,
    pub provider: String,
    /// The number of those that are not remembered.
    pub tools: u64,
    /// Since when it is so many.
    pub noted_at: Timestamp,
}

record!(Surplus in "capability_surplus", |row| org = scope_of(row, "capability_surplus.org_id")?, provider,
    tools, noted_at);

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
        change!(self, org, |tx| {
            match tools {
                0 => run!(tx, FITS => scope_text(org), provider),
                _ => run!(tx, NOTE_SURPLUS => scope_text(org), provider, tools, now),
            }
        });
        Ok(())
    }

    /// The providers that list more tools than are remembered of them: for the operator.
    #[boxed]
    pub async fn surplus(&self) -> Result<Vec<Surplus>, StoreError> {
        Ok(list!(self, installation, "SELECT * FROM capability_surplus ORDER BY provider, org_id"))
    }
}

const NOTE_SURPLUS: &str = "
INSERT INTO capability_surplus (org_id, provider, tools, noted_at) VALUES ($1, $2, $3, $4)
ON CONFLICT (org_id, provider) DO UPDATE SET tools = excluded.tools, noted_at = excluded.noted_at";

const FITS: &str = "DELETE FROM capability_surplus WHERE org_id = $1 AND provider = $2";
