//! Answers of a token endpoint (RFC 6749 §5), and the request that a browser carries (§4.1.1).

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::Value;
use url::Url;

use super::{MAX_LOGIN_TOKEN_BYTES, scopes};
use crate::{
    json::{self, Bounds},
    secret::Secret,
};

/// A year: the longest life that is believed.
const MAX_LIFE_SECONDS: i64 = 366 * 24 * 60 * 60;
const MAX_ACCOUNT_BYTES: usize = 200;
/// Bounds of an answer: no text of it is too long to tell which token it is.
const BOUNDS: Bounds = Bounds { string_bytes: 256 << 10, ..Bounds::REQUEST };

/// Tokens as they were granted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenGrant {
    pub access_token: Secret,
    pub refresh_token: Option<Secret>,
    /// Seconds it lives; `None` if the answer has none.
    pub expires_in: Option<i64>,
    /// Scopes that were granted, where the server tells them.
    pub scopes: Option<Vec<String>>,
    /// The id and the name of the account, where an ID token tells them.
    pub account: (Option<String>, Option<String>),
    /// The ID token itself, unchecked.
    pub id_token: Option<Secret>,
}

/// Reason that there is no token, in the closed words of RFC 6749 §5.2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenRefusal {
    /// The code or the refresh token is worth nothing.
    InvalidGrant,
    /// The gateway itself is not known there any more, or its secret is wrong.
    InvalidClient,
    InvalidScope,
    Other,
}

/// An answer that holds no token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum GrantError {
    #[error("the token endpoint refused")]
    Refused(TokenRefusal),
    #[error("the token endpoint's answer is not one")]
    Form,
    /// A token is longer than is taken.
    #[error("`{member}` is longer than {kib} KiB")]
    TooLong { member: &'static str, kib: usize },
}

impl TokenGrant {
    /// Reads an answer, whatever its status was: some servers refuse with 200. Access and refresh token have at most
    /// `most` bytes.
    pub fn parse(body: &[u8], most: usize) -> Result<Self, GrantError> {
        let answer = json::parse(body, BOUNDS).map_err(|_| GrantError::Form)?;
        if let Some(error) = answer.get("error").and_then(Value::as_str) {
            return Err(GrantError::Refused(match error {
                "invalid_grant"
                | "bad_verification_code"
                | "bad_refresh_token"
                | "token_expired"
                | "token_revoked"
                | "invalid_refresh_token" => TokenRefusal::InvalidGrant,
                "invalid_client" | "unauthorized_client" | "incorrect_client_credentials" => {
                    TokenRefusal::InvalidClient
                }
                "invalid_scope" => TokenRefusal::InvalidScope,
                _ => TokenRefusal::Other,
            }));
        }
        let token = |member: &'static str, most: usize| {
            let text = answer.get(member).and_then(Value::as_str).unwrap_or_default();
            if text.len() > most {
                return Err(GrantError::TooLong { member, kib: most >> 10 });
            }
            let fits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
            Ok(fits.then(|| Secret::new(text.to_owned())))
        };
        let kind = answer.get("token_type").and_then(Value::as_str).unwrap_or("bearer");
        // A token of another type, such as DPoP, would be sent in the wrong way.
        let bearer = ["bearer", "user", "bot", "token"].iter();
        if !bearer.into_iter().any(|known| kind.eq_ignore_ascii_case(known)) {
            return Err(GrantError::Form);
        }
        let granted = answer.get("scope").and_then(Value::as_str);
        Ok(Self {
            access_token: token("access_token", most)?.ok_or(GrantError::Form)?,
            refresh_token: token("refresh_token", most)?,
            expires_in: seconds(answer.get("expires_in")),
            scopes: granted.map(|text| scopes(text, &[' ', ','])),
            account: id_token(answer.get("id_token")).unwrap_or_default(),
            id_token: token("id_token", MAX_LOGIN_TOKEN_BYTES)?,
        })
    }
}

/// A number, which some servers write as a text.
fn seconds(value: Option<&Value>) -> Option<i64> {
    let value = value?;
    let seconds =
        value.as_i64().or_else(|| value.as_str().and_then(|text| text.parse().ok())).or_else(
            || value.as_number().and_then(|n| n.to_string().split('.').next()?.parse().ok()),
        )?;
    (seconds > 0).then(|| seconds.min(MAX_LIFE_SECONDS))
}

/// Subject of an ID token. The token came straight from the token endpoint, so its signature need
/// not be looked at (OpenID Connect Core §3.1.3.7, 6); it is shown and decides nothing.
fn id_token(value: Option<&Value>) -> Option<(Option<String>, Option<String>)> {
    let payload = value?.as_str()?.split('.').nth(1)?;
    let payload = URL_SAFE_NO_PAD.decode(payload).ok()?;
    let claims = json::parse(&payload, Bounds::REQUEST).ok()?;
    let name = ["preferred_username", "email", "name"].map(|claim| format!("/{claim}"));
    let name = name.iter().find_map(|pointer| who(&claims, pointer));
    Some((who(&claims, "/sub"), name))
}

