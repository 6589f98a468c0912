//! Client of the gateway at an authorization server: configured, a document, or registered there.

use portcullis_core::{
    id::GrantId,
    oauth::{Registration, TokenMethod},
    refusal::Refusal,
    secret::Secret,
    vault::VaultError,
};
use portcullis_store::{CLIENT, OAuthClient};
use portcullis_upstream::Client;
use serde_json::{Value, json};

use super::authorizer::{Unknown, http, metadata};
use crate::{
    catalogue::{auth::OAuthSettings, authorizer::Server, provider::Provider},
    providers::{
        Providers,
        vault::{SecretPlace, unopened},
    },
};

const SECRET: &str = "secret";
const REGISTRATION: &str = "the registration of the gateway";

/// A registration of the gateway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegisteredClient {
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

impl Providers {
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
    pub async fn register(
        &self,
        slug: &str,
        again: bool,
    ) -> Result<RegisteredClient, NotRegistered> {
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
        Ok(RegisteredClient { issuer: server.issuer.clone(), client_id: client.id })
    }

    async fn registered(&self, server: &Server) -> Result<Option<Client>, Refusal> {
        let redirect_uri = self.connecting.redirect_uri()?;
        let known = self.base.store.find_oauth_client(&server.issuer, &redirect_uri).await;
        let Some(known) = known? else { return Ok(None) };
        let now = self.base.clock.now();
        let method = TokenMethod::from_word(&known.method);
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
