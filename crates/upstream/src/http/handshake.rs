//! Finding out what a server speaks, and opening a session where there is such a thing.

use std::{sync::Arc, time::Duration};

use http::{HeaderName, HeaderValue, StatusCode};
use portcullis_core::{
    mcp::{Era, MODERN, Method, header, interaction::ClientCapabilities},
    refusal::{Executed, UpstreamReason},
};
use tokio::time::timeout;

use super::{
    COURTESY, MCP_METHOD,
    connection::{AcceptedMessages, Connection},
    listen,
    receive::Trouble,
    session::Session,
};
use crate::{
    error::{CallError, CallErrorKind},
    forms::{FormCalls, Forms},
    http_client::Answer,
    mcp::{
        era::{self, Announced, Verdict},
        outgoing::{INITIALIZED, Outgoing},
    },
    session_health::SessionHealth,
    settings::Protocol,
};

const MCP_SESSION_ID: HeaderName = HeaderName::from_static(header::SESSION_ID);
const MCP_PROTOCOL_VERSION: HeaderName = HeaderName::from_static(header::PROTOCOL_VERSION);
const MAX_SESSION_ID_BYTES: usize = 1024;
const ODD_ID: &str = "the id of its session is longer than 1,024 bytes, or no visible ASCII";
const NO_VERSION: &str = "it initializes in none of the versions that the gateway speaks; if it wants one of them, \
                          name that in `protocol`";

impl Session {
    /// Asks the server what it speaks and agrees on it. After `silence` a server that may be of
    /// the older era is taken to be.
    pub(super) async fn open(
        connection: &Arc<Connection>,
        protocol: Protocol,
        silence: Duration,
    ) -> Result<Self, CallError> {
        if !protocol.may_be_modern() {
            return Self::legacy(connection, protocol).await;
        }
        let discovered = if protocol.may_be_legacy() {
            timeout(silence, discover(connection)).await.unwrap_or(Ok(Verdict::Legacy))
        } else {
            discover(connection).await
        };
        match discovered {
            Ok(Verdict::Modern(announced)) => Ok(Self::modern(connection, announced)),
            Ok(Verdict::Legacy) if protocol.may_be_legacy() => {
                Self::legacy(connection, protocol).await
            }
            Ok(Verdict::Legacy | Verdict::Stranger) => Err(CallError::protocol(Executed::No)),
            // Some servers let clients in that initialize, and no others.
            Err(refused) if protocol.may_be_legacy() && is_about_access(refused) => {
                let opened = Self::legacy(connection, protocol).await;
                opened.map_err(|error| if is_about_access(error) { error } else { refused })
            }
            Err(error) => Err(error),
        }
    }

    fn modern(connection: &Arc<Connection>, announced: Announced) -> Self {
        let mut headers = Connection::headers();
        headers.insert(MCP_PROTOCOL_VERSION, HeaderValue::from_static(MODERN));
        let listener = (announced.lists && connection.accepted.announcements)
            .then(|| listen::start(connection, listen::SessionStream::of(Era::Modern, &headers)));
        let tells_of_resources = announced.resources;
        Self { headers, tells_of_resources, _listener: listener, ..Self::bare(Era::Modern) }
    }

    /// Initializes in the newest version that the server takes.
    async fn legacy(connection: &Arc<Connection>, protocol: Protocol) -> Result<Self, CallError> {
        for version in protocol.versions() {
            match Self::initialize(connection, version).await {
                Ok(session) => return Ok(session),
                Err(Trouble::Call(error)) => return Err(error),
                Err(Trouble::Status(StatusCode::BAD_REQUEST) | Trouble::Refused(_)) => {}
                Err(Trouble::Rpc(error)) if error.is_about_the_version() => {}
                Err(Trouble::Rpc(_) | Trouble::Status(_)) => {
                    return Err(CallError::protocol(Executed::No));
                }
            }
        }
        connection.caused(NO_VERSION.to_owned());
        Err(CallError::protocol(Executed::No))
    }

