//! The providers the operator declared: their servers, their state, their records.

use std::sync::Arc;

use arc_swap::ArcSwap;
use portcullis_core::{
    audit::{Credential, Event, EventType, Target},
    clock::Timestamp,
    id::{OrgId, ProviderId},
    principal::Scope,
    refusal::{Refusal, Unavailable},
    tool::{ProviderSlug, Tool},
};
use portcullis_store::{NewProvider, ProviderOwner, ProviderStatus};
use portcullis_upstream::{CallError, CallErrorKind, Server};
use serde::Serialize;
use tokio::sync::Notify;

use crate::{App, Ctx, Pinning, counting, store_failed, tenants::Connections};

/// How the gateway authenticates to a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AuthKind {
    /// Not at all.
    None,
    /// With a key from the operator's configuration.
    ApiKey,
}

impl AuthKind {
    /// `none` or `api_key`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::ApiKey => "api_key",
        }
    }
}

/// A provider as the operator's configuration declares it.
#[derive(Debug, Clone)]
pub struct Declared {
    /// Its short name.
    pub slug: ProviderSlug,
    /// Its name for people.
    pub name: String,
    /// The one org that may use it; `None` means every org of this installation.
    pub org: Option<OrgId>,
    /// How the gateway authenticates to it.
    pub auth: AuthKind,
    /// The way to it.
    pub server: Server,
    /// What becomes of tools that change.
    pub pinning: Pinning,
}

/// What is known of a provider at a moment.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) status: ProviderStatus,
    /// `None` until the provider told them for the first time.
    pub(crate) tools: Option<Vec<Arc<Tool>>>,
    pub(crate) last_error: Option<String>,
    pub(crate) updated_at: Timestamp,
}

/// A declared provider and its state.
#[derive(Debug)]
pub(crate) struct Provider {
    pub(crate) declared: Declared,
    /// Somebody accepted a tool, or another node saw one change.
    pub(crate) look_again: Notify,
    state: ArcSwap<State>,
}

impl Provider {
    pub(crate) fn new(declared: Declared, now: Timestamp) -> Self {
        let state = State {
            status: ProviderStatus::Pending,
            tools: None,
            last_error: None,
            updated_at: now,
        };
        Self { declared, look_again: Notify::new(), state: ArcSwap::from_pointee(state) }
    }

    pub(crate) fn server(&self) -> &Server {
        &self.declared.server
    }

    pub(crate) fn state(&self) -> Arc<State> {
        self.state.load_full()
    }

    pub(crate) fn status(&self) -> ProviderStatus {
        self.state.load().status
    }

    pub(crate) fn is_open_to(&self, org: OrgId) -> bool {
        self.declared.org.is_none_or(|owner| owner == org)
    }

    /// The provider told its tools.
    pub(crate) fn connected(&self, tools: Vec<Arc<Tool>>, now: Timestamp) {
        counting::provider(self.declared.slug.as_str(), ProviderStatus::Connected);
        self.state.store(Arc::new(State {
            status: ProviderStatus::Connected,
            tools: Some(tools),
            last_error: None,
            updated_at: now,
        }));
    }

    /// The provider could not be asked; what was known of its tools stays.
    pub(crate) fn failed(&self, error: &CallError, now: Timestamp) {
        let status = match error.kind {
            CallErrorKind::AuthRequired => ProviderStatus::NeedsAuth,
            CallErrorKind::Upstream(_)
            | CallErrorKind::Timeout { .. }
            | CallErrorKind::Overloaded
            | CallErrorKind::Resting { .. } => ProviderStatus::Error,
        };
        counting::provider(self.declared.slug.as_str(), status);
        self.state.store(Arc::new(State {
            status,
            tools: self.state.load().tools.clone(),
            last_error: Some(error.to_string()),
            updated_at: now,
        }));
    }

    /// A call to it failed. If it cannot be reached at all, it is looked after at once: then its
    /// status says so, and it heals by itself.
    pub(crate) fn fails(&self) {
        if self.status() == ProviderStatus::Connected && self.server().is_resting() {
            self.look_again.notify_one();
        }
    }

    /// What is known of its tools cannot be brought up to date; it stays as it was.
    pub(crate) fn stays(&self, why: &str, now: Timestamp) {
        counting::provider(self.declared.slug.as_str(), ProviderStatus::Error);
        self.state.store(Arc::new(State {
            status: ProviderStatus::Error,
            tools: self.state.load().tools.clone(),
            last_error: Some(why.to_owned()),
            updated_at: now,
        }));
    }

    /// What a caller is answered when the provider failed.
    pub(crate) fn refusal(&self, error: &CallError, provider_id: ProviderId) -> Refusal {
        let provider = self.declared.slug.clone();
        match error.kind {
            CallErrorKind::Upstream(reason) => Refusal::UpstreamError { provider, reason },
            CallErrorKind::Timeout { after } => Refusal::UpstreamTimeout {
                provider,
                timeout_ms: u64::try_from(after.as_millis()).unwrap_or(u64::MAX),
            },
            CallErrorKind::AuthRequired => Refusal::ProviderAuthRequired { provider, provider_id },
            CallErrorKind::Overloaded => Refusal::Unavailable { reason: Unavailable::Overloaded },
            CallErrorKind::Resting { rest } => Refusal::UpstreamResting {
                provider,
                retry_after: rest.as_secs().saturating_add(u64::from(rest.subsec_nanos() > 0)),
            },
        }
    }
}

