//! Failures of calls to upstreams, and settings that cannot be used.

use std::{fmt, time::Duration};

use portcullis_core::{
    mcp::interaction::ClientCapabilities,
    refusal::{Executed, UpstreamReason},
};

/// Kind of failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallErrorKind {
    /// The upstream or the way to it broke.
    Upstream(UpstreamReason),
    /// The upstream has no such resource.
    NotFound,
    /// The upstream wants a client that can answer more than the caller declared.
    Unanswerable(ClientCapabilities),
    /// There was no complete answer in time.
    Timeout { after: Duration },
    /// The upstream does not accept our credential (401).
    AuthRequired,
    /// The upstream knows our credential, and it is not enough (403).
    Forbidden,
    /// Too many calls to this upstream are in flight already.
    Overloaded,
    /// The upstream or tool kept failing, so it is not asked for a while.
    Resting {
        /// The time after which it is tried again.
        rest: Duration,
    },
}

impl CallErrorKind {
    /// In a word, one of a closed set.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Upstream(reason) => reason.as_str(),
            Self::Unanswerable(_) => UpstreamReason::InteractionRequired.as_str(),
            Self::NotFound => "not_found",
            Self::Timeout { .. } => "timeout",
            Self::AuthRequired => "auth_required",
            Self::Forbidden => "forbidden",
            Self::Overloaded => "overloaded",
            Self::Resting { .. } => "circuit_open",
        }
    }
}

/// Every word of [`CallErrorKind::as_str`] but that of a resource that is not there, which is no failure.
pub const FAILURES: [&str; 17] = [
    "auth_required", "cancelled", "circuit_open", "connect_failed", "connection_reset",
    "digest_mismatch", "forbidden", "http_5xx", "interaction_required", "issuer_mismatch",
    "jsonrpc_error", "output_mismatch", "overloaded", "protocol_error", "response_too_large",
    "session_lost", "timeout",
];

/// A call without an answer, and whether the tool may have run nevertheless.
///
/// **Invariant:** nothing in it, nor in its `Display`, was written by the upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub struct CallError {
    pub kind: CallErrorKind,
    pub executed: Executed,
}

impl CallError {
    pub(crate) const fn upstream(reason: UpstreamReason, executed: Executed) -> Self {
        Self { kind: CallErrorKind::Upstream(reason), executed }
    }

    pub(crate) const fn connect_failed() -> Self {
        Self::upstream(UpstreamReason::ConnectFailed, Executed::No)
    }

    pub(crate) const fn reset(executed: Executed) -> Self {
        Self::upstream(UpstreamReason::ConnectionReset, executed)
    }

    pub(crate) const fn protocol(executed: Executed) -> Self {
        Self::upstream(UpstreamReason::ProtocolError, executed)
    }

    pub(crate) const fn too_large(executed: Executed) -> Self {
        Self::upstream(UpstreamReason::ResponseTooLarge, executed)
    }

    pub(crate) const fn timeout(after: Duration, executed: Executed) -> Self {
        Self { kind: CallErrorKind::Timeout { after }, executed }
    }

    /// The process or session is another one than that which listed the tools.
    pub(crate) const fn new_peer() -> Self {
        Self::upstream(UpstreamReason::SessionLost, Executed::No)
    }

    /// True if nothing was sent because the tools have to be listed and compared first: the process or
    /// session is another one than that which listed them.
    #[must_use]
    pub fn is_new_peer(&self) -> bool {
        *self == Self::new_peer()
    }

    /// The upstream knows no such method, or not with these parameters.
    pub(crate) const fn not_offered() -> Self {
        Self::upstream(UpstreamReason::JsonrpcError, Executed::No)
    }

    /// The upstream has no such resource.
    pub(crate) const fn not_found() -> Self {
        Self { kind: CallErrorKind::NotFound, executed: Executed::No }
    }

    /// The caller gave the call up.
    pub(crate) const fn cancelled(executed: Executed) -> Self {
        Self::upstream(UpstreamReason::Cancelled, executed)
    }

    pub(crate) const fn auth_required() -> Self {
        Self { kind: CallErrorKind::AuthRequired, executed: Executed::No }
    }

    pub(crate) const fn forbidden() -> Self {
        Self { kind: CallErrorKind::Forbidden, executed: Executed::No }
    }

    pub(crate) const fn overloaded() -> Self {
        Self { kind: CallErrorKind::Overloaded, executed: Executed::No }
    }

    pub(crate) const fn resting(rest: Duration) -> Self {
        Self { kind: CallErrorKind::Resting { rest }, executed: Executed::No }
    }

    /// The same failure where it happened before the call itself was sent.
    pub(crate) const fn before_the_call(self) -> Self {
        Self { kind: self.kind, executed: Executed::No }
    }
}

impl fmt::Display for CallErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Upstream(reason) => write!(f, "{} ({})", reason.sentence(), reason.as_str()),
            Self::Unanswerable(_) => f.write_str(UpstreamReason::InteractionRequired.sentence()),
            Self::NotFound => f.write_str("the upstream has no such resource"),
            Self::Timeout { after } => {
                write!(f, "the upstream did not answer within {} ms", after.as_millis())
            }
            Self::AuthRequired => f.write_str("the upstream refused our credential"),
            Self::Forbidden => f.write_str("our credential is not enough upstream"),
            Self::Overloaded => f.write_str("too many calls to the upstream are in flight"),
            Self::Resting { rest } => {
                write!(f, "the upstream kept failing and is tried again in {} ms", rest.as_millis())
            }
        }
    }
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (executed: {})", self.kind, self.executed.as_str())
    }
}

/// The settings of an upstream cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    #[error("{0}")]
    Url(&'static str),
    #[error("{0}")]
    Credential(&'static str),
    #[error("{0}")]
    Program(&'static str),
    #[error("`{name}` must be {range}")]
    Range { name: &'static str, range: &'static str },
    #[error("the HTTP client cannot be set up; are the system's CA certificates installed?")]
    HttpClient,
}
