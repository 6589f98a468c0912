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
mod authorizer;
mod disk;
mod gateway;
mod hostile;
mod mcp;
mod ocsf;
mod oidc;
mod postgres;
mod power;
mod receiver;
mod saas;
mod witness;

pub use self::{
    answer::Answer,
    authorizer::{Authorizer, Guarded},
    disk::{SmallDisk, printing, unsignalled},
    gateway::{Builder, Gateway, Principal},
    hostile::{Hostile, HostileCall, HostileTool, Script},
    mcp::{McpServer, tool},
    ocsf::ocsf_faults,
    oidc::{Fetches, Oidc, OldKeys, Wanted},
    postgres::{Fault, PostgresDatabase, PostgresWire},
    power::PowerCut,
    receiver::{Manner, Receiver},
    saas::{CLIENT_ID, CLIENT_SECRET, Habits, Saas},
    witness::LogWitness,
};
