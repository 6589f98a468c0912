//! Tools as they were accepted, where their provider is not asked.

use std::sync::Arc;

use portcullis_core::{
    capability::{Definition, ProviderSlug},
    id::OrgId,
};
use portcullis_store::{Store, StoreError};

use super::{super::Tools, read};
use crate::catalogue::provider::Provider;

/// The accepted definitions of a provider's tools.
pub(crate) async fn accepted(
    store: &Store,
    org: Option<OrgId>,
    provider: &ProviderSlug,
) -> Result<Vec<Definition>, StoreError> {
    let mut definitions = Vec::new();
    let pinned = store.list_pins(org, provider.as_str()).await?;
    for pin in pinned.pins.iter().filter(|pin| pin.accepted.is_some()) {
        let texts = store.definitions_of(org, &pin.tool).await?;
        definitions.extend(texts.accepted.as_deref().and_then(read));
    }
    Ok(definitions)
}

impl Tools {
    /// Takes the tools of a program from what was accepted of them, so that it need not be started. `false`
    /// if nothing is known of it, or it is no program.
    pub(crate) async fn recall(
        self: &Arc<Self>,
        provider: &Arc<Provider>,
    ) -> Result<bool, StoreError> {
        if provider.declared.endpoint.is_some() {
            return Ok(false);
        }
        let org = provider.declared.org;
        let slug = &provider.declared.slug;
        let definitions = accepted(&self.base.store, org, slug).await?;
        if definitions.is_empty() {
            return Ok(false);
        }
        let tools = self.compiled(provider, org, definitions).await;
        provider.connected(tools, self.base.clock.now());
        self.bind_again().await;
        Ok(true)
    }
}
