//! Authorization server of a provider.
//!
//! Found out in the order of the MCP specification: the server's challenge and its metadata (RFC
//! 9728) name the issuer, the issuer's metadata (RFC 8414) has to name itself to the letter.
//!
//! **Invariant:** a client of the configuration is shown to its own issuer only. An MCP server
//! could name a server of its own, which is true to itself and wants nothing but the secret. The
//! endpoints of the issuer come from its own metadata; they may be on other hosts (RFC 8414 §2),
//! for only the issuer can name them.

use std::sync::Arc;

use portcullis_core::{
    oauth::{
        MetadataError, ResourceMetadata, ServerMetadata, is_same_issuer, issuer_urls, resource_urls,
    },
    refusal::{Refusal, UpstreamReason},
};
use portcullis_upstream::{Endpoint, OAuthError, oauth::OAUTH_TIMEOUT};
use serde_json::Value;

use crate::{
    catalogue::{
        auth::{AuthorizationServer, Endpoints, OAuthSettings},
        authorizer::Server,
        provider::Provider,
    },
    providers::Providers,
};

/// Seconds for which metadata is believed.
const FRESH_SECONDS: i64 = 10 * 60;

impl Server {
    /// Fails if the MCP server does not name the configured issuer: what that grants would be of no
    /// use there, or the MCP server impersonates another one.
    pub(crate) fn require_issuer(self: Arc<Self>) -> Result<Arc<Self>, Unknown> {
        match &self.others {
            None => Ok(self),
            Some(others) => Err(Unknown::OtherIssuer { named: others.join(", ") }),
        }
    }
}

/// Reason that no authorization server is known.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unknown {
    #[error("{what}: {error}")]
    Http { what: &'static str, error: OAuthError },
    #[error("{what}: {error}")]
    Metadata { what: &'static str, error: MetadataError },
    #[error(
        "the MCP server does not name the configured `oauth.issuer` as its authorization server, \
         but {named}"
    )]
    OtherIssuer { named: String },
    #[error("there is no way to be known there: configure a `client_id`")]
    NoClient,
}

pub(super) fn http(what: &'static str) -> impl Fn(OAuthError) -> Unknown {
    move |error| Unknown::Http { what, error }
}

pub(super) fn metadata(what: &'static str) -> impl Fn(MetadataError) -> Unknown {
    move |error| Unknown::Metadata { what, error }
}

const RESOURCE: &str = "the metadata of the MCP server";
const ISSUER: &str = "the metadata of the authorization server";

impl Provider {
    /// Refusal for a caller when the authorization server cannot be used.
    pub(crate) fn unknown(&self, unknown: &Unknown) -> Refusal {
        tracing::warn!(provider = %self.declared.slug, error = %unknown, "no authorization server");
        let reason = match unknown {
            Unknown::Http { error, .. } => return self.oauth_failure(error),
            Unknown::OtherIssuer { .. } => UpstreamReason::IssuerMismatch,
            Unknown::Metadata { .. } | Unknown::NoClient => UpstreamReason::ProtocolError,
        };
        Refusal::upstream(self.declared.slug.clone(), reason)
    }

    pub(crate) fn oauth_failure(&self, error: &OAuthError) -> Refusal {
        let provider = self.declared.slug.clone();
        let reason = match error {
            OAuthError::Timeout => {
                let timeout_ms = u64::try_from(OAUTH_TIMEOUT.as_millis()).unwrap_or(u64::MAX);
                return Refusal::UpstreamTimeout { provider, timeout_ms };
            }
            OAuthError::Refused(_) => return Refusal::RejectedByProvider { provider },
            OAuthError::Unreachable | OAuthError::Address(_) => UpstreamReason::ConnectFailed,
            OAuthError::TooLarge | OAuthError::TooLong { .. } => UpstreamReason::ResponseTooLarge,
            OAuthError::Status(status) if *status >= 500 => UpstreamReason::Http5xx,
            OAuthError::Status(_) | OAuthError::Form => UpstreamReason::ProtocolError,
        };
        Refusal::upstream(provider, reason)
    }
}

impl Providers {
    /// Authorization server of this provider, as discovered a moment ago or now.
    pub(crate) async fn authorizer(
        &self,
        provider: &Provider,
        settings: &OAuthSettings,
    ) -> Result<Arc<Server>, Unknown> {
        let now = self.base.clock.now();
        let mut known = provider.authorizer.0.lock().await;
        if let Some((server, at)) = &*known
            && now < at.plus_seconds(FRESH_SECONDS)
        {
            return Ok(Arc::clone(server));
        }
        let mut server = self.discover(provider, settings).await?;
        // Said to be empty, it is not sent.
        server.resource = server.resource.filter(|resource| !resource.is_empty());
        let server = Arc::new(server);
        *known = Some((Arc::clone(&server), now));
        Ok(server)
    }

