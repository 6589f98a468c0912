//! The client of a token request, once it is known how it proved itself.

use portcullis_core::authorization::{ClientRef, OAuthError};

/// The client of a token request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TokenClient {
    /// The client proved that it is this one.
    Proved(ClientRef),
    /// The client says that it is this one, which has no key to prove it.
    Public(String),
    /// The request names no client.
    Unnamed,
}

impl TokenClient {
    /// True if it proved itself.
    #[must_use]
    pub const fn is_proved(&self) -> bool {
        match self {
            Self::Proved(_) => true,
            Self::Public(_) | Self::Unnamed => false,
        }
    }

    /// Its `client_id`.
    ///
    /// # Errors
    /// `invalid_request` if it says nothing.
    pub fn id(&self) -> Result<&str, OAuthError> {
        match self {
            Self::Proved(client) => Ok(&client.id),
            Self::Public(id) => Ok(id),
            Self::Unnamed => Err(OAuthError::request("client_id is missing")),
        }
    }
}
