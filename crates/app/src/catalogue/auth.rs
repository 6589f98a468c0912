//! Authentication of the gateway to a provider, and the principals that may connect it.

use portcullis_core::{
    oauth::{TokenMethod, is_same_issuer, is_scope},
    secret::Secret,
};
use portcullis_upstream::{Client, Credential, Endpoint, SettingsError};
use serde::Serialize;
use utoipa::ToSchema;

portcullis_core::words! {
    /// Authentication method of a provider, in one word.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum AuthKind {
        /// Not at all.
        None = "none",
        /// With a key.
        ApiKey = "api_key",
        /// With tokens that the provider's authorization server grants.
        #[serde(rename = "oauth2")]
        OAuth2 = "oauth2",
    }
}

portcullis_core::words! {
    /// Credential that a person has to bring before a provider can be used.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum Awaited {
        /// A key.
        Key = "key",
        /// A person who authorizes the gateway at the provider.
        Person = "person",
    }
}

/// Authentication of the gateway to a provider.
#[derive(Debug, Clone)]
pub enum Auth {
    None,
    /// With a key from the configuration, which the server shows by itself.
    ConfiguredKey,
    /// With a key that the connecting caller brings.
    Key(HeaderFormat),
    /// With tokens that the connecting caller consents to.
    OAuth(Box<OAuthSettings>),
}

/// The header that carries a credential.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeaderFormat {
    name: String,
    before: String,
    after: String,
}

impl HeaderFormat {
    /// `format` holds `{}` where the credential stands, such as `Bearer {}`. Rejects headers that
    /// cannot carry one.
    pub fn new(name: &str, format: &str) -> Result<Self, String> {
        let (before, after) = format
            .split_once("{}")
            .ok_or_else(|| format!("`{format}` needs `{{}}` where the credential stands"))?;
        let header =
            Self { name: name.to_owned(), before: before.to_owned(), after: after.to_owned() };
        let probe = header.credential(&Secret::new("x".to_owned()));
        probe.map(|_| header).map_err(|error| error.to_string())
    }

    /// `Authorization: Bearer {}`.
    #[must_use]
    pub fn bearer() -> Self {
        Self {
            name: "authorization".to_owned(),
            before: "Bearer ".to_owned(),
            after: String::new(),
        }
    }

    fn credential(&self, token: &Secret) -> Result<Credential, SettingsError> {
        let value = Secret::new(format!("{}{}{}", self.before, token.expose(), self.after));
        Credential::header(&self.name, &value)
    }
}

/// Configuration of an OAuth provider.
#[derive(Debug, Clone)]
pub struct OAuthSettings {
    pub server: AuthorizationServer,
    /// The client that the operator registered there; never without a named server.
    pub client: Option<Client>,
    /// True if the gateway may name itself by its metadata document.
    pub client_document: bool,
    /// True if the gateway may register by itself.
    pub dynamic_registration: bool,
    /// Client authentication at the token endpoint; discovered if absent.
    pub method: Option<TokenMethod>,
    /// The scopes that are asked for if the request names none.
    pub default_scopes: Vec<String>,
    /// Scopes that may be asked for; `None` is any that the provider itself lists.
    pub allowed_scopes: Option<Vec<String>>,
    pub scope_separator: char,
    pub authorize_parameters: Vec<(String, String)>,
    pub token_parameters: Vec<(String, String)>,
    /// The `resource` that is asked for (RFC 8707); the server's own name for itself when absent.
    pub resource: Option<String>,
    /// True if the caller who began has to bring the code that the browser was shown.
    pub confirmation: bool,
    /// The header that carries access tokens.
    pub header: HeaderFormat,
}

/// Authorization server of a provider.
#[derive(Debug, Clone)]
pub enum AuthorizationServer {
    /// The MCP server says who.
    Discovered,
    /// An issuer, whose metadata says where.
    Issuer {
        /// Its name to the letter.
        name: String,
        /// The same as an address.
        endpoint: Endpoint,
    },
    /// Configured endpoints: plain OAuth 2.0.
    Explicit(Box<Endpoints>),
}

/// The endpoints of an authorization server without metadata.
#[derive(Debug, Clone)]
pub struct Endpoints {
    /// Name of the issuer, in `iss` and here.
    pub issuer: String,
    /// Authorization endpoint, for browsers.
    pub authorize: Endpoint,
    /// Token endpoint: exchanges codes for tokens.
    pub token: Endpoint,
    pub revoke: Option<Endpoint>,
}

