//! MCP itself, apart from how its messages travel.

pub(crate) mod era;
mod mended;
pub(crate) mod message;
pub(crate) mod outgoing;
pub(crate) mod reply;
pub(crate) mod scan;
pub(crate) mod sse;
