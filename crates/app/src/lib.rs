//! What happens, in which order: the use cases of Portcullis.
//!
//! No HTTP types and no SQL here. A reader opens two files to know the whole law:
//! [`invoke`] tells the story of a governed call, [`recorded`] is the bracket that makes sure that
//! nothing happens unrecorded.

mod accessed;
mod anchors;
mod answers;
mod app;
mod aside;
mod audit;
mod cluster;
mod coalesced;
mod commands;
mod connect;
mod connections;
pub mod counting;
mod ctx;
mod dlp;
mod exports;
pub mod filters;
mod freshness;
mod idempotency;
mod invoke;
pub mod jobs;
mod judging;
mod limits;
mod log;
mod mismatches;
mod notices;
mod pins;
mod policies;
mod providers;
mod rates;
mod readiness;
mod recorded;
mod retention;
mod runs;
mod simulate;
mod sinks;
mod sources;
mod stages;
mod tenants;
pub mod times;
mod tokens;
mod tools;
mod traces;
mod trust;
mod uninterrupted;
mod unreadable;
mod vault;

pub use portcullis_lanes::Workers;

pub use self::{
    anchors::{AnchorFile, Anchors, WitnessedBy},
    app::{App, Parts, fingerprint_key},
    audit::{EventQuery, EventView},
    cluster::{Cluster, JoinError},
    commands::{
        ERASABLE, ErasureRequest, HoldRequest, IndexFault, Indexed, Inspected, LogIdentity,
        NewToken, Shell, ShellError, Tail, TokenRequest, TokenState, VerifiedLog, Waiting,
        hold_record, told,
    },
    connect::{
        Callback, CalledBack, ConnectRequest, Connected, Connecting, Disconnected, Owner,
        RotateError, UpstreamRevocation, rotate_secrets,
    },
    ctx::{Ctx, Origin},
    dlp::{Dlp, External, WhenUnavailable},
    exports::{
        BegunExport, ExportAsk, ExportError, ExportFile, ExportLimits, ExportRequest, ExportedLog,
        Folder, Format, Progress, SignedLog, Written, export_log,
    },
    idempotency::{Claim, Replayed, ReplayedError},
    invoke::{Answered, GovernanceView, Invocation, Invoked, Stopped, View},
    log::{CheckpointSince, LogKeyError, origin},
    pins::Pinning,
    policies::{
        CaseReport, Fallback, FolderFiles, LastGood, Overrides, PolicyFolder, PolicyPage,
        PolicyQuery, PolicySource, PolicyStats, Reload, Reloading, SetChange,
    },
    providers::{
        AccountSource, Auth, AuthKind, AuthorizationServer, Declared, Endpoints, HeaderFormat,
        IssuerState, OAuthSettings, OwnerView, Owners, ProviderQuery, ProviderState, ProviderView,
        Whose,
    },
    retention::{LEAST_DAYS, Retention},
    simulate::{
        Ask, Base, Baseline, CaseFile, CaseRun, Draft, Expectation, Options, Replay, Simulation,
        Subject, Unread, Who, Workbench,
    },
    sinks::{FileOutlet, Outlet, SinkSettings},
    sources::subnet,
    stages::{Stage, Stages},
    tenants::Tenant,
    tokens::{
        Account, Credentials, ExchangeRequest, Granted, Presented, Purpose, Refreshing, Refused,
        Screened, Session, SubjectType,
    },
    tools::{NamedTool, OfferedTool, OfferedTools, ToolQuery, ToolStatus, ToolView},
    traces::{Attribute, Recording, TraceSettings},
    trust::{KeySource, Trust, TrustRefusal},
    vault::{KeySource as VaultSource, Vaults},
};

use portcullis_core::refusal::{Refusal, Unavailable};
use portcullis_store::StoreError;

/// A failure of the store, logged here once and told the caller as 503 without its inside.
pub(crate) fn store_failed(error: &StoreError) -> Refusal {
    tracing::error!(%error, "the store failed");
    Refusal::Unavailable { reason: Unavailable::Store }
}
