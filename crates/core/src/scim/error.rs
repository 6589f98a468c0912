//! Errors in the words of SCIM (RFC 7644 §3.12).

use serde_json::{Value, json};

use crate::refusal::{Conflict, Refusal};

/// Schema of the error message.
const ERROR_SCHEMA: &str = "urn:ietf:params:scim:api:messages:2.0:Error";

crate::words! {
    /// A `scimType`.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum ScimType {
        InvalidFilter = "invalidFilter",
        TooMany = "tooMany",
        Uniqueness = "uniqueness",
        Mutability = "mutability",
        InvalidSyntax = "invalidSyntax",
        InvalidPath = "invalidPath",
        NoTarget = "noTarget",
        InvalidValue = "invalidValue",
    }
}

impl ScimType {
    const fn http_status(self) -> u16 {
        match self {
            Self::Uniqueness => 409,
            Self::InvalidFilter
            | Self::TooMany
            | Self::Mutability
            | Self::InvalidSyntax
            | Self::InvalidPath
            | Self::NoTarget
            | Self::InvalidValue => 400,
        }
    }
}

/// An error of SCIM.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{detail}")]
pub struct ScimError {
    pub status: u16,
    pub kind: Option<ScimType>,
    /// A sentence for people.
    pub detail: String,
}

impl ScimError {
    /// An error of this kind.
    #[must_use]
    pub fn new(kind: ScimType, detail: impl Into<String>) -> Self {
        Self { status: kind.http_status(), kind: Some(kind), detail: detail.into() }
    }

    /// A change that the caller may not make (RFC 7644 §3.12).
    #[must_use]
    pub fn forbidden(detail: impl Into<String>) -> Self {
        Self { status: 403, kind: None, detail: detail.into() }
    }

    /// An operation of SCIM that is not offered (RFC 7644 §3.12).
    #[must_use]
    pub fn not_implemented(detail: impl Into<String>) -> Self {
        Self { status: 501, kind: None, detail: detail.into() }
    }

    /// The message.
    #[must_use]
    pub fn body(&self) -> Value {
        let mut body = json!({
            "schemas": [ERROR_SCHEMA],
            "status": self.status.to_string(),
            "detail": self.detail,
        });
        if let (Some(kind), Some(members)) = (self.kind, body.as_object_mut()) {
            members.insert("scimType".to_owned(), Value::from(kind.as_str()));
        }
        body
    }
}

impl From<&Refusal> for ScimError {
    fn from(refusal: &Refusal) -> Self {
        let kind = match (refusal, refusal.http_status()) {
            (Refusal::Conflict { reason: Conflict::NameTaken }, _) => Some(ScimType::Uniqueness),
            (_, 400) => Some(ScimType::InvalidSyntax),
            (_, _) => None,
        };
        Self { status: refusal.http_status(), kind, detail: refusal.to_string() }
    }
}

/// A request that is not done: for a reason of SCIM, or of the gateway.
#[derive(Debug, Clone, PartialEq)]
pub enum ScimRejection {
    Scim(ScimError),
    Gateway(Refusal),
}

impl From<ScimError> for ScimRejection {
    fn from(error: ScimError) -> Self {
        Self::Scim(error)
    }
}

impl From<Refusal> for ScimRejection {
    fn from(refusal: Refusal) -> Self {
        Self::Gateway(refusal)
    }
}
