//! Clients: programs that ask for tokens of people.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use url::Url;
use utoipa::ToSchema;

use super::{Face, OAuthError, OAuthErrorCode, RedirectUri};
use crate::{
    hidden::spelled,
    id::ConsentId,
    principal::{Scope, ScopeSet},
    trust::{PublicKey, PublicKeyError},
};

/// Longest `client_id` in bytes.
pub const MAX_CLIENT_ID: usize = 2_048;
/// Longest address of a metadata document; it stands in every event of the client.
const MAX_DOCUMENT_URL: usize = 512;
/// Characters of a name; longer ones are cut.
const MAX_NAME: usize = 64;
/// Id of the gateway's own command line.
pub const COMMAND_LINE: &str = "portcullis-cli";
/// Path on a loopback address that the command line returns to.
pub const COMMAND_LINE_PATH: &str = "/callback";
/// Addresses that a client may return to, at most.
const MAX_REDIRECTS: usize = 20;
/// Keys that a client may prove itself with, at most.
pub const MAX_CLIENT_KEYS: usize = 20;

crate::words! {
    /// The way in which a client made itself known.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum ClientKind {
        /// By the metadata document at the address that is its id.
        MetadataDocument = "metadata_document",
        /// By dynamic registration: nothing vouches for it.
        Registered = "registered",
        /// In the configuration of the gateway.
        Declared = "declared",
    }
}

/// A client as policies, events and lists name it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ClientRef {
    /// Its `client_id`; of a registered client the id of its registration, `reg_…`.
    pub id: String,
    pub kind: ClientKind,
    /// Its own name for itself; never trusted.
    pub name: String,
}

/// Authentication of a client at the token endpoint, as its metadata document declares it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClientAuthentication {
    /// None: PKCE alone binds a code to it.
    None,
    /// `private_key_jwt` with the keys that are published at this address.
    PublishedKeys(String),
    /// The same with these keys.
    Keys(Vec<PublicKey>),
}

impl ClientAuthentication {
    /// Reads `token_endpoint_auth_method`, `jwks_uri` and `jwks` (RFC 7591 §2).
    ///
    /// # Errors
    /// `invalid_client_metadata` for secrets that client and gateway would share, and for keys that are private,
    /// missing, or given in both ways.
    fn of_document(document: &Value) -> Result<Self, OAuthError> {
        let wrong = |told: &str| OAuthError::new(OAuthErrorCode::InvalidClientMetadata, told);
        if document.get("client_secret").is_some() {
            return Err(wrong("a metadata document holds no client_secret"));
        }
        match document.get("token_endpoint_auth_method").map(Value::as_str) {
            None | Some(Some("none")) => return Ok(Self::None),
            Some(Some("private_key_jwt")) => {}
            Some(_) => {
                let told = "token_endpoint_auth_method has to be none or private_key_jwt";
                return Err(wrong(told));
            }
        }
        let told = "private_key_jwt asks for either jwks_uri or jwks with public keys";
        match (document.get("jwks_uri").map(Value::as_str), document.get("jwks")) {
            (Some(Some(address)), None) if Client::is_document_url(address) => {
                Ok(Self::PublishedKeys(address.to_owned()))
            }
            (None, Some(keys)) => public_keys(keys).map(Self::Keys).ok_or_else(|| wrong(told)),
            (Some(_), Some(_) | None) | (None, None) => Err(wrong(told)),
        }
    }

    /// Bytes of memory that it takes, about.
    const fn weight(&self) -> usize {
        match self {
            Self::None => 0,
            // The keys are fetched when they are needed.
            Self::PublishedKeys(address) => address.len() + MAX_CLIENT_KEYS * KEY_BYTES,
            Self::Keys(keys) => keys.len() * KEY_BYTES,
        }
    }
}

/// Bytes of memory of the largest key and what is made of it, about.
const KEY_BYTES: usize = 8 << 10;

/// The keys of a JWK Set that can be used; `None` if there are none or too many of them, or one is private.
fn public_keys(set: &Value) -> Option<Vec<PublicKey>> {
    let mut keys = Vec::new();
    for jwk in set.get("keys")?.as_array()? {
        match PublicKey::of_jwk(jwk) {
            Ok(key) => keys.push(key),
            Err(PublicKeyError::Private) => return None,
            Err(PublicKeyError::Form | PublicKeyError::Unusable | PublicKeyError::KeyId) => {}
        }
    }
    (1..=MAX_CLIENT_KEYS).contains(&keys.len()).then_some(keys)
}

