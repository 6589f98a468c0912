//! MCP over the standard input and output of a child process.
//!
//! One task writes, one reads, one looks after the process; calls meet them through a map of
//! pending request ids. What a child does, be it silent, flooding or dead, stays with its calls.
//! One that lets a request run out of time and answers nothing after that is ended; the next call
//! starts it again. A start outlives its callers, for a program may have to be fetched first.

mod backoff;
mod child;
mod handshake;
mod last_words;
mod line;
mod liveness;
mod pending;
mod pipe;

use std::{sync::Arc, time::Duration};

use portcullis_core::{capability::ProviderSlug, mcp::Era, refusal::Executed, secret::Secret};
use tokio::{
    sync::{Mutex, Semaphore, watch},
    time::{Instant, timeout, timeout_at},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

pub(crate) use self::last_words::LastWords;
use self::{backoff::Backoff, handshake::Unstarted, pipe::Pipe};
use crate::{
    announced::{Announcer, Watched},
    error::CallError,
    forms::Forms,
    ids::Ids,
    mcp::{
        era::Peer,
        message::{Reply, RpcError, of_era},
        outgoing::Outgoing,
    },
    session_health::Suspicion,
    settings::{Program, Protocol},
};

/// Settings of a child process.
#[derive(Debug)]
pub(crate) struct Launch {
    pub(crate) slug: ProviderSlug,
    pub(crate) program: Program,
    pub(crate) protocol: Protocol,
    pub(crate) forms: Forms,
    /// Pages of its apps pass.
    pub(crate) apps: bool,
    pub(crate) call_timeout: Duration,
    /// The time to start, handshake included.
    pub(crate) start_timeout: Duration,
    /// The silence after which a server is taken for one of the older era.
    pub(crate) silence: Duration,
    pub(crate) max_line_bytes: usize,
    pub(crate) ids: Arc<Ids>,
    /// The turns of programs that start.
    pub(crate) starts: Arc<Semaphore>,
    /// Part of the rest after a failure that this program waits longer, so that not all come back at once.
    pub(crate) jitter: f64,
    pub(crate) last_words: Arc<LastWords>,
    pub(crate) tasks: TaskTracker,
    pub(crate) announcer: Announcer,
}

/// One upstream that is a child process, started when it is first needed.
#[derive(Debug)]
pub(crate) struct Stdio(Arc<ProgramParts>);

#[derive(Debug)]
struct ProgramParts {
    launch: Launch,
    state: Mutex<ProgramState>,
    stop: CancellationToken,
}

#[derive(Debug)]
struct ProgramState {
    pipe: Option<Arc<Pipe>>,
    starting: Option<watch::Receiver<Option<StartResult>>>,
    backoff: Backoff,
    started_before: bool,
    /// Set when the program was found to want `initialize` as its first message.
    initializes_first: bool,
}

type StartResult = Result<Arc<Pipe>, CallError>;

impl Drop for Stdio {
    fn drop(&mut self) {
        self.0.stop.cancel();
    }
}

impl Stdio {
    pub(crate) fn new(launch: Launch) -> Self {
        let state = ProgramState {
            pipe: None,
            starting: None,
            backoff: Backoff::new(launch.jitter),
            started_before: false,
            initializes_first: false,
        };
        Self(Arc::new(ProgramParts {
            launch,
            state: Mutex::new(state),
            stop: CancellationToken::new(),
        }))
    }

    /// Sends a request and waits for its result until `deadline`.
    pub(crate) async fn exchange(
        &self,
        request: &Outgoing<'_>,
        deadline: Instant,
    ) -> Result<Reply, CallError> {
        let pipe = self.pipe_by(deadline).await?;
        request.check_peer(pipe.number)?;
        let first = self.attempt(&pipe, request, deadline).await;
        if first.is_ok() || request.method.is_use() || !pipe.health.is_suspect() {
            return first;
        }
        let renewed = self.pipe_by(deadline).await?;
        if Arc::ptr_eq(&renewed, &pipe) {
            return first;
        }
        self.attempt(&renewed, request, deadline).await
    }

    async fn pipe_by(&self, deadline: Instant) -> Result<Arc<Pipe>, CallError> {
        let pipe = tokio::select! {
            () = self.0.stop.cancelled() => return Err(CallError::connect_failed()),
            pipe = timeout_at(deadline, self.0.pipe()) => pipe,
        };
        pipe.map_err(|_| CallError::timeout(self.0.launch.call_timeout, Executed::No))?
    }

    /// Sends a request once and draws the conclusions for the child.
    async fn attempt(
        &self,
        pipe: &Pipe,
        request: &Outgoing<'_>,
        deadline: Instant,
    ) -> Result<Reply, CallError> {
        let launch = &self.0.launch;
        let id = launch.ids.next();
        let request = &match pipe.era() {
            Era::Modern => Outgoing { forms: None, ..*request },
            Era::Legacy(_) => *request,
        };
        let body = request.encode(id, pipe.era())?;
        let outcome = pipe.request(id, body, deadline, launch.call_timeout, request).await?;
        if request.method.is_use() {
            pipe.proved_itself();
        }
        if outcome.as_ref().is_err_and(RpcError::is_about_the_session) {
            pipe.health.suspect(Suspicion::Weak);
        } else {
            pipe.health.confirm();
        }
        let result = outcome.map_err(|error| request.failed(&error))?;
        of_era(result, pipe.era()).map(|reply| Reply { peer: pipe.number, ..reply })
    }

    /// The process that lives, as far as that is known at once.
    pub(crate) fn known_peer(&self) -> Option<Peer> {
        self.0.state.try_lock().ok()?.pipe.as_ref().map(|pipe| pipe.peer())
    }

    /// The process that lives, which is started if there is none.
    pub(crate) async fn peer(&self, deadline: Instant) -> Result<Peer, CallError> {
        self.pipe_by(deadline).await.map(|pipe| pipe.peer())
    }

    /// Resources of the server that are watched.
    pub(crate) fn watched(&self) -> &Arc<Watched> {
        &self.0.launch.announcer.watched
    }

    /// Kinds and extensions that the server declared last.
    pub(crate) fn offered(&self) -> Arc<Vec<String>> {
        self.0.launch.announcer.offered.load_full()
    }

    pub(crate) fn stop(&self) -> &CancellationToken {
        &self.0.stop
    }

    pub(crate) fn tasks(&self) -> &TaskTracker {
        &self.0.launch.tasks
    }

    /// Returns true while a start is under way.
    pub(crate) fn is_starting(&self) -> bool {
        // While the state is being changed, it is not known.
        self.0.state.try_lock().is_ok_and(|state| state.starting.is_some())
    }

    /// End of the last child, and the last lines that it wrote.
    pub(crate) fn last_words(&self) -> Option<String> {
        self.0.launch.last_words.sentence()
    }

    /// The values of the variables that the program is given.
    pub(crate) fn secrets(&self) -> impl Iterator<Item = &str> {
        self.0.launch.program.env.values().map(Secret::expose)
    }

    /// Ends the child: first its input, then a signal, then force. One that is starting is ended at once.
    pub(crate) async fn shutdown(&self) {
        self.0.stop.cancel();
        let pipe = self.0.state.lock().await.pipe.take();
        if let Some(pipe) = pipe {
            pipe.finish().await;
        }
    }
}

impl ProgramParts {
    /// The living child, or a new one. Fails at once while a child that failed rests.
    async fn pipe(self: &Arc<Self>) -> StartResult {
        let mut starting = {
            let mut state = self.state.lock().await;
            if let Some(pipe) = state.pipe.clone() {
                if pipe.is_open() && pipe.knows_us(&self.launch).await {
                    return Ok(pipe);
                }
                pipe.give_up();
                state.backoff.died(Instant::now(), pipe.has_proved_itself());
                state.pipe = None;
            }
            match &state.starting {
                Some(starting) => starting.clone(),
                None if state.backoff.is_resting(Instant::now()) => {
                    return Err(CallError::connect_failed());
                }
                None => {
                    let (tell, told) = watch::channel(None);
                    state.starting = Some(told.clone());
                    let this = Arc::clone(self);
                    let first = state.initializes_first;
                    self.launch.tasks.spawn(async move { this.start(first, tell).await });
                    told
                }
            }
        };
        let started = starting.wait_for(Option::is_some).await;
        started.ok().and_then(|started| started.clone()).unwrap_or(Err(CallError::connect_failed()))
    }

    /// Starts the child and tells those who wait.
    async fn start(&self, initializes_first: bool, tell: watch::Sender<Option<StartResult>>) {
        let started = tokio::select! {
            () = self.stop.cancelled() => Err(CallError::connect_failed()),
            started = self.started(initializes_first) => started,
        };
        let mut state = self.state.lock().await;
        state.starting = None;
        match &started {
            Ok((pipe, initializes_first)) if !self.stop.is_cancelled() => {
                state.initializes_first = *initializes_first;
                state.backoff.started();
                state.pipe = Some(Arc::clone(pipe));
                if std::mem::replace(&mut state.started_before, true) {
                    self.launch.announcer.lists_changed();
                }
            }
            Ok(_) | Err(_) => state.backoff.start_failed(Instant::now()),
        }
        drop(state);
        tell.send_replace(Some(started.map(|(pipe, _)| pipe)));
    }

    /// A child that was agreed with, and whether it wants `initialize` as its first message.
    async fn started(&self, initializes_first: bool) -> Result<(Arc<Pipe>, bool), CallError> {
        let launch = &self.launch;
        // It is never closed.
        let _turn = launch.starts.acquire().await;
        let protocol = if initializes_first { Protocol::Legacy } else { launch.protocol };
        let start = async {
            match Pipe::start(launch, protocol).await {
                // Some programs end at a first message that is not `initialize`.
                Err(Unstarted { during_discovery: true, .. }) => {
                    Pipe::start(launch, Protocol::Legacy).await.map(|pipe| (pipe, true))
                }
                first => first.map(|pipe| (pipe, initializes_first)),
            }
        };
        match timeout(launch.start_timeout, start).await {
            Ok(Ok((pipe, first))) => Ok((Arc::new(pipe), first)),
            Ok(Err(unstarted)) => Err(unstarted.error.before_the_call()),
            Err(_) => Err(CallError::timeout(launch.start_timeout, Executed::No)),
        }
    }
}
