//! Metadata of protected resources (RFC 9728) and authorization servers (RFC 8414, OpenID Connect
//! Discovery 1.0), and the result of registration (RFC 7591).

use serde_json::Value;
use url::Url;

use super::{MAX_TOKEN_BYTES, is_scope};
use crate::{clock::Timestamp, secret::Secret};

const MAX_URL_BYTES: usize = 2_000;
const MAX_SERVERS: usize = 8;
const MAX_ORIGIN_BYTES: usize = 300;

/// Reason that a document is of no use. Says nothing that was in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MetadataError {
    /// A member that it must have is absent, or is not of its type.
    #[error("the document has no usable `{0}`")]
    Member(&'static str),
    #[error("the document is about another resource")]
    Resource,
    #[error("the document names another issuer")]
    Issuer,
    /// PKCE with S256 is not offered, and without it nothing is begun.
    #[error("the authorization server does not offer PKCE with S256")]
    Pkce,
    /// None of the ways to authenticate at the token endpoint is one of ours.
    #[error("the authorization server offers no way to authenticate that the gateway has")]
    Method,
}

crate::words! { listed
    /// Method by which the gateway authenticates at a token endpoint.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum TokenMethod {
        Basic = "client_secret_basic",
        /// `client_secret` in the form.
        Post = "client_secret_post",
        /// Only `client_id`: a public client.
        None = "none",
    }
}

fn text<'a>(document: &'a Value, member: &str) -> Option<&'a str> {
    document.get(member)?.as_str().filter(|text| text.len() <= MAX_URL_BYTES)
}

fn texts<'a>(document: &'a Value, member: &str) -> Option<Vec<&'a str>> {
    let list = document.get(member)?.as_array()?;
    Some(list.iter().filter_map(Value::as_str).filter(|it| it.len() <= MAX_URL_BYTES).collect())
}

/// Metadata of a resource: its name and its authorization servers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceMetadata {
    /// Identifier of the resource: the `resource` of each request (RFC 8707).
    pub resource: String,
    /// The issuers that may authorize.
    pub servers: Vec<String>,
    pub scopes: Vec<String>,
}

impl ResourceMetadata {
    /// Reads the document about the MCP server at `address`. It has to be about exactly this
    /// address or one above it on the same host.
    pub fn parse(document: &Value, address: &Url) -> Result<Self, MetadataError> {
        let resource = text(document, "resource").ok_or(MetadataError::Member("resource"))?;
        let named = Url::parse(resource).map_err(|_| MetadataError::Member("resource"))?;
        if !covers(&named, address) {
            return Err(MetadataError::Resource);
        }
        let servers = texts(document, "authorization_servers").unwrap_or_default();
        let servers: Vec<String> =
            servers.into_iter().take(MAX_SERVERS).map(str::to_owned).collect();
        if servers.is_empty() {
            return Err(MetadataError::Member("authorization_servers"));
        }
        let scopes = texts(document, "scopes_supported").unwrap_or_default();
        let scopes = scopes.into_iter().filter(|scope| is_scope(scope)).take(super::MAX_SCOPES);
        let scopes = scopes.map(str::to_owned).collect();
        Ok(Self { resource: resource.to_owned(), servers, scopes })
    }

    /// Origins of the issuers, at most three, as an operator can be shown them: the names
    /// themselves are the server's own words.
    #[must_use]
    pub fn server_origins(&self) -> Vec<String> {
        let urls = self.servers.iter().filter_map(|issuer| Url::parse(issuer).ok());
        let origins = urls.map(|url| url.origin().ascii_serialization());
        let mut shown: Vec<String> = origins.filter(|it| it.len() <= MAX_ORIGIN_BYTES).collect();
        shown.truncate(3);
        shown
    }
}

fn covers(resource: &Url, address: &Url) -> bool {
    let above = resource.path().trim_end_matches('/');
    let below = address.path();
    let within = below.strip_prefix(above).is_some_and(|it| it.is_empty() || it.starts_with('/'));
    resource.origin() == address.origin() && within && resource.fragment().is_none()
}

/// Addresses at which an MCP server at `address` may keep its metadata (RFC 9728 §3.1), the
/// likeliest first.
#[must_use]
pub fn resource_urls(address: &Url) -> Vec<Url> {
    let path = address.path().trim_end_matches('/');
    let mut urls = Vec::new();
    for suffix in [path, ""] {
        let mut url = address.clone();
        url.set_path(&format!("/.well-known/oauth-protected-resource{suffix}"));
        if !urls.contains(&url) {
            urls.push(url);
        }
    }
    urls
}

/// Addresses at which an issuer may keep its metadata: RFC 8414 §3.1, then OpenID Connect Discovery
/// in both forms.
#[must_use]
pub fn issuer_urls(issuer: &Url) -> Vec<Url> {
    let path = issuer.path().trim_end_matches('/').to_owned();
    let mut urls = Vec::new();
    for candidate in [
        format!("/.well-known/oauth-authorization-server{path}"),
        format!("/.well-known/openid-configuration{path}"),
        format!("{path}/.well-known/openid-configuration"),
    ] {
        let mut url = issuer.clone();
        url.set_path(&candidate);
        if !urls.contains(&url) {
            urls.push(url);
        }
    }
    urls
}