/// A known client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Client {
    reference: ClientRef,
    redirect_uris: Vec<RedirectUri>,
    authentication: ClientAuthentication,
}

impl Client {
    /// A client with at least one address that it may return to. A name without letters is replaced by the
    /// host of the first of them.
    ///
    /// # Errors
    /// `invalid_redirect_uri`.
    pub fn new(
        id: String,
        kind: ClientKind,
        name: Option<&str>,
        redirect_uris: Vec<RedirectUri>,
    ) -> Result<Self, OAuthError> {
        let wrong = |told: &str| OAuthError::new(OAuthErrorCode::InvalidRedirectUri, told);
        let first = redirect_uris.first().ok_or_else(|| wrong("redirect_uris is empty"))?;
        if redirect_uris.len() > MAX_REDIRECTS {
            return Err(wrong("there are too many redirect_uris"));
        }
        let name = name.map(shown_name).filter(|name| !name.trim().is_empty());
        let name = name.unwrap_or_else(|| first.describe());
        let reference = ClientRef { id, kind, name };
        Ok(Self { reference, redirect_uris, authentication: ClientAuthentication::None })
    }

    /// The command line of this gateway, on the machine of the person who uses it: every gateway knows it, and
    /// it returns to loopback addresses only.
    #[must_use]
    pub fn command_line() -> Self {
        let uris = ["http://127.0.0.1", "http://[::1]"];
        let uri = |host: &str| RedirectUri::parse(&format!("{host}{COMMAND_LINE_PATH}"));
        Self {
            reference: ClientRef {
                id: COMMAND_LINE.to_owned(),
                kind: ClientKind::Declared,
                name: "Portcullis command line".to_owned(),
            },
            redirect_uris: uris.into_iter().filter_map(uri).collect(),
            authentication: ClientAuthentication::None,
        }
    }

    /// Returns true if the operator or the gateway itself vouches for it.
    #[must_use]
    pub const fn is_declared(&self) -> bool {
        matches!(self.reference.kind, ClientKind::Declared)
    }

    /// The client whose metadata document stands at `id`.
    ///
    /// # Errors
    /// `invalid_client` if the document is that of another client, `invalid_redirect_uri` and
    /// `invalid_client_metadata` if it does not describe one.
    pub fn of_document(id: &str, document: &Value) -> Result<Self, OAuthError> {
        if document.get("client_id").and_then(Value::as_str) != Some(id) {
            return Err(OAuthError::client("the metadata document has another client_id"));
        }
        let name = document.get("client_name").and_then(Value::as_str);
        let kind = ClientKind::MetadataDocument;
        let client = Self::new(id.to_owned(), kind, name, redirect_uris(document)?)?;
        Ok(Self { authentication: ClientAuthentication::of_document(document)?, ..client })
    }

    /// Returns true if `id` can be the address of a metadata document, or of keys: `https` with a path, and nothing in it
    /// that two readers could take for different addresses.
    #[must_use]
    pub fn is_document_url(id: &str) -> bool {
        let odd = |byte: u8| !byte.is_ascii_graphic() || b"\\#@".contains(&byte);
        let path = id.strip_prefix("https://").and_then(|rest| rest.split_once('/'));
        let same = || Url::parse(id).is_ok_and(|url| url.as_str() == id);
        id.len() <= MAX_DOCUMENT_URL
            && !id.bytes().any(odd)
            && path.is_some_and(|(host, path)| !host.is_empty() && !path.is_empty())
            && same()
    }

    /// The client as policies, events and lists name it.
    #[must_use]
    pub const fn reference(&self) -> &ClientRef {
        &self.reference
    }

    /// Bytes of memory that it takes, about.
    #[must_use]
    pub fn weight(&self) -> usize {
        let addresses = self.redirect_uris.iter().map(|uri| 2 * uri.as_str().len() + 100);
        let named = self.reference.id.len() + self.reference.name.len() + 200;
        named + addresses.sum::<usize>() + self.authentication.weight()
    }

    /// Its authentication at the token endpoint.
    #[must_use]
    pub const fn authentication(&self) -> &ClientAuthentication {
        &self.authentication
    }

