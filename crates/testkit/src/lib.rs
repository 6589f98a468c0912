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
mod disk;
mod gateway;
mod hostile;
mod mcp;
mod ocsf;
mod oidc;
mod postgres;
mod power;
mod receiver;
mod witness;

pub use self::{
    answer::Answer,
    disk::{SmallDisk, printing, unsignalled},
    gateway::{Builder, Gateway, Principal},
    hostile::{Hostile, HostileCall, HostileTool, Script},
    mcp::{McpServer, tool},
    ocsf::ocsf_faults,
    oidc::{Fetches, Oidc, OldKeys, Wanted},
    postgres::{Fault, PostgresDatabase, PostgresWire},
    power::PowerCut,
    receiver::{Manner, Receiver},
    witness::LogWitness,
};
