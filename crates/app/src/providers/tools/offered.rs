//! Tools and prompts as MCP clients are offered them: texts, names and index are prepared once for a list of
//! tools, and filtered for each caller.

mod pages;
mod view;

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
};

pub use self::pages::{ListedNames, ListedPage, PageQuery};
use self::{pages::Pages, view::View};
use super::Tools;
use crate::{
    base::caches::{Lifetime, NodeCache},
    catalogue::{
        connection::{Connection, ListHandle, listed},
        provider::Provider,
    },
    request::{Ctx, permitted::Places},
};
use moka::sync::Cache;
use portcullis_core::{
    capability::{Capability, CapabilityId, CapabilityKind},
    mcp::{
        apps::AppRules,
        listed::ListedTool,
        names,
        params::{self, ParamHeader},
        search::{self, Index},
        uris,
    },
    policy::{Access, PolicySet},
    principal::Scope,
    refusal::Refusal,
};

/// Entries of a list that is prepared before it is asked for, at least.
const PREPARED_AHEAD: usize = 1_000;
/// Tools near a name that policies are asked about, at most.
const MOST_NEAR: usize = 32;

/// A tool under the name by which clients know it.
#[derive(Debug)]
pub struct Offered {
    pub tool: Arc<Capability>,
    /// Its name in a list of several providers.
    pub name: String,
    pub listed: ListedTool,
    /// The arguments that clients mirror into headers.
    pub params: Vec<ParamHeader>,
}

/// The tools of one list, by id.
#[derive(Debug, Default)]
pub(crate) struct Offer {
    tools: Vec<Offered>,
    by_name: HashMap<String, usize>,
    by_id: HashMap<CapabilityId, usize>,
    index: Index,
}

impl Offer {
    fn prepare(mut tools: Vec<Arc<Capability>>, rules: Option<&AppRules>) -> Self {
        tools.sort_by(|one, other| one.id.cmp(&other.id));
        let names = names_of(&tools);
        let tools: Vec<Offered> = tools
            .into_iter()
            .zip(names)
            .filter_map(|(tool, name)| {
                let listed = ListedTool::new(&tool, rules);
                // A client leaves out a tool whose annotations are forbidden.
                let params = params::find(&tool.definition.input_schema).unwrap_or_default();
                Some(Offered { name: name?, listed, params, tool })
            })
            .collect();
        // A list is of one kind, and tools alone are searched.
        let searched = tools.iter().filter(|it| it.tool.id.kind() == CapabilityKind::Tool);
        let index = Index::build(searched.map(|it| &*it.tool));
        let by_name = tools.iter().map(|it| it.name.clone()).zip(0..).collect();
        let by_id = tools.iter().map(|it| it.tool.id.clone()).zip(0..).collect();
        Self { tools, by_name, by_id, index }
    }

    fn weight(&self) -> usize {
        let texts: usize = self.tools.iter().map(|it| it.listed.bytes() + 256).sum();
        texts + self.index.weight()
    }

    fn is_of(&self, tools: &[Arc<Capability>]) -> bool {
        self.tools.len() == tools.len()
            && tools.iter().all(|tool| {
                let place = self.by_id.get(&tool.id);
                let known = place.and_then(|place| self.tools.get(*place));
                known.is_some_and(|known| Arc::ptr_eq(&known.tool, tool))
            })
    }
}

/// The names of all in a list of several providers: URIs carry their provider.
fn names_of(tools: &[Arc<Capability>]) -> Vec<Option<String>> {
    let has_name =
        |it: &Capability| matches!(it.id.kind(), CapabilityKind::Tool | CapabilityKind::Prompt);
    if tools.first().is_none_or(|first| has_name(first)) {
        return names::offered(&tools.iter().map(|tool| &tool.id).collect::<Vec<_>>());
    }
    tools.iter().map(|it| Some(uris::outer(it.id.provider(), it.id.name()))).collect()
}

/// Returns true if of this kind nothing but pages of apps passes, which are at the address of their provider alone.
fn exposes_pages_alone(connection: &Connection, kind: CapabilityKind) -> bool {
    let server = connection.server();
    kind == CapabilityKind::Resource
        && server.apps().is_some()
        && !server.kinds().contains(&CapabilityKind::Template)
}

