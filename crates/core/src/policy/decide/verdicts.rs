//! The decisions there are, put into words.

use std::sync::Arc;

use crate::policy::{
    bind::slot::Candidate,
    decide::decision::{Cause, Decision, Errored, Obligation, PolicyRef, Verdict},
    load::{
        builtins::{DEFAULT_DENY, DLP_DEFAULT, POLICY_ERROR},
        compiled::Compiled,
    },
    terms::Phase,
    tool::values::Unreadable,
};

/// No active policy can apply.
pub(in crate::policy) fn silence(phase: Phase) -> Decision {
    match phase {
        Phase::Request => default_deny(Vec::new()),
        Phase::Response => allow(PolicyRef::builtin(DLP_DEFAULT), Vec::new(), &[], Vec::new()),
    }
}

fn decision(verdict: Verdict, determining: Vec<Arc<str>>, errors: Vec<Errored>) -> Decision {
    let notices = Vec::new();
    let shadow = Vec::new();
    let capture = None;
    Decision { verdict, determining, notices, capture, shadow, errors }
}

pub(in crate::policy) fn allow(
    policy: PolicyRef,
    obligations: Vec<Obligation>,
    determining: &[&Candidate],
    errors: Vec<Errored>,
) -> Decision {
    decision(Verdict::Allow { policy, obligations }, ids(determining), errors)
}

pub(in crate::policy) fn default_deny(errors: Vec<Errored>) -> Decision {
    let verdict = Verdict::Deny {
        policy: PolicyRef::builtin(DEFAULT_DENY),
        reason: "No policy permits this call".to_owned(),
        cause: Cause::DefaultDeny,
        reads_dlp: false,
        error: false,
    };
    decision(verdict, vec![DEFAULT_DENY.into()], errors)
}

/// Reason that the policy itself states.
pub(in crate::policy) fn stated(policy: &Compiled) -> Option<String> {
    policy.annotations.reason.as_ref().or(policy.annotations.title.as_ref()).cloned()
}

pub(in crate::policy) fn explicit_denial(
    first: &Compiled,
    all: &[&Candidate],
    errors: Vec<Errored>,
) -> Decision {
    let verdict = Verdict::Deny {
        policy: PolicyRef::of(first),
        reason: stated(first).unwrap_or_else(|| format!("Denied by policy `{}`", first.id)),
        cause: Cause::ExplicitDeny,
        reads_dlp: first.reads_dlp(),
        error: false,
    };
    decision(verdict, ids(all), errors)
}

pub(in crate::policy) fn failed_denial(
    first: &Compiled,
    all: &[&Candidate],
    errors: Vec<Errored>,
) -> Decision {
    let why = errors.iter().find(|error| error.policy == first.id).map_or("", |error| error.why);
    let verdict = Verdict::Deny {
        policy: PolicyRef::of(first),
        reason: format!("The policy could not be evaluated: {why}"),
        cause: Cause::PolicyError,
        reads_dlp: first.reads_dlp(),
        error: true,
    };
    decision(verdict, ids(all), errors)
}

fn policy_error(reason: String) -> Verdict {
    Verdict::Deny {
        policy: PolicyRef::builtin(POLICY_ERROR),
        reason,
        cause: Cause::PolicyError,
        reads_dlp: false,
        error: true,
    }
}

pub(in crate::policy) fn unfit_denial(first: &Compiled, all: &[&Candidate]) -> Decision {
    let reason = format!(
        "Policy `{}` may forbid this call but no longer fits what the tool declares",
        first.id
    );
    let why = "it does not fit what the tool declares";
    let errors = ids(all).into_iter().map(|policy| Errored { policy, why });
    decision(policy_error(reason), ids(all), errors.collect())
}

pub(in crate::policy) fn unreadable_denial(unreadable: &Unreadable) -> Decision {
    let reason = format!("The call cannot be shown to the policies: {unreadable}");
    decision(policy_error(reason), vec![POLICY_ERROR.into()], Vec::new())
}

fn ids(candidates: &[&Candidate]) -> Vec<Arc<str>> {
    candidates.iter().map(|candidate| Arc::clone(&candidate.policy.id)).collect()
}
