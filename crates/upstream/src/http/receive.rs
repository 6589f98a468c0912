//! Reading answers: one JSON object, or a stream of events that holds it.

use std::{slice, time::Duration};

use http::{StatusCode, header::CONTENT_TYPE};
use portcullis_core::{
    mcp::Era,
    refusal::{Executed, UpstreamReason},
};
use portcullis_lanes::offload;

use super::{
    cause,
    connection::Connection,
    large_answers::{LARGE, LargeAnswerTurn},
    session::Session,
};
use crate::{
    error::{CallError, CallErrorKind},
    forms,
    http_client::Answer,
    mcp::{
        message::{self, Incoming, Outcome, RpcError},
        outgoing::Outgoing,
        scan::IdScanner,
        sse::Parser,
    },
    session_health::Suspicion,
};

/// Failure of a request.
#[derive(Debug)]
pub(super) enum Trouble {
    /// The server answered with this status and nothing that is MCP.
    Status(StatusCode),
    /// The server answered with a JSON-RPC error.
    Rpc(RpcError),
    /// The same with a status that is none of success.
    Refused(RpcError),
    /// Anything else.
    Call(CallError),
}

impl Trouble {
    /// Weight of the failure as a sign that the server does not know the session, if it is one.
    pub(super) fn suspicion(&self) -> Option<Suspicion> {
        match self {
            Self::Status(_) | Self::Refused(_) => Some(Suspicion::Strong),
            Self::Rpc(error) => error.is_about_the_session().then_some(Suspicion::Strong),
            Self::Call(error) => match error.kind {
                CallErrorKind::Upstream(
                    UpstreamReason::ResponseTooLarge | UpstreamReason::Cancelled,
                )
                | CallErrorKind::NotFound
                | CallErrorKind::Unanswerable(_)
                | CallErrorKind::Overloaded
                | CallErrorKind::Resting { .. } => None,
                CallErrorKind::Upstream(_)
                | CallErrorKind::Timeout { .. }
                | CallErrorKind::AuthRequired
                | CallErrorKind::Forbidden => Some(Suspicion::Weak),
            },
        }
    }

    /// The failure of the call.
    pub(super) fn of(&self, request: &Outgoing<'_>) -> CallError {
        match self {
            Self::Status(status) => CallError::protocol(executed_after(*status)),
            Self::Rpc(error) | Self::Refused(error) => request.failed(error),
            Self::Call(error) => *error,
        }
    }
}

/// Execution of a request that was answered with this status only.
fn executed_after(status: StatusCode) -> Executed {
    const REFUSED: [StatusCode; 7] = [
        StatusCode::NOT_FOUND,
        StatusCode::METHOD_NOT_ALLOWED,
        StatusCode::NOT_ACCEPTABLE,
        StatusCode::PAYLOAD_TOO_LARGE,
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        StatusCode::TOO_MANY_REQUESTS,
        StatusCode::MISDIRECTED_REQUEST,
    ];
    if REFUSED.contains(&status) { Executed::No } else { Executed::Unknown }
}

impl From<CallError> for Trouble {
    fn from(error: CallError) -> Self {
        Self::Call(error)
    }
}

const MAX_ERROR_BYTES: usize = 64 << 10;
const MAX_EVENTS: usize = 10_000;
const MAX_SERVER_REQUESTS: usize = 16;
const MAX_RESUMES: usize = 16;
const RESUME_AFTER: Duration = Duration::from_secs(1);

/// The kind of body an answer has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Body {
    Json,
    Events,
    Other,
}

impl Body {
    pub(super) fn of(response: &Answer) -> Self {
        if response.is_encoded() {
            return Self::Other;
        }
        let kinds = response.headers().get_all(CONTENT_TYPE).iter();
        let kinds = kinds.flat_map(|kinds| kinds.to_str().unwrap_or_default().split(','));
        // Some say it twice.
        let mut kinds = kinds.map(Self::of_media_type);
        let first = kinds.next().unwrap_or(Self::Other);
        if kinds.all(|kind| kind == first) { first } else { Self::Other }
    }

    fn of_media_type(kind: &str) -> Self {
        let kind = kind.split(';').next().unwrap_or_default().trim();
        if kind.eq_ignore_ascii_case("application/json") {
            Self::Json
        } else if kind.eq_ignore_ascii_case("text/event-stream") {
            Self::Events
        } else {
            Self::Other
        }
    }
}

