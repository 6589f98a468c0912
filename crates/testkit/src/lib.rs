//! Test support: the real binary as a child process, real fake servers on real sockets.
//!
//! Everything here panics when something goes wrong: it is used by tests only.
#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::missing_panics_doc,
    clippy::must_use_candidate,
    clippy::return_self_not_must_use,
    reason = "test support fails by panicking"
)]

mod answer;
mod authorizer;
mod balancer;
mod chromium;
mod database;
mod disk;
mod driven;
mod eventually;
mod gateway;
mod has;
mod hostile;
mod mcp;
mod ocsf;
mod oidc;
mod postgres;
mod power;
mod programs;
mod python;
mod receiver;
mod redis;
mod saas;
mod serving;
mod wire;
mod witness;

pub use self::{
    answer::Answer,
    authorizer::{Authorizer, GuardedServer},
    balancer::LoadBalancer,
    chromium::{Chromium, Sight},
    database::DatabaseLock,
    disk::{SmallDisk, printing, unsignalled},
    driven::servers,
    eventually::eventually,
    gateway::{Builder, Gateway, Principal},
    has::{Pointed, assert_has},
    hostile::{Hostile, HostileCall, HostileTool, Script},
    mcp::{McpServer, tool},
    ocsf::ocsf_faults,
    oidc::{Fetches, Oidc, OldKeys, Wanted},
    postgres::{Fault, PostgresDatabase, PostgresServer, PostgresWire},
    power::PowerCut,
    python::run_python,
    receiver::{Manner, Receiver},
    redis::RedisServer,
    saas::{CLIENT_ID, CLIENT_SECRET, Habits, Saas},
    wire::{Condition, Wire},
    witness::LogWitness,
};