    async fn discover(
        &self,
        provider: &Provider,
        settings: &OAuthSettings,
    ) -> Result<Server, Unknown> {
        let endpoint = provider.declared.endpoint.as_ref().ok_or(Unknown::NoClient)?;
        let resource = settings.resource.clone();
        match &settings.server {
            AuthorizationServer::Explicit(endpoints) => Ok(explicit(endpoints, resource, settings)),
            AuthorizationServer::Issuer { name, endpoint: issuer } => {
                // The operator's word counts: a server need not say who authorizes.
                let told = self.resource_metadata(endpoint).await.ok();
                let Some((told, wanted)) = told else {
                    let resource = resource.unwrap_or_else(|| endpoint.as_str().to_owned());
                    return self.described(name, issuer, Some(resource)).await;
                };
                let is_named = told.servers.iter().any(|server| is_same_issuer(server, name));
                let others = (!is_named).then(|| told.server_origins());
                let resource = resource.unwrap_or(told.resource);
                let server = self.described(name, issuer, Some(resource)).await?;
                Ok(Server { wanted, listed: told.scopes, others, ..server })
            }
            AuthorizationServer::Discovered => {
                let (found, wanted) = self.resource_metadata(endpoint).await?;
                let first = found.servers.first().ok_or(Unknown::NoClient)?;
                let near = Endpoint::found(first, endpoint);
                let near = near.map_err(|error| http(RESOURCE)(error.into()))?;
                let resource = resource.unwrap_or(found.resource);
                let server = self.described(first, &near, Some(resource)).await?;
                Ok(Server { wanted, listed: found.scopes, ..server })
            }
        }
    }

    /// Metadata of the MCP server, and the scopes that its challenge asks for.
    async fn resource_metadata(
        &self,
        endpoint: &Endpoint,
    ) -> Result<(ResourceMetadata, Vec<String>), Unknown> {
        let challenge = self.outbound.challenge_of(endpoint).await.map_err(http(RESOURCE))?;
        let challenge = challenge.unwrap_or_default();
        // Some name it as a path.
        let named = challenge.resource_metadata.iter();
        let named = named.filter_map(|name| endpoint.address().join(name).ok());
        let places = named.chain(resource_urls(endpoint.address())).map(String::from).collect();
        let read = |document: &Value| {
            ResourceMetadata::parse(document, endpoint.address()).map_err(metadata(RESOURCE))
        };
        let found = self.first_document(RESOURCE, places, endpoint, read).await?;
        Ok((found, challenge.scopes))
    }

    /// The first document that can be read at one of these places. At some of them servers answer with an
    /// error or a page; if there is none, what is most telling is said.
    async fn first_document<T>(
        &self,
        what: &'static str,
        places: Vec<String>,
        near: &Endpoint,
        read: impl Fn(&Value) -> Result<T, Unknown>,
    ) -> Result<T, Unknown> {
        let mut unread = None;
        let mut last = OAuthError::Form;
        for place in places {
            let place = match Endpoint::found(&place, near) {
                Ok(place) => place,
                Err(error) => {
                    last = error.into();
                    continue;
                }
            };
            match self.outbound.fetch_json(&place).await.map(|document| read(&document)) {
                Ok(Ok(found)) => return Ok(found),
                Ok(Err(unknown)) => unread = unread.or(Some(unknown)),
                // The caller would have to wait at the next address, too.
                Err(error @ OAuthError::Timeout) => return Err(http(what)(error)),
                Err(error) => last = error,
            }
        }
        Err(unread.unwrap_or_else(|| http(what)(last)))
    }

    /// The authorization server of this name, as it describes itself.
    async fn described(
        &self,
        issuer: &str,
        near: &Endpoint,
        resource: Option<String>,
    ) -> Result<Server, Unknown> {
        let read =
            |document: &Value| ServerMetadata::parse(document, issuer).map_err(metadata(ISSUER));
        let places = issuer_urls(near.address()).into_iter().map(String::from).collect();
        let described = self.first_document(ISSUER, places, near, read).await?;
        server_of(described, near, resource)
    }
}

fn explicit(endpoints: &Endpoints, resource: Option<String>, settings: &OAuthSettings) -> Server {
    Server {
        issuer: endpoints.issuer.clone(),
        resource,
        authorize: endpoints.authorize.clone(),
        token: endpoints.token.clone(),
        revoke: endpoints.revoke.clone(),
        register: None,
        reads_client_documents: false,
        tells_issuer: false,
        methods: settings.method.into_iter().collect(),
        wanted: Vec::new(),
        listed: Vec::new(),
        others: None,
    }
}

fn server_of(
    described: ServerMetadata,
    near: &Endpoint,
    resource: Option<String>,
) -> Result<Server, Unknown> {
    let place = |text: &str| {
        let found = Endpoint::found(text, near);
        found.map_err(|error| http(ISSUER)(error.into()))
    };
    let maybe = |text: &Option<String>| text.as_deref().map(place).transpose();
    Ok(Server {
        resource,
        authorize: place(&described.authorization_endpoint)?,
        token: place(&described.token_endpoint)?,
        revoke: maybe(&described.revocation_endpoint)?,
        register: maybe(&described.registration_endpoint)?,
        reads_client_documents: described.reads_client_documents,
        tells_issuer: described.tells_issuer,
        methods: described.methods,
        issuer: described.issuer,
        wanted: Vec::new(),
        listed: Vec::new(),
        others: None,
    })
}