impl Connection {
    /// Reads the answer to a request, which went out as `id`.
    pub(super) async fn receive(
        &self,
        response: Answer,
        id: u64,
        session: &Session,
        request: &Outgoing<'_>,
    ) -> Result<Outcome, Trouble> {
        let status = response.status();
        if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
            self.challenged(crate::oauth::challenge(response.headers()));
            let unauthorized = status == StatusCode::UNAUTHORIZED;
            let refused =
                if unauthorized { CallError::auth_required() } else { CallError::forbidden() };
            return Err(refused.into());
        }
        let is_mcp = status.is_success() && Body::of(&response) != Body::Other;
        if !is_mcp {
            self.caused(cause::of_answer(status, response.headers()));
        }
        if status.is_server_error() {
            return Err(CallError::upstream(UpstreamReason::Http5xx, Executed::Unknown).into());
        }
        if !status.is_success() {
            return self.receive_refusal(response, id, session).await;
        }
        if is_mcp {
            self.note_answer();
        }
        match Body::of(&response) {
            Body::Json => Ok(self.receive_json(response, id).await?),
            Body::Events => Ok(Stream::new(self, session, id, request).run(response).await?),
            Body::Other => Err(CallError::protocol(Executed::Unknown).into()),
        }
    }

    /// A status of 300 to 499: perhaps there is a JSON-RPC error in it.
    async fn receive_refusal(
        &self,
        response: Answer,
        id: u64,
        session: &Session,
    ) -> Result<Outcome, Trouble> {
        let status = response.status();
        let forgotten = status == StatusCode::NOT_FOUND && session.has_id;
        if forgotten || Body::of(&response) != Body::Json {
            return Err(Trouble::Status(status));
        }
        let body = self.read_all(response, MAX_ERROR_BYTES).await;
        let body = body.map_err(|_| Trouble::Status(status))?;
        match message::parse(&body) {
            Ok(Incoming::Answer { id: found, outcome: Err(error) })
                if found.is_none_or(|found| found == id) =>
            {
                Err(Trouble::Refused(error))
            }
            Ok(_) | Err(_) => Err(Trouble::Status(status)),
        }
    }

    async fn receive_json(&self, response: Answer, id: u64) -> Result<Outcome, CallError> {
        let body = self.read_all(response, self.max_response_bytes).await?;
        if body.len() > portcullis_lanes::LARGE {
            offload().await;
        }
        match message::parse(&body) {
            Ok(Incoming::Answer { id: Some(found), outcome }) if found == id => Ok(outcome),
            Ok(_) | Err(_) => Err(CallError::protocol(Executed::Unknown)),
        }
    }

    /// Reads a body that may not be larger than `cap`.
    async fn read_all(&self, mut response: Answer, cap: usize) -> Result<Vec<u8>, CallError> {
        let too_large = CallError::too_large(Executed::Yes);
        let announced = response.content_length().unwrap_or(0);
        let announced = usize::try_from(announced).unwrap_or(usize::MAX);
        if announced > cap {
            return Err(too_large);
        }
        let mut body = Vec::with_capacity(announced);
        let mut turn = None;
        let lost = |_| CallError::reset(Executed::Unknown);
        while let Some(piece) = response.chunk().await.map_err(lost)? {
            let length = body.len() + piece.len();
            if length > LARGE && turn.is_none() {
                turn = Some(self.large_answers.take().await);
            }
            if length > cap {
                turn.into_iter().for_each(LargeAnswerTurn::overflowed);
                return Err(too_large);
            }
            body.extend_from_slice(&piece);
        }
        Ok(body)
    }
}

/// A stream of events in which the answer to one request comes.
struct Stream<'a> {
    connection: &'a Connection,
    session: &'a Session,
    id: u64,
    request: &'a Outgoing<'a>,
    parser: Parser,
    events: usize,
    bytes: usize,
    server_requests: usize,
    /// Held from where it is large.
    turn: Option<LargeAnswerTurn<'a>>,
}

impl<'a> Stream<'a> {
    fn new(
        connection: &'a Connection,
        session: &'a Session,
        id: u64,
        request: &'a Outgoing<'a>,
    ) -> Self {
        let parser = Parser::new(connection.max_response_bytes);
        let events = 0;
        let bytes = 0;
        let server_requests = 0;
        let turn = None;
        Self { connection, session, id, request, parser, events, bytes, server_requests, turn }
    }

