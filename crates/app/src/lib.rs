//! The use cases of Portcullis: what happens, in which order. No HTTP types and no SQL here.
//!
//! [`App`] puts the rooms together; each owns its state, and knows those that stand below it here.
//! A reader opens two files to know how a call is governed: `calls/invoke.rs` tells the story,
//! `calls/bracket.rs` makes sure that nothing happens unrecorded.

mod app;
mod nodes;

mod administration;

mod calls;

mod approvals;
mod identity;
mod simulation;

mod providers;

mod policies;
mod request;

mod foundation;

pub mod audit;

mod catalogue;

pub mod telemetry;

mod base;

pub use portcullis_lanes::{LARGE, Workers};

pub use self::{
    administration::{
        AcceptedTool, Administration, HoldView, ListedHolds, ListedPrincipals, ListedTokens,
        ListedWaiting, MAX_OVERRIDE_SECONDS, MadeToken, OrgLimits, OrgUsage, OrgView,
        OverrideRequest, OverrideView, PrincipalKindName, PrincipalQuery, PrincipalView, RoleName,
        ShownDefinition, TokenListQuery, TokenView, WaitingPlace, WaitingTool, WindowUsage,
    },
    app::{App, Parts},
    approvals::{
        ApprovalPage, ApprovalQuery, ApprovalView, Approvals, DecisionRequest, EarlierApproval,
    },
    audit::{
        Audit, AuditParts,
        anchors::{AnchorFile, Anchors, WitnessedBy},
        counts::{CountStep, CountsView, StepView, ToolCounts, ToolCountsView},
        events::{EventQuery, EventView},
        exports::{
            BegunExport, ExportAsk, ExportError, ExportFile, ExportLimits, ExportOutput,
            ExportRequest, ExportView, ExportedLog, Folder, Format, Progress, SignedLog, Written,
            export_log,
        },
        holds::{HoldError, HoldRequest, record as hold_record},
        log::{CheckpointSince, LogKeyError, origin},
        retention::{LEAST_DAYS, Retention},
        sinks::{FileOutlet, Outlet, SinkSettings},
    },
    base::{
        claim::Claim,
        cluster::{Cluster, JoinError},
        tenants::{Account, Tenant, sources::subnet, tallies::PolicyStats},
    },
    calls::{
        Answered, CallParts, Calls, GovernanceView, Invocation, Invoked, Replayed, ReplayedError,
        Stopped, TaskTerms, View,
        conversation::{Conversation, Questions},
        task::{Task, TaskRun, TaskState, TaskStep},
    },
    catalogue::{
        auth::{
            AccountSource, Auth, AuthKind, AuthorizationServer, Awaited, Endpoints, HeaderFormat,
            OAuthSettings, Owners,
        },
        provider::{Declared, Misfits, Pinning},
    },
    identity::{
        access::{
            Access, AccessParts,
            keys::RemovedKey,
            proofs::ProvedKey,
            tokens::{
                Credentials, ExchangeRequest, Granted, Presented, PresentedRefresh, Purpose,
                RefreshAt, Refreshing, Screened, SubjectType,
            },
            trust::{KeySource, Trust, TrustRefusal},
        },
        authorization::{
            Answer, Authorization, AuthorizationParts, CodeRequest, ConfidentialClient,
            ConfidentialClients, ConsentQuery, ConsentQuestion, ConsentView, Decision,
            DocumentRules, GrantRequest, PresentedClient, RefreshRequest, Step, TokenAnswer,
            TokenClient, proof_error, shown_digest,
        },
        directory::{
            DirectoryError,
            people::{NewPrincipal, PrincipalPatch},
            tokens::{NewToken, TokenRequest},
        },
        login::{
            LoginParts, Logins, OpenedSession,
            failure::{LoginError, LoginFailure},
            issuers::{IssuerCredential, LoginIssuer, LoginIssuerState},
            listing::{SessionQuery, SessionView},
            openid::BegunLogin,
            person::Person,
        },
        scim::{ListedResources, Provisioning, ScimList, ScimResource},
    },
    nodes::{
        Nodes,
        commands::{
            ERASABLE, ErasureRequest, Indexed, Inspected, LogIdentity, NewLoginLink, Shell,
            ShellError, Tail, TokenState, Witnessed, describe_export,
        },
        jobs::catalogue::UntoldTools,
    },
    policies::{
        Policies, PolicySource, Reload,
        folder::{FolderFiles, PolicyFolder},
        last_good::{Fallback, LastGood},
        limits::{LimitParts, Quotas, Refused},
        overrides::Overrides,
        private_file::replace as replace_private_file,
        query::{PolicyPage, PolicyQuery},
        rehearsed::CaseReport,
        reload::Reloading,
        set_change::SetChange,
    },
    providers::{
        ProviderParts, Providers,
        connect::{
            Callback, CalledBack, ConnectRequest, Connected, Connecting, Disconnected,
            NotRegistered, Owner, RegisteredClient, RotateError, UpstreamRevocation,
            rotate_secrets,
        },
        looks::ConnectionTest,
        tools::{
            LeftOutTool, ListedNames, ListedPage, NamedTool, OfferedTool, OfferedTools, PageQuery,
            ToolQuery, ToolStatus, ToolView, Tools, pins::acceptance::Waiting, tool_named,
        },
        vault::{KeySource as VaultSource, Vaults},
        view::{IssuerState, OwnerView, ProviderQuery, ProviderState, ProviderView, Whose},
        waiting::WaitingProvider,
    },
    request::{
        Ctx, Origin, Precondition,
        attendance::{Attendance, Attending, ClearedProgress},
        dlp::{Dlp, External, WhenUnavailable},
        possession::{Possession, PresentedProof, PresentedToken},
        screening::{
            Screening, fingerprint_key,
            specimen_report::{SpecimenFinding, SpecimenReport, Unscanned},
        },
        session::Session,
    },
    simulation::{
        Ask, Base, Baseline, CaseFile, CaseRun, Draft, Expectation, Options, PolicyCheck, Replay,
        Simulation, Simulations, Subject, Unread, Who, Workbench,
        replay::explained::{EventExplanation, ExplainedEvent, ExplainedSet},
        report::SimulationReport,
    },
    telemetry::{
        Telemetry,
        stages::{Stage, Stages},
        traces::{Attribute, Recording, TraceSettings},
    },
};
