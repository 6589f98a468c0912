//! What happens, in which order: the use cases of Portcullis.
//!
//! No HTTP types and no SQL here. A reader opens two files to know the whole law:
//! [`calls::invoke`] tells the story of a governed call, [`calls::recorded`] is the bracket that makes sure that
//! nothing happens unrecorded.

mod access;
mod app;
pub mod audit;
mod calls;
mod ctx;
mod dlp;
mod low_priority;
mod nodes;
mod policies;
mod providers;
pub mod telemetry;
mod tools;

pub use portcullis_lanes::Workers;

pub use self::{
    access::sources::subnet,
    access::tenants::Tenant,
    access::tokens::{
        Account, Credentials, ExchangeRequest, Granted, Presented, Purpose, Refreshing, Refused,
        Screened, Session, SubjectType,
    },
    access::trust::{KeySource, Trust, TrustRefusal},
    app::{App, Parts, fingerprint_key},
    audit::anchors::{AnchorFile, Anchors, WitnessedBy},
    audit::events::{EventQuery, EventView},
    audit::exports::{
        BegunExport, ExportAsk, ExportError, ExportFile, ExportLimits, ExportRequest, ExportedLog,
        Folder, Format, Progress, SignedLog, Written, export_log,
    },
    audit::log::{CheckpointSince, LogKeyError, origin},
    audit::retention::{LEAST_DAYS, Retention},
    audit::sinks::{FileOutlet, Outlet, SinkSettings},
    calls::idempotency::{Claim, Replayed, ReplayedError},
    calls::invoke::{Answered, GovernanceView, Invocation, Invoked, Stopped, View},
    calls::simulate::{
        Ask, Base, Baseline, CaseFile, CaseRun, Draft, Expectation, Options, Replay, Simulation,
        Subject, Unread, Who, Workbench,
    },
    ctx::{Ctx, Origin},
    dlp::{Dlp, External, WhenUnavailable},
    nodes::cluster::{Cluster, JoinError},
    nodes::commands::{
        ERASABLE, ErasureRequest, HoldRequest, IndexFault, Indexed, Inspected, LogIdentity,
        NewToken, Shell, ShellError, Tail, TokenRequest, TokenState, VerifiedLog, Waiting,
        hold_record, told,
    },
    policies::{
        CaseReport, Fallback, FolderFiles, LastGood, Overrides, PolicyFolder, PolicyPage,
        PolicyQuery, PolicySource, PolicyStats, Reload, Reloading, SetChange,
    },
    providers::connect::{
        Callback, CalledBack, ConnectRequest, Connected, Connecting, Disconnected, Owner,
        RotateError, UpstreamRevocation, rotate_secrets,
    },
    providers::vault::{KeySource as VaultSource, Vaults},
    providers::{
        AccountSource, Auth, AuthKind, AuthorizationServer, Declared, Endpoints, HeaderFormat,
        IssuerState, OAuthSettings, OwnerView, Owners, ProviderQuery, ProviderState, ProviderView,
        Whose,
    },
    telemetry::stages::{Stage, Stages},
    telemetry::traces::{Attribute, Recording, TraceSettings},
    tools::pins::Pinning,
    tools::{ToolQuery, ToolStatus, ToolView},
};

use portcullis_core::refusal::{Refusal, Unavailable};
use portcullis_store::StoreError;

/// A failure of the store, logged here once and told the caller as 503 without its inside.
pub(crate) fn store_failed(error: &StoreError) -> Refusal {
    tracing::error!(%error, "the store failed");
    Refusal::Unavailable { reason: Unavailable::Store }
}
