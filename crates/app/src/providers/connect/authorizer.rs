//! Authorization server of a provider, and the client id of the gateway there.
//!
//! Found out in the order of the MCP specification: the server's challenge and its metadata (RFC
//! 9728) name the issuer, the issuer's metadata (RFC 8414) has to name itself to the letter. The
//! gateway's own name is the operator's, its metadata document's address, or what it registers.
//!
//! **Invariant:** a client of the configuration is shown to its own issuer only. An MCP server
//! could name a server of its own, which is true to itself and wants nothing but the secret. The
//! endpoints of the issuer come from its own metadata; they may be on other hosts (RFC 8414 §2),
//! for only the issuer can name them.

use std::sync::Arc;

use portcullis_core::{
    id::GrantId,
    oauth::{
        MetadataError, Registration, ResourceMetadata, ServerMetadata, TokenMethod, is_same_issuer,
        issuer_urls, resource_urls,
    },
    refusal::{Refusal, UpstreamReason},
    secret::Secret,
    vault::VaultError,
};
use portcullis_store::{CLIENT, OAuthClient};
use portcullis_upstream::{Client, Endpoint, OAuthError, oauth::OAUTH_TIMEOUT};
use serde_json::{Value, json};

use crate::{
    catalogue::{
        auth::{AuthorizationServer, Endpoints, OAuthSettings},
        authorizer::Server,
        provider::Provider,
    },
    providers::{
        Providers,
        vault::{SecretPlace, unopened},
    },
};

/// Seconds for which metadata is believed.
const FRESH_SECONDS: i64 = 10 * 60;
const SECRET: &str = "secret";

impl Server {
    /// Fails if the MCP server does not name the configured issuer: what that grants would be of no
    /// use there, or the MCP server impersonates another one.
    pub(crate) fn named(self: Arc<Self>) -> Result<Arc<Self>, Unknown> {
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

/// A registration of the gateway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registered {
    /// The authorization server.
    pub issuer: String,
    pub client_id: String,
}

/// Reason why the gateway was not registered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotRegistered {
    #[error("no provider `{0}` is declared")]
    NoProvider(String),
    #[error("the provider `{0}` is not connected with OAuth; it needs no registration")]
    NoOAuth(String),
    /// The client is configured, or known by its document.
    #[error("the gateway is known there as {0} without a registration of its own")]
    OtherClient(String),
    #[error("{0}")]
    Unknown(String),
}

fn http(what: &'static str) -> impl Fn(OAuthError) -> Unknown {
    move |error| Unknown::Http { what, error }
}

fn metadata(what: &'static str) -> impl Fn(MetadataError) -> Unknown {
    move |error| Unknown::Metadata { what, error }
}

