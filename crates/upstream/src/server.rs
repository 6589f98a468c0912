//! One upstream server, as the rest of the gateway sees it.

mod completion;
mod link;
mod watching;
mod words;

use std::{collections::HashSet, fmt, sync::Arc, time::Duration};

use arc_swap::{ArcSwap, ArcSwapOption};
use portcullis_core::{
    call::{Cleared, Use},
    capability::{Capability, CapabilityId, CapabilityKind, ProviderSlug},
    id::OrgId,
    json::JsonValue,
    mcp::{Method, apps::AppRules, interaction::ClientCapabilities, skills},
    oauth::Challenge,
    refusal::{Executed, UpstreamReason},
    trace::TraceParent,
};
use portcullis_lanes::{FairLimits, FairSlots};
use tokio::{sync::watch, time::Instant};

use self::link::Link;
use crate::{
    answer::CallAnswer,
    breaker::Breaker,
    error::{CallError, CallErrorKind, SettingsError},
    forms::{FormTally, Forms},
    live::Live,
    mcp::outgoing::Outgoing,
    outbound::Outbound,
    server_message::ServerWords,
    settings::{Credential, ServerSettings},
    task::TaskRequest,
    tools::{Apps, Collector, DefinitionList},
};

/// Longest time for a list of another kind than tools, and for suggestions.
const BESIDE_TOOLS: Duration = Duration::from_secs(5);
/// Longest time that a call waits for its slot.
const PATIENCE: Duration = Duration::from_millis(40);

/// One upstream server. Connections and processes begin with the first use and are renewed when
/// they break. Cheap to clone; dropping the last clone ends the process and all it has started.
#[derive(Clone)]
pub struct Server(Arc<Inner>);

struct Inner {
    slug: ProviderSlug,
    kinds: Vec<CapabilityKind>,
    apps: Option<Arc<AppRules>>,
    dynamic_skills: bool,
    tasks: bool,
    call_timeout: Duration,
    forms: Forms,
    slots: Arc<FairSlots<OrgId>>,
    breaker: Arc<Breaker>,
    link: Link,
    /// Words of the error by which it answered the last request for its tools.
    words: ArcSwapOption<String>,
    /// Folders of the skills that it told of last, whether or not they can be used.
    skill_folders: ArcSwap<HashSet<String>>,
    changed: watch::Receiver<u64>,
}

/// Surroundings of a call: the W3C trace context, passed on in `_meta` and, over HTTP, also in the
/// headers, and the caller as far as it attends the call.
#[derive(Debug, Clone, Copy, Default)]
pub struct Trace<'a> {
    pub traceparent: Option<TraceParent>,
    pub tracestate: Option<&'a str>,
    /// The caller's side of the call, if it wants to hear of progress.
    pub live: Option<&'a Live>,
    /// Counter of the forms of the server, if it has any answered.
    pub forms: Option<&'a FormTally>,
    /// Place for the words of a server that answers with an error.
    pub said: Option<&'a ServerWords>,
    /// Number of the process or session that listed the tool ([`DefinitionList::peer`]); to another one
    /// nothing is sent.
    pub peer: Option<u64>,
}

impl Server {
    /// A server with these settings. Nothing is dialled or started yet. Rejects settings that can
    /// never work.
    pub fn new(settings: ServerSettings, outbound: &Outbound) -> Result<Self, SettingsError> {
        settings.check()?;
        let (announcer, changed) = watch::channel(0);
        let slug = settings.slug.clone();
        let kinds = settings.kinds.clone();
        let apps = settings.apps.clone().map(Arc::new);
        let (dynamic_skills, tasks) = (settings.dynamic_skills, settings.tasks);
        let call_timeout = settings.call_timeout;
        let forms = settings.forms;
        let slots = Arc::new(FairSlots::new(in_flight(settings.max_in_flight)));
        let link = Link::new(settings, outbound, announcer)?;
        let breaker = Arc::default();
        Ok(Self(Arc::new(Inner {
            slug,
            kinds,
            apps,
            dynamic_skills,
            tasks,
            call_timeout,
            forms,
            slots,
            breaker,
            link,
            words: ArcSwapOption::empty(),
            skill_folders: ArcSwap::default(),
            changed,
        })))
    }

