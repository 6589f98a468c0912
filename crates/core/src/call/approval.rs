//! Approvals that a call needs, and calls that cannot be approved.

use serde_json::{Map, json};

use super::{
    denial::{Denial, Grounds},
    ruling::Ruling,
};
use crate::{
    approval::{ApprovalTerms, MAX_PENDING},
    dlp::{Action, Category, Direction, Finding, Findings, Likelihood},
    hidden::spelled,
    policy::{Obligation, PolicyRef},
    refusal::AskedApproval,
};

/// The longest path of a finding that approvers are shown, in characters.
const LONGEST_PATH: usize = 200;

/// Approval that a policy asks for.
#[derive(Debug, Clone, Copy)]
pub struct RequiredApproval<'a> {
    obligation: &'a Obligation,
    pub policy: &'a PolicyRef,
    /// Conditions: approvers, their number, and the time for it.
    pub terms: &'a ApprovalTerms,
    pub reason: &'a str,
}

impl RequiredApproval<'_> {
    /// The denial of a call that is not approved yet, or was denied.
    #[must_use]
    pub fn awaited(&self, ruling: &Ruling, approval: AskedApproval) -> Denial {
        self.denial(Grounds::Approval(approval), ruling, self.reason.to_owned())
    }

    /// The denial of a call that cannot be shown whole before it runs.
    #[must_use]
    pub fn unshowable(&self, ruling: &Ruling) -> Denial {
        let reason = "the input is too large to be shown to approvers, who see at most 64 KiB";
        self.denial(Grounds::Limit(Map::new()), ruling, reason.to_owned())
    }

    /// The denial of a completion: people approve uses alone.
    #[must_use]
    pub fn unasked(&self, ruling: &Ruling) -> Denial {
        let reason = "a use needs an approval, and people approve uses alone, not suggestions";
        self.denial(Grounds::Limit(Map::new()), ruling, reason.to_owned())
    }

    /// The denial of a call for which no approval is asked, because too many wait already.
    #[must_use]
    pub fn crowded(&self, ruling: &Ruling, retry_after_s: u32) -> Denial {
        let reason = format!(
            "{MAX_PENDING} requests of this principal wait for approval already; let them be decided \
             first"
        );
        let more = Map::from_iter([("retry_after".to_owned(), json!(retry_after_s))]);
        self.denial(Grounds::Limit(more), ruling, reason)
    }

    fn denial(&self, grounds: Grounds, ruling: &Ruling, reason: String) -> Denial {
        let mut ruling = ruling.clone();
        ruling.decided_by_obligation(self.obligation);
        Denial::ruled(grounds, ruling, reason)
    }
}

/// Approvals that these obligations ask for, in the order of the policies.
pub(super) fn required(obligations: &[Obligation]) -> impl Iterator<Item = RequiredApproval<'_>> {
    obligations.iter().filter_map(|obligation| match obligation {
        Obligation::RequireApproval { policy, terms, reason } => {
            Some(RequiredApproval { obligation, policy, terms, reason })
        }
        Obligation::RateLimit { .. } | Obligation::Redact { .. } => None,
    })
}

/// The denial of a call that needs an approval and holds hidden characters, unless they are masked or
/// each policy that asks says that people may approve them: a model or a terminal reads what a person
/// who decides would not.
pub(super) fn unseen(
    ruling: &Ruling,
    obligations: &[Obligation],
    findings: &Findings,
    action: impl Fn(&Finding) -> Action,
) -> Option<Denial> {
    let asking = required(obligations).find(|required| !required.terms.hidden)?;
    let hidden = findings.iter().find(|finding| {
        finding.category() == Category::Hidden
            && finding.likelihood() >= Likelihood::Likely
            && action(finding) == Action::Flag
    })?;
    let place = match hidden.pointer() {
        "" => String::new(),
        pointer => format!(" at `{}`", path(pointer)),
    };
    let reason = format!(
        "the input has characters{place} that people who approve it would not see; make the call \
         without them"
    );
    let denial = asking.denial(Grounds::Limit(Map::new()), ruling, reason);
    Some(denial.because_of_dlp(Direction::Input))
}

/// The path of a finding, fit to be shown.
pub(super) fn path(pointer: &str) -> String {
    spelled(pointer).chars().take(LONGEST_PATH).collect()
}
