//! Decisions.

use std::sync::Arc;

use serde::Serialize;
use serde_json::{Value, json};

use crate::{
    approval::ApprovalTerms,
    audit::Capture,
    dlp::{Finding, Mask},
};
use crate::{
    dlp::Direction,
    policy::{
        load::{
            compiled::Compiled,
            obligations::{self, Channel, Detectors},
        },
        rate::Rate,
    },
};

/// Decision of the policies on one question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    pub verdict: Verdict,
    /// Every policy that determined it, the reported one first.
    pub determining: Vec<Arc<str>>,
    /// Notices to send, whatever the verdict.
    pub notices: Vec<Notice>,
    /// Part of the payload that the event keeps, if a policy says so, whatever the verdict.
    pub capture: Option<Capture>,
    /// Decisions that the shadow policies would have made.
    pub shadow: Vec<Shadow>,
    /// Policies that could not be evaluated; permits among them were passed over.
    pub errors: Vec<Errored>,
}

/// Yes or no.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The call may be made, or the result may be given, once the obligations are fulfilled.
    Allow {
        /// The permit that decided. In the response phase, where none is needed: the policy that
        /// masks, or the built-in `dlp-default` when no policy has anything to say.
        policy: PolicyRef,
        /// Obligations to fulfil first; a call whose obligation cannot be fulfilled is denied.
        obligations: Vec<Obligation>,
    },
    /// The call must not be made, or the result must not be given.
    Deny {
        policy: PolicyRef,
        /// Reason, for the caller; never holds a value of the call.
        reason: String,
        cause: Cause,
        /// True if the policy looks at what DLP found.
        reads_dlp: bool,
        /// True if it is a no because something could not be evaluated.
        error: bool,
    },
}

impl Verdict {
    /// True for a denial by a policy that looks at the findings of DLP.
    #[must_use]
    pub const fn reads_dlp(&self) -> bool {
        match self {
            Self::Allow { .. } => false,
            Self::Deny { reads_dlp, .. } => *reads_dlp,
        }
    }
}

/// A policy by name and version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PolicyRef {
    /// The policy's name.
    pub id: Arc<str>,
    /// Its `sha256:…`; built-ins have none.
    pub version: Option<Arc<str>>,
}

/// Cause of a denial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// A forbid is true.
    ExplicitDeny,
    /// No permit is true.
    DefaultDeny,
    /// A policy could not be evaluated, or the call could not be shown to it.
    PolicyError,
}

/// Obligation that has to be fulfilled before a call or a result passes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Obligation {
    /// Take one from a rate; when it is used up, the policy forbids.
    RateLimit {
        policy: PolicyRef,
        /// Key of the calls that are counted together. Other policies, orgs and rates have other
        /// keys.
        key: String,
        rate: Rate,
        /// Reason, for the caller, when it is used up.
        reason: String,
    },
    /// People have to approve this very call; until they did, the policy forbids.
    RequireApproval {
        policy: PolicyRef,
        /// Conditions: approvers, their number, and the time for it.
        terms: Arc<ApprovalTerms>,
        /// Reason, for the caller and for approvers.
        reason: String,
    },
    /// Mask what these detectors find.
    Redact { policy: PolicyRef, direction: Direction, detectors: Detectors },
}

impl Obligation {
    /// The policy that asks for it.
    #[must_use]
    pub const fn policy(&self) -> &PolicyRef {
        match self {
            Self::RateLimit { policy, .. }
            | Self::RequireApproval { policy, .. }
            | Self::Redact { policy, .. } => policy,
        }
    }

    /// Returns true if a finding has to be masked in this direction.
    #[must_use]
    pub fn redacts(&self, direction: Direction, finding: &Finding) -> bool {
        self.detectors(direction).is_some_and(|detectors| detectors.of(finding).is_some())
    }

    /// Mask of a finding in this direction; `None` when the obligation does not cover it.
    #[must_use]
    pub fn mask(&self, direction: Direction, finding: &Finding) -> Option<Mask> {
        self.detectors(direction)?.of(finding)?
    }

    fn detectors(&self, direction: Direction) -> Option<&Detectors> {
        match self {
            Self::RateLimit { .. } | Self::RequireApproval { .. } => None,
            Self::Redact { direction: asked, detectors, .. } => {
                (*asked == direction).then_some(detectors)
            }
        }
    }

    /// As it is shown: `type`, `policy` and `properties`.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let (kind, properties) = match self {
            Self::RateLimit { rate, .. } => obligations::rate_json(*rate),
            Self::RequireApproval { terms, .. } => obligations::approval_json(terms),
            Self::Redact { direction, detectors, .. } => {
                obligations::redact_json(*direction, detectors)
            }
        };
        json!({ "type": kind, "policy": self.policy().id, "properties": properties })
    }
}

/// A channel is to be notified that a policy was true.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    pub policy: PolicyRef,
    pub channel: Channel,
}

/// Decision that a shadow policy would have made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Shadow {
    pub policy: Arc<str>,
    pub would: Would,
    /// True if the decision would be another if it were active.
    pub flips: bool,
}

/// Effect that a shadow policy would have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Would {
    Allow,
    Deny,
    /// Let pass with an obligation.
    Oblige,
}

/// A policy that could not be evaluated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Errored {
    pub policy: Arc<str>,
    /// Reason, in fixed words that hold no value of the call.
    pub why: &'static str,
}

impl PolicyRef {
    pub(in crate::policy) fn builtin(id: &str) -> Self {
        Self { id: id.into(), version: None }
    }

    pub(in crate::policy) fn of(policy: &Compiled) -> Self {
        Self { id: Arc::clone(&policy.id), version: Some(Arc::clone(&policy.digest)) }
    }
}
