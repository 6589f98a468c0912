//! Commands on tools: show the accepted definitions.

use portcullis_core::{
    capability::{Definition, ProviderSlug},
    id::OrgId,
};
use portcullis_store::{Pin, Surplus};

use super::{Operator, OperatorError};
use crate::providers::tools::pins::recalled::accepted;

/// Pins that are read at once.
const PAGE: u32 = 500;

impl Operator {
    /// The accepted and the waiting version of every tool; only of this provider, if one is
    /// named.
    pub async fn tools(&self, provider: Option<&str>) -> Result<Vec<Pin>, OperatorError> {
        let mut wanted = Vec::new();
        let mut after = None::<Pin>;
        loop {
            let beyond = after.as_ref().map(|pin| (&pin.tool, pin.org));
            let page = self.store.page_pins(beyond, PAGE).await?;
            let Some(last) = page.last() else { return Ok(wanted) };
            after = Some(last.clone());
            let is_wanted = |pin: &Pin| provider.is_none_or(|slug| pin.tool.provider() == slug);
            wanted.extend(page.into_iter().filter(is_wanted));
        }
    }

    /// The tools of a provider as they are accepted; none where the store knows of none.
    pub async fn accepted_tools(
        &self,
        org: Option<OrgId>,
        provider: &ProviderSlug,
    ) -> Result<Vec<Definition>, OperatorError> {
        Ok(accepted(&self.store, org, provider).await?)
    }

    /// The providers that list more tools than are remembered of them.
    pub async fn surplus(&self) -> Result<Vec<Surplus>, OperatorError> {
        Ok(self.store.surplus().await?)
    }
}
