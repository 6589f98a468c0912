//! Needs of a route.

use portcullis_core::{limits::Resource, principal::Scope};

/// The largest body of an invocation in bytes.
pub(crate) const INVOKE_LIMIT: usize = 1 << 20;
/// The largest body elsewhere in bytes.
pub(crate) const SMALL_LIMIT: usize = 64 << 10;
/// The largest group of an identity provider in bytes: with all the members that it may have, each with a long name and
/// its address.
pub(crate) const GROUP_LIMIT: usize = 4 << 20;
/// The largest form of a page in bytes.
pub(crate) const FORM_LIMIT: usize = 8 << 10;

/// Needs of a route, stated once in the table. The frame, the extractors and the readers of bodies
/// obey it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RouteSpec {
    pub(crate) access: Access,
    /// The limit that its answers show as `X-RateLimit-*`.
    pub(crate) limit: Resource,
    pub(crate) thread: Thread,
    /// The largest body in bytes; 0 if none is read.
    pub(crate) body: usize,
    pub(crate) words: Words,
}

/// Words in which a route tells errors, where the messages of JSON-RPC are not spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Words {
    /// The envelope of REST.
    Envelope,
    /// OAuth (RFC 6749 §5.2). Pages that the operator lists may ask.
    OAuth,
    /// SCIM (RFC 7644 §3.12).
    Scim,
}

/// Credentials that a route asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    Open,
    /// None; a document for everybody: pages of every origin may read it, and caches may keep it.
    Public,
    /// None; a probe, which is also answered over a connection of the reserve.
    Probe,
    /// One that is exchanged for a token, as the Bearer or in the body.
    Credential,
    /// A live token of any kind.
    AnyToken,
    /// A live access token.
    Token,
    /// A live access token with this scope.
    Scoped(Scope),
    /// A live access token with this scope, whose absence is recorded as a denied call. The use
    /// case asks for it, because only it can record the call.
    Call(Scope),
    /// A live access token, with a message of JSON-RPC that may ask for a call: known once it is read.
    Message,
}

impl Access {
    /// Returns true if the route needs no authentication.
    pub(crate) const fn is_open(self) -> bool {
        matches!(self, Self::Open | Self::Public | Self::Probe)
    }

    /// The scope that is needed, if one is.
    pub(crate) const fn scope(self) -> Option<Scope> {
        match self {
            Self::Scoped(scope) | Self::Call(scope) => Some(scope),
            Self::Open
            | Self::Public
            | Self::Probe
            | Self::Credential
            | Self::AnyToken
            | Self::Token
            | Self::Message => None,
        }
    }
}

/// The thread that handles a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Thread {
    /// Thread of its connection: a call waits for its tool most of the time.
    Connection,
    /// Any of the runtime that all connections share: it may take long.
    Shared,
}

impl RouteSpec {
    /// Requests whose path is not in the table.
    pub const UNKNOWN: Self = Self {
        access: Access::Token,
        limit: Resource::Requests,
        thread: Thread::Shared,
        body: 0,
        words: Words::Envelope,
    };

    /// The same below `/scim`.
    pub(crate) const UNKNOWN_SCIM: Self = Self { words: Words::Scim, ..Self::UNKNOWN };

    /// Operations that only the operator has.
    pub(crate) const OPERATOR: Self = Self { body: SMALL_LIMIT, ..Self::UNKNOWN };

    /// Calls of tools.
    pub(crate) const INVOKE: Self = Self {
        access: Access::Call(Scope::McpsInvoke),
        limit: Resource::Invocations,
        thread: Thread::Connection,
        body: INVOKE_LIMIT,
        words: Words::Envelope,
    };

    /// Messages of MCP clients.
    pub(crate) const MCP: Self = Self {
        access: Access::Message,
        limit: Resource::Requests,
        thread: Thread::Connection,
        body: INVOKE_LIMIT,
        words: Words::Envelope,
    };

    /// Returns true if pages of other origins may ask, where the operator lists them.
    pub(crate) const fn is_open_to_pages(&self) -> bool {
        matches!(self.access, Access::Message) || matches!(self.words, Words::OAuth)
    }

    /// Returns true if a request of it is a call of a tool.
    pub(crate) const fn is_invocation(&self) -> bool {
        matches!(self.access, Access::Call(_))
    }
}
