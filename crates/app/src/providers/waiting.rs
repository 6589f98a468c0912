//! Providers that the caller could use with a connection.

use std::collections::BTreeSet;

use portcullis_core::{refusal::Refusal, tool::ProviderSlug};
use portcullis_store::ProviderStatus;

use super::Providers;
use crate::{
    catalogue::auth::{Awaited, Owners},
    request::Ctx,
};

/// A provider without a connection that the caller could use.
#[derive(Debug, Clone)]
pub struct WaitingProvider {
    pub slug: ProviderSlug,
    pub name: String,
    pub waits_for: Awaited,
    /// Principals that may connect it.
    pub owners: Owners,
}

impl Providers {
    /// The providers of the caller that have no connection which it could use, by slug. A connection
    /// that was only begun is none.
    pub async fn waiting(&self, ctx: &Ctx) -> Result<Vec<WaitingProvider>, Refusal> {
        let caller = ctx.caller();
        let reached = self.base.store.reachable_providers(caller.org_id, caller.principal_id);
        let reached = reached.await?;
        let made = reached.iter().filter(|record| record.status != ProviderStatus::Pending);
        let made: BTreeSet<&str> = made.map(|record| record.slug.as_str()).collect();
        let open = self.open_to(ctx).map(|provider| &provider.declared);
        let waiting = open.filter(|declared| !made.contains(declared.slug.as_str()));
        let waiting = waiting.filter_map(|declared| {
            Some(WaitingProvider {
                slug: declared.slug.clone(),
                name: declared.name.clone(),
                waits_for: declared.auth.awaited()?,
                owners: declared.owners,
            })
        });
        Ok(waiting.collect())
    }
}
