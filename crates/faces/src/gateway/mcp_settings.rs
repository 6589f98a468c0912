//! Settings of the MCP face.

use std::time::Duration;

use super::{guard::Guard, listeners::Listeners};

/// Form in which the tools of all providers are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ListForm {
    /// By tools to find them with if there are many, else all.
    #[default]
    Auto,
    /// All of them.
    List,
    /// By tools to find them with.
    Search,
}

/// Settings of the MCP face.
#[derive(Debug)]
pub struct Settings {
    pub tools: ListForm,
    pub instructions: Option<String>,
    /// Time for which a client may keep a list of tools.
    pub ttl_ms: u64,
    /// Time for which a call is held whose caller opened the address of its approval.
    pub approval_wait: Duration,
    pub guard: Guard,
    pub listeners: Listeners,
}
