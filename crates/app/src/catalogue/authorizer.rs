//! The authorization server of a provider, as it was found out last.

use std::sync::Arc;

use portcullis_core::{
    clock::Timestamp,
    oauth::{Challenge, TokenMethod},
};
use portcullis_upstream::{Endpoint, text};

const MAX_SHOWN_CHARS: usize = 500;

/// Findings about the authorization server.
#[derive(Debug, Default)]
pub(crate) struct Authorizer(pub(crate) tokio::sync::Mutex<Option<(Arc<Server>, Timestamp)>>);

impl Authorizer {
    /// The issuer that was found last, as an operator can be shown it.
    pub(crate) async fn last_issuer(&self) -> Option<String> {
        let known = self.0.lock().await;
        known.as_ref().map(|(server, _)| text::one_line(&server.issuer, MAX_SHOWN_CHARS))
    }

    /// The server did not take what was granted. If it asked for more, that is what the next
    /// connect asks for by itself, beside what was granted; otherwise it is asked anew who
    /// authorizes, for that may have changed.
    pub(crate) async fn refused(&self, challenge: Option<&Challenge>, granted: &[String]) {
        let mut known = self.0.lock().await;
        let more = challenge.filter(|it| it.insufficient_scope && !it.scopes.is_empty());
        *known = known.take().zip(more).map(|((server, at), challenge)| {
            let wanted = challenge.beside(granted);
            (Arc::new(Server { wanted, ..Server::clone(&server) }), at)
        });
    }
}

/// An authorization server, and the resource it is asked about.
#[derive(Debug, Clone)]
pub(crate) struct Server {
    pub(crate) issuer: String,
    pub(crate) resource: Option<String>,
    pub(crate) authorize: Endpoint,
    pub(crate) token: Endpoint,
    pub(crate) revoke: Option<Endpoint>,
    pub(crate) register: Option<Endpoint>,
    pub(crate) reads_client_documents: bool,
    pub(crate) tells_issuer: bool,
    pub(crate) methods: Vec<TokenMethod>,
    /// The scopes that the resource asks for or lists.
    pub(crate) wanted: Vec<String>,
    pub(crate) listed: Vec<String>,
    /// The servers that the MCP server names, if the configured issuer is none of them.
    pub(crate) others: Option<Vec<String>>,
}
