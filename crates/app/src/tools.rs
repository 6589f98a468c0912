//! The catalogue: which tools there are, and which of them a caller can see.
//!
//! One predicate, [`App::visible`], serves list, get and invoke: what is not visible does not
//! exist for this caller, in all three.

mod listed;
mod offered;

pub(crate) use self::offered::{ListHandle, Offers};
pub use self::offered::{NamedTool, OfferedTool, OfferedTools};

use std::{collections::BTreeMap, sync::Arc};

use portcullis_core::{
    audit::Target,
    clock::Timestamp,
    id::{OrgId, ProviderId},
    policy::{Access, Catalogue},
    principal::Scope,
    refusal::Refusal,
    tool::{Tool, ToolDefinition, ToolId},
};
use portcullis_store::ProviderStatus;

use crate::{
    App, Ctx,
    connections::{Connection, Unlisted},
    providers::Provider,
    store_failed,
};

/// Every known tool with its provider, by id.
pub(crate) type ToolTable = BTreeMap<String, (Arc<Tool>, Arc<Provider>)>;

/// A tool the caller may see, and the connection it would be called through.
pub(crate) struct Visible {
    pub(crate) tool: Arc<Tool>,
    pub(crate) connection: Arc<Connection>,
}

impl Visible {
    pub(crate) fn target(&self) -> Target {
        Target {
            credential: Some(self.connection.credential()),
            id: Some(self.tool.id.to_string()),
            provider_id: Some(self.connection.id),
            kind: "mcp",
            version: Some(self.tool.version.clone()),
        }
    }
}

/// A tool as it is shown (contract §5.1).
#[derive(Debug, Clone)]
pub struct ToolView {
    /// The tool.
    pub tool: Arc<Tool>,
    /// The connection it would be called through.
    pub provider_id: ProviderId,
    /// What policy would say without looking at input.
    pub access: Access,
    /// Whether it can be called.
    pub status: ToolStatus,
}

/// Whether a tool can be called (contract §5.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolStatus {
    /// It can.
    Available,
    /// Its connection needs attention.
    Unavailable,
    /// Its definition changed and was not accepted yet.
    Quarantined,
}

impl ToolStatus {
    /// `available`, `unavailable` or `quarantined`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Available => "available",
            Self::Unavailable => "unavailable",
            Self::Quarantined => "quarantined",
        }
    }
}

/// Which tools to list.
#[derive(Debug, Clone, Default)]
pub struct ToolQuery {
    /// Only of these providers; empty means all.
    pub providers: Vec<String>,
    /// Only whose id, title or description contains this, whatever the case.
    pub text: Option<String>,
    /// Only with this access; empty means any.
    pub access: Vec<Access>,
    /// Only those after this id.
    pub after: Option<String>,
    /// At most so many.
    pub limit: usize,
}

impl ToolQuery {
    fn wants(&self, tool: &Tool) -> bool {
        let provider = tool.id.provider();
        (self.providers.is_empty() || self.providers.iter().any(|slug| slug == provider))
            && self.after.as_deref().is_none_or(|after| tool.id.as_str() > after)
            && self.text.as_deref().is_none_or(|text| mentions(tool, text))
    }
}

fn mentions(tool: &Tool, text: &str) -> bool {
    let text = text.to_lowercase();
    let definition = &tool.definition;
    let places =
        [Some(tool.id.as_str()), definition.title.as_deref(), definition.description.as_deref()];
    places.into_iter().flatten().any(|place| place.to_lowercase().contains(&text))
}

impl App {
    /// The tool, if it is in the catalogue of the caller's org through a usable connection.
    pub(crate) fn visible(&self, ctx: &Ctx, id: &str) -> Result<Visible, Refusal> {
        let unknown = || Refusal::not_found("mcp", id);
        let (slug, _) = id.split_once(':').ok_or_else(unknown)?;
        let connection = ctx.session.connections.get(slug).ok_or_else(unknown)?;
        let tool = self.tool_through(connection, id).ok_or_else(unknown)?;
        Ok(Visible { tool, connection: Arc::clone(connection) })
    }

    /// What is in quarantine is denied by `tool-pinning`, whatever the policies say.
    fn shown(&self, ctx: &Ctx, visible: &Visible, access: Access) -> ToolView {
        let held = self.pins.hold(ctx.caller().org_id, &visible.tool);
        let status = match visible.connection.status() {
            _ if held => ToolStatus::Quarantined,
            ProviderStatus::Connected => ToolStatus::Available,
            ProviderStatus::Pending | ProviderStatus::NeedsAuth | ProviderStatus::Error => {
                ToolStatus::Unavailable
            }
        };
        ToolView {
            access: if held { Access::Deny } else { access },
            tool: Arc::clone(&visible.tool),
            provider_id: visible.connection.id,
            status,
        }
    }

    /// The tools the caller may see, by id; and whether there are more.
    pub fn tools(&self, ctx: &Ctx, query: &ToolQuery) -> Result<(Vec<ToolView>, bool), Refusal> {
        ctx.require(Scope::McpsRead)?;
        let policies = self.policies.current();
        let accesses = policies.accesses(&ctx.session.principal);
        let mut found = Vec::new();
        for visible in Self::all_visible(ctx, query) {
            let view = self.shown(ctx, &visible, accesses.of(&visible.tool));
            if !query.access.is_empty() && !query.access.contains(&view.access) {
                continue;
            }
            if found.len() == query.limit {
                return Ok((found, true));
            }
            found.push(view);
        }
        Ok((found, false))
    }

