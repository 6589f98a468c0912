//! Finding out what a child speaks.

use portcullis_core::{
    mcp::{Era, LEGACY, Method, interaction::ClientCapabilities},
    refusal::Executed,
};
use tokio::time::{Instant, timeout};

use super::{Launch, pipe::Pipe};
use crate::{
    error::CallError,
    mcp::{
        era::{self, Verdict},
        message::{INITIALIZED, Outcome, Outgoing},
    },
};

/// Asks what only modern servers understand; any other answer, or silence, leads to `initialize`.
pub(super) async fn agree(pipe: &Pipe, launch: &Launch) -> Result<Era, CallError> {
    if !launch.protocol.may_be_modern() {
        return initialize(pipe, launch).await;
    }
    let discovery = ask(pipe, launch, Method::Discover, Era::Modern);
    tokio::pin!(discovery);
    if !launch.protocol.may_be_legacy() {
        return judge(pipe, launch, discovery.await)?.ok_or(STRANGER);
    }
    match timeout(launch.silence, &mut discovery).await {
        Ok(outcome) => match judge(pipe, launch, outcome)? {
            Some(era) => Ok(era),
            None => initialize(pipe, launch).await,
        },
        // Perhaps it does not answer strange questions, perhaps it is slow to start: whichever
        // answer comes first and means something decides.
        Err(_) => either(pipe, launch, discovery).await,
    }
}

const STRANGER: CallError = CallError::protocol(Executed::No);

async fn either(
    pipe: &Pipe,
    launch: &Launch,
    discovery: impl Future<Output = Result<Outcome, CallError>>,
) -> Result<Era, CallError> {
    tokio::pin!(discovery);
    let initialization = initialize(pipe, launch);
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

/// The modern era, when that is what the server speaks; then also asks for announcements. Says no
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
        Verdict::Modern { announces } => {
            let id = launch.ids.next();
            if announces && let Ok(body) = Outgoing::bare(Method::Listen).encode(id, Era::Modern) {
                pipe.notify(body);
            }
            Ok(Some(Era::Modern))
        }
        Verdict::Legacy | Verdict::Stranger => Ok(None),
    }
}

async fn initialize(pipe: &Pipe, launch: &Launch) -> Result<Era, CallError> {
    let outcome = ask(pipe, launch, Method::Initialize, Era::Legacy(LEGACY[0])).await?;
    let version =
        outcome.ok().and_then(|reply| era::initialized(&reply.members())).ok_or(STRANGER)?;
    pipe.notify(INITIALIZED.to_vec());
    Ok(Era::Legacy(version))
}

async fn ask(pipe: &Pipe, launch: &Launch, method: Method, era: Era) -> Result<Outcome, CallError> {
    let id = launch.ids.next();
    let capabilities = match era {
        Era::Modern => ClientCapabilities::default(),
        Era::Legacy(_) => launch.forms.capabilities(),
    };
    let request = Outgoing { capabilities, ..Outgoing::bare(method) };
    let body = request.encode(id, era)?;
    let deadline = Instant::now() + launch.call_timeout;
    pipe.request(id, body, deadline, (launch.call_timeout, &request)).await
}