/// Prepared lists, by the address of the list. An entry holds its list, so that no other list can
/// have its address.
#[derive(Debug)]
pub(crate) struct Offers {
    by_list: Cache<(usize, CapabilityKind), (ListHandle, Arc<Offer>)>,
    /// The last of each provider: a list that was replaced by an equal one is not prepared again.
    last: Cache<(String, CapabilityKind), Arc<Offer>>,
    pages: Pages,
}

impl Offers {
    pub(crate) fn new() -> Self {
        let forever = Lifetime::Unbounded;
        Self {
            by_list: NodeCache::Offers
                .make(forever, |_, (_, offer): &(ListHandle, Arc<Offer>)| offer.weight()),
            last: NodeCache::LastOffers.make(forever, |_, offer: &Arc<Offer>| offer.weight()),
            pages: Pages::new(),
        }
    }
}

impl Offers {
    fn keep(&self, slug: (String, CapabilityKind), list: ListHandle, offer: &Arc<Offer>) {
        self.by_list.insert((list.address(), slug.1), (list, Arc::clone(offer)));
        self.last.insert(slug, Arc::clone(offer));
    }
}

/// A tool that is offered, looked up by its name.
#[derive(Debug)]
pub struct NamedTool {
    offer: Arc<Offer>,
    place: usize,
}

impl NamedTool {
    /// The tool.
    #[must_use]
    pub fn get(&self) -> Option<&Offered> {
        self.offer.tools.get(self.place)
    }
}

/// The tools that a caller may use.
#[derive(Debug)]
pub struct OfferedTools {
    /// In the order of providers.
    views: Vec<View>,
}

impl OfferedTools {
    /// Number of tools.
    #[must_use]
    pub fn count(&self) -> usize {
        self.views.iter().map(View::count).sum()
    }

    /// All of them, in the order of providers and names.
    pub fn iter(&self) -> impl Iterator<Item = &Offered> {
        self.views.iter().flat_map(View::iter)
    }

    /// The slugs of their providers.
    #[must_use]
    pub fn providers(&self) -> Vec<&str> {
        let first = self.views.iter().filter_map(|view| view.iter().next());
        first.map(|it| it.tool.id.provider()).collect()
    }

    /// The tool of this id or name.
    #[must_use]
    pub fn find(&self, id: &str) -> Option<&Offered> {
        self.iter().find(|it| it.tool.id.as_str() == id || it.name == id)
    }

    /// Tools that answer a question, the best first.
    #[must_use]
    pub fn search(&self, question: &str, limit: usize) -> Vec<&Offered> {
        let indexes: Vec<&Index> = self.views.iter().map(|view| &view.offer.index).collect();
        let usable =
            |list: usize, tool: usize| self.views.get(list).is_some_and(|view| view.holds(tool));
        let hits = search::rank(&indexes, question, limit, usable).into_iter();
        hits.filter_map(|hit| self.views.get(hit.list)?.offer.tools.get(hit.tool)).collect()
    }

    /// A fingerprint of ids and versions, which is another when the caller may use other tools.
    #[must_use]
    pub fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        for offered in self.iter() {
            (offered.tool.id.as_str(), &offered.tool.version).hash(&mut hasher);
        }
        hasher.finish()
    }
}