    /// Addresses that it may return to.
    #[must_use]
    pub fn redirect_uris(&self) -> &[RedirectUri] {
        &self.redirect_uris
    }

    /// The scopes that it may ask for. Deciding about approvals is for people, so no client has that; only the
    /// operator's own may administer.
    #[must_use]
    pub const fn ceiling(&self) -> ScopeSet {
        match self.reference.kind {
            ClientKind::Declared => ScopeSet::ALL.without(Scope::ApprovalsDecide),
            ClientKind::MetadataDocument | ClientKind::Registered => {
                ScopeSet::ALL.unless_asked_for()
            }
        }
    }

    /// The host that vouches for its id; `None` where none does.
    #[must_use]
    pub fn host(&self) -> Option<String> {
        match self.reference.kind {
            ClientKind::MetadataDocument => {
                Url::parse(&self.reference.id).ok()?.host_str().map(str::to_owned)
            }
            ClientKind::Registered | ClientKind::Declared => None,
        }
    }
}

/// The name as it is shown: what a reader does not see is written out.
fn shown_name(name: &str) -> String {
    let plain: String =
        name.chars().map(|it| if it.is_ascii_whitespace() { ' ' } else { it }).collect();
    spelled(plain.trim()).chars().take(MAX_NAME).collect()
}

/// The member `redirect_uris` of client metadata (RFC 7591 §2).
///
/// # Errors
/// `invalid_redirect_uri`.
pub(super) fn redirect_uris(document: &Value) -> Result<Vec<RedirectUri>, OAuthError> {
    let wrong = || {
        let told = "redirect_uris has to be a list of addresses";
        OAuthError::new(OAuthErrorCode::InvalidRedirectUri, told)
    };
    let wanted = "has to hold https addresses, http at loopback addresses, or addresses of a program with a scheme of \
                  its own (app:/callback)";
    let listed = document.get("redirect_uris").and_then(Value::as_array).ok_or_else(wrong)?;
    let uri = |text: &Value| {
        let text = text.as_str().ok_or_else(wrong)?;
        RedirectUri::parse(text).ok_or_else(|| OAuthError::redirect_uri(text, wanted))
    };
    listed.iter().take(MAX_REDIRECTS + 1).map(uri).collect()
}

/// Grant of a client: part of every token that came of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientGrant {
    pub client: ClientRef,
    /// The face that its tokens are good for.
    pub face: Face,
    /// The consent that it rests on; none where no person gave one.
    pub consent: Option<ConsentId>,
    /// True if its client has to prove itself with a key whenever it comes for tokens, whatever its metadata
    /// document says by then.
    #[serde(default, skip_serializing_if = "is_public_client")]
    pub by_key: bool,
    /// The `client_id` by which its client knows itself; `None` if it is the id in `client`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
