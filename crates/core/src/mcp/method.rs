//! Methods of requests.

/// A request's method that this gateway asks for or answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Versions, capabilities and identity of a server; since 2026-07-28.
    Discover,
    /// The handshake of the older era.
    Initialize,
    ListTools,
    CallTool,
    /// A stream of announcements; since 2026-07-28.
    Listen,
    Ping,
    /// The state of a task, with its answer once there is one.
    GetTask,
    /// Answers to questions of a task.
    UpdateTask,
    CancelTask,
}

impl Method {
    const ALL: [Self; 9] = [
        Self::Discover,
        Self::Initialize,
        Self::ListTools,
        Self::CallTool,
        Self::Listen,
        Self::Ping,
        Self::GetTask,
        Self::UpdateTask,
        Self::CancelTask,
    ];

    /// The name in a message.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Discover => "server/discover",
            Self::Initialize => "initialize",
            Self::ListTools => "tools/list",
            Self::CallTool => "tools/call",
            Self::Listen => "subscriptions/listen",
            Self::Ping => "ping",
            Self::GetTask => "tasks/get",
            Self::UpdateTask => "tasks/update",
            Self::CancelTask => "tasks/cancel",
        }
    }

    /// The parameter that `Mcp-Name` mirrors, if there is one.
    #[must_use]
    pub const fn named_by(self) -> Option<&'static str> {
        match self {
            Self::CallTool => Some("name"),
            Self::GetTask | Self::UpdateTask | Self::CancelTask => Some("taskId"),
            Self::Discover | Self::Initialize | Self::ListTools | Self::Listen | Self::Ping => None,
        }
    }

    /// The method of this name, if it is one of these.
    #[must_use]
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|method| method.as_str() == name)
    }
}