impl Tools {
    /// The tools that the caller may use, of one provider or of all: those that policy does not deny
    /// whatever the input, without those in quarantine. Those for pages alone are there for who `hosts_apps`.
    pub async fn offered_tools(
        &self,
        ctx: &Ctx,
        provider: Option<&str>,
        kind: CapabilityKind,
        hosts_apps: bool,
    ) -> Result<OfferedTools, Refusal> {
        let offers = self.offers_of(ctx, provider, kind).await?;
        let org = ctx.caller().org_id;
        let policies = self.policies.current_of(org);
        let usable = |it: &Offered| {
            !self.pins.hold(org, &it.tool) && (hosts_apps || !it.tool.is_for_pages_alone())
        };
        let mut judged = Vec::new();
        if kind == CapabilityKind::Resource {
            for offer in &offers {
                judged.push(match ctx.session.permitted.find(offer, &policies) {
                    Some(known) => known,
                    // Rare, and not to take room in each stream that looks again.
                    None => Box::pin(self.judge(ctx, offer, &policies)).await?,
                });
            }
        }
        let accesses = policies.accesses(&ctx.session.principal);
        let mut judged = judged.into_iter();
        let view = |offer: Arc<Offer>| {
            let judged: Option<Arc<Places>> = judged.next();
            View::new(offer, |place, it| {
                let is_permitted = match &judged {
                    Some(places) => places.holds(place),
                    None => accesses.of(&it.tool) != Access::Deny,
                };
                is_permitted && usable(it)
            })
        };
        let views = offers.into_iter().map(view).collect();
        Ok(OfferedTools { views })
    }

    /// Judges a list of resources by the policies of the caller, each by its URI, and remembers for the session what they
    /// permit of it.
    async fn judge(
        &self,
        ctx: &Ctx,
        offer: &Arc<Offer>,
        policies: &Arc<PolicySet>,
    ) -> Result<Arc<Places>, Refusal> {
        let (session, offer, policies) =
            (Arc::clone(&ctx.session), Arc::clone(offer), Arc::clone(policies));
        let judge = move || {
            let accesses = policies.accesses(&session.principal);
            let is_permitted = |_, it: &Offered| accesses.of(&it.tool) != Access::Deny;
            let places = Arc::new(Places::of(&offer.tools, is_permitted));
            session.permitted.keep(&offer, &policies, &places);
            places
        };
        self.base.worked(ctx.caller().org_id, usize::MAX, judge).await
    }

    /// Tools that the caller may use with their distances, the nearest first, of one provider or of all. Policies are
    /// asked about few: about those that `distance` finds near.
    pub async fn near_tools(
        &self,
        ctx: &Ctx,
        provider: Option<&str>,
        kind: CapabilityKind,
        distance: impl Fn(&Offered) -> Option<usize> + Send,
    ) -> Result<Vec<(usize, NamedTool)>, Refusal> {
        let offers = self.offers_of(ctx, provider, kind).await?;
        let mut near = Vec::new();
        for offer in &offers {
            let tools = offer.tools.iter().enumerate();
            near.extend(tools.filter_map(|(place, tool)| Some((distance(tool)?, offer, place))));
        }
        near.sort_by_key(|(distance, ..)| *distance);
        near.truncate(MOST_NEAR);
        let org = ctx.caller().org_id;
        let policies = self.policies.current_of(org);
        let accesses = policies.accesses(&ctx.session.principal);
        near.retain(|(_, offer, place)| {
            offer.tools.get(*place).is_some_and(|it| {
                accesses.of(&it.tool) != Access::Deny
                    && !self.pins.hold(org, &it.tool)
                    && !it.tool.is_for_pages_alone()
            })
        });
        let named = |(distance, offer, place): (usize, &Arc<Offer>, usize)| {
            (distance, NamedTool { offer: Arc::clone(offer), place })
        };
        Ok(near.into_iter().map(named).collect())
    }

    /// The tool behind a name in the list of one provider or of all, whether or not the caller may
    /// use it.
    pub async fn named_tool(
        &self,
        ctx: &Ctx,
        provider: Option<&str>,
        kind: CapabilityKind,
        name: &str,
    ) -> Result<Option<NamedTool>, Refusal> {
        let reachable = &ctx.session.connections;
        if let Some(slug) = provider {
            let Some(connection) = reachable.get(slug) else { return Ok(None) };
            let offer = self.offer_of(connection, kind).await?;
            let id = CapabilityId::of_kind(kind, &format!("{slug}:{name}")).ok();
            let place = id.and_then(|id| offer.by_id.get(&id).copied());
            return Ok(place.map(|place| NamedTool { offer, place }));
        }
        let own = names::slug_of(name).and_then(|(slug, _)| reachable.get(slug));
        // A very long slug is cut.
        for connection in own.into_iter().chain(reachable.iter().filter(|it| it.slug().len() > 55))
        {
            let offer = self.offer_of(connection, kind).await?;
            if let Some(place) = offer.by_name.get(name).copied() {
                return Ok(Some(NamedTool { offer, place }));
            }
        }
        Ok(None)
    }

