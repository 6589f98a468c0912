//! `Authorization: Basic` at the endpoints of clients (RFC 6749 §2.3.1). No client has a secret here: the header names
//! one at most.

use axum::http::{HeaderMap, header};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use portcullis_core::{
    authorization::{OAuthError, OAuthForm},
    secret::Secret,
};

/// Longest header in bytes that is read.
const LONGEST: usize = 16 << 10;

/// The readings of a header, `id:secret`: as it is written and, if that differs, without the encoding of forms. Some
/// clients encode both parts, and some do not.
#[derive(Debug)]
pub(super) struct BasicClient(Vec<Secret>);

impl BasicClient {
    /// The header of a request. One without a name, or of another scheme, is not for this endpoint.
    pub(super) fn of(headers: &HeaderMap) -> Option<Self> {
        let mut values = headers.get_all(header::AUTHORIZATION).iter();
        let (Some(only), None) = (values.next(), values.next()) else { return None };
        let (scheme, text) = only.to_str().ok()?.split_once(' ')?;
        if !scheme.eq_ignore_ascii_case("basic") || text.len() > LONGEST {
            return None;
        }
        let raw = String::from_utf8(STANDARD.decode(text.trim()).ok()?).ok()?;
        let (id, secret) = raw.rsplit_once(':').filter(|(id, _)| !id.is_empty())?;
        let decoded = OAuthForm::decoded(id).zip(OAuthForm::decoded(secret));
        let decoded = decoded.map(|(id, secret)| format!("{id}:{secret}"));
        let decoded = decoded.filter(|it| *it != raw);
        Some(Self([Some(raw), decoded].into_iter().flatten().map(Secret::new).collect()))
    }

    /// The id of the client whose form names it so, or does not. `is_known` tells which reading is meant where the
    /// header alone names it. The header of another user with a password is for a proxy on the way.
    ///
    /// # Errors
    /// `invalid_client` for secrets of clients, and for two ids.
    pub(super) fn client_id(
        &self,
        named: Option<&str>,
        is_known: impl Fn(&str) -> bool,
    ) -> Result<String, OAuthError> {
        let texts = || self.0.iter().map(Secret::expose);
        let without_secret = || texts().filter_map(|text| text.strip_suffix(':'));
        let Some(named) = named else {
            let known = without_secret().find(|id| is_known(id));
            let id = known.or_else(|| without_secret().next());
            return id.map(str::to_owned).ok_or_else(no_secrets);
        };
        let secret = texts().find_map(|text| text.strip_prefix(named)?.strip_prefix(':'));
        match secret {
            Some(secret) if !secret.is_empty() => Err(no_secrets()),
            None if without_secret().next().is_some() => {
                let told = "the header Authorization names another client than client_id";
                Err(OAuthError::client(told))
            }
            Some(_) | None => Ok(named.to_owned()),
        }
    }
}

/// The refusal of a client that shows a secret.
pub(super) fn no_secrets() -> OAuthError {
    OAuthError::client("clients have no secrets here: send client_id in the form")
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    const URL: &str = "https://app.example/c%20x.json";
    const ENCODED: &str = "https%3A%2F%2Fapp.example%2Fc%2520x.json";

    fn of(values: &[String]) -> Option<BasicClient> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(header::AUTHORIZATION, HeaderValue::from_str(value).unwrap());
        }
        BasicClient::of(&headers)
    }

    fn basic(text: &str) -> String {
        format!("bAsIc {}", STANDARD.encode(text))
    }

    #[test]
    fn a_client_is_named_raw_or_in_form_encoding() {
        let url = format!("{URL}:");
        let encoded = format!("{ENCODED}:");
        let with_secrets = [format!("{URL}:secret"), format!("{ENCODED}:s%2Bt")];
        for (text, named, id) in [
            ("dcr_x:", None, Some("dcr_x")),
            ("dcr_x:", Some("dcr_x"), Some("dcr_x")),
            ("dcr_x:", Some("other"), None),
            ("dcr_x:secret", None, None),
            ("dcr_x:secret", Some("dcr_x"), None),
            ("proxy:password", Some("dcr_x"), Some("dcr_x")),
            (url.as_str(), None, Some(URL)),
            (url.as_str(), Some(URL), Some(URL)),
            (encoded.as_str(), None, Some(URL)),
            (encoded.as_str(), Some(URL), Some(URL)),
            (with_secrets[0].as_str(), Some(URL), None),
            (with_secrets[1].as_str(), Some(URL), None),
            ("unknown%3Ax:", None, Some("unknown%3Ax")),
        ] {
            let client = of(&[basic(text)]).unwrap();

            let found = client.client_id(named, |id| id == URL).ok();

            assert_eq!(found.as_deref(), id, "{text} {named:?}");
        }
    }

    #[test]
    fn a_header_without_a_name_is_not_for_this_endpoint() {
        for values in [
            vec![],
            vec!["Bearer x".to_owned()],
            vec!["Basic".to_owned()],
            vec!["Basic %".to_owned()],
            vec![basic(":")],
            vec![basic("no colon")],
            vec![basic("a:"), basic("b:")],
            vec![basic(&format!("a:{}", "x".repeat(LONGEST)))],
        ] {
            assert!(of(&values).is_none(), "{values:?}");
        }
    }
}
