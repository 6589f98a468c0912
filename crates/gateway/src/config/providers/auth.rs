//! Authentication of the gateway to a provider: the `auth` of `[[providers]]` and what belongs to
//! it.

use std::collections::BTreeMap;

use portcullis_app::{
    AccountSource, Auth, AuthorizationServer, Endpoints, HeaderFormat, OAuthSettings, Owners,
};
use portcullis_core::oauth::TokenMethod;
use portcullis_upstream::{Client, Endpoint, SettingsError};
use serde::Deserialize;

use super::SecretSource;

/// `auth`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum AuthName {
    #[default]
    None,
    ApiKey,
    #[serde(rename = "oauth2")]
    OAuth2,
}

/// `owners`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum OwnerName {
    Me,
    Org,
}

/// `[providers.oauth]`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct OAuth {
    /// The authorization server; found out from the MCP server when absent. Has to be named
    /// for a client that the operator registered.
    issuer: Option<String>,
    /// Authorization endpoint, for a server without metadata.
    authorize_url: Option<String>,
    /// Token endpoint, for a server without metadata.
    token_url: Option<String>,
    /// Revocation endpoint, for a server without metadata.
    revoke_url: Option<String>,
    client_id: Option<String>,
    client_secret: Option<SecretSource>,
    /// `client_secret_basic`, `client_secret_post` or `none`.
    token_auth: Option<String>,
    /// Permits the gateway to name itself by its metadata document; yes when absent.
    client_document: Option<bool>,
    /// Permits the gateway to register by itself; yes when absent.
    dynamic_registration: Option<bool>,
    /// Asked for when the request names none.
    scopes: Vec<String>,
    /// Scopes that may be asked for; any that the provider lists when absent.
    allowed_scopes: Option<Vec<String>>,
    /// Separator between two of them; a space when absent.
    scope_separator: Option<char>,
    authorize_parameters: BTreeMap<String, String>,
    token_parameters: BTreeMap<String, String>,
    /// `resource` (RFC 8707); the MCP server's name for itself when absent. Empty: none is sent,
    /// for plain OAuth 2.0 servers that refuse what they do not know.
    resource: Option<String>,
    /// The header that carries access tokens; `Authorization` when absent.
    token_header: Option<String>,
    /// Format of the header, with `{}` for the token; `Bearer {}` when absent.
    token_format: Option<String>,
}

/// `[providers.account]`: where a provider tells whose a credential is.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Account {
    url: String,
    /// JSON Pointer to the id.
    id: String,
    /// JSON Pointer to the name.
    name: String,
}

type Reach = fn(&str) -> Result<Endpoint, SettingsError>;

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

impl Account {
    pub(super) fn source(&self, reach: Reach) -> Result<AccountSource, String> {
        let endpoint = reach(&self.url).map_err(|error| format!("`account.url`: {error}"))?;
        if !self.id.starts_with('/') || !self.name.starts_with('/') {
            return Err("`account.id` and `account.name` have to be JSON Pointers".to_owned());
        }
        Ok(AccountSource { endpoint, id: self.id.clone(), name: self.name.clone() })
    }
}

/// Owners of connections; everybody whom the kind of credential admits when nothing is said.
pub(super) fn owners(named: Option<&[OwnerName]>, auth: &Auth) -> Result<Owners, String> {
    let one_key = matches!(auth, Auth::ConfiguredKey);
    let Some(named) = named else { return Ok(Owners { me: !one_key, org: true }) };
    let owners =
        Owners { me: named.contains(&OwnerName::Me), org: named.contains(&OwnerName::Org) };
    if one_key && owners.me {
        return Err("a provider with an `api_key` in the configuration is the org's".to_owned());
    }
    if !owners.me && !owners.org {
        return Err("`owners` has to name `me`, `org` or both".to_owned());
    }
    Ok(owners)
}