    /// A way of its own to the same server that shows this credential: sessions, and what the
    /// server told about its tools, are never shared with another one. Connections and slots are.
    /// A program has no credentials, so over stdio it is the same way.
    #[must_use]
    pub fn beside(&self, credential: Option<Credential>) -> Self {
        match &self.0.link {
            Link::Http { http, .. } => {
                let (http, stop) = http.beside(credential);
                Self(Arc::new(Inner {
                    slug: self.0.slug.clone(),
                    kinds: self.0.kinds.clone(),
                    apps: self.0.apps.clone(),
                    dynamic_skills: self.0.dynamic_skills,
                    tasks: self.0.tasks,
                    call_timeout: self.0.call_timeout,
                    forms: self.0.forms,
                    slots: Arc::clone(&self.0.slots),
                    breaker: Arc::clone(&self.0.breaker),
                    link: Link::Http { http, _stop: stop },
                    words: ArcSwapOption::empty(),
                    skill_folders: ArcSwap::default(),
                    changed: self.0.changed.clone(),
                }))
            }
            Link::Stdio(_) => self.clone(),
        }
    }

    /// Shows this credential with every message from now on. For one that was renewed: another
    /// account needs a way of its own.
    pub fn set_credential(&self, credential: Option<Credential>) {
        match &self.0.link {
            Link::Http { http, .. } => http.set_credential(credential),
            Link::Stdio(_) => {}
        }
    }

    /// Challenge of the last refusal of the credential.
    #[must_use]
    pub fn challenge(&self) -> Option<Arc<Challenge>> {
        match &self.0.link {
            Link::Http { http, .. } => http.challenge(),
            Link::Stdio(_) => None,
        }
    }

    /// The provider it serves.
    #[must_use]
    pub fn slug(&self) -> &ProviderSlug {
        &self.0.slug
    }

    /// Kinds of what it offers that are read and used.
    #[must_use]
    pub fn kinds(&self) -> &[CapabilityKind] {
        &self.0.kinds
    }

    /// Rights of its apps, if they pass.
    #[must_use]
    pub fn apps(&self) -> Option<&AppRules> {
        self.0.apps.as_deref()
    }

    /// Returns true if calls of its tools may become tasks.
    #[must_use]
    pub fn passes_tasks(&self) -> bool {
        self.0.tasks
    }

    /// Folders of the skills that it told of last, as [`skills::folder_of`] writes them.
    #[must_use]
    pub fn skill_folders(&self) -> Arc<HashSet<String>> {
        self.0.skill_folders.load_full()
    }

    /// Kinds and extensions that it declared last, in the words of `expose`; other extensions by their ids.
    #[must_use]
    pub fn offered(&self) -> Arc<Vec<String>> {
        self.0.link.offered()
    }

