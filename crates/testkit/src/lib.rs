//! Test support: the real binary as a child process, real fake servers on real sockets.
//!
//! Everything here panics when something goes wrong: it is used by tests only.
#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::missing_panics_doc,
    clippy::must_use_candidate,
    reason = "test support fails by panicking"
)]

mod answer;
mod gateway;
mod mcp;

pub use self::{
    answer::Answer,
    gateway::{Builder, Gateway, Principal},
    mcp::{McpServer, tool},
};
