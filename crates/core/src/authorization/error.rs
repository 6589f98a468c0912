//! Errors in the words of OAuth (RFC 6749 §4.1.2.1 and §5.2, RFC 7591 §3.2.2, RFC 8707 §2, RFC 9449 §12.2).

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

/// An error of the authorization server. Its sentence holds nothing that a client sent.
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

    /// `resource` names nothing that this gateway gives tokens for.
    #[must_use]
    pub fn target() -> Self {
        let told = "resource has to be the address of an MCP endpoint of this gateway";
        Self::new(OAuthErrorCode::InvalidTarget, told)
    }
}
