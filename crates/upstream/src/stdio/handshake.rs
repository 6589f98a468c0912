//! Finding out what a child speaks.

use portcullis_core::{
    mcp::{Era, Method, interaction::ClientCapabilities},
    refusal::{Executed, UpstreamReason},
};
use tokio::time::{Instant, timeout};

use super::{Launch, pipe::Pipe};
use crate::{
    error::{CallError, CallErrorKind},
    mcp::{
        era::{self, Announced, Verdict},
        message::Outcome,
        outgoing::{INITIALIZED, Outgoing},
    },
    settings::Protocol,
};

impl Pipe {
    /// Starts the child and agrees on an era with it.
    pub(super) async fn start(launch: &Launch, protocol: Protocol) -> Result<Self, Unstarted> {
        let pipe = Self::open(launch)?;
        match agree(&pipe, launch, protocol).await {
            Ok(era) => pipe.set_era(era),
            Err(unstarted) => {
                if unstarted.is_reset() {
                    // A child that reads no more is about to say how it ended.
                    pipe.ends_soon().await;
                }
                return Err(unstarted);
            }
        }
        Ok(pipe)
    }

    /// Asks the child whether it knows us, if there is doubt.
    pub(super) async fn knows_us(&self, launch: &Launch) -> bool {
        if !self.health.is_suspect() {
            return true;
        }
        let known = is_known(self, launch).await;
        if known {
            self.health.confirm();
        }
        known
    }
}

/// Asks what only modern servers understand; any other answer, or silence, leads to `initialize`.
async fn agree(pipe: &Pipe, launch: &Launch, protocol: Protocol) -> Result<Era, Unstarted> {
    if !protocol.may_be_modern() {
        return Ok(initialize(pipe, launch, protocol).await?);
    }
    let discovery = ask(pipe, launch, Method::Discover, Era::Modern);
    tokio::pin!(discovery);
    if !protocol.may_be_legacy() {
        return Ok(judge(pipe, launch, discovery.await)?.ok_or(STRANGER)?);
    }
    match timeout(launch.silence, &mut discovery).await {
        Ok(outcome) => match judge(pipe, launch, outcome) {
            Ok(Some(era)) => Ok(era),
            Ok(None) => Ok(initialize(pipe, launch, protocol).await?),
            Err(error) => Err(Unstarted { error, during_discovery: true }),
        },
        // Perhaps it does not answer strange questions, perhaps it is slow to start: whichever
        // answer comes first and means something decides.
        Err(_) => Ok(either(pipe, launch, discovery).await?),
    }
}

/// A child that was not agreed with.
#[derive(Debug)]
pub(super) struct Unstarted {
    pub(super) error: CallError,
    /// True if it ended at the question that only modern servers understand.
    pub(super) during_discovery: bool,
}

impl Unstarted {
    /// Returns true if the child broke off.
    fn is_reset(&self) -> bool {
        self.error.kind == CallErrorKind::Upstream(UpstreamReason::ConnectionReset)
    }
}

impl From<CallError> for Unstarted {
    fn from(error: CallError) -> Self {
        Self { error, during_discovery: false }
    }
}

/// Returns true if the child answers in its era as one that knows us.
async fn is_known(pipe: &Pipe, launch: &Launch) -> bool {
    let era = pipe.era();
    let method = if era == Era::Modern { Method::Discover } else { Method::Ping };
    match timeout(launch.silence, ask(pipe, launch, method, era)).await {
        Ok(Ok(outcome)) if era == Era::Modern => era::is_modern(&outcome),
        Ok(Ok(outcome)) => !outcome.is_err_and(|error| error.is_about_the_session()),
        Ok(Err(_)) | Err(_) => false,
    }
}

const STRANGER: CallError = CallError::protocol(Executed::No);

async fn either(
    pipe: &Pipe,
    launch: &Launch,
    discovery: impl Future<Output = Result<Outcome, CallError>>,
) -> Result<Era, CallError> {
    tokio::pin!(discovery);
    let initialization = initialize(pipe, launch, launch.protocol);
    tokio::pin!(initialization);
    tokio::select! {
        biased;
        outcome = &mut discovery => match judge(pipe, launch, outcome)? {
            Some(era) => Ok(era),
            None => initialization.await,
        },
        era = &mut initialization => era,
    }
}

/// The modern era, when that is what the server speaks; then also asks for announcements. Fails
/// only when the child is gone.
fn judge(
    pipe: &Pipe,
    launch: &Launch,
    outcome: Result<Outcome, CallError>,
) -> Result<Option<Era>, CallError> {
    let outcome = match outcome {
        Ok(outcome) => outcome,
        Err(_) if pipe.is_open() => return Ok(None),
        Err(error) => return Err(error),
    };
    match era::discovered(&outcome) {
        Verdict::Modern(announced) => {
            let id = launch.ids.next();
            pipe.set_announced(announced);
            if let Ok(reply) = &outcome {
                launch.announcer.declares(&reply.members());
            }
            if announced.lists
                && let Ok(body) = Outgoing::bare(Method::Listen).encode(id, Era::Modern)
            {
                pipe.notify(body);
            }
            Ok(Some(Era::Modern))
        }
        Verdict::Legacy | Verdict::Stranger => Ok(None),
    }
}

/// Initializes in the newest version that the child takes.
async fn initialize(pipe: &Pipe, launch: &Launch, protocol: Protocol) -> Result<Era, CallError> {
    for version in protocol.versions() {
        match ask(pipe, launch, Method::Initialize, Era::Legacy(version)).await? {
            Ok(reply) => {
                let result = reply.members();
                let version = era::initialized(&result).ok_or(STRANGER)?;
                pipe.set_announced(Announced::read(&result));
                launch.announcer.declares(&result);
                pipe.notify(INITIALIZED.to_vec());
                return Ok(Era::Legacy(version));
            }
            Err(error) if error.is_about_the_version() => {}
            Err(_) => break,
        }
    }
    Err(STRANGER)
}

async fn ask(pipe: &Pipe, launch: &Launch, method: Method, era: Era) -> Result<Outcome, CallError> {
    let id = launch.ids.next();
    let capabilities = match era {
        Era::Modern => ClientCapabilities::default(),
        Era::Legacy(_) => ClientCapabilities { ui: launch.apps, ..launch.forms.capabilities() },
    };
    let request = Outgoing { capabilities, ..Outgoing::bare(method) };
    let body = request.encode(id, era)?;
    let deadline = Instant::now() + launch.start_timeout;
    pipe.request(id, body, deadline, launch.start_timeout, &request).await
}
