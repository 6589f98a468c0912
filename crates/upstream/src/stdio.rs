//! MCP over the standard input and output of a child process.
//!
//! One task writes, one reads, one looks after the process; calls meet them through a map of
//! pending request ids. What a child does, be it silent, flooding or dead, stays with its calls.
//! One that lets a request run out of time and answers nothing after that is ended; the next call
//! starts it again.

mod backoff;
mod child;
mod handshake;
mod line;
mod liveness;
mod pending;
mod pipe;

use std::{sync::Arc, time::Duration};

use portcullis_core::{
    mcp::{Era, Method},
    refusal::Executed,
    tool::ProviderSlug,
};
use tokio::{
    sync::{Mutex, watch},
    time::{Instant, timeout_at},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use self::{backoff::Backoff, handshake::Unstarted, pipe::Pipe};
use crate::{
    error::CallError,
    forms::Forms,
    ids::Ids,
    mcp::message::{Outgoing, Reply, RpcError, of_era},
    settings::{Program, Protocol},
};

/// Settings of a child process.
#[derive(Debug)]
pub(crate) struct Launch {
    pub(crate) slug: ProviderSlug,
    pub(crate) program: Program,
    pub(crate) protocol: Protocol,
    pub(crate) forms: Forms,
    pub(crate) call_timeout: Duration,
    /// The silence after which a server is taken for one of the older era.
    pub(crate) silence: Duration,
    pub(crate) max_line_bytes: usize,
    pub(crate) ids: Arc<Ids>,
    pub(crate) tasks: TaskTracker,
    pub(crate) changed: watch::Sender<u64>,
}

/// One upstream that is a child process, started when it is first needed.
#[derive(Debug)]
pub(crate) struct Stdio {
    launch: Launch,
    state: Mutex<State>,
    stop: CancellationToken,
}

#[derive(Debug, Default)]
struct State {
    pipe: Option<Arc<Pipe>>,
    backoff: Backoff,
    started_before: bool,
    /// Set when the program was found to want `initialize` as its first message.
    initializes_first: bool,
}

impl State {
    const fn protocol(&self, launch: &Launch) -> Protocol {
        if self.initializes_first { Protocol::Legacy } else { launch.protocol }
    }
}

impl Stdio {
    pub(crate) fn new(launch: Launch) -> Self {
        Self { launch, state: Mutex::default(), stop: CancellationToken::new() }
    }

    /// Sends a request and waits for its result until `deadline`.
    pub(crate) async fn exchange(
        &self,
        request: &Outgoing<'_>,
        deadline: Instant,
    ) -> Result<Reply, CallError> {
        let pipe = self.pipe_by(deadline).await?;
        let first = self.attempt(&pipe, request, deadline).await;
        if first.is_ok() || request.method == Method::CallTool || !pipe.doubt.is_raised() {
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
            () = self.stop.cancelled() => return Err(CallError::connect_failed()),
            pipe = timeout_at(deadline, self.pipe()) => pipe,
        };
        pipe.map_err(|_| CallError::timeout(self.launch.call_timeout, Executed::No))?
    }

    /// Sends a request once and draws the conclusions for the child.
    async fn attempt(
        &self,
        pipe: &Pipe,
        request: &Outgoing<'_>,
        deadline: Instant,
    ) -> Result<Reply, CallError> {
        let id = self.launch.ids.next();
        let request = &match pipe.era() {
            Era::Modern => Outgoing { forms: None, ..*request },
            Era::Legacy(_) => *request,
        };
        let body = request.encode(id, pipe.era())?;
        let outcome = pipe.request(id, body, deadline, (self.launch.call_timeout, request)).await?;
        if request.method == Method::CallTool {
            pipe.proved_itself();
        }
        if outcome.as_ref().is_err_and(RpcError::is_about_the_session) {
            pipe.doubt.raise();
        } else {
            pipe.doubt.settle();
        }
        let result = outcome.map_err(|error| error.to_call_error())?;
        of_era(result, pipe.era())
    }

    /// Ends the child: first its input, then a signal, then force.
    pub(crate) async fn shutdown(&self) {
        self.stop.cancel();
        let mut state = self.state.lock().await;
        if let Some(pipe) = state.pipe.take() {
            pipe.finish().await;
        }
    }

    /// The living child, or a new one. Says no at once while a child that failed rests.
    async fn pipe(&self) -> Result<Arc<Pipe>, CallError> {
        let mut state = self.state.lock().await;
        if let Some(pipe) = &state.pipe {
            if pipe.is_open() && pipe.knows_us(&self.launch).await {
                return Ok(pipe.clone());
            }
            pipe.give_up();
            let proved = pipe.has_proved_itself();
            state.backoff.died(Instant::now(), proved);
            state.pipe = None;
        }
        if state.backoff.is_resting(Instant::now()) {
            return Err(CallError::connect_failed());
        }
        state.backoff.starting(Instant::now());
        let pipe = match Pipe::start(&self.launch, state.protocol(&self.launch)).await {
            // Some programs end at a first message that is not `initialize`.
            Err(Unstarted { during_discovery: true, .. }) => {
                let again = Pipe::start(&self.launch, Protocol::Legacy).await;
                state.initializes_first = again.is_ok();
                again
            }
            first => first,
        };
        let pipe = Arc::new(pipe.map_err(|it| it.error.before_the_call())?);
        state.backoff.started();
        state.pipe = Some(pipe.clone());
        if std::mem::replace(&mut state.started_before, true) {
            self.launch.changed.send_modify(|count| *count = count.wrapping_add(1));
        }
        Ok(pipe)
    }
}
