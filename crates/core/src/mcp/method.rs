//! Methods of requests.

use crate::capability::CapabilityKind;

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
        ListPrompts = "prompts/list",
        GetPrompt = "prompts/get",
        ListResources = "resources/list",
        ListTemplates = "resources/templates/list",
        ReadResource = "resources/read",
        /// Wishes to hear of the changes of a resource, until 2025-11-25.
        Subscribe = "resources/subscribe",
        Unsubscribe = "resources/unsubscribe",
        /// Entries of skills; since 2026-07-28.
        ListSkills = "skills/list",
        GetSkill = "skills/get",
        /// Entries of a folder of skills; since 2026-07-28.
        ReadDirectory = "resources/directory/read",
        /// Suggestions for an argument of a prompt or of a template.
        Complete = "completion/complete",
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
            Self::CallTool | Self::GetPrompt => Some("name"),
            Self::ReadResource | Self::GetSkill | Self::ReadDirectory => Some("uri"),
            Self::GetTask | Self::UpdateTask | Self::CancelTask => Some("taskId"),
            Self::Discover
            | Self::Initialize
            | Self::ListTools
            | Self::ListPrompts
            | Self::ListResources
            | Self::ListTemplates
            | Self::ListSkills
            | Self::Subscribe
            | Self::Unsubscribe
            | Self::Complete
            | Self::Listen
            | Self::Ping => None,
        }
    }

    /// Returns true if `Mcp-Name` has to be there. The extension of skills does not say so.
    #[must_use]
    pub const fn needs_name(self) -> bool {
        !matches!(self, Self::GetSkill | Self::ReadDirectory)
    }

    /// The method that lists what there is of a kind.
    #[must_use]
    pub const fn list_of(kind: CapabilityKind) -> Self {
        match kind {
            CapabilityKind::Tool => Self::ListTools,
            CapabilityKind::Prompt => Self::ListPrompts,
            CapabilityKind::Resource => Self::ListResources,
            CapabilityKind::Template => Self::ListTemplates,
            CapabilityKind::Skill => Self::ListSkills,
        }
    }

    /// The method by which something of a kind is used.
    #[must_use]
    pub const fn use_of(kind: CapabilityKind) -> Self {
        match kind {
            CapabilityKind::Tool => Self::CallTool,
            CapabilityKind::Prompt => Self::GetPrompt,
            CapabilityKind::Resource | CapabilityKind::Template => Self::ReadResource,
            CapabilityKind::Skill => Self::GetSkill,
        }
    }

    /// The kind that it lists, if it lists one.
    #[must_use]
    pub fn listed(self) -> Option<CapabilityKind> {
        CapabilityKind::ALL.into_iter().find(|kind| Self::list_of(*kind) == self)
    }

    /// The kind that it uses, if it is a use.
    #[must_use]
    pub fn used(self) -> Option<CapabilityKind> {
        CapabilityKind::GOVERNED.into_iter().find(|kind| Self::use_of(*kind) == self)
    }

    /// Returns true for a governed call, which is never sent twice.
    #[must_use]
    pub const fn is_use(self) -> bool {
        matches!(
            self,
            Self::CallTool | Self::GetPrompt | Self::ReadResource | Self::GetSkill | Self::Complete
        )
    }
}
