//! Finding out what a server speaks, and opening a session where there is such a thing.

use std::{sync::Arc, time::Duration};

use http::{HeaderMap, HeaderName, HeaderValue};
use portcullis_core::{
    mcp::{Era, LEGACY, MODERN, Method, header},
    refusal::{Executed, UpstreamReason},
};
use tokio::time::timeout;
use tokio_util::sync::DropGuard;

use super::{COURTESY, MCP_METHOD, listen, receive::Trouble, wire::Wire};
use crate::{
    direct::Answer,
    error::{CallError, CallErrorKind},
    forms::{FormCalls, Forms},
    mcp::{
        era::{self, Verdict},
        message::{INITIALIZED, Outgoing},
    },
    settings::Protocol,
};

const MCP_SESSION_ID: HeaderName = HeaderName::from_static(header::SESSION_ID);
const MCP_PROTOCOL_VERSION: HeaderName = HeaderName::from_static(header::PROTOCOL_VERSION);
const MAX_SESSION_ID_BYTES: usize = 1024;

/// Agreement with a server.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) era: Era,
    /// The headers of every message in it.
    pub(super) headers: HeaderMap,
    /// True if the server gave it an id, so that it can also forget it.
    pub(super) has_id: bool,
    /// The calls that wait in it, if forms of the server are answered.
    pub(super) forms: Option<Arc<FormCalls>>,
    _listener: Option<DropGuard>,
}

impl Session {
    /// Asks the server what it speaks and agrees on it. After `silence` a server that may be of
    /// the older era is taken to be.
    pub(super) async fn open(
        wire: &Arc<Wire>,
        protocol: Protocol,
        silence: Duration,
    ) -> Result<Self, CallError> {
        if protocol.may_be_modern() {
            let discovered = if protocol.may_be_legacy() {
                timeout(silence, discover(wire)).await.unwrap_or(Ok(Verdict::Legacy))
            } else {
                discover(wire).await
            };
            match discovered? {
                Verdict::Modern { announces } => return Ok(Self::modern(wire, announces)),
                Verdict::Legacy if protocol.may_be_legacy() => {}
                Verdict::Legacy | Verdict::Stranger => {
                    return Err(CallError::protocol(Executed::No));
                }
            }
        }
        Self::legacy(wire).await
    }

    fn modern(wire: &Arc<Wire>, announces: bool) -> Self {
        let mut headers = Wire::headers();
        headers.insert(MCP_PROTOCOL_VERSION, HeaderValue::from_static(MODERN));
        let listener = (announces && wire.hears.announcements)
            .then(|| listen::start(wire, listen::SessionStream::of(Era::Modern, &headers)));
        Self { headers, _listener: listener, ..Self::bare(Era::Modern) }
    }

    async fn legacy(wire: &Arc<Wire>) -> Result<Self, CallError> {
        let id = wire.ids.next();
        let capabilities = wire.hears.forms.capabilities();
        let initialize = Outgoing { capabilities, ..Outgoing::bare(Method::Initialize) };
        let body = initialize.encode(id, Era::Legacy(LEGACY[0]))?;
        let response = wire.post(Wire::headers(), body).await?;
        let session_id = session_id(&response)?;
        let bare = Self::bare(Era::Legacy(LEGACY[0]));
        let received = wire.receive(response, id, &bare, &initialize).await;
        let outcome = received.map_err(|trouble| match trouble {
            Trouble::Call(error) => error,
            Trouble::Status(_) | Trouble::Rpc(_) => CallError::protocol(Executed::No),
        })?;
        let reply = outcome.map_err(|_| CallError::protocol(Executed::No))?;
        let result = reply.members();
        let version = era::initialized(&result).ok_or(CallError::protocol(Executed::No))?;
        let mut headers = bare.headers;
        headers.insert(MCP_PROTOCOL_VERSION, HeaderValue::from_static(version));
        let has_id = session_id.is_some();
        if let Some(session_id) = session_id {
            headers.insert(MCP_SESSION_ID, session_id);
        }
        wire.post(headers.clone(), INITIALIZED.to_vec()).await?;
        let era = Era::Legacy(version);
        let announces = era::announces(&result) && wire.hears.announcements;
        let forms = match wire.hears.forms {
            Forms::Refuse => None,
            Forms::Defaults => Some(Arc::<FormCalls>::default()),
        };
        let stream =
            listen::SessionStream { announces, forms, ..listen::SessionStream::of(era, &headers) };
        let forms = stream.forms.clone();
        let listener = if forms.is_some() {
            // A form that comes before somebody listens is lost.
            let opened = stream.opened.clone();
            let listener = listen::start(wire, stream);
            let _ = timeout(COURTESY, opened.cancelled()).await;
            Some(listener)
        } else {
            announces.then(|| listen::start(wire, stream))
        };
        Ok(Self { era, headers, has_id, forms, _listener: listener })
    }

    /// State that is known before anything is agreed on.
    fn bare(era: Era) -> Self {
        Self { era, headers: Wire::headers(), has_id: false, forms: None, _listener: None }
    }
}

/// Asks the question that only modern servers understand.
async fn discover(wire: &Wire) -> Result<Verdict, CallError> {
    let id = wire.ids.next();
    let discover = Outgoing::bare(Method::Discover);
    let body = discover.encode(id, Era::Modern)?;
    let mut headers = Wire::headers();
    headers.insert(MCP_PROTOCOL_VERSION, HeaderValue::from_static(MODERN));
    headers.insert(MCP_METHOD, HeaderValue::from_static(Method::Discover.as_str()));
    let response = wire.post(headers.clone(), body).await?;
    let bare = Session { headers, ..Session::bare(Era::Modern) };
    match wire.receive(response, id, &bare, &discover).await {
        Ok(outcome) => Ok(era::discovered(&outcome)),
        Err(Trouble::Status(_) | Trouble::Rpc(_)) => Ok(Verdict::Legacy),
        Err(Trouble::Call(error)) => match error.kind {
            // Older servers answer an unknown question in any way they like, also by failing.
            CallErrorKind::Upstream(UpstreamReason::Http5xx | UpstreamReason::ProtocolError) => {
                Ok(Verdict::Legacy)
            }
            CallErrorKind::Upstream(_)
            | CallErrorKind::Unanswerable(_)
            | CallErrorKind::Timeout { .. }
            | CallErrorKind::AuthRequired
            | CallErrorKind::Forbidden
            | CallErrorKind::Overloaded
            | CallErrorKind::Resting { .. } => Err(error),
        },
    }
}

/// The id that the server gave to the session. Says no to one that is no visible ASCII.
fn session_id(response: &Answer) -> Result<Option<HeaderValue>, CallError> {
    let Some(id) = response.headers().get(MCP_SESSION_ID) else { return Ok(None) };
    let bytes = id.as_bytes();
    if bytes.is_empty()
        || bytes.len() > MAX_SESSION_ID_BYTES
        || !bytes.iter().all(u8::is_ascii_graphic)
    {
        return Err(CallError::protocol(Executed::No));
    }
    let mut id = id.clone();
    id.set_sensitive(true);
    Ok(Some(id))
}