/// A connection as it is shown (contract §6).
#[derive(Debug, Clone)]
pub struct ProviderView {
    /// The connection.
    pub id: ProviderId,
    /// What it connects to.
    pub slug: ProviderSlug,
    /// Its name for people.
    pub name: String,
    /// Whether it can be used.
    pub status: ProviderStatus,
    /// The org that owns it.
    pub owner: OrgId,
    /// How the gateway authenticates to it.
    pub auth: AuthKind,
    /// How many tools it offers.
    pub tools: usize,
    /// What went wrong last, in our words.
    pub last_error: Option<String>,
    /// When the connection was made.
    pub connected_at: Timestamp,
    /// When its state changed last.
    pub updated_at: Timestamp,
}

/// How a declared provider is, for the operator.
#[derive(Debug, Clone)]
pub struct ProviderState {
    /// Its short name.
    pub slug: String,
    /// Whether it can be used.
    pub status: ProviderStatus,
    /// How many tools it offers.
    pub tools: usize,
    /// What went wrong last, in our words.
    pub last_error: Option<String>,
}

/// Which connections to list.
#[derive(Debug, Clone, Default)]
pub struct ProviderQuery {
    /// Only these slugs; empty means all.
    pub slugs: Vec<String>,
    /// Only these statuses; `None` means all but `pending`.
    pub statuses: Option<Vec<String>>,
    /// Only those that come after this (slug, id).
    pub after: Option<String>,
    /// At most so many.
    pub limit: usize,
}

impl App {
    /// The connections the caller may use, by slug; and whether there are more.
    pub async fn providers(
        &self,
        ctx: &Ctx,
        query: &ProviderQuery,
    ) -> Result<(Vec<ProviderView>, bool), Refusal> {
        ctx.require(Scope::ProvidersRead)?;
        let connections = self.connections(ctx).await?;
        let mut found: Vec<_> = self
            .open_to(ctx)
            .filter(|provider| {
                let slug = provider.declared.slug.as_str();
                let status = provider.status();
                let wanted = match &query.statuses {
                    Some(statuses) => statuses.iter().any(|s| s == status.as_str()),
                    None => status != ProviderStatus::Pending,
                };
                wanted
                    && (query.slugs.is_empty() || query.slugs.iter().any(|s| s == slug))
                    && query.after.as_deref().is_none_or(|after| slug > after)
            })
            .take(query.limit.saturating_add(1))
            .filter_map(|provider| view(provider, ctx, &connections))
            .collect();
        let more = found.len() > query.limit;
        found.truncate(query.limit);
        Ok((found, more))
    }

    /// One connection, if the caller may use it.
    pub async fn provider(&self, ctx: &Ctx, id: &str) -> Result<ProviderView, Refusal> {
        ctx.require(Scope::ProvidersRead)?;
        let connections = self.connections(ctx).await?;
        let mut views = self.open_to(ctx).filter_map(|provider| view(provider, ctx, &connections));
        views
            .find(|view| view.id.to_string() == id)
            .ok_or_else(|| Refusal::not_found("provider", id))
    }

    fn open_to(&self, ctx: &Ctx) -> impl Iterator<Item = &Arc<Provider>> {
        let org = ctx.caller().org_id;
        self.providers.values().filter(move |provider| provider.is_open_to(org))
    }

    async fn connections(&self, ctx: &Ctx) -> Result<Arc<Connections>, Refusal> {
        self.connections_of(ctx.caller().org_id).await
    }

    /// The ids of the org's connections; made on first sight, the same ever after.
    pub(crate) async fn connections_of(&self, org: OrgId) -> Result<Arc<Connections>, Refusal> {
        let tenant = self.tenants.tenant(org);
        if let Some(known) = tenant.connections.get() {
            return Ok(Arc::clone(known));
        }
        let mut made = Connections::default();
        for provider in self.providers.values().filter(|provider| provider.is_open_to(org)) {
            let id = ProviderId::new(self.ids());
            let Declared { slug, name, auth, .. } = &provider.declared;
            let declared = NewProvider {
                id,
                org_id: org,
                owner: ProviderOwner::Org,
                slug: slug.clone(),
                name: name.clone(),
                auth_type: auth.as_str().to_owned(),
            };
            let record = self.store.upsert_provider(&declared, self.clock.now()).await;
            let record = record.map_err(|error| store_failed(&error))?;
            if record.id == id {
                self.record(self.provider_connected(org, id)).await?;
            }
            made.insert(slug.as_str().to_owned(), (record.id, record.created_at));
        }
        Ok(Arc::clone(tenant.connections.get_or_init(|| Arc::new(made))))
    }

    fn provider_connected(&self, org: OrgId, id: ProviderId) -> Event {
        let target = Target {
            credential: Some(Credential::Org),
            id: Some(id.to_string()),
            provider_id: Some(id),
            kind: "provider",
            version: None,
        };
        self.system_event(org, EventType::ProviderConnected, target)
    }

    /// How every declared provider is.
    #[must_use]
    pub fn provider_states(&self) -> Vec<ProviderState> {
        let states = self.providers.iter().map(|(slug, provider)| {
            let state = provider.state();
            ProviderState {
                slug: slug.clone(),
                status: state.status,
                tools: state.tools.as_ref().map_or(0, Vec::len),
                last_error: state.last_error.clone(),
            }
        });
        states.collect()
    }
}

fn view(provider: &Arc<Provider>, ctx: &Ctx, connections: &Connections) -> Option<ProviderView> {
    let state = provider.state();
    let (id, connected_at) = *connections.get(provider.declared.slug.as_str())?;
    Some(ProviderView {
        id,
        slug: provider.declared.slug.clone(),
        name: provider.declared.name.clone(),
        status: state.status,
        owner: ctx.caller().org_id,
        auth: provider.declared.auth,
        tools: state.tools.as_ref().map_or(0, Vec::len),
        last_error: state.last_error.clone(),
        connected_at,
        updated_at: state.updated_at,
    })
}