impl OAuth {
    /// The settings, or what is wrong with them. `mcp` is the address of the provider.
    pub(super) fn settings(&self, reach: Reach, confirmation: bool) -> Result<Auth, String> {
        let settings = OAuthSettings {
            server: self.server(reach)?,
            client: self.client()?,
            client_document: self.client_document.unwrap_or(true),
            dynamic_registration: self.dynamic_registration.unwrap_or(true),
            method: self.method()?,
            default_scopes: self.scopes.clone(),
            allowed_scopes: self.allowed_scopes.clone(),
            scope_separator: self.scope_separator.unwrap_or(' '),
            authorize_parameters: pairs(&self.authorize_parameters),
            token_parameters: pairs(&self.token_parameters),
            resource: self.resource.clone(),
            confirmation,
            header: HeaderFormat::new(
                self.token_header.as_deref().unwrap_or("authorization"),
                self.token_format.as_deref().unwrap_or("Bearer {}"),
            )?,
        };
        settings.check()?;
        Ok(Auth::OAuth(Box::new(settings)))
    }

    fn server(&self, reach: Reach) -> Result<AuthorizationServer, String> {
        let place =
            |key: &str, url: &str| reach(url).map_err(|error| format!("`oauth.{key}`: {error}"));
        match (&self.authorize_url, &self.token_url, &self.issuer) {
            (None, None, None) => Ok(AuthorizationServer::Discovered),
            (None, None, Some(issuer)) => Ok(AuthorizationServer::Issuer {
                name: issuer.clone(),
                endpoint: place("issuer", issuer)?,
            }),
            (Some(authorize), Some(token), issuer) => {
                let authorize = place("authorize_url", authorize)?;
                let issuer = issuer
                    .clone()
                    .unwrap_or_else(|| authorize.address().origin().ascii_serialization());
                let revoke = self.revoke_url.as_deref().map(|url| place("revoke_url", url));
                Ok(AuthorizationServer::Explicit(Box::new(Endpoints {
                    issuer,
                    authorize,
                    token: place("token_url", token)?,
                    revoke: revoke.transpose()?,
                })))
            }
            (Some(_), None, _) | (None, Some(_), _) => {
                Err("`oauth.authorize_url` and `oauth.token_url` belong together".to_owned())
            }
        }
    }

    fn client(&self) -> Result<Option<Client>, String> {
        let secret = self.client_secret.as_ref().map(SecretSource::read).transpose()?;
        let explicit = self.authorize_url.is_some();
        let Some(id) = &self.client_id else {
            return match (secret, explicit) {
                (Some(_), _) => Err("`oauth.client_secret` needs `oauth.client_id`".to_owned()),
                (None, true) => Err("without metadata there is nobody to register with: \
                                     `oauth.client_id` has to be given"
                    .to_owned()),
                (None, false) => Ok(None),
            };
        };
        let fallback = if secret.is_some() { TokenMethod::Basic } else { TokenMethod::None };
        let method = self.method()?.unwrap_or(fallback);
        if method != TokenMethod::None && secret.is_none() {
            return Err("`oauth.token_auth` needs `oauth.client_secret`".to_owned());
        }
        Ok(Some(Client { id: id.clone(), secret, method }))
    }

    fn method(&self) -> Result<Option<TokenMethod>, String> {
        let Some(name) = &self.token_auth else { return Ok(None) };
        let wrong = "`oauth.token_auth` has to be `client_secret_basic`, `client_secret_post` or \
                     `none`";
        TokenMethod::from_word(name).map(Some).ok_or_else(|| wrong.to_owned())
    }
}

fn pairs(map: &BTreeMap<String, String>) -> Vec<(String, String)> {
    map.iter().map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// The header of keys that people bring.
pub(super) fn key_header(name: Option<&str>, format: Option<&str>) -> Result<Auth, String> {
    let header = match (name, format) {
        (None, None) => HeaderFormat::bearer(),
        (name, format) => {
            let usual = if name.is_some() { "{}" } else { "Bearer {}" };
            HeaderFormat::new(name.unwrap_or("authorization"), format.unwrap_or(usual))
                .map_err(text)?
        }
    };
    Ok(Auth::Key(header))
}
