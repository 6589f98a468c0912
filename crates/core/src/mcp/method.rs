//! Methods of requests.

crate::words! { listed
    /// A request's method that this gateway asks for or answers.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Method {
        /// Versions, capabilities and identity of a server; since 2026-07-28.
        Discover = "server/discover",
        /// The handshake of the older era.
        Initialize = "initialize",
        ListTools = "tools/list",
        CallTool = "tools/call",
        /// A stream of announcements; since 2026-07-28.
        Listen = "subscriptions/listen",
        Ping = "ping",
        /// The state of a task, with its answer once there is one.
        GetTask = "tasks/get",
        /// Answers to questions of a task.
        UpdateTask = "tasks/update",
        CancelTask = "tasks/cancel",
    }
}

impl Method {
    /// The parameter that `Mcp-Name` mirrors, if there is one.
    #[must_use]
    pub const fn named_by(self) -> Option<&'static str> {
        match self {
            Self::CallTool => Some("name"),
            Self::GetTask | Self::UpdateTask | Self::CancelTask => Some("taskId"),
            Self::Discover | Self::Initialize | Self::ListTools | Self::Listen | Self::Ping => None,
        }
    }
}
