//! The discovery document of an issuer (OpenID Connect Discovery 1.0), as far as a login needs it.

use serde_json::Value;
use url::Url;

use crate::oauth::MetadataError;

const MAX_URL_BYTES: usize = 2_000;
const MAX_METHODS: usize = 32;

/// Method by which the gateway authenticates at the token endpoint of an issuer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IssuerMethod {
    SecretBasic,
    SecretPost,
    PrivateKeyJwt,
}

impl IssuerMethod {
    const fn name(self) -> &'static str {
        match self {
            Self::SecretBasic => "client_secret_basic",
            Self::SecretPost => "client_secret_post",
            Self::PrivateKeyJwt => "private_key_jwt",
        }
    }
}

/// Statements of an issuer about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IssuerMetadata {
    /// Address that browsers are sent to for a login.
    pub authorization_endpoint: Url,
    /// As the document has it: the address has to be checked before it is dialled.
    pub token_endpoint: String,
    /// Address that browsers are sent to for a logout.
    pub end_session_endpoint: Option<Url>,
    methods: Vec<IssuerMethod>,
    /// True if every answer names the issuer (RFC 9207).
    pub names_itself: bool,
}

impl IssuerMetadata {
    /// Reads the document of `issuer`, which it has to name to the letter.
    pub fn parse(document: &Value, issuer: &str) -> Result<Self, MetadataError> {
        if text(document, "issuer") != Some(issuer) {
            return Err(MetadataError::Issuer);
        }
        let base = Url::parse(issuer).map_err(|_| MetadataError::Issuer)?;
        let page = |member: &'static str| {
            let url = text(document, member).and_then(|url| Url::parse(url).ok());
            url.filter(|url| is_page_of(url, &base))
        };
        let authorization = "authorization_endpoint";
        let token_endpoint = text(document, "token_endpoint");
        Ok(Self {
            authorization_endpoint: page(authorization)
                .ok_or(MetadataError::Member(authorization))?,
            token_endpoint: token_endpoint
                .ok_or(MetadataError::Member("token_endpoint"))?
                .to_owned(),
            end_session_endpoint: page("end_session_endpoint"),
            methods: methods(document.get("token_endpoint_auth_methods_supported")),
            names_itself: document.get("authorization_response_iss_parameter_supported")
                == Some(&Value::Bool(true)),
        })
    }

    /// The first of these methods that the issuer has.
    pub fn method(&self, ours: &[IssuerMethod]) -> Result<IssuerMethod, MetadataError> {
        let known = ours.iter().find(|method| self.methods.contains(method));
        known.copied().ok_or(MetadataError::Method)
    }
}

fn text<'a>(document: &'a Value, member: &str) -> Option<&'a str> {
    document.get(member)?.as_str().filter(|text| text.len() <= MAX_URL_BYTES)
}

/// Returns true for an address that a browser may be sent to: by `https`, or at the issuer's own host and scheme.
fn is_page_of(url: &Url, issuer: &Url) -> bool {
    let own = url.scheme() == issuer.scheme() && url.host() == issuer.host();
    let plain = url.username().is_empty() && url.password().is_none() && url.fragment().is_none();
    (url.scheme() == "https" || own) && url.has_host() && plain
}

/// An issuer that names no methods has the one that is the default.
fn methods(listed: Option<&Value>) -> Vec<IssuerMethod> {
    let Some(listed) = listed.and_then(Value::as_array) else {
        return vec![IssuerMethod::SecretBasic];
    };
    let names: Vec<&str> = listed.iter().take(MAX_METHODS).filter_map(Value::as_str).collect();
    let all = [IssuerMethod::SecretBasic, IssuerMethod::SecretPost, IssuerMethod::PrivateKeyJwt];
    all.into_iter().filter(|method| names.contains(&method.name())).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const ISSUER: &str = "https://id.example/t1";

    fn document() -> Value {
        json!({
            "issuer": ISSUER,
            "authorization_endpoint": "https://id.example/t1/auth?tenant=1",
            "token_endpoint": "https://id.example/t1/token",
            "end_session_endpoint": "https://id.example/t1/logout",
            "token_endpoint_auth_methods_supported": ["tls_client_auth", "client_secret_post", "private_key_jwt"],
            "authorization_response_iss_parameter_supported": true,
        })
    }

    fn with(member: &str, value: Value) -> Result<IssuerMetadata, MetadataError> {
        let mut document = document();
        document[member] = value;
        IssuerMetadata::parse(&document, ISSUER)
    }

    #[test]
    fn a_document_says_where_people_log_in() {
        let metadata = IssuerMetadata::parse(&document(), ISSUER).unwrap();

        assert_eq!(metadata.authorization_endpoint.path(), "/t1/auth");
        assert_eq!(metadata.token_endpoint, "https://id.example/t1/token");
        assert!(metadata.end_session_endpoint.is_some() && metadata.names_itself);
        let secret = [IssuerMethod::SecretBasic, IssuerMethod::SecretPost];
        assert_eq!(metadata.method(&secret), Ok(IssuerMethod::SecretPost));
        let key = [IssuerMethod::PrivateKeyJwt];
        assert_eq!(metadata.method(&key), Ok(IssuerMethod::PrivateKeyJwt));
    }

    #[test]
    fn an_issuer_that_names_no_method_has_the_default() {
        let metadata = with("token_endpoint_auth_methods_supported", Value::Null).unwrap();

        let basic = IssuerMethod::SecretBasic;
        assert_eq!(metadata.method(&[basic, IssuerMethod::SecretPost]), Ok(basic));
        assert_eq!(metadata.method(&[IssuerMethod::PrivateKeyJwt]), Err(MetadataError::Method));
    }

    #[test]
    fn a_document_speaks_for_its_own_issuer_to_the_letter() {
        for other in
            ["https://id.example/t2", "https://id.example/t1/", "https://ID.example/t1", ""]
        {
            assert_eq!(with("issuer", json!(other)), Err(MetadataError::Issuer), "{other}");
        }
    }

    #[test]
    fn browsers_are_sent_by_https_or_to_the_issuer_itself() {
        for bad in [
            "http://id.example/t1/auth", "javascript:alert(1)", "data:text/html,x",
            "https://user@evil.example/", "https://evil.example/#x", "/auth",
        ] {
            let parsed = with("authorization_endpoint", json!(bad));
            assert_eq!(parsed, Err(MetadataError::Member("authorization_endpoint")), "{bad}");
            let logout = with("end_session_endpoint", json!(bad)).unwrap();
            assert_eq!(logout.end_session_endpoint, None, "{bad}");
        }
        assert!(with("authorization_endpoint", json!("https://login.example/auth")).is_ok());
        let local = json!({
            "issuer": "http://127.0.0.1:9", "token_endpoint": "http://127.0.0.1:9/token",
            "authorization_endpoint": "http://127.0.0.1:9/auth",
        });
        let local = IssuerMetadata::parse(&local, "http://127.0.0.1:9").unwrap();
        assert!(!local.names_itself);
    }

    #[test]
    fn what_a_login_needs_has_to_be_there() {
        for member in ["authorization_endpoint", "token_endpoint"] {
            for value in [Value::Null, json!(1), json!("x".repeat(3_000))] {
                assert_eq!(with(member, value), Err(MetadataError::Member(member)));
            }
        }
    }
}