/// Endpoint where a provider names the account of a credential.
#[derive(Debug, Clone)]
pub struct AccountSource {
    /// Asked with the credential.
    pub endpoint: Endpoint,
    /// JSON Pointer to the id.
    pub id: String,
    /// JSON Pointer to the name.
    pub name: String,
}

/// Principals that may have connections to a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owners {
    /// Users, each their own.
    pub me: bool,
    pub org: bool,
}

impl Auth {
    /// In one word.
    #[must_use]
    pub const fn kind(&self) -> AuthKind {
        match self {
            Self::None => AuthKind::None,
            Self::ConfiguredKey | Self::Key(_) => AuthKind::ApiKey,
            Self::OAuth(_) => AuthKind::OAuth2,
        }
    }

    /// True if it works without anybody connecting.
    pub(crate) const fn needs_nobody(&self) -> bool {
        self.awaited().is_none()
    }

    /// Credential that its connection needs; `None` if it needs none.
    pub(crate) const fn awaited(&self) -> Option<Awaited> {
        match self {
            Self::None | Self::ConfiguredKey => None,
            Self::Key(_) => Some(Awaited::Key),
            Self::OAuth(_) => Some(Awaited::Person),
        }
    }

    /// The settings of an OAuth provider.
    pub(crate) fn oauth(&self) -> Option<&OAuthSettings> {
        match self {
            Self::OAuth(settings) => Some(settings),
            Self::None | Self::ConfiguredKey | Self::Key(_) => None,
        }
    }

    /// A key or an access token as it goes upstream.
    pub(crate) fn header(&self, token: &Secret) -> Option<Credential> {
        match self {
            Self::None | Self::ConfiguredKey => None,
            Self::Key(header) => header.credential(token).ok(),
            Self::OAuth(settings) => settings.header.credential(token).ok(),
        }
    }
}

/// Parameters that the gateway itself sets.
const OURS: [&str; 9] = [
    "response_type", "client_id", "redirect_uri", "state", "code_challenge",
    "code_challenge_method", "code", "code_verifier", "client_secret",
];

impl OAuthSettings {
    /// The issuer that the configuration names; `None` if the MCP server says who authorizes.
    #[must_use]
    pub fn issuer(&self) -> Option<&str> {
        match &self.server {
            AuthorizationServer::Discovered => None,
            AuthorizationServer::Issuer { name, .. } => Some(name),
            AuthorizationServer::Explicit(endpoints) => Some(&endpoints.issuer),
        }
    }

    /// Returns true if the gateway may register by itself.
    pub(crate) const fn registers(&self) -> bool {
        self.client.is_none() && self.dynamic_registration
    }

    /// The operator's client, if it was registered at this issuer.
    pub(crate) fn client_of(&self, issuer: &str) -> Option<&Client> {
        let own = self.issuer().is_some_and(|own| is_same_issuer(own, issuer));
        self.client.as_ref().filter(|_| own)
    }

    /// Rejects settings that can never work, and a client whose issuer is not named.
    pub fn check(&self) -> Result<(), String> {
        if self.client.is_some() && self.issuer().is_none() {
            return Err(
                "`oauth.client_id` needs `oauth.issuer`, the authorization server that it \
                        was registered at: it is shown to no other one, whatever the MCP server \
                        says. Without `client_id`, `portcullis check` shows which one that names"
                    .to_owned(),
            );
        }
        let wrong = self.default_scopes.iter().chain(self.allowed_scopes.iter().flatten());
        if let Some(scope) = wrong.into_iter().find(|scope| !is_scope(scope)) {
            return Err(format!("`{scope}` cannot be a scope"));
        }
        if let Some(allowed) = &self.allowed_scopes
            && let Some(scope) = self.default_scopes.iter().find(|scope| !allowed.contains(scope))
        {
            return Err(format!("the default scope `{scope}` is not among `allowed_scopes`"));
        }
        let parameters = self.authorize_parameters.iter().chain(&self.token_parameters);
        if let Some((name, _)) =
            parameters.into_iter().find(|(name, _)| OURS.contains(&name.as_str()))
        {
            return Err(format!("the parameter `{name}` is the gateway's own"));
        }
        Ok(())
    }
}
