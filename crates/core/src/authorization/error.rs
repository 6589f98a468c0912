//! Errors in the words of OAuth (RFC 6749 §4.1.2.1 and §5.2, RFC 7591 §3.2.2, RFC 8707 §2, RFC 9449 §12.2).

use crate::hidden;

/// Characters of an address in an error, at most.
const MAX_SHOWN: usize = 120;

crate::words! {
    /// The member `error` of an answer.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum OAuthErrorCode {
        InvalidRequest = "invalid_request",
        InvalidClient = "invalid_client",
        InvalidGrant = "invalid_grant",
        UnauthorizedClient = "unauthorized_client",
        UnsupportedGrantType = "unsupported_grant_type",
        UnsupportedResponseType = "unsupported_response_type",
        UnsupportedTokenType = "unsupported_token_type",
        InvalidScope = "invalid_scope",
        InvalidTarget = "invalid_target",
        InvalidToken = "invalid_token",
        InvalidDpopProof = "invalid_dpop_proof",
        UseDpopNonce = "use_dpop_nonce",
        InsufficientScope = "insufficient_scope",
        AccessDenied = "access_denied",
        InvalidRedirectUri = "invalid_redirect_uri",
        InvalidClientMetadata = "invalid_client_metadata",
        ServerError = "server_error",
        TemporarilyUnavailable = "temporarily_unavailable",
        LoginRequired = "login_required",
        ConsentRequired = "consent_required",
    }
}

impl OAuthErrorCode {
    /// Its status in HTTP where it is not sent along with a browser.
    #[must_use]
    pub const fn http_status(self) -> u16 {
        match self {
            Self::InvalidClient | Self::InvalidToken => 401,
            Self::InsufficientScope => 403,
            Self::ServerError => 500,
            Self::TemporarilyUnavailable => 503,
            Self::InvalidRequest
            | Self::InvalidGrant
            | Self::UnauthorizedClient
            | Self::UnsupportedGrantType
            | Self::UnsupportedResponseType
            | Self::UnsupportedTokenType
            | Self::InvalidScope
            | Self::InvalidTarget
            | Self::InvalidDpopProof
            | Self::UseDpopNonce
            | Self::AccessDenied
            | Self::InvalidRedirectUri
            | Self::InvalidClientMetadata
            | Self::LoginRequired
            | Self::ConsentRequired => 400,
        }
    }
}

/// An error of the authorization server. Its sentence holds nothing that a client sent but an address to return to.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{description}")]
pub struct OAuthError {
    pub code: OAuthErrorCode,
    /// One sentence in printable ASCII without `"` and `\` (RFC 6749 §5.2).
    pub description: String,
}

impl OAuthError {
    /// An error with its sentence.
    #[must_use]
    pub fn new(code: OAuthErrorCode, description: impl Into<String>) -> Self {
        let mut description = description.into();
        description.retain(|it| (it.is_ascii_graphic() || it == ' ') && it != '"' && it != '\\');
        Self { code, description }
    }

    /// The request itself is malformed.
    #[must_use]
    pub fn request(description: impl Into<String>) -> Self {
        Self::new(OAuthErrorCode::InvalidRequest, description)
    }

    /// A code or a refresh token is worth nothing.
    #[must_use]
    pub fn grant(description: impl Into<String>) -> Self {
        Self::new(OAuthErrorCode::InvalidGrant, description)
    }

    /// The refusal of a client that does not prove what it has a key for.
    #[must_use]
    pub fn unproved_client() -> Self {
        Self::client("the client has to prove itself with private_key_jwt")
    }

    /// The client is not known.
    #[must_use]
    pub fn client(description: impl Into<String>) -> Self {
        Self::new(OAuthErrorCode::InvalidClient, description)
    }

    /// A client may not return to this address.
    #[must_use]
    pub fn redirect_uri(address: &str, wanted: &str) -> Self {
        let told = format!("redirect_uris holds `{}`, but {wanted}", shown(address));
        Self::new(OAuthErrorCode::InvalidRedirectUri, told)
    }

    /// `resource` names another endpoint than the grant.
    #[must_use]
    pub fn other_target() -> Self {
        let told = "resource is not the endpoint that was granted";
        Self::new(OAuthErrorCode::InvalidTarget, told)
    }

    /// `resource` names nothing that this gateway gives tokens for.
    #[must_use]
    pub fn target() -> Self {
        let told = "resource has to be the address of an MCP endpoint of this gateway";
        Self::new(OAuthErrorCode::InvalidTarget, told)
    }
}

/// The beginning of a text, with everything written out that an error cannot hold or a reader would not see.
fn shown(text: &str) -> String {
    let mut written = String::new();
    for letter in text.chars().take(MAX_SHOWN) {
        let is_plain = (letter.is_ascii_graphic() || letter == ' ') && !"\"\\`".contains(letter);
        if is_plain {
            written.push(letter);
        } else {
            hidden::spell(letter, &mut written);
        }
    }
    if text.chars().nth(MAX_SHOWN).is_some() {
        written.push_str("...");
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_short_and_with_what_hides_in_it() {
        let told =
            |address: &str| OAuthError::redirect_uri(address, "has to be another").description;

        assert_eq!(
            told("java\u{202e}script:\"b\u{fc}\"\n"),
            "redirect_uris holds `java[U+202E]script:[U+0022]b[U+00FC][U+0022][U+000A]`, but has to be \
             another"
        );
        let long = told(&format!("x:{}", "y".repeat(5_000)));
        assert!(long.contains("yyy...`") && long.len() < 250, "{long}");
    }
}
