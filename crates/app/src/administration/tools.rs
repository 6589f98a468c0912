//! Tools that were ever listed, and those whose definition waits: shown with the difference, and accepted by the org's
//! admins.

use portcullis_core::{
    audit::EventType,
    capability::{CapabilityId, CapabilityKind, Definition},
    clock::Timestamp,
    hidden::spelled_value,
    refusal::{Conflict, Refusal},
};
use portcullis_store::{Pin, PinVersion, Surplus, WantedPins};
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::Administration;
use crate::{
    providers::tools::{
        capability_named,
        pins::{
            acceptance::{Waiting, acceptance_details},
            events::concerned,
        },
    },
    request::Ctx,
};

/// Bytes of the definitions of one page; the first tool is shown whatever it takes.
const PAGE_BYTES: usize = 1 << 20;

/// A tool, prompt or resource of which a definition waits to be accepted.
#[derive(Debug, Serialize, ToSchema)]
pub struct WaitingTool {
    #[schema(value_type = String, example = "github:create_issue")]
    pub id: CapabilityId,
    pub kind: CapabilityKind,
    /// Version that waits; name it to accept it.
    pub version: String,
    /// Version that was accepted; `null` for a new tool.
    pub accepted_version: Option<String>,
    /// When it was accepted.
    pub accepted_at: Option<Timestamp>,
    pub waits_since: Timestamp,
    /// True if its provider is shared by every org of the installation.
    pub shared: bool,
    /// True if an admin of the org may accept it: its provider is the org's own, or the org is the only one.
    pub acceptable: bool,
    /// Members that differ, such as `description`; none for a new tool.
    pub changed: Vec<&'static str>,
    /// Definition that was accepted.
    pub old: Option<ShownDefinition>,
    /// Definition that waits.
    pub new: ShownDefinition,
}

/// A definition as its provider wrote it, which is not to be trusted.
///
/// Characters that a reader would not see are written as `[U+202E]`.
#[derive(Debug, Serialize, ToSchema)]
pub struct ShownDefinition {
    pub title: Option<String>,
    pub description: Option<String>,
    #[schema(value_type = Object)]
    pub input_schema: Value,
    #[schema(value_type = Option<Object>)]
    pub output_schema: Option<Value>,
    /// Hints such as `readOnlyHint`; an object or `null`.
    pub annotations: Value,
    /// Members that its kind adds: the arguments of a prompt; name, MIME type and size of a resource; `null` for a tool.
    pub more: Value,
}

impl From<Definition> for ShownDefinition {
    fn from(definition: Definition) -> Self {
        let text = |text: String| portcullis_core::hidden::spelled(&text).into_owned();
        Self {
            title: definition.title.map(text),
            description: definition.description.map(text),
            input_schema: spelled_value(definition.input_schema),
            output_schema: definition.output_schema.map(spelled_value),
            annotations: spelled_value(definition.annotations),
            more: spelled_value(definition.more),
        }
    }
}

/// A tool whose waiting definition was accepted.
#[derive(Debug, Serialize, ToSchema)]
pub struct AcceptedTool {
    #[schema(value_type = String, example = "github:create_issue")]
    pub id: CapabilityId,
    /// Version that is accepted from now on.
    pub version: String,
}

/// Tools of a page, and the providers with more than are remembered of them (`max_pins`), whatever the page.
#[derive(Debug, Serialize, ToSchema)]
pub struct PinnedTools {
    /// In the order of the list.
    pub items: Vec<Pin>,
    pub surplus: Vec<Surplus>,
}

/// A page of tools.
#[derive(Debug)]
pub struct ListedTools<T> {
    pub page: T,
    /// Place at which the list goes on, if it does.
    pub end: Option<ToolPlace>,
}

/// Place in a list of tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolPlace {
    pub tool: CapabilityId,
    pub shared: bool,
}

impl ToolPlace {
    fn of(pin: &Pin) -> Self {
        Self { tool: pin.tool.clone(), shared: pin.org.is_none() }
    }
}

impl Administration {
    /// The pins of the providers of the caller's org, of these kinds or of all if none is named, by id.
    pub async fn tools(
        &self,
        ctx: &Ctx,
        kinds: &[CapabilityKind],
        after: Option<&ToolPlace>,
        limit: usize,
    ) -> Result<ListedTools<PinnedTools>, Refusal> {
        let mut items = self.pins(ctx, WantedPins::All, kinds, after, limit).await?;
        let more = items.len() > limit;
        items.truncate(limit);
        let end = items.last().filter(|_| more).map(ToolPlace::of);
        let mut surplus = self.base.store.surplus().await?;
        surplus.retain(|it| it.org.is_none_or(|owner| owner == ctx.caller().org_id));
        Ok(ListedTools { page: PinnedTools { items, surplus }, end })
    }

