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

use self::{backoff::Backoff, pipe::Pipe};
use crate::{
    error::CallError,
    forms::Forms,
    ids::Ids,
    mcp::message::{Outgoing, Reply, of_era},
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
        let pipe = tokio::select! {
            () = self.stop.cancelled() => return Err(CallError::connect_failed()),
            pipe = timeout_at(deadline, self.pipe()) => pipe,
        };
        let out_of_time = CallError::timeout(self.launch.call_timeout, Executed::No);
        let pipe = pipe.map_err(|_| out_of_time)??;
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
            if pipe.is_open() {
                return Ok(pipe.clone());
            }
            let proved = pipe.has_proved_itself();
            state.backoff.died(Instant::now(), proved);
            state.pipe = None;
        }
        if state.backoff.is_resting(Instant::now()) {
            return Err(CallError::connect_failed());
        }
        state.backoff.starting(Instant::now());
        let pipe = Arc::new(Pipe::start(&self.launch).await.map_err(CallError::before_the_call)?);
        state.backoff.started();
        state.pipe = Some(pipe.clone());
        if std::mem::replace(&mut state.started_before, true) {
            self.launch.changed.send_modify(|count| *count = count.wrapping_add(1));
        }
        Ok(pipe)
    }
}