const fn is_public_client(by_key: &bool) -> bool {
    !*by_key
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const ID: &str = "https://app.example/oauth/client.json";

    #[test]
    fn a_document_describes_its_own_client() {
        let document = |id: &str| json!({"client_id": id, "client_name": "App", "redirect_uris": ["https://app.example/cb"]});

        let client = Client::of_document(ID, &document(ID)).unwrap();

        assert_eq!(
            (client.reference().name.as_str(), client.host().as_deref()),
            ("App", Some("app.example"))
        );
        for other in
            ["https://app.example/oauth/client.json/", "https://APP.example/oauth/client.json", ""]
        {
            assert!(Client::of_document(ID, &document(other)).is_err(), "{other}");
        }
        for uris in [
            json!([]),
            json!(["http://app.example/cb"]),
            json!("https://app.example/cb"),
            json!(null),
            json!([1]),
        ] {
            let document = json!({"client_id": ID, "redirect_uris": uris});
            assert!(Client::of_document(ID, &document).is_err(), "{uris}");
        }
    }

    #[test]
    fn the_command_line_returns_to_loopback_addresses_only() {
        let client = Client::command_line();
        let admits = |text: &str| {
            let uri = RedirectUri::parse(text);
            uri.is_some_and(|uri| client.redirect_uris().iter().any(|own| own.admits(&uri)))
        };

        assert_eq!(client.redirect_uris().len(), 2);
        for own in ["http://127.0.0.1:49152/callback", "http://[::1]:9/callback"] {
            assert!(admits(own), "{own}");
        }
        for other in [
            "http://127.0.0.1:49152/",
            "http://127.0.0.1:49152/callback/x",
            "http://localhost.evil.example/callback",
            "https://evil.example/callback",
        ] {
            assert!(!admits(other), "{other}");
        }
        assert!(client.ceiling().contains(Scope::Admin));
        assert!(!client.ceiling().contains(Scope::ApprovalsDecide));
    }

    #[test]
    fn a_document_says_how_its_client_proves_itself() {
        let key = json!({"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"});
        let keys = json!({"keys": [key]});
        let public = PublicKey::of_jwk(&key).unwrap();
        let many: Vec<Value> = (0..=MAX_CLIENT_KEYS).map(|_| key.clone()).collect();
        let mut private = keys.clone();
        private["keys"][0]["d"] = json!("c2VjcmV0");
        let read = |more: &Value| {
            let mut document =
                json!({"client_id": ID, "redirect_uris": ["https://app.example/cb"]});
            for (name, value) in more.as_object().unwrap() {
                document[name] = value.clone();
            }
            Client::of_document(ID, &document).map(|client| client.authentication().clone())
        };
        let by_key = "private_key_jwt";
        let uri = "https://app.example/keys";

        assert_eq!(read(&json!({})), Ok(ClientAuthentication::None));
        let none = json!({"token_endpoint_auth_method": "none", "jwks_uri": uri});
        assert_eq!(read(&none), Ok(ClientAuthentication::None));
        assert_eq!(
            read(&json!({"token_endpoint_auth_method": by_key, "jwks_uri": uri})),
            Ok(ClientAuthentication::PublishedKeys(uri.to_owned()))
        );
        assert_eq!(
            read(&json!({"token_endpoint_auth_method": by_key, "jwks": keys})),
            Ok(ClientAuthentication::Keys(vec![public.clone()]))
        );
        let extended = json!({"keys": [key, {"kty": "unknown"}], "x": {"0": 1}});
        assert_eq!(
            read(&json!({"token_endpoint_auth_method": by_key, "jwks": extended})),
            Ok(ClientAuthentication::Keys(vec![public])),
            "nothing is kept but keys that can be used"
        );
        for wrong in [
            json!({"token_endpoint_auth_method": by_key}),
            json!({"token_endpoint_auth_method": by_key, "jwks_uri": uri, "jwks": keys}),
            json!({"token_endpoint_auth_method": by_key, "jwks_uri": "http://app.example/keys"}),
            json!({"token_endpoint_auth_method": by_key, "jwks_uri": 1}),
            json!({"token_endpoint_auth_method": by_key, "jwks_uri": "https://127.0.0.1:8443@evil.example/keys"}),
            json!({"token_endpoint_auth_method": by_key, "jwks": {"keys": []}}),
            json!({"token_endpoint_auth_method": by_key, "jwks": private}),
            json!({"token_endpoint_auth_method": by_key, "jwks": {"keys": many}}),
            json!({"token_endpoint_auth_method": "client_secret_basic"}),
            json!({"token_endpoint_auth_method": null}),
            json!({"client_secret": "s3cret"}),
        ] {
            let error = read(&wrong).unwrap_err();
            assert_eq!(error.code, OAuthErrorCode::InvalidClientMetadata, "{wrong}");
        }
    }

    #[test]
    fn documents_stand_at_https_addresses_with_a_path() {
        assert!(Client::is_document_url(ID));
        for bad in [
            "https://app.example",
            "https://app.example/",
            "http://app.example/c.json",
            "https://app.example/a/../c.json",
            "https://app.example/c.json#x",
            "https://u@app.example/c.json",
            "https://APP.example/c.json",
            "https://app.example:443/c.json",
            "https:///c.json",
            "dcr_abc",
        ] {
            assert!(!Client::is_document_url(bad), "{bad}");
        }
    }

    #[test]
    fn a_name_shows_what_hides_in_it() {
        let uris = || vec![RedirectUri::parse("https://app.example/cb").unwrap()];
        let named = |name: &str| {
            let client = Client::new("x".to_owned(), ClientKind::Registered, Some(name), uris());
            client.unwrap().reference().name.clone()
        };

        assert_eq!(named("Cl\u{200b}aude\n\u{202e}"), "Cl[U+200B]aude [U+202E]");
        assert_eq!(named(" \n"), "app.example");
        assert_eq!(named(&"x".repeat(500)).len(), MAX_NAME);
    }
}