    /// The pins of a page of the caller's org, and the next one.
    async fn pins(
        &self,
        ctx: &Ctx,
        wanted: WantedPins,
        kinds: &[CapabilityKind],
        after: Option<&ToolPlace>,
        limit: usize,
    ) -> Result<Vec<Pin>, Refusal> {
        let org = ctx.caller().org_id;
        let place = after.map(|place| (&place.tool, (!place.shared).then_some(org)));
        let most = u32::try_from(limit + 1).unwrap_or(u32::MAX);
        Ok(self.base.store.page_pins_of_org(org, wanted, kinds, place, most).await?)
    }

    /// The definitions that wait in the caller's org, of these kinds or of all if none is named, by id. A page can end
    /// early, for definitions are large.
    pub async fn waiting_tools(
        &self,
        ctx: &Ctx,
        kinds: &[CapabilityKind],
        after: Option<&ToolPlace>,
        limit: usize,
    ) -> Result<ListedTools<Vec<WaitingTool>>, Refusal> {
        let pins = self.pins(ctx, WantedPins::Waiting, kinds, after, limit).await?;
        let is_only_org = self.is_only_org(ctx).await?;
        let mut items = Vec::new();
        let mut end = None;
        let mut bytes = 0;
        for pin in &pins {
            if items.len() == limit || bytes > PAGE_BYTES {
                return Ok(ListedTools { page: items, end });
            }
            if let Some(waiting) = Waiting::of(&self.base.store, pin).await? {
                let item = waiting_tool(pin, waiting, pin.org.is_some() || is_only_org);
                bytes += json!(item).to_string().len();
                items.push(item);
            }
            end = Some(ToolPlace::of(pin));
        }
        Ok(ListedTools { page: items, end: None })
    }

    /// Accepts what waits of a tool, if it is still this version; running nodes follow within
    /// seconds. Recorded before it is done, in the log of each org that it concerns. A tool that several orgs share is
    /// the operator's.
    pub async fn accept_tool(
        &self,
        ctx: &Ctx,
        id: &str,
        version: &str,
    ) -> Result<AcceptedTool, Refusal> {
        self.writable()?;
        let org = ctx.caller().org_id;
        let tool = capability_named(id)?;
        let pin = self.pin(ctx, &tool).await?.ok_or_else(|| Refusal::not_found("mcp", id))?;
        if pin.found.as_ref().is_none_or(|found| found.version != version) {
            return Err(Refusal::Conflict { reason: Conflict::VersionChanged });
        }
        let is_operator = ctx.caller().is_operator;
        if pin.org.is_none() && !is_operator && !self.is_only_org(ctx).await? {
            return Err(Refusal::Conflict { reason: Conflict::Shared });
        }
        let waiting = Waiting::of(&self.base.store, &pin).await?;
        let details = acceptance_details(&pin, version, waiting.as_ref());
        for org_id in concerned(&self.base.store, pin.org).await? {
            let kind = EventType::ToolChanged;
            let mut event = self.event(ctx, kind, "mcp", &tool, Some(details.clone()));
            event.org_id = org_id;
            if let Some(target) = &mut event.target {
                target.capability = Some(tool.kind().governed());
                target.version = Some(version.to_owned());
            }
            self.audit.record(event).await?;
        }
        let now = self.base.now();
        if self.base.store.accept_tool(pin.org, &tool, version, now).await? {
            tracing::info!(%tool, version, %org, "a tool was accepted");
            return Ok(AcceptedTool { id: tool, version: version.to_owned() });
        }
        Err(Refusal::Conflict { reason: Conflict::VersionChanged })
    }

    /// The pin of a tool in the caller's org: of its own provider, else of one that all share.
    async fn pin(&self, ctx: &Ctx, tool: &CapabilityId) -> Result<Option<Pin>, Refusal> {
        let org = ctx.caller().org_id;
        let mut pins = self.base.store.pins_of(tool).await?;
        pins.retain(|pin| pin.org.is_none_or(|owner| owner == org));
        pins.sort_by_key(|pin| pin.org.is_none());
        Ok(pins.into_iter().next())
    }

    /// True if what concerns every org concerns the caller's alone.
    async fn is_only_org(&self, ctx: &Ctx) -> Result<bool, Refusal> {
        let orgs = self.base.store.list_orgs().await?;
        Ok(orgs.iter().all(|org| org.id == ctx.caller().org_id))
    }
}

fn waiting_tool(pin: &Pin, waiting: Waiting, acceptable: bool) -> WaitingTool {
    let version = |side: &Option<PinVersion>| side.as_ref().map(|it| it.version.clone());
    WaitingTool {
        id: pin.tool.clone(),
        kind: pin.kind,
        version: version(&pin.found).unwrap_or_default(),
        accepted_version: version(&pin.accepted),
        accepted_at: pin.accepted.as_ref().map(|it| it.at),
        waits_since: pin.found.as_ref().map(|found| found.at).unwrap_or_default(),
        shared: pin.org.is_none(),
        acceptable,
        changed: waiting.changed_members(),
        old: waiting.accepted.map(ShownDefinition::from),
        new: waiting.found.into(),
    }
}