/// Returns true if two issuer identifiers are the same to the letter, but for the last slash of one that has
/// no path: servers write it or not, and no other one can be meant.
#[must_use]
pub fn is_same_issuer(one: &str, other: &str) -> bool {
    let bare = |issuer: &str| {
        let without = issuer.strip_suffix('/').unwrap_or(issuer);
        let host = without.split_once("://").map(|(_, host)| host);
        let has_path = host.is_none_or(|host| host.contains(['/', '?', '#']));
        (if has_path { issuer } else { without }).to_owned()
    };
    one == other || bare(one) == bare(other)
}

/// An authorization server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerMetadata {
    /// Issuer identifier, as the server writes it.
    pub issuer: String,
    pub authorization_endpoint: String,
    pub token_endpoint: String,
    /// Revocation endpoint (RFC 7009).
    pub revocation_endpoint: Option<String>,
    /// Registration endpoint for clients (RFC 7591).
    pub registration_endpoint: Option<String>,
    /// True if it reads Client ID Metadata Documents.
    pub reads_client_documents: bool,
    /// True if it tells its name in the callback (RFC 9207); then it has to.
    pub tells_issuer: bool,
    /// Authentication methods for clients with a secret that the gateway supports, preferred ones
    /// first.
    pub methods: Vec<TokenMethod>,
}

impl ServerMetadata {
    /// Reads the document of `issuer`: the names have to be of the [same issuer](is_same_issuer), and PKCE
    /// with S256 has to be offered.
    pub fn parse(document: &Value, issuer: &str) -> Result<Self, MetadataError> {
        let required =
            |member: &'static str| text(document, member).ok_or(MetadataError::Member(member));
        let optional = |member: &str| text(document, member).map(str::to_owned);
        let flag = |member: &str| document.get(member).and_then(Value::as_bool) == Some(true);
        let own = required("issuer")?;
        if !is_same_issuer(own, issuer) {
            return Err(MetadataError::Issuer);
        }
        let pkce = texts(document, "code_challenge_methods_supported").unwrap_or_default();
        if !pkce.contains(&"S256") {
            return Err(MetadataError::Pkce);
        }
        let offered = texts(document, "token_endpoint_auth_methods_supported")
            .unwrap_or_else(|| vec!["client_secret_basic"]);
        let ours = [TokenMethod::Basic, TokenMethod::Post, TokenMethod::None];
        let methods: Vec<_> =
            ours.into_iter().filter(|method| offered.contains(&method.as_str())).collect();
        if methods.is_empty() {
            return Err(MetadataError::Method);
        }
        Ok(Self {
            issuer: own.to_owned(),
            authorization_endpoint: required("authorization_endpoint")?.to_owned(),
            token_endpoint: required("token_endpoint")?.to_owned(),
            revocation_endpoint: optional("revocation_endpoint"),
            registration_endpoint: optional("registration_endpoint"),
            reads_client_documents: flag("client_id_metadata_document_supported"),
            tells_issuer: flag("authorization_response_iss_parameter_supported"),
            methods,
        })
    }
}

/// Result of a registration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registration {
    pub client_id: String,
    /// Its secret, if it got one.
    pub client_secret: Option<Secret>,
    pub expires_at: Option<Timestamp>,
    pub method: TokenMethod,
}

