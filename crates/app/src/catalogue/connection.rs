//! A connection to a provider: its owner, what goes upstream for it, and the tools it lists.

use std::{collections::BTreeMap, sync::Arc};

use arc_swap::ArcSwap;
use portcullis_core::{
    audit,
    capability::{Capability, CapabilityKind},
    clock::Timestamp,
    id::{OrgId, ProviderId},
    refusal::{Refusal, Remedy},
};
use portcullis_store::{ProviderOwner, ProviderRecord, ProviderStatus};
use portcullis_upstream::{CallError, CallErrorKind, Credential, Server};

use super::{auth::Auth, freshness::Freshness, provider::Provider};

/// The tools and prompts that a connection lists, by id.
pub(crate) type CapabilityMap = BTreeMap<String, Arc<Capability>>;

/// Number of the tools in a list.
pub(crate) fn count_tools<'a>(list: impl IntoIterator<Item = &'a Arc<Capability>>) -> usize {
    list.into_iter().filter(|it| it.id.kind() == CapabilityKind::Tool).count()
}

/// All of a kind that a list of this server shows.
pub(crate) fn listed<'a>(
    server: &Server,
    kind: CapabilityKind,
    all: impl Iterator<Item = &'a Arc<Capability>>,
) -> Vec<Arc<Capability>> {
    // What was kept of a list may be of a kind that is exposed no more.
    let exposed = server.kinds().contains(&kind);
    let is_shown = |it: &&Arc<Capability>| exposed && it.id.kind() == kind && !it.id.is_unlisted();
    all.filter(is_shown).cloned().collect()
}

/// Holds a list of tools, so that its address stays its own.
#[derive(Debug, Clone)]
pub(crate) struct ListHandle(Arc<dyn std::any::Any + Send + Sync>);

impl ListHandle {
    pub(crate) fn new<T: Send + Sync + 'static>(list: Arc<T>) -> Self {
        Self(list)
    }

    /// The address of the list.
    pub(crate) fn address(&self) -> usize {
        Arc::as_ptr(&self.0).cast::<()>().addr()
    }
}

/// A connection that can be called through.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) id: ProviderId,
    pub(crate) org: OrgId,
    pub(crate) owner: ProviderOwner,
    pub(crate) provider: Arc<Provider>,
    pub(crate) way: Route,
}

/// Credential route of a connection.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "each is kept in an Arc of its own, most are large")]
pub(crate) enum Route {
    /// The route of the configuration, shared by all that may use the provider.
    Declared,
    Own(OwnRoute),
}

/// Route that shows one credential, and what is known of it.
#[derive(Debug)]
pub(crate) struct OwnRoute {
    pub(crate) server: Server,
    pub(crate) consent: String,
    pub(crate) live: ArcSwap<Live>,
    /// Held by the task that gets new credentials. Time and reason of the last failure.
    pub(crate) renewing: tokio::sync::Mutex<Option<(Timestamp, Refusal)>>,
    /// Age of its list of tools.
    pub(crate) freshness: Freshness,
}

/// A connection with a credential of its own, as it is now.
#[derive(Debug)]
pub(crate) struct Live {
    pub(crate) record: ProviderRecord,
    pub(crate) tools: Arc<CapabilityMap>,
    pub(crate) credential: Fitness,
}

/// The use that a connection's credential is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fitness {
    Fit,
    /// There is none, or it is for another server than the configured one.
    Unfit,
    Unreadable,
}

impl Connection {
    pub(crate) fn slug(&self) -> &str {
        self.provider.declared.slug.as_str()
    }

    /// Owner of the credential that goes upstream.
    pub(crate) const fn credential(&self) -> audit::Credential {
        match self.owner {
            ProviderOwner::Org => audit::Credential::Org,
            ProviderOwner::Principal(_) => audit::Credential::Own,
        }
    }

    pub(crate) fn server(&self) -> &Server {
        match &self.way {
            Route::Declared => self.provider.server(),
            Route::Own(own) => &own.server,
        }
    }

    pub(crate) fn own(&self) -> Option<&OwnRoute> {
        match &self.way {
            Route::Declared => None,
            Route::Own(own) => Some(own),
        }
    }

    /// Age of the list by which tools are called through it.
    pub(crate) fn freshness(&self) -> &Freshness {
        match &self.way {
            Route::Declared => &self.provider.freshness,
            Route::Own(own) => &own.freshness,
        }
    }

    /// All that it lists of a kind.
    pub(crate) fn listed(&self, kind: CapabilityKind) -> Vec<Arc<Capability>> {
        match &self.way {
            Route::Declared => {
                listed(self.server(), kind, self.provider.state().tools.iter().flatten())
            }
            Route::Own(own) => listed(self.server(), kind, own.live.load().tools.values()),
        }
    }

