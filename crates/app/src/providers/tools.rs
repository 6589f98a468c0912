//! Tools, prompts and resources of the catalogue as a caller can see them, and the pins of their definitions.
//!
//! One predicate, [`Capabilities::visible`], serves list, get and invoke: what is not visible does not
//! exist for this caller, in all three.

mod directory;
mod listed;
mod offered;
pub(crate) mod pins;
mod watched;

pub use self::directory::DirectoryEntry;
pub use self::offered::{ListedNames, ListedPage, NamedTool, Offered, OfferedTools, PageQuery};
pub use self::pins::LeftOutTool;
pub use self::watched::ResourceWatch;

use std::{collections::BTreeMap, sync::Arc};

use portcullis_core::{
    capability::{Capability, CapabilityId, CapabilityKind, Definition},
    clock::Timestamp,
    id::{OrgId, ProviderId},
    mcp::{skills, uris::ResourceUri},
    policy::Access,
    refusal::Refusal,
};
use portcullis_store::ProviderStatus;
use portcullis_upstream::CallError;
use serde::Serialize;
use utoipa::ToSchema;

use self::{offered::Offers, pins::quarantined::Pins};
use crate::{
    audit::Audit,
    base::Base,
    catalogue::{
        Capabilities, Visible, connection::count_tools, freshness::Unlisted, not_found,
        provider::Provider, unknown,
    },
    policies::Policies,
    request::{Ctx, screening::Screening},
};

/// A tool as it is shown.
#[derive(Debug, Clone)]
pub struct ToolView {
    pub tool: Arc<Capability>,
    /// The connection it would be called through.
    pub provider_id: ProviderId,
    /// Decision of the policies before input is known.
    pub access: Access,
    pub status: ToolStatus,
}

portcullis_core::words! {
    /// Status of a tool.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum ToolStatus {
        /// Calls are possible.
        Available = "available",
        /// Its connection needs attention.
        Unavailable = "unavailable",
        /// Its definition changed and was not accepted yet.
        Quarantined = "quarantined",
    }
}

/// Filter of a list of tools.
#[derive(Debug, Clone, Default)]
pub struct ToolQuery {
    pub kind: CapabilityKind,
    /// Only of these providers; empty means all.
    pub providers: Vec<String>,
    /// Only whose id, title or description contains this, whatever the case.
    pub text: Option<String>,
    /// Only with this access; empty means any.
    pub access: Vec<Access>,
    pub after: Option<String>,
    pub limit: usize,
}

impl ToolQuery {
    fn wants(&self, tool: &Capability) -> bool {
        let provider = tool.id.provider();
        (self.providers.is_empty() || self.providers.iter().any(|slug| slug == provider))
            && self.after.as_deref().is_none_or(|after| tool.id.as_str() > after)
            && self.text.as_deref().is_none_or(|text| mentions(tool, text))
    }
}

/// The id in `text`. What is malformed names nothing, so it is not found.
pub fn capability_named(text: &str) -> Result<CapabilityId, Refusal> {
    text.parse().map_err(|_| Refusal::not_found("mcp", text))
}

/// The id of a tool in `text`.
pub fn tool_named(text: &str) -> Result<CapabilityId, Refusal> {
    parse_id(CapabilityKind::Tool, text)
}

/// The id of something of a kind in `text`, without the kind.
pub fn parse_id(kind: CapabilityKind, text: &str) -> Result<CapabilityId, Refusal> {
    let named = CapabilityId::of_kind(kind, text).ok().filter(|id| !id.is_unlisted());
    named.ok_or_else(|| not_found(kind, text))
}

fn mentions(tool: &Capability, text: &str) -> bool {
    let text = text.to_lowercase();
    let definition = &tool.definition;
    let places =
        [Some(tool.id.short()), definition.title.as_deref(), definition.description.as_deref()];
    places.into_iter().flatten().any(|place| place.to_lowercase().contains(&text))
}

