//! Providers as the configuration declares them, and what is known of each.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use arc_swap::ArcSwap;
use portcullis_core::{
    capability::{Capability, CapabilityKind, Definition, ProviderSlug},
    clock::Timestamp,
    id::OrgId,
    refusal::{Refusal, Unavailable},
};
use portcullis_store::ProviderStatus;
use portcullis_upstream::{CallAnswer, CallError, CallErrorKind, Endpoint, Server};
use tokio::sync::Notify;

use super::{
    auth::{AccountSource, Auth, Owners},
    authorizer::Authorizer,
    freshness::Freshness,
};
use crate::telemetry::{
    counters,
    histograms::{Family, MOMENTS, Times},
};

/// Setting of the operator for changes of a provider's tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Pinning {
    /// The first definition of a tool is accepted, every other one waits.
    On,
    /// The tools of a provider's first list are accepted; those that it adds later wait as well.
    #[default]
    ReviewAdditions,
    /// All new tools wait as well.
    Review,
    /// Every definition that the upstream lists is used.
    Off,
}

/// Treatment of results that do not fit the output schema of their tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Misfits {
    /// Answers pass; event and counter tell of them.
    #[default]
    Note,
    /// Answers are withheld.
    Deny,
    /// Answers pass unseen.
    Ignore,
}

/// A provider as the operator's configuration declares it.
#[derive(Debug, Clone)]
pub struct Declared {
    pub slug: ProviderSlug,
    pub name: String,
    /// It has a server card, which anybody may read.
    pub card: bool,
    /// The one org that may use it; `None` means every org of this installation.
    pub org: Option<OrgId>,
    pub auth: Auth,
    /// Principals that may have connections to it.
    pub owners: Owners,
    /// Endpoint where it names the account of a credential.
    pub account: Option<AccountSource>,
    /// Endpoint of the provider, if it is reached over HTTP.
    pub endpoint: Option<Endpoint>,
    pub server: Server,
    pub pinning: Pinning,
    /// A tool stays out if patterns of its input schema cannot be enforced.
    pub strict_patterns: bool,
    /// Treatment of results that do not fit the output schema of their tool.
    pub misfits: Misfits,
    /// Tools that are remembered of it, for each org that has it to itself; what it lists beyond
    /// them stays out.
    pub max_pins: usize,
}

impl Declared {
    /// Address of the MCP server, to which credentials are bound.
    pub(crate) fn address(&self) -> &str {
        self.endpoint.as_ref().map_or("", Endpoint::as_str)
    }

    /// The words of `expose` in the configuration.
    pub(crate) fn exposes(&self) -> Vec<&'static str> {
        let word = |kind: &CapabilityKind| match kind {
            CapabilityKind::Tool => Some("tools"),
            CapabilityKind::Prompt => Some("prompts"),
            // Apps bring resources, and no templates.
            CapabilityKind::Resource => None,
            CapabilityKind::Template => Some("resources"),
            CapabilityKind::Skill => Some("skills"),
        };
        let apps = self.server.apps().map(|_| "apps");
        let tasks = self.server.passes_tasks().then_some("tasks");
        self.server.kinds().iter().filter_map(word).chain(apps).chain(tasks).collect()
    }

    /// Kinds and extensions that the server declares and that do not pass: the configuration does not expose them, or the
    /// gateway does not know them.
    pub(crate) fn dropped(&self) -> Vec<String> {
        let exposed = self.exposes();
        let offered = self.server.offered();
        offered.iter().filter(|it| !exposed.contains(&it.as_str())).cloned().collect()
    }
}

/// State of a provider at a moment.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) status: ProviderStatus,
    /// `None` until the provider told them for the first time.
    pub(crate) tools: Option<Vec<Arc<Capability>>>,
    pub(crate) last_error: Option<String>,
    /// When the log told of this error.
    told_at: Option<Timestamp>,
    pub(crate) updated_at: Timestamp,
}

