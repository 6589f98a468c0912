//! The answer of an issuer that a browser brings back (OpenID Connect Core §3.1.2.5, RFC 9207).

use crate::{authorization::OAuthForm, secret::Secret};

/// The longest code that is sent on; those of real issuers are shorter.
const MAX_CODE: usize = 4_000;

/// An answer that a browser brought.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IssuerCallback {
    pub state: String,
    /// The issuer that it says it is of.
    pub iss: Option<String>,
    pub answer: IssuerAnswer,
}

/// Result of a login at an issuer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IssuerAnswer {
    Code(Secret),
    /// The issuer did not log the person in. The word is one of OAuth's or OpenID's, or `other`: none of the issuer's
    /// own.
    Refused(&'static str),
}

/// Errors of RFC 6749 §4.1.2.1 and OpenID Connect Core §3.1.2.6, and of step-up (draft of
/// `unmet_authentication_requirements`).
const ERRORS: [&str; 13] = [
    "access_denied",
    "account_selection_required",
    "consent_required",
    "interaction_required",
    "invalid_request",
    "invalid_scope",
    "login_required",
    "request_not_supported",
    "server_error",
    "temporarily_unavailable",
    "unauthorized_client",
    "unmet_authentication_requirements",
    "unsupported_response_type",
];

impl IssuerCallback {
    /// Reads the query of a callback. `None` if it is no answer: without `state`, with neither or both of `code`
    /// and `error`, with a parameter twice.
    #[must_use]
    pub fn parse(query: &str) -> Option<Self> {
        let form = OAuthForm::parse(query.as_bytes()).ok()?;
        let answer = match (form.get("code"), form.get("error")) {
            (Some(code), None) if code.len() <= MAX_CODE => {
                IssuerAnswer::Code(Secret::new(code.to_owned()))
            }
            (None, Some(error)) => {
                let known = ERRORS.into_iter().find(|known| *known == error);
                IssuerAnswer::Refused(known.unwrap_or("other"))
            }
            (Some(_), Some(_) | None) | (None, None) => return None,
        };
        let state = form.get("state")?.to_owned();
        Some(Self { state, iss: form.get("iss").map(str::to_owned), answer })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_a_code_or_an_error() {
        let code =
            IssuerCallback::parse("code=a%2Fb&state=s&iss=https%3A%2F%2Fid.example").unwrap();
        assert_eq!(code.answer, IssuerAnswer::Code(Secret::new("a/b".to_owned())));
        assert_eq!(code.iss.as_deref(), Some("https://id.example"));

        let refused = |query: &str| IssuerCallback::parse(query).map(|it| it.answer);
        for (query, error) in [
            ("error=access_denied&state=s", "access_denied"),
            ("error=%3Cscript%3E&error_description=x&state=s", "other"),
        ] {
            assert_eq!(refused(query), Some(IssuerAnswer::Refused(error)), "{query}");
        }
    }

    #[test]
    fn anything_else_is_no_answer() {
        let long = format!("code={}&state=s", "c".repeat(MAX_CODE + 1));
        for query in [
            "",
            "code=a",
            "state=s",
            "code=&state=s",
            "code=a&state=",
            "code=a&error=access_denied&state=s",
            "code=a&code=b&state=s",
            "code=a&state=s&state=s",
            "code=%ff&state=s",
            &long,
        ] {
            assert_eq!(IssuerCallback::parse(query), None, "{query:.60}");
        }
    }
}