    /// Every tool that the caller may see and the query wants, by id.
    fn all_visible(ctx: &Ctx, query: &ToolQuery) -> Vec<Visible> {
        let mut found = Vec::new();
        for connection in ctx.session.connections.iter() {
            let tools = connection.tools().into_iter();
            let wanted = tools.filter(|tool| query.wants(tool));
            found.extend(wanted.map(|tool| Visible { tool, connection: Arc::clone(connection) }));
        }
        found.sort_by(|a, b| a.tool.id.as_str().cmp(b.tool.id.as_str()));
        found
    }

    /// One tool, if the caller may see it.
    pub fn tool(&self, ctx: &Ctx, id: &str) -> Result<ToolView, Refusal> {
        ctx.require(Scope::McpsRead)?;
        let visible = self.visible(ctx, id)?;
        let access = self.policies.current().access(&ctx.session.principal, &visible.tool);
        Ok(self.shown(ctx, &visible, access))
    }

    /// Asks a provider for its tools and puts them into the catalogue.
    pub(crate) async fn refresh(
        self: &Arc<Self>,
        provider: &Arc<Provider>,
    ) -> Result<(), Unlisted> {
        let mut last = provider.freshness.turn.lock().await;
        let refreshed = self.refresh_in_turn(provider).await;
        last.ended(self.clock.now(), &refreshed);
        refreshed
    }

    /// The same for whoever has the turn to.
    pub(crate) async fn refresh_in_turn(
        self: &Arc<Self>,
        provider: &Arc<Provider>,
    ) -> Result<(), Unlisted> {
        let (slug, began) = (&provider.declared.slug, self.clock.now());
        let list = provider.server().list_tools().await.map_err(|error| {
            tracing::warn!(provider = %slug, %error, "provider cannot be used");
            provider.failed(&error, self.clock.now());
            Unlisted::Call(error)
        })?;
        let (org, fresh_for) = (provider.declared.org, list.fresh_for);
        let definitions = self.definitions(provider, org, list).await.map_err(|error| {
            provider.stays("what is pinned of its tools cannot be read", self.clock.now());
            Unlisted::Store(store_failed(&error))
        })?;
        if !provider.has(&definitions) {
            let tools = self.compiled(provider, org, definitions).await;
            tracing::info!(provider = %slug, tools = tools.len(), "provider connected");
            provider.connected(tools, self.clock.now());
            self.bind_again().await;
        }
        provider.freshness.took(began, fresh_for);
        Ok(())
    }

    /// Binds the policies to the catalogue as it is now.
    async fn bind_again(self: &Arc<Self>) {
        // Validating policies takes milliseconds: not on a thread that serves requests.
        let app = Arc::clone(self);
        let bound = tokio::task::spawn_blocking(move || {
            app.catalogue_changed();
            app.rehearse_again();
        });
        if bound.await.is_err() {
            tracing::error!("binding the policies to the catalogue ended in a panic");
        }
    }

    /// Compiles each definition; a tool whose schema cannot be enforced, or not within what the
    /// patterns of one list may take, stays out.
    pub(crate) async fn compiled(
        &self,
        provider: &Arc<Provider>,
        org: Option<OrgId>,
        definitions: Vec<ToolDefinition>,
    ) -> Vec<Arc<Tool>> {
        let seen = self.first_seen(provider, org, &definitions).await;
        let slug = provider.declared.slug.clone();
        // A thousand schemas take a while: not on a thread that serves requests.
        let compiled =
            tokio::task::spawn_blocking(move || listed::compile(&slug, definitions, seen));
        compiled.await.unwrap_or_else(|_| {
            tracing::error!(provider = %provider.declared.slug, "compiling schemas ended in a panic");
            Vec::new()
        })
    }

    /// When each definition was first seen; this moment for all, if the store cannot tell.
    async fn first_seen(
        &self,
        provider: &Arc<Provider>,
        org: Option<OrgId>,
        definitions: &[ToolDefinition],
    ) -> Vec<Timestamp> {
        let now = self.clock.now();
        let slug = &provider.declared.slug;
        let versions: Vec<(ToolId, String)> = definitions
            .iter()
            .map(|definition| (ToolId::new(slug, &definition.name), definition.version()))
            .collect();
        let most = u32::try_from(provider.declared.max_pins).unwrap_or(u32::MAX);
        match self.store.tool_seen(org, &versions, most, now).await {
            Ok(seen) if seen.len() == definitions.len() => seen,
            Ok(_) => vec![now; definitions.len()],
            Err(error) => {
                store_failed(&error);
                vec![now; definitions.len()]
            }
        }
    }

    /// Rebuilds the table and binds the policies to it.
    pub(crate) fn catalogue_changed(&self) {
        let _one_at_a_time =
            self.catalogue_lock.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let mut table = ToolTable::new();
        for provider in self.providers.values() {
            for tool in provider.state().tools.iter().flatten() {
                let entry = (Arc::clone(tool), Arc::clone(provider));
                table.insert(tool.id.to_string(), entry);
            }
        }
        self.policies.rebind(&self.catalogue(), self.clock.now());
        self.tools.store(Arc::new(table));
    }

    /// What policies are checked against.
    pub(crate) fn catalogue(&self) -> Catalogue {
        let catalogue = Catalogue::new(
            self.providers
                .values()
                .map(|provider| (provider.declared.slug.clone(), provider.state().tools.clone())),
        );
        catalogue.with_webhooks(self.notices.webhooks())
    }
}