const RESOURCE: &str = "the metadata of the MCP server";
const ISSUER: &str = "the metadata of the authorization server";
const REGISTRATION: &str = "the registration of the gateway";

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
            OAuthError::TooLarge => UpstreamReason::ResponseTooLarge,
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

    /// Drops the registration under which an authorization server does not know the gateway any
    /// more, so that the next connect registers anew. Fails if the gateway did not register the
    /// client.
    pub(super) async fn forget_client(
        &self,
        provider: &Provider,
        server: &Server,
        client: &Client,
    ) -> Result<bool, Refusal> {
        let forgotten = self.base.store.forget_oauth_client(&server.issuer, &client.id).await?;
        if forgotten {
            tracing::warn!(
                provider = %provider.declared.slug, issuer = %server.issuer,
                "the authorization server does not know the gateway any more: the next connect registers anew"
            );
        }
        Ok(forgotten)
    }

    /// Client of the gateway at this server: from the configuration, from its metadata document, or
    /// from a registration, which is done once and stored.
    pub(crate) async fn client_at(
        &self,
        provider: &Provider,
        settings: &OAuthSettings,
        server: &Server,
    ) -> Result<Client, Refusal> {
        let unknown = |unknown: Unknown| provider.unknown(&unknown);
        if let Some(client) = settings.client_of(&server.issuer) {
            let method = settings.method.unwrap_or_else(|| server.method(client.secret.is_some()));
            return Ok(Client { method, ..client.clone() });
        }
        let id = self.connecting.client_document_url()?;
        // Authorization servers read none over plain HTTP.
        let readable = id.starts_with("https://");
        if settings.client_document && server.reads_client_documents && readable {
            return Ok(Client { id, secret: None, method: TokenMethod::None });
        }
        let Some(register) = server.register.as_ref().filter(|_| settings.dynamic_registration)
        else {
            return Err(unknown(Unknown::NoClient));
        };
        if let Some(known) = self.registered(server).await? {
            return Ok(known);
        }
        let redirect_uri = self.connecting.redirect_uri()?;
        let method = server.method(true);
        let asked = json!({
            "application_type": application_type(&redirect_uri),
            "client_name": self.connecting.client_name,
            "redirect_uris": [redirect_uri],
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": method.as_str(),
        });
        let answer = self.outbound.register_client(register, &asked).await;
        let answer = answer.map_err(|error| unknown(http(REGISTRATION)(error)))?;
        let registration = Registration::parse(&answer, method);
        let registration = registration.map_err(|error| unknown(metadata(REGISTRATION)(error)))?;
        self.keep_registration(server, redirect_uri, registration).await
    }

    /// Registers the gateway at the authorization server of a provider, unless it is; `again` in the place of the
    /// registration that there is.
    pub async fn register(&self, slug: &str, again: bool) -> Result<Registered, NotRegistered> {
        let provider = self.catalogue.providers.get(slug);
        let provider = provider.ok_or_else(|| NotRegistered::NoProvider(slug.to_owned()))?;
        let settings = provider.declared.auth.oauth();
        let settings = settings.ok_or_else(|| NotRegistered::NoOAuth(slug.to_owned()))?;
        let server = self.authorizer(provider, settings).await;
        let server = server.map_err(|unknown| NotRegistered::Unknown(unknown.to_string()))?;
        let refused = |refusal: Refusal| NotRegistered::Unknown(refusal.to_string());
        let known = self.registered(&server).await.map_err(refused)?;
        if let Some(known) = known.filter(|_| again) {
            self.forget_client(provider, &server, &known).await.map_err(refused)?;
        }
        let client = self.client_at(provider, settings, &server).await.map_err(refused)?;
        if self.registered(&server).await.map_err(refused)?.is_none() {
            return Err(NotRegistered::OtherClient(client.id));
        }
        Ok(Registered { issuer: server.issuer.clone(), client_id: client.id })
    }

    async fn registered(&self, server: &Server) -> Result<Option<Client>, Refusal> {
        let redirect_uri = self.connecting.redirect_uri()?;
        let known = self.base.store.find_oauth_client(&server.issuer, &redirect_uri).await;
        let Some(known) = known? else { return Ok(None) };
        let now = self.base.clock.now();
        let method = TokenMethod::named(&known.method);
        let (Some(method), true) = (method, known.expires_at.is_none_or(|at| at > now)) else {
            return Ok(None);
        };
        let secret = self.base.store.find_secret("", CLIENT, &known.id, SECRET).await;
        let secret = match secret? {
            Some(sealed) => match self.open(&sealed) {
                Ok(text) => {
                    let text = String::from_utf8(text.to_vec()).map_err(|_| Refusal::Internal)?;
                    Some(Secret::new(text))
                }
                // Lost for good. Without a new registration no caller could connect any more.
                Err(error @ VaultError::Damaged) => {
                    self.base.store.left_out(unopened(&sealed, &error));
                    return Ok(None);
                }
                Err(_) => return Err(self.opened(&sealed).err().unwrap_or(Refusal::Internal)),
            },
            None => None,
        };
        Ok(Some(Client { id: known.client_id, secret, method }))
    }

    async fn keep_registration(
        &self,
        server: &Server,
        redirect_uri: String,
        registration: Registration,
    ) -> Result<Client, Refusal> {
        let id = GrantId::new(self.base.ids()).to_string();
        let Registration { client_id, client_secret, expires_at, method } = registration;
        let secret = match &client_secret {
            Some(secret) => {
                let kept = SecretPlace { org: "", kind: CLIENT, row: &id, field: SECRET };
                Some(self.sealed(&kept, secret.expose().as_bytes())?)
            }
            None => None,
        };
        let client = OAuthClient {
            issuer: server.issuer.clone(),
            redirect_uri,
            id,
            client_id: client_id.clone(),
            method: method.as_str().to_owned(),
            registered_at: self.base.clock.now(),
            expires_at,
        };
        let kept = self.base.store.keep_oauth_client(&client, secret.as_ref()).await;
        kept?;
        tracing::info!(issuer = %server.issuer, "the gateway registered with an issuer");
        Ok(Client { id: client_id, secret: client_secret, method })
    }

    /// The gateway's Client ID Metadata Document.
    pub fn client_document(&self) -> Result<Value, Refusal> {
        let redirect_uri = self.connecting.redirect_uri()?;
        Ok(json!({
            "application_type": application_type(&redirect_uri),
            "client_id": self.connecting.client_document_url()?,
            "client_name": self.connecting.client_name,
            "redirect_uris": [redirect_uri],
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": "none",
        }))
    }
}

/// Kind of client that an address makes (OpenID Connect Registration §2): one on this machine over
/// plain HTTP is a native one.
fn application_type(redirect_uri: &str) -> &'static str {
    if redirect_uri.starts_with("https://") { "web" } else { "native" }
}

impl Server {
    /// Authentication method there, with a secret or without.
    fn method(&self, secret: bool) -> TokenMethod {
        let usable = |method: &&TokenMethod| secret == (**method != TokenMethod::None);
        let fallback = if secret { TokenMethod::Basic } else { TokenMethod::None };
        self.methods.iter().find(usable).or(self.methods.first()).copied().unwrap_or(fallback)
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