/// Seconds after which the log tells again of a provider that stays broken in the same way.
const TOLD_AGAIN_SECONDS: i64 = 3_600;

/// A declared provider and its state.
#[derive(Debug)]
pub(crate) struct Provider {
    pub(crate) declared: Declared,
    /// Authorization server, once it is found.
    pub(crate) authorizer: Authorizer,
    /// The operator accepted a tool, or another node saw one change.
    pub(crate) look_again: Notify,
    /// Age of the list of its tools.
    pub(crate) freshness: Freshness,
    state: ArcSwap<State>,
    times: Arc<Times>,
}

static FAMILY: Family = Family {
    name: "portcullis_upstream_seconds",
    help: "Time of calls at each provider, failed ones included",
    label: "provider",
    bounds: &MOMENTS,
};

impl Provider {
    pub(crate) fn new(declared: Declared, now: Timestamp) -> Self {
        let nobody = declared.auth.needs_nobody();
        let state = State {
            // What people connect is as its connections are.
            status: if nobody { ProviderStatus::Pending } else { ProviderStatus::Connected },
            tools: None,
            last_error: None,
            told_at: None,
            updated_at: now,
        };
        let authorizer = Authorizer::default();
        let look_again = Notify::new();
        let times = Times::of(&FAMILY, declared.slug.as_str());
        counters::start_provider(declared.slug.as_str());
        let freshness = Freshness::default();
        let state = ArcSwap::from_pointee(state);
        Self { declared, authorizer, look_again, freshness, state, times }
    }

    pub(crate) fn server(&self) -> &Server {
        &self.declared.server
    }

    pub(crate) fn state(&self) -> Arc<State> {
        self.state.load_full()
    }

    pub(crate) fn status(&self) -> ProviderStatus {
        let status = self.state.load().status;
        let starts = status != ProviderStatus::Connected && self.server().is_starting();
        if starts { ProviderStatus::Starting } else { status }
    }

    pub(crate) fn is_open_to(&self, org: OrgId) -> bool {
        self.declared.org.is_none_or(|owner| owner == org)
    }

    /// `true` if it is connected and known to have exactly these tools.
    pub(crate) fn has(&self, definitions: &[Definition]) -> bool {
        let state = self.state.load();
        let same = |(tool, definition): (&Arc<Capability>, &Definition)| {
            tool.definition.name == definition.name && tool.version == definition.version()
        };
        state.status == ProviderStatus::Connected
            && state.tools.as_ref().is_some_and(|tools| {
                tools.len() == definitions.len() && tools.iter().zip(definitions).all(same)
            })
    }

    /// The provider told its tools.
    pub(crate) fn connected(&self, tools: Vec<Arc<Capability>>, now: Timestamp) {
        counters::provider(self.declared.slug.as_str(), ProviderStatus::Connected);
        self.state.store(Arc::new(State {
            status: ProviderStatus::Connected,
            tools: Some(tools),
            last_error: None,
            told_at: None,
            updated_at: now,
        }));
    }

    /// A connection listed these tools; whether there is one among them that was not known. Of a
    /// provider that people connect, the catalogue holds what any of its connections lists; when
    /// that is more than is remembered of it, what none in use (`listed`) lists is forgotten.
    pub(crate) fn learned(
        &self,
        tools: &[Arc<Capability>],
        listed: impl Fn() -> BTreeSet<String>,
    ) -> bool {
        let mut news = false;
        self.state.rcu(|state| {
            let known = state.tools.iter().flatten();
            let mut all: BTreeMap<&str, &Arc<Capability>> =
                known.map(|tool| (tool.id.as_str(), tool)).collect();
            let unknown = |tool: &&Arc<Capability>| {
                all.get(tool.id.as_str()).is_none_or(|known| known.version != tool.version)
            };
            news = state.tools.is_none() || tools.iter().any(|tool| unknown(&tool));
            all.extend(tools.iter().map(|tool| (tool.id.as_str(), tool)));
            if all.len() > self.declared.max_pins {
                let mut there = listed();
                there.extend(tools.iter().map(|tool| tool.id.to_string()));
                all.retain(|id, _| there.contains(*id));
            }
            State {
                status: state.status,
                tools: Some(all.into_values().cloned().collect()),
                last_error: None,
                told_at: None,
                updated_at: state.updated_at,
            }
        });
        news
    }

