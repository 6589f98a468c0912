//! What happens, in which order: the use cases of Portcullis.
//!
//! No HTTP types and no SQL here. A reader opens two files to know the whole law:
//! [`invoke`] tells the story of a governed call, [`recorded`] is the bracket that makes sure that
//! nothing happens unrecorded.

mod answers;
mod app;
mod audit;
mod coalesced;
mod commands;
pub mod counting;
mod ctx;
mod dlp;
mod invoke;
pub mod jobs;
mod policies;
mod providers;
mod recorded;
mod sources;
mod tenants;
mod tokens;
mod tools;

pub use self::{
    app::{App, Parts},
    audit::{EventQuery, EventView},
    commands::{NewToken, Shell, ShellError, TokenRequest},
    ctx::{Ctx, Origin},
    dlp::{Dlp, External, WhenUnavailable},
    invoke::{GovernanceView, Invocation, Invoked, Stopped, View},
    policies::{PolicyFolder, PolicyQuery, Reload},
    providers::{AuthKind, Declared, ProviderQuery, ProviderState, ProviderView},
    tenants::Tenant,
    tokens::{Refused, Session},
    tools::{ToolQuery, ToolView},
};

use portcullis_core::refusal::{Refusal, Unavailable};
use portcullis_store::StoreError;

/// A failure of the store, logged here once and told the caller as 503 without its inside.
pub(crate) fn store_failed(error: &StoreError) -> Refusal {
    tracing::error!(%error, "the store failed");
    Refusal::Unavailable { reason: Unavailable::Store }
}
