//! The closed words inside refusals: what was executed, what is missing, what an upstream did.

use std::fmt;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{approval::Status, clock::Timestamp, id::ApprovalId};

crate::words! {
    /// Execution state of the upstream effect; tells a caller if a retry is safe.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum Executed {
        /// Nothing reached the upstream.
        No = "no",
        /// The upstream did it.
        Yes = "yes",
        /// The upstream may have done it.
        Unknown = "unknown",
    }
}

/// The way to get a provider credentials that it takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remedy {
    /// The principal that connected it connects it again.
    Connect,
    /// The operator gives it another key in the configuration.
    Configure,
    /// The provider is declared without credentials, and wants some.
    Declare,
}

impl Remedy {
    /// The way as the end of a sentence.
    #[must_use]
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::Connect => "connect it again",
            Self::Configure => "its key stands in the gateway's configuration: ask the operator",
            Self::Declare => {
                "the gateway's configuration declares none (`auth = \"none\"`): ask the operator"
            }
        }
    }
}

crate::words! {
    /// Reason that a provider's answer could not be used.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
    #[serde(rename_all = "snake_case")]
    pub enum UpstreamReason {
        /// No connection could be made; nothing was sent.
        ConnectFailed = "connect_failed",
        /// The connection or process died before the answer came.
        ConnectionReset = "connection_reset",
        /// The answer was not MCP.
        ProtocolError = "protocol_error",
        /// The server asked for a conversation that the gateway does not offer.
        InteractionRequired = "interaction_required",
        ResponseTooLarge = "response_too_large",
        /// The result is not what the tool declares, and the provider's must be.
        OutputMismatch = "output_mismatch",
        /// A file of a skill is not what the accepted manifest says.
        DigestMismatch = "digest_mismatch",
        /// The server answered with an HTTP status of 500 or more.
        #[serde(rename = "http_5xx")]
        Http5xx = "http_5xx",
        /// The server answered with a JSON-RPC error.
        JsonrpcError = "jsonrpc_error",
        /// The server does not know the session of the call any more.
        SessionLost = "session_lost",
        /// The MCP server names another authorization server than the configured issuer.
        IssuerMismatch = "issuer_mismatch",
        /// The caller closed the stream of its answer before the tool had answered.
        Cancelled = "cancelled",
    }
}

impl UpstreamReason {
    /// The reason as a sentence about the server, for operators.
    #[must_use]
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::ConnectFailed => "it cannot be reached, or its program cannot be started",
            Self::ConnectionReset => "its connection or program ended before it answered",
            Self::ProtocolError => {
                "it answered something other than MCP; is this the address of an MCP endpoint?"
            }
            Self::InteractionRequired => {
                "it asks for an interaction that the gateway does not offer"
            }
            Self::ResponseTooLarge => "its answer is larger than `max_response_bytes`",
            Self::OutputMismatch => "its result does not fit the output schema of the tool",
            Self::DigestMismatch => "a file of a skill is not what the accepted manifest says",
            Self::Http5xx => "it answered with an HTTP status of 500 or more",
            Self::JsonrpcError => "it answered with a JSON-RPC error",
            Self::SessionLost => "it does not know the MCP session any more",
            Self::IssuerMismatch => "it names another authorization server than the configuration",
            Self::Cancelled => "the caller gave the call up before its answer",
        }
    }
}

crate::words! {
    /// Dependency that the gateway needs and cannot reach.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Unavailable {
        /// The audit log cannot be written.
        Audit = "audit",
        /// The store cannot be read.
        Store = "store",
        /// The counters that nodes share cannot be reached.
        Limits = "limits",
        Shutdown = "shutdown",
        Overloaded = "overloaded",
        /// The file lies in the folder of another node.
        FileElsewhere = "file_elsewhere",
        /// There is too little free space for exports.
        Space = "space",
        /// The keys of a trusted issuer cannot be fetched, and none are remembered.
        IssuerKeys = "issuer_keys",
    }
}

crate::words! {
    /// State of an org that does not permit a change.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Conflict {
        /// Another principal of the org has the name.
        NameTaken = "name_taken",
        /// The change would leave the org without an admin.
        LastAdmin = "last_admin",
        /// The version that waits is not the one that was reviewed.
        VersionChanged = "version_changed",
        /// Several orgs share it, so that the operator decides.
        Shared = "shared",
        /// The policy is one that no org may switch off.
        Locked = "locked",
        /// The org has as many policies switched off as it may have.
        TooManyOverrides = "too_many_overrides",
        /// The org has as many legal holds as it may have.
        TooManyHolds = "too_many_holds",
        /// A program would widen what it may do by what a person decides about.
        PeopleOnly = "people_only",
    }
}

impl Conflict {
    /// The reason as a sentence with its remedy.
    #[must_use]
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::NameTaken => "A principal of this org has that name already; choose another.",
            Self::LastAdmin => {
                "This is the org's last admin who is not disabled; make another principal admin first."
            }
            Self::VersionChanged => {
                "Another version waits than the one that was reviewed; look at the tool anew."
            }
            Self::Shared => {
                "Several orgs share this, so only the operator changes it, on the node's command line."
            }
            Self::Locked => {
                "This policy is locked: only the operator changes it, in its file or on the node's command line."
            }
            Self::TooManyOverrides => {
                "The org has as many policies switched off as it may have; switch one on again first."
            }
            Self::TooManyHolds => {
                "The org has as many legal holds in force as it may have, 100; lift one that is not needed."
            }
            Self::PeopleOnly => {
                "Only a person does this, because a program could widen its own rights by it; log in as an admin \
                 of the org."
            }
        }
    }
}

/// Approval that a call waits for, as its caller is told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct AskedApproval {
    /// Its id.
    pub id: ApprovalId,
    /// `pending`, or `denied` until its time is over.
    pub status: Status,
    /// When it ends.
    pub expires_at: Timestamp,
    /// The address at which people learn how to decide; none if the gateway has no public address.
    pub url: Option<String>,
}

impl fmt::Display for AskedApproval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.status {
            Status::Pending => write!(f, "Approval {} is pending", self.id)?,
            Status::Approved | Status::Denied | Status::Expired | Status::Consumed => {
                return write!(f, "Approval {} was {}", self.id, self.status.as_str());
            }
        }
        f.write_str("; make the same call again once it is approved")
    }
}