    /// The ids of all that it lists.
    pub(crate) fn ids(&self) -> Vec<String> {
        let id = |it: &Arc<Capability>| it.id.to_string();
        match &self.way {
            Route::Declared => self.provider.state().tools.iter().flatten().map(id).collect(),
            Route::Own(own) => own.live.load().tools.values().map(id).collect(),
        }
    }

    /// The list of its tools, which is known by its address as long as it is held.
    pub(crate) fn list_handle(&self) -> ListHandle {
        match &self.way {
            Route::Declared => ListHandle::new(self.provider.state()),
            Route::Own(own) => ListHandle::new(Arc::clone(&own.live.load().tools)),
        }
    }

    pub(crate) fn status(&self) -> ProviderStatus {
        match &self.way {
            Route::Declared => self.provider.status(),
            Route::Own(own) => own.live().status(),
        }
    }

    /// Answer to the caller when the provider failed a call through it.
    pub(crate) fn refusal(&self, error: &CallError) -> Refusal {
        match error.kind {
            CallErrorKind::AuthRequired => self.unauthorized(Vec::new()),
            CallErrorKind::Forbidden => {
                let challenge = self.server().challenge();
                let wants_more = challenge.filter(|challenge| challenge.insufficient_scope);
                let granted = self.own().map(OwnRoute::live);
                let granted = granted.map(|live| live.record.grant.scopes.clone());
                let scopes = wants_more.map(|it| it.beside(&granted.unwrap_or_default()));
                self.unauthorized(scopes.unwrap_or_default())
            }
            CallErrorKind::Upstream(_)
            | CallErrorKind::NotFound
            | CallErrorKind::Unanswerable(_)
            | CallErrorKind::Timeout { .. }
            | CallErrorKind::Overloaded
            | CallErrorKind::Resting { .. } => self.provider.failure(error),
        }
    }

    /// The provider does not take the credential, or not for that.
    pub(crate) fn unauthorized(&self, scopes: Vec<String>) -> Refusal {
        let provider = self.provider.declared.slug.clone();
        let remedy = match self.provider.declared.auth {
            Auth::Key(_) | Auth::OAuth(_) => Remedy::Connect,
            Auth::ConfiguredKey => Remedy::Configure,
            Auth::None => Remedy::Declare,
        };
        Refusal::ProviderAuthRequired { provider, provider_id: self.id, scopes, remedy }
    }
}

impl OwnRoute {
    /// The tool of this id, if it is listed.
    pub(crate) fn tool(&self, id: &str) -> Option<Arc<Capability>> {
        self.live.load().tools.get(id).cloned()
    }

    pub(crate) fn live(&self) -> Arc<Live> {
        self.live.load_full()
    }

    /// Takes what is known over, unless something newer is known already.
    pub(crate) fn update(&self, live: Live) {
        let live = Arc::new(live);
        self.live.rcu(|known| {
            let older = live.record.revision < known.record.revision;
            Arc::clone(if older { known } else { &live })
        });
    }
}

impl Live {
    fn status(&self) -> ProviderStatus {
        match self.credential {
            Fitness::Fit => self.record.status,
            Fitness::Unfit => ProviderStatus::NeedsAuth,
            Fitness::Unreadable => ProviderStatus::Error,
        }
    }
}

/// The connections a principal may call through, by slug: its own before the org's.
#[derive(Debug, Default)]
pub(crate) struct Reachable(pub(crate) BTreeMap<String, Arc<Connection>>);

impl Reachable {
    pub(crate) fn get(&self, slug: &str) -> Option<&Arc<Connection>> {
        self.0.get(slug)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Connection>> {
        self.0.values()
    }

    /// Connections of one provider.
    pub(crate) fn of_provider(&self, slug: &str) -> Self {
        let own = self.get(slug).map(|connection| (slug.to_owned(), Arc::clone(connection)));
        Self(own.into_iter().collect())
    }

    /// True if none of them is one whose credential could not be read, which is tried again soon.
    pub(crate) fn is_settled(&self) -> bool {
        let unreadable = |own: &OwnRoute| own.live.load().credential == Fitness::Unreadable;
        !self.iter().any(|connection| connection.own().is_some_and(unreadable))
    }
}

/// A connection with a way of its own, which shows this credential or none.
pub(crate) fn own_route(
    live: Live,
    provider: &Arc<Provider>,
    credential: Option<Credential>,
    consent: String,
) -> Arc<Connection> {
    Arc::new(Connection {
        id: live.record.id,
        org: live.record.org_id,
        owner: live.record.owner,
        provider: Arc::clone(provider),
        way: Route::Own(OwnRoute {
            server: provider.server().beside(credential),
            consent,
            live: ArcSwap::from_pointee(live),
            renewing: tokio::sync::Mutex::default(),
            freshness: Freshness::default(),
        }),
    })
}