    /// Transport: `tcp`, or the `pipe` of a program.
    #[must_use]
    pub fn network(&self) -> &'static str {
        match &self.0.link {
            Link::Http { .. } => "tcp",
            Link::Stdio(_) => "pipe",
        }
    }

    /// Time limit of a call.
    #[must_use]
    pub fn call_timeout(&self) -> Duration {
        self.0.call_timeout
    }

    /// A count for the forms of one call, if forms of this server are answered.
    #[must_use]
    pub fn forms(&self) -> Option<FormTally> {
        match self.0.forms {
            Forms::Refuse => None,
            Forms::Defaults => Some(FormTally::default()),
        }
    }

    /// Everything of the kinds that are exposed, page by page: of each kind at most 20 pages, 1,000 definitions,
    /// 2 MiB, of resources and templates 200, 10,000 and 4 MiB. What is unusable is skipped and named. A server that does not know a kind has none of it, if others
    /// are exposed as well. Kinds of which the list fails beside another are told in [`DefinitionList::unlisted`].
    pub async fn list(&self) -> Result<DefinitionList, CallError> {
        let deadline = Instant::now() + self.0.call_timeout;
        let mut all = DefinitionList::default();
        let mut peer = None;
        for kind in &self.0.kinds {
            if all.hides(*kind) {
                all.add_unlisted(*kind);
                continue;
            }
            // What is listed beside tools may not keep them waiting.
            let deadline = match kind {
                CapabilityKind::Tool => deadline,
                CapabilityKind::Prompt
                | CapabilityKind::Resource
                | CapabilityKind::Template
                | CapabilityKind::Skill => deadline.min(Instant::now() + BESIDE_TOOLS),
            };
            match self.list_kind(*kind, peer, deadline).await {
                Ok((listed, its)) => {
                    peer = its.or(peer);
                    all.add(listed);
                }
                Err(error) if peer.is_some() && !error.is_new_peer() => all.add_unlisted(*kind),
                Err(error) => return Err(error),
            }
        }
        all.peer = peer.unwrap_or_default();
        if !all.unlisted().any(|it| it == CapabilityKind::Skill) {
            let folders = all.skills.iter().filter_map(|uri| skills::folder_of(uri));
            self.0.skill_folders.store(Arc::new(folders.collect()));
        }
        if self.0.apps.is_some() {
            all.add_pages();
        }
        Ok(all)
    }

    async fn list_kind(
        &self,
        kind: CapabilityKind,
        mut peer: Option<u64>,
        deadline: Instant,
    ) -> Result<(DefinitionList, Option<u64>), CallError> {
        let link = &self.0.link;
        let has_more = self.0.kinds.contains(&CapabilityKind::Template);
        let apps = self.0.apps.as_ref().map(|_| if has_more { Apps::Exposed } else { Apps::Alone });
        let collector = Collector::new(kind, link.headers(), apps);
        let mut collector = collector.with_dynamic_skills(self.0.dynamic_skills);
        let capabilities =
            ClientCapabilities { ui: self.0.apps.is_some(), ..ClientCapabilities::default() };
        let mut cursor: Option<String> = None;
        loop {
            let said = ServerWords::default();
            let request = Outgoing {
                cursor: cursor.as_deref(),
                capabilities,
                said: Some(&said),
                peer,
                ..Outgoing::bare(Method::list_of(kind))
            };
            let page = link.exchange(&request, deadline).await;
            self.0.words.store(said.text().map(|text| Arc::new(text.to_owned())));
            let is_offered =
                |error: CallError| cursor.is_some() || error != CallError::not_offered();
            let page = match page {
                Err(error) if self.0.kinds.len() > 1 && !is_offered(error) => break,
                page => page.map_err(CallError::before_the_call)?,
            };
            peer = Some(page.peer);
            cursor = collector.add_page(&page)?;
            self.0.breaker.reached();
            if cursor.is_none() {
                break;
            }
        }
        let (list, params) = collector.finish();
        if let (CapabilityKind::Tool, Link::Http { http, .. }) = (kind, link) {
            http.set_params(params);
        }
        Ok((list, peer))
    }

    /// Calls a tool, gets a prompt or reads a resource, once, and waits for the answer; or asks about the task that it
    /// goes on as. On failure the error says whether the tool may have run. It is never sent twice. Refuses at once calls
    /// beyond those that may be in flight and wait, and what kept failing; both are reckoned for each org.
    pub async fn call(
        &self,
        org: OrgId,
        call: &Cleared<Use>,
        task: Option<TaskRequest<'_>>,
        trace: Trace<'_>,
    ) -> Result<CallAnswer, CallError> {
        if let Some(completion) = call.completion() {
            return self.complete(org, call.tool(), completion, trace).await;
        }
        let deadline = Instant::now() + self.0.call_timeout;
        let Capability { id, definition, .. } = &**call.tool();
        // What becomes of a request about a task says nothing of calls.
        let admission = match task {
            None => Some(self.0.breaker.admit(org, id, Instant::now())?),
            Some(_) => None,
        };
        let _slot = self.0.slots.take(org).await.ok_or(CallError::overloaded())?;
        let method = task.map_or_else(|| call.aim().method(id.kind()), |it| it.method);
        let reads = matches!(method, Method::ReadResource | Method::GetSkill);
        let is_named = !reads && task.is_none();
        let declared = call.round().capabilities;
        let ui = declared.ui && self.0.apps.is_some();
        let tasks =
            task.is_some() || (declared.tasks && self.0.tasks && method == Method::CallTool);
        let request = Outgoing {
            name: is_named.then_some(&definition.name),
            arguments: is_named.then(|| call.input()),
            uri: call.input().get("uri").and_then(JsonValue::text).filter(|_| reads),
            task: task.map(|it| it.task),
            capabilities: ClientCapabilities { ui, tasks, ..declared },
            responses: call.responses(),
            state: call.round().state.as_deref(),
            traceparent: trace.traceparent,
            tracestate: trace.tracestate,
            live: trace.live,
            forms: trace.forms,
            said: trace.said,
            peer: trace.peer,
            ..Outgoing::bare(method)
        };
        if trace.live.is_some_and(Live::is_given_up) {
            let cancelled = Err(CallError::cancelled(Executed::No));
            return admission.map_or(cancelled.clone(), |it| it.ended(cancelled));
        }
        let answer = self.0.link.exchange(&request, deadline).await;
        if let Err(error) = answer
            && error.is_new_peer()
        {
            // Nothing was sent, which tells nothing of the tool.
            return Err(error);
        }
        let answer = answer.and_then(|reply| CallAnswer::of(id.kind(), method, &reply));
        let answer = self.within_tasks(answer, tasks);
        match admission {
            Some(admission) => admission.crowded(self.0.link.takes_turns()).ended(answer),
            None => answer,
        }
    }

    /// Rejects a task that was not asked for, and a server that wants one where none pass.
    fn within_tasks(
        &self,
        answer: Result<CallAnswer, CallError>,
        declared: bool,
    ) -> Result<CallAnswer, CallError> {
        let wants_one = match &answer {
            Ok(CallAnswer::Task(_)) => !declared,
            Err(CallError { kind: CallErrorKind::Unanswerable(needed), .. }) => {
                needed.tasks && (declared || !self.0.tasks)
            }
            Ok(CallAnswer::Result(_) | CallAnswer::Asked(_)) | Err(_) => false,
        };
        if wants_one {
            let reason = UpstreamReason::InteractionRequired;
            return Err(CallError::upstream(reason, Executed::Unknown));
        }
        answer
    }

    /// Returns true unless there is another process or session than the one of this number
    /// ([`DefinitionList::peer`]), as far as that is known without waiting.
    #[must_use]
    pub fn is_peer(&self, number: u64) -> bool {
        self.0.link.known_peer().is_none_or(|peer| peer.number == number)
    }

    /// Fails if an org's call of this tool would not go out now, because it or the server kept
    /// failing.
    pub fn check(&self, org: OrgId, tool: &CapabilityId) -> Result<(), CallError> {
        self.0.breaker.check(org, tool, Instant::now())
    }

    /// Returns true if calls kept failing to reach it and none has reached it since.
    #[must_use]
    pub fn is_resting(&self) -> bool {
        self.0.breaker.is_way_open()
    }

    /// Number of its tools, and itself, that calls of some org do not go to now because they failed.
    #[must_use]
    pub fn open_circuits(&self) -> usize {
        self.0.breaker.open()
    }

    /// Returns true while its program starts.
    #[must_use]
    pub fn is_starting(&self) -> bool {
        match &self.0.link {
            Link::Http { .. } => false,
            Link::Stdio(stdio) => stdio.is_starting(),
        }
    }

    /// Changes whenever the server's tools may have changed: it said so, or it was reached anew.
    #[must_use]
    pub fn tools_changed(&self) -> watch::Receiver<u64> {
        self.0.changed.clone()
    }

    /// Ends sessions, connections and the child process with all it has started. Calls that come
    /// later fail.
    pub async fn shutdown(&self) {
        match &self.0.link {
            Link::Http { http, .. } => http.shutdown().await,
            Link::Stdio(stdio) => stdio.shutdown().await,
        }
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Server").field(&self.0.slug).finish()
    }
}

/// Calls in flight at once: as many may wait, and an eighth is left to orgs that have few.
fn in_flight(slots: usize) -> FairLimits {
    let reserve = (slots / 8).max(usize::from(slots > 1));
    FairLimits { slots, reserve, waiting: slots, patience: PATIENCE }
}
