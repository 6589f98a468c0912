//! The database: orgs, principals, tokens, providers, tools and the audit log.
//!
//! The only crate that knows SQL and Redis. One text of each statement runs on SQLite and on PostgreSQL;
//! what must differ is in `db` behind named functions. **Invariant:** every function that reads or
//! changes what belongs to a tenant takes its `OrgId` and puts it into the statement. Those that
//! stand above the tenants are few: [`Store::find_token_by_hash`] finds out which tenant it is,
//! [`Store::find_key_owner`] does for a key, [`Store::find_tokens`] and [`Store::touch_tokens`] follow it, and the operator's lists and the
//! jobs at start-up and of sealing ([`Store::list_orgs`], [`Store::abandoned_intents`],
//! [`Store::orgs_with_unsealed`], [`Store::orgs_with_unsigned`], [`Store::committed_since`], [`Store::horizon`],
//! [`Store::checkpoints_since`], [`Store::any_checkpoint`]) look for work in all of them, as do
//! those of keys ([`Store::forget_idempotency_keys`]), approvals ([`Store::open_approvals`],
//! [`Store::forget_approvals`]), exports and sinks
//! ([`Store::fail_exports_of`], [`Store::fail_silent_exports`], [`Store::export_expiry`],
//! [`Store::forget_exports`], [`Store::behind`], [`Store::last_sealed`]), connections and secrets
//! ([`Store::due_refreshes`], [`Store::expired_attempts`], [`Store::secrets_not_under`]), of plans
//! ([`Store::add_usage`], [`Store::forget_usage`]), and of counts ([`Store::thin_counts`]).
//! [`Store::find_code`] finds out whose code is presented, and [`Store::forget_codes`] and [`Store::forget_tokens`]
//! remove old ones.
//! [`Store::call_attempt_back`] finds out whose attempt a browser comes back from,
//! [`Store::find_session_by_hash`], [`Store::find_login_link`] and [`Store::take_login_link`] who logs in
//! with it; [`Store::forget_sessions`] and [`Store::forget_login_links`] forget those of all. The pins of a
//! provider that every org shares belong to no single org ([`Store::list_pins`],
//! [`Store::page_pins_of_org`]). Policies are the
//! installation's ([`Store::keep_policy_set`]).
//!
//! A function that runs statements is `#[boxed]`: its future takes kilobytes, by which those
//! of all its callers would grow.

#![expect(
    clippy::must_use_candidate,
    reason = "a future has to be used anyway; boxing hides from the lint that these are futures"
)]

mod access_changes;
mod address;
mod approvals;
mod audit;
mod authorization;
mod browser_sessions;
mod counters;
mod db;
mod error;
mod exports;
pub mod filters;
mod idempotency;
mod identities;
mod logins;
mod moving;
mod nodes;
mod orgs;
mod pins;
mod policies;
mod policy_overrides;
mod principal_keys;
mod principals;
mod provider_tasks;
mod providers;
mod revocation;
mod row_key;
mod scim;
mod search;
mod secrets;
mod settings;
mod sinks;
mod tokens;
mod tools;
mod usage;

pub use crate::{
    access_changes::{AccessChange, AccessChanges, AccessMark},
    approvals::{
        ApprovalChange, ApprovalFilter, ApprovalGlance, ApprovalLimits, ApprovalParts,
        PendingApprovals, StoredApproval,
    },
    audit::{
        checkpoints::{CheckpointKind, StoredCheckpoint},
        counts::{
            CallCounts, CountedEvents, CountsRange, LATENCY_BOUNDS_MS, StepCounts, TOOL_HOURS,
            ToolCalls,
        },
        erasure::{ErasableEvent, Erased, ErasedParts, MAX_SELECTED, Selection},
        events::{
            EventActor, EventFilter, EventOrder, EventPage, EventRecord, EventTarget, Seal,
            Visibility,
            strays::{LogEnds, RowBeyond},
        },
        holds::{Hold, HoldLaid, MAX_HOLDS, MAX_HOLDS_IN_FORCE},
        intents::OpenIntent,
        months::{OldMonth, OldPart},
        pruning::{OldEvent, OldEvents, Pruned},
        reindex::{
            EntryPlace, IndexColumns, IndexedEvent, IndexedPortion, StrayEntry, TEXT_COLUMNS,
        },
        seal::{RefusedRow, RowFault, Sealer, SignedNote, UnsealedEvent},
        writer::{AtWork, AuditProgress, AuditSettings, AuditTask, AuditWriter, Began},
    },
    authorization::{AuthorizationCode, Consent, ConsentQuery},
    browser_sessions::{BrowserSession, LoginLink, SessionQuery},
    counters::{
        Charge, ChargeOutcome, Cost, CountersError, CountersTask, CountersUrl, CountersUrlError,
        SharedCounters, WindowCounts,
    },
    db::{
        ApprovalUse, Durability, EventTexts, Name, NewEvent, NewIntent, NewKey, RecordTexts, Store,
        TextColumn, UnreadableRow, Weakness,
    },
    error::StoreError,
    exports::{ExportBeat, ExportBegan, ExportQuota, ExportRecord, ExportStatus, NewExport},
    idempotency::{KeyEnd, KnownKey},
    identities::Identity,
    logins::LoginRecord,
    moving::{MovedLog, MovedRows, MovedTable, MovingError},
    nodes::{LEASE_SECONDS, Listener, LiveNode, News, NodeRecord, Nodes},
    orgs::Org,
    pins::{Accepted, Pin, PinChange, PinVersion, Pinned, Surplus, UpstreamDefinition, WantedPins},
    policies::{KeptPolicySet, LastPolicySet, NewPolicySet, PolicyVersion},
    policy_overrides::{MAX_POLICY_OVERRIDES, OverrideEnd, OverrideSet, PolicyOverride},
    principal_keys::{KeyAdded, MAX_PRINCIPAL_KEYS, PrincipalKey},
    principals::{Changed, LastAdmin, Principal, PrincipalChange, PrincipalQuery, RoleName},
    provider_tasks::StoredTask,
    providers::{
        ATTEMPT, Account, Attempt, CLIENT, CONNECTION, CREDENTIAL, Grant, NewAttempt,
        NewCredential, NewProvider, OAuthClient, OwnerFilter, ProviderOwner, ProviderPage,
        ProviderRecord, ProviderStatus,
    },
    row_key::RowKey,
    scim::{
        GroupGuard, ScimGroup, ScimGroupChange, ScimGroupFilter, ScimMember, ScimPage, ScimUser,
        ScimUserChange, ScimUserFilter, ScimWritten,
    },
    secrets::SealedSecret,
    settings::{DatabaseSettings, DatabaseUrl, DatabaseUrlError, Sync},
    sinks::Behind,
    tokens::{
        ActorState, Assertion, Issue, Issued, KnownRefresh, KnownToken, ListedState, ListedToken,
        MAX_ANCESTORS, MAX_LIVE_CHILDREN, NewRefresh, NewToken, Pair, Rotated, Rotation, TokenPage,
        TokenQuery, TokenRecord, TokensPage,
    },
    tools::NewToolList,
    usage::Usage,
};