/// The id or name of an account at a place of an answer: a bounded text without control
/// characters, or a number.
#[must_use]
pub fn who(answer: &Value, pointer: &str) -> Option<String> {
    let text = match answer.pointer(pointer)? {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => return None,
    };
    let fits = (1..=MAX_ACCOUNT_BYTES).contains(&text.len()) && !text.chars().any(char::is_control);
    fits.then_some(text)
}

/// The address a browser is sent to: what the endpoint's own query says stays, and `parameters`
/// stand in the place of members of the same name.
#[must_use]
pub fn authorization_url(endpoint: &Url, parameters: &[(&str, &str)]) -> String {
    let mut url = endpoint.clone();
    let own: Vec<(String, String)> = endpoint
        .query_pairs()
        .filter(|(name, _)| !parameters.iter().any(|(ours, _)| ours == name))
        .map(|(name, value)| (name.into_owned(), value.into_owned()))
        .collect();
    url.query_pairs_mut().clear().extend_pairs(own).extend_pairs(parameters);
    url.into()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::oauth::MAX_TOKEN_BYTES;

    fn parse(answer: &Value) -> Result<TokenGrant, GrantError> {
        TokenGrant::parse(answer.to_string().as_bytes(), MAX_TOKEN_BYTES)
    }

    #[test]
    fn a_grant_is_read_with_the_habits_of_common_servers() {
        let claims = URL_SAFE_NO_PAD.encode(r#"{"sub":"583231","email":"o@example.com"}"#);
        let grant = parse(&json!({
            "access_token": "at", "refresh_token": "rt", "token_type": "BEARER",
            "expires_in": "3600", "scope": "repo,read:org", "id_token": format!("x.{claims}.y"),
        }));

        let grant = grant.unwrap();
        assert_eq!(grant.expires_in, Some(3600));
        assert_eq!(grant.scopes.unwrap(), ["repo", "read:org"]);
        assert_eq!(grant.account, (Some("583231".to_owned()), Some("o@example.com".to_owned())));
        let long = parse(&json!({"access_token": "at", "expires_in": 1e300}));
        assert!(long.is_ok_and(|grant| grant.expires_in.is_none_or(|it| it <= MAX_LIFE_SECONDS)));
    }

    #[test]
    fn a_refusal_with_status_200_is_one() {
        for (error, wanted) in [
            ("bad_verification_code", TokenRefusal::InvalidGrant),
            ("invalid_grant", TokenRefusal::InvalidGrant),
            ("invalid_client", TokenRefusal::InvalidClient),
            ("slow_down", TokenRefusal::Other),
        ] {
            let answer = json!({"error": error, "access_token": "at"});
            assert_eq!(parse(&answer), Err(GrantError::Refused(wanted)), "{error}");
        }
    }

    #[test]
    fn what_cannot_be_sent_as_a_bearer_is_no_token() {
        for answer in [
            json!({}),
            json!([]),
            json!({"access_token": ""}),
            json!({"access_token": "a\r\nx: y"}),
            json!({"access_token": "a b"}),
            json!({"access_token": "a", "token_type": "DPoP"}),
        ] {
            assert_eq!(parse(&answer), Err(GrantError::Form), "{answer:.60}");
        }
    }

    #[test]
    fn a_token_that_is_too_long_is_named_with_its_limit() {
        let long = |bytes: usize| "a".repeat(bytes + 1);
        for (answer, member, kib) in [
            (json!({"access_token": long(MAX_TOKEN_BYTES)}), "access_token", 16),
            (
                json!({"access_token": "a", "refresh_token": long(MAX_TOKEN_BYTES)}),
                "refresh_token",
                16,
            ),
            (json!({"access_token": "a", "id_token": long(MAX_LOGIN_TOKEN_BYTES)}), "id_token", 64),
        ] {
            assert_eq!(parse(&answer), Err(GrantError::TooLong { member, kib }));
        }
        let fits = json!({"access_token": "a", "id_token": "a".repeat(MAX_LOGIN_TOKEN_BYTES)});
        assert!(parse(&fits).is_ok_and(|grant| grant.id_token.is_some()));
    }

    #[test]
    fn no_parameter_stands_twice_in_the_address() {
        let endpoint = Url::parse("https://id.example/auth?tenant=1&state=evil").unwrap();

        let url = authorization_url(&endpoint, &[("state", "s"), ("scope", "a b")]);

        assert_eq!(url, "https://id.example/auth?tenant=1&state=s&scope=a+b");
    }
}