    /// Reads until the answer. When a server of the older era breaks the stream off but can resume
    /// it, asks for the rest; that repeats no request.
    async fn run(mut self, mut response: Answer) -> Result<Outcome, CallError> {
        for _ in 0..MAX_RESUMES {
            let ended = match self.read(&mut response).await? {
                Piece::Answer(outcome) => return Ok(outcome),
                Piece::End => CallError::protocol(Executed::Unknown),
                Piece::Lost => CallError::reset(Executed::Unknown),
            };
            let resumable = self.session.era != Era::Modern;
            let Some(last) = self.parser.last_id().filter(|_| resumable) else {
                return Err(ended);
            };
            // Nothing is read meanwhile.
            self.turn = None;
            tokio::time::sleep(self.parser.retry().unwrap_or(RESUME_AFTER)).await;
            let resumed = self.connection.get(&self.session.headers, Some(last)).await;
            response = resumed.map_err(|_| ended)?;
            if !response.status().is_success() || Body::of(&response) != Body::Events {
                return Err(ended);
            }
            self.parser.restart();
        }
        Err(CallError::protocol(Executed::Unknown))
    }

    async fn read(&mut self, response: &mut Answer) -> Result<Piece, CallError> {
        loop {
            let piece = match response.chunk().await {
                Ok(Some(piece)) => piece,
                Ok(None) => {
                    // Of some servers the last event lacks its end. A message that can be read is whole.
                    let last = self.parser.finish().filter(|it| message::parse(&it.data).is_ok());
                    let outcome = last.and_then(|event| self.take(&event.data).transpose());
                    return Ok(outcome.transpose()?.map_or(Piece::End, Piece::Answer));
                }
                Err(_) => return Ok(Piece::Lost),
            };
            self.bytes = self.bytes.saturating_add(piece.len());
            if self.bytes > LARGE && self.turn.is_none() {
                self.turn = Some(self.connection.large_answers.take().await);
            }
            if self.bytes > portcullis_lanes::LARGE {
                offload().await;
            }
            let large = self.parser.push(&piece).is_err();
            while let Some(event) = self.parser.next() {
                if let Some(outcome) = self.take(&event.data)? {
                    return Ok(Piece::Answer(outcome));
                }
            }
            if large {
                // Notifications are small: what outgrows the cap is the answer.
                self.turn.take().into_iter().for_each(LargeAnswerTurn::overflowed);
                return Err(CallError::too_large(Executed::Yes));
            }
            if self.events > MAX_EVENTS || self.bytes > 4 * self.connection.max_response_bytes {
                self.turn.take().into_iter().for_each(LargeAnswerTurn::overflowed);
                return Err(CallError::protocol(Executed::Unknown));
            }
        }
    }

    /// Takes one event; gives the outcome when it is our answer.
    fn take(&mut self, data: &[u8]) -> Result<Option<Outcome>, CallError> {
        self.events += 1;
        match message::parse(data) {
            Ok(Incoming::Answer { id: Some(id), outcome }) if id == self.id => Ok(Some(outcome)),
            Ok(Incoming::ListChanged) => {
                self.connection.announcer.lists_changed();
                Ok(None)
            }
            Ok(Incoming::ResourceChanged(uri)) => {
                self.connection.announcer.watched.changed(&uri);
                Ok(None)
            }
            Ok(Incoming::Progress { token, progress }) => {
                if let Some(live) = self.request.live.filter(|_| token == self.id) {
                    live.hear(progress);
                }
                Ok(None)
            }
            Ok(Incoming::Request(request)) => {
                self.server_requests += 1;
                if self.session.era != Era::Modern && self.server_requests <= MAX_SERVER_REQUESTS {
                    let call = self.request.forms.map_or(&[][..], slice::from_ref);
                    let reply = forms::reply(&request, call)?;
                    self.connection.reply_in_background(self.session.headers.clone(), reply);
                }
                Ok(None)
            }
            Err(message::Malformed) if IdScanner::find(data) == Some(self.id) => {
                Err(CallError::protocol(Executed::Unknown))
            }
            Ok(
                Incoming::Answer { .. } | Incoming::Acknowledged { .. } | Incoming::Notification,
            )
            | Err(message::Malformed) => Ok(None),
        }
    }
}

/// End of a piece of a stream.
enum Piece {
    Answer(Outcome),
    End,
    Lost,
}