    /// Returns true if the caller has a connection to this provider, or to any, that exposes this kind.
    #[must_use]
    pub fn exposes(&self, ctx: &Ctx, provider: Option<&str>, kind: CapabilityKind) -> bool {
        let connections = ctx.session.connections.iter();
        let mut here = connections.filter(|it| provider.is_none_or(|slug| it.slug() == slug));
        here.any(|it| {
            let kinds = it.server().kinds();
            kinds.contains(&kind) && (provider.is_some() || !exposes_pages_alone(it, kind))
        })
    }

    /// Returns true for a provider of whose resources nothing but pages of apps passes.
    #[must_use]
    pub fn exposes_pages_alone(&self, ctx: &Ctx, slug: &str) -> bool {
        let connection = ctx.session.connections.get(slug);
        connection.is_some_and(|it| exposes_pages_alone(it, CapabilityKind::Resource))
    }

    /// Returns true if the caller has a connection to this provider, and its apps pass.
    #[must_use]
    pub fn exposes_apps(&self, ctx: &Ctx, slug: &str) -> bool {
        let connection = ctx.session.connections.get(slug);
        connection.is_some_and(|it| it.server().apps().is_some())
    }

    /// Returns true if the caller has a connection to this provider.
    #[must_use]
    pub fn reaches(&self, ctx: &Ctx, slug: &str) -> bool {
        ctx.session.connections.get(slug).is_some()
    }

    /// The lists of one provider or of all that the caller has a connection to.
    async fn offers_of(
        &self,
        ctx: &Ctx,
        provider: Option<&str>,
        kind: CapabilityKind,
    ) -> Result<Vec<Arc<Offer>>, Refusal> {
        ctx.require(Scope::McpsRead)?;
        let connections = ctx.session.connections.iter();
        let mut offers = Vec::new();
        let connections = connections.filter(|it| match provider {
            Some(slug) => it.slug() == slug,
            None => !exposes_pages_alone(it, kind),
        });
        for connection in connections {
            offers.push(self.offer_of(connection, kind).await?);
        }
        Ok(offers)
    }

    /// Prepared texts of what a connection lists of a kind; prepared now if they are not.
    async fn offer_of(
        &self,
        connection: &Connection,
        kind: CapabilityKind,
    ) -> Result<Arc<Offer>, Refusal> {
        let list = connection.list_handle();
        if let Some((_, offer)) = self.offers.by_list.get(&(list.address(), kind)) {
            return Ok(offer);
        }
        let tools = connection.listed(kind);
        let slug = (connection.slug().to_owned(), kind);
        let known = self.offers.last.get(&slug).filter(|offer| offer.is_of(&tools));
        let offer = if let Some(offer) = known {
            offer
        } else {
            // A thousand schemas take a while: not on a thread that serves requests.
            let rules = connection.server().apps().cloned();
            let prepare = move || Offer::prepare(tools, rules.as_ref());
            let prepared = self.base.worked(connection.org, usize::MAX, prepare);
            Arc::new(prepared.await?)
        };
        self.offers.keep(slug, list, &offer);
        Ok(offer)
    }

    /// Prepares the texts of long lists that a provider told now, before a caller waits for them.
    pub(crate) async fn prepare_ahead(&self, provider: &Provider) {
        for kind in provider.server().kinds() {
            let state = provider.state();
            let tools = listed(provider.server(), *kind, state.tools.iter().flatten());
            if tools.len() < PREPARED_AHEAD {
                continue;
            }
            let rules = provider.server().apps().cloned();
            let prepare = move || Arc::new(Offer::prepare(tools, rules.as_ref()));
            if let Some(offer) = self.base.list_work(provider.declared.org, prepare).await {
                let slug = (provider.declared.slug.to_string(), *kind);
                self.offers.keep(slug, ListHandle::new(state), &offer);
            }
        }
    }
}
