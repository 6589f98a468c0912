//! Connections to providers that the configuration does not have any more: they cannot be used, and
//! after a while their credentials are forgotten. Not at once: a line that was taken out by mistake,
//! or a node that still has yesterday's file, must not cost everybody their connections.

use std::{collections::BTreeSet, sync::Arc};

use portcullis_core::audit::EventType;
use portcullis_store::{ProviderRecord, StoreError};
use serde_json::json;

use super::disconnect::about;
use crate::{audit::events::row_of, providers::Providers};

/// Connections that are forgotten in one transaction each, in one round.
const BATCH: u32 = 200;

impl Providers {
    /// Looks once.
    pub(crate) async fn forget_missing(self: &Arc<Self>) {
        if let Err(error) = self.forget_missing_now().await {
            error.log();
        }
    }

    async fn forget_missing_now(&self) -> Result<(), StoreError> {
        let now = self.base.clock.now();
        let configured: BTreeSet<&str> =
            self.catalogue.providers.keys().map(String::as_str).collect();
        for slug in self.base.store.note_missing_providers(&configured, now).await? {
            tracing::warn!(
                provider = slug,
                days = self.connecting.keep_missing_days,
                "the provider is not configured any more; the credentials of its connections are \
                 forgotten after this time unless it comes back"
            );
        }
        let since = now.plus_seconds(-24 * 60 * 60 * self.connecting.keep_missing_days);
        for record in self.base.store.missing_providers(since, BATCH).await? {
            self.forget_connection(&record).await?;
        }
        Ok(())
    }

    /// Without its configuration it is unknown where the provider takes revocations, and how the
    /// gateway authenticates there.
    async fn forget_connection(&self, record: &ProviderRecord) -> Result<(), StoreError> {
        let details = json!({
            "reason": "provider_not_configured", "upstream_revocation": "unsupported",
        });
        let event = self.gateway_event(EventType::ProviderDisconnected, &about(record), &details);
        let org = record.org_id;
        let id = record.id;
        if self.base.store.remove_provider(org, id, &row_of(&event)).await? {
            self.leave(org, id);
        }
        Ok(())
    }
}
