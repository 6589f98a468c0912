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

/// The way in which a client made itself known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ClientKind {
    /// By the metadata document at the address that is its id.
    MetadataDocument,
    /// By dynamic registration: nothing vouches for it.
    Registered,
    /// In the configuration of the gateway.
    Declared,
}

impl ClientKind {
    /// `metadata_document`, `registered` or `declared`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::MetadataDocument => "metadata_document",
            Self::Registered => "registered",
            Self::Declared => "declared",
        }
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

/// A known client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Client {
    reference: ClientRef,
    redirect_uris: Vec<RedirectUri>,
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
        let name = name.unwrap_or_else(|| first.shown());
        Ok(Self { reference: ClientRef { id, kind, name }, redirect_uris })
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
        Self::new(id.to_owned(), ClientKind::MetadataDocument, name, redirect_uris(document)?)
    }

    /// Returns true if `id` can be the address of a metadata document: `https` with a path, and nothing in it
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
        let told = "redirect_uris has to hold https addresses, loopback addresses, or addresses of a program";
        OAuthError::new(OAuthErrorCode::InvalidRedirectUri, told)
    };
    let listed = document.get("redirect_uris").and_then(Value::as_array).ok_or_else(wrong)?;
    let uri = |text: &Value| text.as_str().and_then(RedirectUri::parse).ok_or_else(wrong);
    listed.iter().take(MAX_REDIRECTS + 1).map(uri).collect()
}

/// What a client was granted: part of every token that came of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientGrant {
    pub client: ClientRef,
    /// The face that its tokens are good for.
    pub face: Face,
    /// The consent that it rests on; none where no person gave one.
    pub consent: Option<ConsentId>,
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