/// The catalogue of tools and the pins of their definitions.
#[derive(Debug)]
pub struct Tools {
    base: Arc<Base>,
    screening: Arc<Screening>,
    audit: Arc<Audit>,
    policies: Arc<Policies>,
    catalogue: Arc<Capabilities>,
    pub(crate) pins: Pins,
    offers: Offers,
}

impl Tools {
    pub(crate) fn new(policies: &Arc<Policies>) -> Self {
        let Policies { base, screening, audit, catalogue, .. } = &**policies;
        Self {
            base: Arc::clone(base),
            screening: Arc::clone(screening),
            audit: Arc::clone(audit),
            policies: Arc::clone(policies),
            catalogue: Arc::clone(catalogue),
            pins: Pins::default(),
            offers: Offers::new(),
        }
    }

    /// A tool as it is shown. A tool in quarantine is denied by `tool-pinning`, whatever the policies say.
    fn view(&self, ctx: &Ctx, visible: &Visible, access: Access) -> ToolView {
        let held = self.pins.hold(ctx.caller().org_id, &visible.tool);
        let status = match visible.connection.status() {
            _ if held => ToolStatus::Quarantined,
            ProviderStatus::Connected => ToolStatus::Available,
            ProviderStatus::Pending
            | ProviderStatus::Starting
            | ProviderStatus::NeedsAuth
            | ProviderStatus::Error => ToolStatus::Unavailable,
        };
        ToolView {
            access: if held { Access::Deny } else { access },
            tool: Arc::clone(&visible.tool),
            provider_id: visible.connection.id,
            status,
        }
    }