impl Registration {
    /// Reads the answer to a registration that asked for `asked`.
    pub fn parse(document: &Value, asked: TokenMethod) -> Result<Self, MetadataError> {
        let client_id = text(document, "client_id").ok_or(MetadataError::Member("client_id"))?;
        let secret = document.get("client_secret").and_then(Value::as_str);
        let secret = secret.filter(|secret| secret.len() <= MAX_TOKEN_BYTES);
        let method = match text(document, "token_endpoint_auth_method") {
            Some(name) => TokenMethod::from_word(name).ok_or(MetadataError::Method)?,
            // Who gives no secret wants none.
            None if secret.is_none() => TokenMethod::None,
            None => asked,
        };
        if method != TokenMethod::None && secret.is_none() {
            return Err(MetadataError::Member("client_secret"));
        }
        let expires_at = document.get("client_secret_expires_at").and_then(Value::as_i64);
        let expires_at = expires_at.filter(|at| *at > 0);
        Ok(Self {
            client_id: client_id.to_owned(),
            client_secret: secret.map(|secret| Secret::new(secret.to_owned())),
            expires_at: expires_at.map(|at| Timestamp::default().plus_seconds(at)),
            method,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    fn server() -> Value {
        json!({
            "issuer": "https://id.example",
            "authorization_endpoint": "https://id.example/auth",
            "token_endpoint": "https://id.example/token",
            "code_challenge_methods_supported": ["plain", "S256"],
            "token_endpoint_auth_methods_supported": ["private_key_jwt", "client_secret_post"],
        })
    }

    #[test]
    fn an_issuer_is_who_it_says_to_the_letter() {
        let parse = |issuer: &str| ServerMetadata::parse(&server(), issuer);

        assert_eq!(parse("https://id.example").unwrap().methods, [TokenMethod::Post]);
        for other in [
            "https://id.example/a", "https://ID.example", "https://id.example:443",
            "https://id.example//",
        ] {
            assert_eq!(parse(other), Err(MetadataError::Issuer), "{other}");
        }
        assert_eq!(parse("https://id.example/").unwrap().issuer, "https://id.example");
    }

    #[test]
    fn only_without_a_path_the_last_slash_means_nothing() {
        for (one, other, same) in [
            ("https://id.example", "https://id.example/", true),
            ("https://id.example:8443/", "https://id.example:8443", true),
            ("https://id.example/t", "https://id.example/t/", false),
            ("https://id.example/t/", "https://id.example/t/", true),
            ("https://id.example?", "https://id.example?/", false),
            ("https://id.example", "http://id.example/", false),
            ("id.example", "id.example/", false),
        ] {
            assert_eq!(is_same_issuer(one, other), same, "{one} {other}");
            assert_eq!(is_same_issuer(other, one), same, "{other} {one}");
        }
    }

    #[test]
    fn without_s256_nothing_is_begun() {
        for methods in [Value::Null, json!([]), json!(["plain"]), json!("S256")] {
            let mut document = server();
            document["code_challenge_methods_supported"] = methods;
            let parsed = ServerMetadata::parse(&document, "https://id.example");
            assert_eq!(parsed, Err(MetadataError::Pkce));
        }
    }

    #[test]
    fn a_resource_speaks_for_itself_only() {
        let address = url("https://mcp.example/v1/mcp");
        let parse = |resource: &str| {
            let document = json!({"resource": resource, "authorization_servers": ["https://a"]});
            ResourceMetadata::parse(&document, &address)
        };

        assert!(parse("https://mcp.example/v1/mcp").is_ok());
        assert!(parse("https://mcp.example/v1").is_ok());
        assert!(parse("https://mcp.example").is_ok());
        for other in [
            "https://mcp.example/v1/mc",
            "https://mcp.example/v2",
            "https://other.example/v1/mcp",
            "http://mcp.example/v1/mcp",
            "https://mcp.example:8443/v1/mcp",
        ] {
            assert_eq!(parse(other), Err(MetadataError::Resource), "{other}");
        }
        let document = json!({
            "resource": "https://mcp.example",
            "authorization_servers": ["https://a.example/t?\u{202e}", "what\nelse", "https://b"],
        });
        let named = ResourceMetadata::parse(&document, &address).unwrap();
        assert_eq!(named.server_origins(), ["https://a.example", "https://b"]);
        for nobody in [Value::Null, json!([])] {
            let document =
                json!({"resource": "https://mcp.example", "authorization_servers": nobody});
            let parsed = ResourceMetadata::parse(&document, &address);
            assert_eq!(parsed, Err(MetadataError::Member("authorization_servers")));
        }
    }

    #[test]
    fn metadata_is_looked_for_where_the_standards_say() {
        let of = |urls: Vec<Url>| urls.into_iter().map(String::from).collect::<Vec<_>>();

        assert_eq!(
            of(issuer_urls(&url("https://id.example/t1"))),
            [
                "https://id.example/.well-known/oauth-authorization-server/t1",
                "https://id.example/.well-known/openid-configuration/t1",
                "https://id.example/t1/.well-known/openid-configuration",
            ]
        );
        assert_eq!(of(issuer_urls(&url("https://id.example"))).len(), 2);
        assert_eq!(
            of(resource_urls(&url("https://mcp.example/mcp?t=1"))),
            [
                "https://mcp.example/.well-known/oauth-protected-resource/mcp?t=1",
                "https://mcp.example/.well-known/oauth-protected-resource?t=1",
            ]
        );
    }

    #[test]
    fn a_registration_without_what_it_needs_is_refused() {
        let parse = |document: Value| Registration::parse(&document, TokenMethod::Basic);

        assert!(parse(json!({"client_id": "a", "client_secret": "b"})).is_ok());
        let public = json!({"client_id": "a", "token_endpoint_auth_method": "none"});
        assert!(parse(public).is_ok_and(|it| it.client_secret.is_none()));
        let missing = |member| Err(MetadataError::Member(member));
        let bare = parse(json!({"client_id": "a"}));
        assert!(bare.is_ok_and(|it| it.method == TokenMethod::None), "nothing is said of a secret");
        let secret = json!({"client_id": "a", "token_endpoint_auth_method": "client_secret_post"});
        assert_eq!(parse(secret), missing("client_secret"));
        assert_eq!(parse(json!({"client_secret": "a"})), missing("client_id"));
    }
}