    /// The provider could not be asked; what was known of its tools stays.
    pub(crate) fn failed(&self, error: &CallError, why: String, now: Timestamp) {
        let status = match error.kind {
            CallErrorKind::AuthRequired | CallErrorKind::Forbidden => ProviderStatus::NeedsAuth,
            CallErrorKind::Upstream(_)
            | CallErrorKind::NotFound
            | CallErrorKind::Unanswerable(_)
            | CallErrorKind::Timeout { .. }
            | CallErrorKind::Overloaded
            | CallErrorKind::Resting { .. } => ProviderStatus::Error,
        };
        counters::provider(self.declared.slug.as_str(), status);
        let before = self.state.load();
        let known = before.last_error.as_ref() == Some(&why);
        let told_at =
            before.told_at.filter(|at| known && now < at.plus_seconds(TOLD_AGAIN_SECONDS));
        if told_at.is_none() {
            tracing::warn!(provider = %self.declared.slug, error = why, "provider cannot be used");
        }
        self.state.store(Arc::new(State {
            status,
            tools: before.tools.clone(),
            last_error: Some(why),
            told_at: told_at.or(Some(now)),
            updated_at: now,
        }));
    }

    /// A call to it ended, and how long it took is counted.
    pub(crate) fn called(
        &self,
        answered: &Result<CallAnswer, CallError>,
        begun: Timestamp,
        now: Timestamp,
    ) {
        self.times.count(begun, now);
        if let Err(error) = answered
            && error.kind != CallErrorKind::NotFound
        {
            counters::upstream_failed(self.declared.slug.as_str(), error.kind.as_str());
        }
    }

    /// A call to it failed. If it cannot be reached at all, it is looked after at once: then its
    /// status says so, and it heals by itself.
    pub(crate) fn record_failure(&self) {
        if self.status() == ProviderStatus::Connected && self.server().is_resting() {
            self.look_again.notify_one();
        }
    }

    /// Keeps the known tools, because they cannot be brought up to date.
    pub(crate) fn stays(&self, why: &str, now: Timestamp) {
        counters::provider(self.declared.slug.as_str(), ProviderStatus::Error);
        self.state.store(Arc::new(State {
            status: ProviderStatus::Error,
            tools: self.state.load().tools.clone(),
            last_error: Some(why.to_owned()),
            told_at: None,
            updated_at: now,
        }));
    }

    /// Answer to the caller when the provider failed before there was a connection.
    pub(crate) fn failure(&self, error: &CallError) -> Refusal {
        let provider = self.declared.slug.clone();
        match error.kind {
            CallErrorKind::Upstream(reason) => Refusal::upstream(provider, reason),
            CallErrorKind::NotFound => Refusal::not_found("resource", ""),
            CallErrorKind::Unanswerable(required) => Refusal::Unanswerable { provider, required },
            CallErrorKind::Timeout { after } => Refusal::UpstreamTimeout {
                provider,
                timeout_ms: u64::try_from(after.as_millis()).unwrap_or(u64::MAX),
            },
            CallErrorKind::AuthRequired | CallErrorKind::Forbidden => {
                Refusal::RejectedByProvider { provider }
            }
            CallErrorKind::Overloaded => Refusal::Unavailable { reason: Unavailable::Overloaded },
            CallErrorKind::Resting { rest } => Refusal::UpstreamResting {
                provider,
                retry_after: rest.as_secs().saturating_add(u64::from(rest.subsec_nanos() > 0)),
            },
        }
    }
}