    /// The tools the caller may see, by id; and whether there are more.
    pub fn list(&self, ctx: &Ctx, query: &ToolQuery) -> Result<(Vec<ToolView>, bool), Refusal> {
        let policies = self.policies.current_of(ctx.caller().org_id);
        let accesses = policies.accesses(&ctx.session.principal);
        let mut found = Vec::new();
        for visible in Self::all_visible(ctx, query) {
            let view = self.view(ctx, &visible, accesses.of(&visible.tool));
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
        let kinds = match query.kind {
            CapabilityKind::Resource => &[CapabilityKind::Resource, CapabilityKind::Template][..],
            CapabilityKind::Tool
            | CapabilityKind::Prompt
            | CapabilityKind::Template
            | CapabilityKind::Skill => std::slice::from_ref(&query.kind),
        };
        let connections = ctx.session.connections.iter();
        for (connection, kind) in
            connections.flat_map(|it| kinds.iter().map(move |kind| (it, kind)))
        {
            let tools = connection.listed(*kind).into_iter();
            let wanted = tools.filter(|tool| query.wants(tool));
            found.extend(wanted.map(|tool| Visible { tool, connection: Arc::clone(connection) }));
        }
        found.sort_by(|a, b| a.tool.id.as_str().cmp(b.tool.id.as_str()));
        found
    }

    /// One tool, prompt or resource, if the caller may see it; what is no tool and denied in any case is not seen.
    pub fn seen(&self, ctx: &Ctx, id: &CapabilityId) -> Result<ToolView, Refusal> {
        let view = self.tool(ctx, id)?;
        let is_hidden = id.kind() != CapabilityKind::Tool && view.access == Access::Deny;
        if is_hidden { Err(unknown(id)) } else { Ok(view) }
    }

    /// A template, or the capability by which a resource is read, with the access to this very URI. Not found if a read would
    /// not find it.
    pub fn readable(&self, ctx: &Ctx, id: &CapabilityId) -> Result<ToolView, Refusal> {
        let uri = Some(id.name()).filter(|_| id.kind() == CapabilityKind::Resource);
        let visible = self.find_used(ctx, id, uri)?;
        let uri = uri.filter(|_| visible.tool.id.kind().governed() == CapabilityKind::Resource);
        let access = self.access_to(ctx, &visible.tool, uri);
        Ok(self.view(ctx, &visible, access))
    }

    /// The id by which a URI is read: at this provider, or at the one that lists it or has a template of it.
    pub fn resource_at(
        &self,
        ctx: &Ctx,
        provider: Option<&str>,
        uri: &str,
    ) -> Result<CapabilityId, Refusal> {
        let kind = CapabilityKind::Resource;
        if let Some(slug) = provider {
            return parse_id(kind, &format!("{slug}:{uri}"));
        }
        let connections = &ctx.session.connections;
        let here = connections.iter().filter_map(|connection| {
            let id = parse_id(kind, &format!("{}:{uri}", connection.slug())).ok()?;
            let visible = self.catalogue.visible(connections, &id).ok()?;
            let is_named = !visible.tool.id.is_unlisted()
                && !self.is_hidden(ctx, &visible.tool, Some(uri))
                && !self.waits(ctx, &id, &visible.tool);
            let is_listed = visible.tool.id == id || visible.tool.file(uri).is_some();
            is_named.then_some((is_listed, id))
        });
        let mut found: Vec<(bool, CapabilityId)> = here.collect();
        // A list says more than a template, which may take everything.
        let is_listed = found.iter().any(|(is_listed, _)| *is_listed);
        found.retain(|it| it.0 == is_listed);
        let mut found: Vec<CapabilityId> = found.into_iter().map(|it| it.1).collect();
        match (found.pop(), found.as_slice()) {
            (Some(one), []) => Ok(one),
            (None, _) => Err(not_found(kind, uri)),
            (Some(last), others) => {
                let slugs: Vec<&str> =
                    others.iter().chain([&last]).map(CapabilityId::provider).collect();
                let all = slugs.join("`, `");
                let message =
                    format!("Several providers have this URI: say one of `{all}` as `provider`.");
                Err(Refusal::bad_request(message))
            }
        }
    }

    /// One tool, if the caller may see it.
    pub fn tool(&self, ctx: &Ctx, id: &CapabilityId) -> Result<ToolView, Refusal> {
        let visible = self.catalogue.visible(&ctx.session.connections, id)?;
        let access = self.policies.current_of(ctx.caller().org_id);
        let access = access.access(&ctx.session.principal, &visible.tool);
        Ok(self.view(ctx, &visible, access))
    }

    /// Returns true for the id of a tool that is there for pages of apps, and that models are not shown.
    #[must_use]
    pub fn is_for_pages_alone(&self, ctx: &Ctx, id: &str) -> bool {
        let found = parse_id(CapabilityKind::Tool, id)
            .and_then(|id| self.catalogue.visible(&ctx.session.connections, &id));
        found.is_ok_and(|visible| visible.tool.is_for_pages_alone())
    }

    /// Finds the capability that is used where this id is asked for; of a resource `uri` is the one that policies see. Neither an
    /// answer nor its time nor limits nor its event tell a prompt or a resource that is denied in any case from one that there is not.
    pub(crate) fn find_used(
        &self,
        ctx: &Ctx,
        asked: &CapabilityId,
        uri: Option<&str>,
    ) -> Result<Visible, Refusal> {
        let visible = self.catalogue.visible(&ctx.session.connections, asked)?;
        let uri = uri.filter(|_| visible.tool.id.kind().governed() == CapabilityKind::Resource);
        let is_hidden = asked.kind() != CapabilityKind::Tool
            && (self.is_hidden(ctx, &visible.tool, uri) || self.waits(ctx, asked, &visible.tool));
        // A template and a resource may have the same text.
        let is_other = asked.kind() == CapabilityKind::Template
            && visible.tool.id.kind() != CapabilityKind::Template;
        if is_hidden || is_other { Err(unknown(asked)) } else { Ok(visible) }
    }

    /// Returns true if the caller may be told a value for a variable of a template, the others as far as they are written:
    /// what it names once all are there would be read, and before that policies do not deny it in any case.
    pub(crate) fn may_suggest(
        &self,
        ctx: &Ctx,
        of: &Visible,
        values: &BTreeMap<String, String>,
        variable: &str,
        value: &str,
    ) -> bool {
        let Some(template) = of.tool.template() else { return false };
        let Some(uri) = template.begin(values, variable, value, false) else { return false };
        let has_all = template.variables().all(|it| it == variable || values.contains_key(it));
        let is_read = || ResourceUri::parse(&uri).is_ok_and(|uri| template.values(&uri).is_some());
        let asked = parse_id(CapabilityKind::Resource, &format!("{}:{uri}", of.connection.slug()));
        if !has_all && !is_read() {
            let is_open =
                asked.ok().is_none_or(|id| match self.catalogue.skill_of(&of.connection, &id) {
                    Some(skill) => !self.is_hidden(ctx, &skill, None),
                    None => !self.lies_in_skill(ctx, &id, &of.tool),
                });
            return is_open && self.access_to(ctx, &of.tool, Some(&uri)) != Access::Deny;
        }
        asked.is_ok_and(|asked| self.find_used(ctx, &asked, Some(&uri)).is_ok())
    }

    /// Returns true if the caller cannot know of it: policies deny it whatever the input, at this URI if it has one, or it is
    /// in quarantine.
    pub(crate) fn is_hidden(&self, ctx: &Ctx, tool: &Capability, uri: Option<&str>) -> bool {
        let org = ctx.caller().org_id;
        self.pins.hold(org, tool) || self.access_to(ctx, tool, uri) == Access::Deny
    }

    /// Access of the caller to a capability, at this URI if it has one.
    pub(crate) fn access_to(&self, ctx: &Ctx, tool: &Capability, uri: Option<&str>) -> Access {
        let policies = self.policies.current_of(ctx.caller().org_id);
        match uri {
            Some(uri) => policies.access_to(&ctx.session.principal, tool, uri),
            None => policies.access(&ctx.session.principal, tool),
        }
    }

    /// True if a definition of this very capability waits to be accepted, although it is `used` by another one, or if it is
    /// a file of a skill that cannot be used. A file of one that was accepted was accepted with it.
    pub(crate) fn waits(&self, ctx: &Ctx, id: &CapabilityId, used: &Capability) -> bool {
        let org = ctx.caller().org_id;
        let is_other = used.id != *id && used.id.kind() != CapabilityKind::Skill;
        id.kind() == CapabilityKind::Resource && self.lies_in_skill(ctx, id, used)
            || is_other && self.pins.wait(org, id, used.id.is_unlisted())
    }

    /// True if a resource lies in the folder of a skill that its provider told of last or that is pinned, where another
    /// capability is `used` than a file that a manifest names.
    fn lies_in_skill(&self, ctx: &Ctx, id: &CapabilityId, used: &Capability) -> bool {
        let Some(connection) = ctx.session.connections.get(id.provider()) else { return false };
        let server = connection.server();
        let is_listed = used.file(id.name()).flatten().is_some();
        if is_listed || !server.kinds().contains(&CapabilityKind::Skill) {
            return false;
        }
        let is_skill = used.id.kind() == CapabilityKind::Skill;
        let own = is_skill.then(|| skills::folder_of(used.id.name())).flatten();
        let org = Some(ctx.caller().org_id);
        let pinned = [None, org].map(|org| self.pins.skill_folders(org, id.provider()));
        let known = [server.skill_folders()].into_iter().chain(pinned).collect::<Vec<_>>();
        // A folder around that of the dynamic skill that is used has nothing to say.
        let beyond = own.map_or(0, |own| own.len());
        let mut folders = skills::folders_above(id.name()).filter(|it| it.len() > beyond);
        folders.any(|it| known.iter().any(|known| known.contains(&it)))
    }

    /// Asks a provider for its tools and puts them into the catalogue.
    pub(crate) async fn refresh(
        self: &Arc<Self>,
        provider: &Arc<Provider>,
    ) -> Result<(), Unlisted> {
        let mut last = provider.freshness.turn.lock().await;
        let refreshed = self.refresh_in_turn(provider).await;
        last.ended(self.base.clock.now(), &refreshed);
        refreshed
    }

    /// The same while holding the turn.
    pub(crate) async fn refresh_in_turn(
        self: &Arc<Self>,
        provider: &Arc<Provider>,
    ) -> Result<(), Unlisted> {
        let slug = &provider.declared.slug;
        let began = self.base.clock.now();
        let list = provider.server().list().await.map_err(|error| {
            let why = self.why(provider, error);
            provider.failed(&error, why, self.base.clock.now());
            Unlisted::Call(error)
        })?;
        let org = provider.declared.org;
        let (fresh_for, peer) = (list.fresh_for, list.peer);
        let former = provider.state().tools.clone().unwrap_or_default();
        let definitions = self.definitions(provider, org, list, former).await.map_err(|error| {
            provider.stays("what is pinned of its tools cannot be read", self.base.clock.now());
            Unlisted::Store(error.into())
        })?;
        if !provider.has(&definitions) {
            let tools = self.compiled(provider, org, definitions).await;
            tracing::info!(provider = %slug, tools = count_tools(&tools), "provider connected");
            provider.connected(tools, self.base.clock.now());
            self.bind_again().await;
            self.prepare_ahead(provider).await;
        }
        provider.freshness.took(began, fresh_for, peer);
        Ok(())
    }

    /// Sentence about a failure to list tools, for which nothing was to be executed. Words of the upstream in
    /// it are masked.
    fn why(&self, provider: &Provider, error: CallError) -> String {
        let error = error.kind;
        let server = provider.server();
        if server.is_starting() {
            return format!("{error}: the program is still starting");
        }
        match server.cause() {
            Some(cause) => format!("{error}: {}", self.screening.recordable(&cause)),
            None => error.to_string(),
        }
    }

    /// Binds the policies to the catalogue as it is now.
    pub(crate) async fn bind_again(self: &Arc<Self>) {
        // Validating policies takes milliseconds: not on a thread that serves requests.
        let this = Arc::clone(self);
        let bound = self.base.list_work(None, move || {
            this.catalogue_changed();
            this.policies.rehearse_again();
        });
        if bound.await.is_none() {
            tracing::error!("binding the policies to the catalogue ended in a panic");
        }
    }

    /// Compiles each definition; a tool whose schema cannot be enforced, or not within what the
    /// patterns of one list may take, stays out.
    pub(crate) async fn compiled(
        &self,
        provider: &Arc<Provider>,
        org: Option<OrgId>,
        definitions: Vec<Definition>,
    ) -> Vec<Arc<Capability>> {
        let seen = self.first_seen(provider, org, &definitions).await;
        let slug = provider.declared.slug.clone();
        // A thousand schemas take a while: not on a thread that serves requests.
        let compiled = self.base.list_work(org, move || listed::compile(&slug, definitions, seen));
        compiled.await.unwrap_or_else(|| {
            tracing::error!(provider = %provider.declared.slug, "compiling schemas ended in a panic");
            Vec::new()
        })
    }

    /// When each definition was first seen; this moment for all, if the store cannot tell.
    async fn first_seen(
        &self,
        provider: &Arc<Provider>,
        org: Option<OrgId>,
        definitions: &[Definition],
    ) -> Vec<Timestamp> {
        let now = self.base.clock.now();
        let slug = &provider.declared.slug;
        let versions: Vec<(CapabilityId, String)> = definitions
            .iter()
            .map(|definition| {
                let id = CapabilityId::new(definition.kind, slug, &definition.name);
                (id, definition.version())
            })
            .collect();
        let most = u32::try_from(provider.declared.max_pins).unwrap_or(u32::MAX);
        match self.base.store.tool_seen(org, &versions, most, now).await {
            Ok(seen) if seen.len() == definitions.len() => seen,
            Ok(_) => vec![now; definitions.len()],
            Err(error) => {
                error.log();
                vec![now; definitions.len()]
            }
        }
    }

    /// Rebuilds the table and binds the policies to it.
    pub(crate) fn catalogue_changed(&self) {
        self.catalogue.rebuild(|catalogue| self.policies.rebind(catalogue, self.base.clock.now()));
    }
}
