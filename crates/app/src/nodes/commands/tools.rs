//! Commands on tools: show the accepted definitions, and accept changed ones.

use portcullis_core::{
    audit::EventType,
    id::OrgId,
    tool::{ProviderSlug, ToolDefinition, ToolId},
};
use portcullis_store::{Pin, Surplus};

use super::{Shell, ShellError};
use crate::{
    audit::events::{patience, row_of},
    providers::tools::pins::{
        acceptance::{Waiting, acceptance_details},
        events::{concerned, tool},
        recalled::accepted,
    },
};

/// Pins that are read at once.
const PAGE: u32 = 500;

impl Shell {
    /// The accepted and the waiting version of every tool; only of this provider, if one is
    /// named.
    pub async fn tools(&self, provider: Option<&str>) -> Result<Vec<Pin>, ShellError> {
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
    ) -> Result<Vec<ToolDefinition>, ShellError> {
        Ok(accepted(&self.store, org, provider).await?)
    }

    /// The providers that list more tools than are remembered of them.
    pub async fn surplus(&self) -> Result<Vec<Surplus>, ShellError> {
        Ok(self.store.surplus().await?)
    }

    /// The pin of a tool. Fails if there is none, or one in several orgs and none is named.
    pub async fn tool(&self, id: &str, org: Option<OrgId>) -> Result<Pin, ShellError> {
        let unknown = || ShellError::NoTool(id.to_owned());
        let parsed: ToolId = id.parse().map_err(|_| unknown())?;
        let mut pins = self.store.pins_of(&parsed).await?;
        pins.retain(|pin| org.is_none() || pin.org == org);
        match pins.pop() {
            Some(pin) if pins.is_empty() => Ok(pin),
            Some(_) => Err(ShellError::SeveralOrgs(id.to_owned())),
            None => Err(unknown()),
        }
    }

    /// The definitions of a tool that waits; `None` when it does not.
    pub async fn waiting(&self, pin: &Pin) -> Result<Option<Waiting>, ShellError> {
        Ok(Waiting::of(&self.store, pin).await?)
    }

    /// Accepts what waits of a tool, if it is still this version; running nodes follow within
    /// seconds. Recorded before it is done.
    pub async fn accept_tool(&self, pin: &Pin, version: &str) -> Result<(), ShellError> {
        if pin.found.as_ref().is_none_or(|found| found.version != version) {
            return Err(ShellError::Changed(pin.tool.to_string()));
        }
        let waiting = self.waiting(pin).await?;
        let change = acceptance_details(pin, version, waiting.as_ref());
        for org in concerned(&self.store, pin.org).await? {
            let target = tool(&pin.tool, Some(version.to_owned()));
            let mut event = self.event(EventType::ToolChanged, org, target);
            event.detached = event.detached.keep("change", Some(change.clone()), &*self.random);
            self.writer.append(row_of(&event), patience()).await?;
        }
        let now = self.clock.now();
        if self.store.accept_tool(pin.org, &pin.tool, version, now).await? {
            Ok(())
        } else {
            Err(ShellError::Changed(pin.tool.to_string()))
        }
    }
}
