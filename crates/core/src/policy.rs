//! Policies: who may call which tool, decided by Cedar.
//!
//! Files become one immutable [`PolicySet`], or none when anything in them is wrong. A decision
//! evaluates only the policies whose scope can match the tool and the caller, on values that are
//! built here from the call. Without a permit the answer is no; whatever cannot be evaluated is a
//! no as well.
//!
//! The modules stand in reading order. Each uses only modules above it.

mod bind;
mod call;
mod decide;
pub mod engine;
mod explain;
mod files;
mod language;
mod load;
mod rate;
mod set;
mod terms;
mod tool;
mod watch;

pub use self::{
    bind::{
        access_table::Access,
        record::{FullRecord, Origin, PolicyRecord, SwitchedOff, Validation},
    },
    call::{
        identity::{Agent, Identity, Principal},
        question::{DlpFacts, Question},
    },
    decide::decision::{
        Cause, Decision, Errored, Notice, Obligation, PolicyRef, Shadow, Verdict, Would,
    },
    explain::{
        explanation::{
            Clause, Considered, Explain, Explanation, Indeterminate, MissedPart, MissedPermit,
            NearMiss, Outcome, ReadValue,
        },
        known_context::KnownContext,
        suggestion::suggested_permit,
    },
    files::{MAX_FILE_BYTES, PolicyError, PolicyFile},
    language::misnamed::Misnamed,
    load::{
        builtins::{DEFAULT_DENY, DLP_DEFAULT, POLICY_ERROR, TOKEN_SCOPES, TOOL_PINNING},
        obligations::{Channel, Detectors},
    },
    rate::{Full, Per, Rate},
    set::{
        PolicySet, Summary,
        access::{Accesses, Somebody, SomebodyError},
        draft::Changes,
        projection::Projection,
        tenancy::{OrgView, principals_in},
    },
    terms::{Effect, Phase, Severity, Status},
    tool::{catalogue::Catalogue, facts::FACTS_FILE},
    watch::{DraftBounds, DraftError, DraftSize},
};
pub use crate::dlp::Direction;

#[cfg(test)]
mod tests;