    async fn initialize(
        connection: &Arc<Connection>,
        version: &'static str,
    ) -> Result<Self, Trouble> {
        let id = connection.ids.next();
        let era = Era::Legacy(version);
        let AcceptedMessages { forms, apps, .. } = connection.accepted;
        let capabilities = ClientCapabilities { ui: apps, ..forms.capabilities() };
        let initialize = Outgoing { capabilities, ..Outgoing::bare(Method::Initialize) };
        let body = initialize.encode(id, era)?;
        let response = connection.post(Connection::headers(), body).await?;
        let session_id =
            session_id(&response).inspect_err(|_| connection.caused(ODD_ID.to_owned()))?;
        let bare = Self::bare(era);
        let outcome = connection.receive(response, id, &bare, &initialize).await?;
        let reply = outcome.map_err(Trouble::Rpc)?;
        let result = reply.members();
        let version = era::initialized(&result).ok_or(CallError::protocol(Executed::No))?;
        connection.announcer.declares(&result);
        let mut headers = bare.headers;
        headers.insert(MCP_PROTOCOL_VERSION, HeaderValue::from_static(version));
        let has_id = session_id.is_some();
        if let Some(session_id) = session_id {
            headers.insert(MCP_SESSION_ID, session_id);
        }
        connection.post(headers.clone(), INITIALIZED.to_vec()).await?;
        let era = Era::Legacy(version);
        let announced = if connection.accepted.announcements {
            Announced::read(&result)
        } else {
            Announced::default()
        };
        let forms = match connection.accepted.forms {
            Forms::Refuse => None,
            Forms::Defaults => Some(Arc::<FormCalls>::default()),
        };
        let stream = listen::SessionStream::of(era, &headers);
        let stream = listen::SessionStream { announces: announced.lists, forms, ..stream };
        let forms = stream.forms.clone();
        let listener = if forms.is_some() {
            // A form that comes before the listener is lost.
            let opened = stream.opened.clone();
            let listener = listen::start(connection, stream);
            let _ = timeout(COURTESY, opened.cancelled()).await;
            Some(listener)
        } else {
            let listens = announced.lists || announced.resources;
            listens.then(|| listen::start(connection, stream))
        };
        let health = SessionHealth::default();
        let bare = Self::bare(era);
        let tells_of_resources = announced.resources;
        Ok(Self { headers, has_id, health, forms, tells_of_resources, _listener: listener, ..bare })
    }
}

/// Asks the question that only modern servers understand.
async fn discover(connection: &Connection) -> Result<Verdict, CallError> {
    let id = connection.ids.next();
    let discover = Outgoing::bare(Method::Discover);
    let body = discover.encode(id, Era::Modern)?;
    let mut headers = Connection::headers();
    headers.insert(MCP_PROTOCOL_VERSION, HeaderValue::from_static(MODERN));
    headers.insert(MCP_METHOD, HeaderValue::from_static(Method::Discover.as_str()));
    let response = connection.post(headers.clone(), body).await?;
    let bare = Session { headers, ..Session::bare(Era::Modern) };
    match connection.receive(response, id, &bare, &discover).await {
        Ok(outcome) => {
            if let Ok(reply) = &outcome {
                connection.announcer.declares(&reply.members());
            }
            Ok(era::discovered(&outcome))
        }
        Err(Trouble::Refused(error)) => Ok(era::discovered(&Err(error))),
        Err(Trouble::Status(_) | Trouble::Rpc(_)) => Ok(Verdict::Legacy),
        Err(Trouble::Call(error)) => match error.kind {
            // Older servers answer an unknown question in any way they like, also by failing.
            CallErrorKind::Upstream(
                UpstreamReason::Http5xx
                | UpstreamReason::ProtocolError
                | UpstreamReason::ConnectionReset,
            ) => Ok(Verdict::Legacy),
            CallErrorKind::Upstream(_)
            | CallErrorKind::NotFound
            | CallErrorKind::Unanswerable(_)
            | CallErrorKind::Timeout { .. }
            | CallErrorKind::AuthRequired
            | CallErrorKind::Forbidden
            | CallErrorKind::Overloaded
            | CallErrorKind::Resting { .. } => Err(error),
        },
    }
}

/// Returns true if the server wants another credential.
const fn is_about_access(error: CallError) -> bool {
    matches!(error.kind, CallErrorKind::AuthRequired | CallErrorKind::Forbidden)
}

/// The id that the server gave to the session. Rejects one that is no visible ASCII.
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
