//! The decision, in its order: a forbid that cannot be evaluated, a forbid that is true, no permit
//! that is true, then the obligations. Shadow policies are evaluated beside it and change nothing.

use std::{cmp::Reverse, sync::Arc};

use cedar_policy::Entities;
use serde::Serialize;

use super::{
    Direction, Effect, Phase,
    annotations::Detectors,
    asker::Asker,
    question::Question,
    record::{DEFAULT_DENY, DLP_DEFAULT, POLICY_ERROR},
    slot::{Found, Policies, Slot, Stage},
    source::Compiled,
    values::Unreadable,
};
use crate::dlp::{Finding, Mask};

/// What the policies say to one question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// The answer and who gave it.
    pub verdict: Verdict,
    /// Every policy that determined it, the reported one first.
    pub determining: Vec<Arc<str>>,
    /// What the shadow policies would have done.
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
        policy: Named,
        /// What to do first; a call whose obligation cannot be fulfilled is denied.
        obligations: Vec<Obligation>,
    },
    /// It may not.
    Deny {
        /// The policy that decided.
        policy: Named,
        /// Why, for the caller; never holds a value of the call.
        reason: String,
        /// What kind of no it is.
        cause: Cause,
        /// Whether the policy looks at what DLP found.
        reads_dlp: bool,
        /// Whether it is a no because something could not be evaluated.
        error: bool,
    },
}

/// A policy by name and version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Named {
    /// The policy's name.
    pub id: Arc<str>,
    /// Its `sha256:…`; built-ins have none.
    pub version: Option<Arc<str>>,
}

/// What kind of no.
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

/// What has to be done before a call or a result passes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Obligation {
    /// Mask what these detectors find.
    Redact {
        /// The policy that asks for it.
        policy: Named,
        /// In the arguments or in the result.
        direction: Direction,
        /// Whose findings.
        detectors: Detectors,
    },
}

impl Obligation {
    /// The policy that asks for it.
    #[must_use]
    pub const fn policy(&self) -> &Named {
        let Self::Redact { policy, .. } = self;
        policy
    }

    /// Whether a finding has to be masked in this direction.
    #[must_use]
    pub fn redacts(&self, direction: Direction, finding: &Finding) -> bool {
        let Self::Redact { direction: asked, detectors, .. } = self;
        *asked == direction && detectors.of(finding).is_some()
    }

    /// How a finding has to be masked in this direction; `None` when nothing is said of it.
    #[must_use]
    pub fn mask(&self, direction: Direction, finding: &Finding) -> Option<Mask> {
        let Self::Redact { direction: asked, detectors, .. } = self;
        detectors.of(finding).filter(|_| *asked == direction)?
    }
}

/// What a shadow policy would have done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Shadow {
    /// Its name.
    pub policy: Arc<str>,
    /// What it says.
    pub would: Would,
    /// Whether the decision would be another if it were active.
    pub flips: bool,
}

/// What a shadow policy says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Would {
    /// Permit.
    Allow,
    /// Forbid.
    Deny,
    /// Let pass with an obligation.
    Oblige,
}

/// A policy that could not be evaluated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Errored {
    /// Its name.
    pub policy: Arc<str>,
    /// Why, in fixed words that hold no value of the call.
    pub why: &'static str,
}

impl Named {
    fn builtin(id: &str) -> Self {
        Self { id: id.into(), version: None }
    }

    fn of(policy: &Compiled) -> Self {
        Self { id: Arc::clone(&policy.id), version: Some(Arc::clone(&policy.digest)) }
    }
}

/// Decides one question with the candidates of its tool.
pub(super) fn decide(policies: &Policies, slot: &Slot, question: &Question<'_>) -> Decision {
    let stage = slot.stage(question.phase);
    if stage.has_nothing_to_say() {
        return silence(question.phase);
    }
    let asker = Asker::new(question.caller, question.groups);
    let entities = slot.entities(&asker);
    let judge = Judge { policies, slot, stage, asker, question, entities };
    let mut decision = judge.active();
    judge.shadow(&mut decision);
    decision
}

struct Judge<'a> {
    policies: &'a Policies,
    slot: &'a Slot,
    stage: &'a Stage,
    asker: Asker,
    question: &'a Question<'a>,
    entities: Result<Entities, Unreadable>,
}

/// What the active lanes say.
struct Heard {
    permit: Found,
    forbid: Found,
    conditional: Found,
}

impl Judge<'_> {
    fn active(&self) -> Decision {
        let unfit = self.unfit();
        if let Some(first) = unfit.first() {
            return unfit_denial(first, &unfit);
        }
        if self.stage.is_empty() {
            return silence(self.question.phase);
        }
        match self.hear() {
            Ok(heard) => self.weigh(&heard),
            Err(unreadable) => unreadable_denial(&unreadable),
        }
    }

    /// Forbids that may apply but do not validate against the tool any more.
    fn unfit(&self) -> Vec<&Compiled> {
        let fits = |policy: &&Compiled| {
            policy.scope.principal.fits_principal(self.asker.kind, &self.asker.entities)
        };
        self.ranked(self.stage.unfit.iter().copied()).into_iter().filter(fits).collect()
    }

    fn hear(&self) -> Result<Heard, Unreadable> {
        let entities = self.entities.as_ref().map_err(Clone::clone)?;
        let request = self.slot.request(&self.asker, self.question, &self.stage.reads)?;
        let (policies, asker) = (self.policies, &self.asker);
        Ok(Heard {
            forbid: self.stage.forbid.evaluate(policies, asker, &request, entities),
            conditional: self.stage.conditional.evaluate(policies, asker, &request, entities),
            permit: self.stage.permit.evaluate(policies, asker, &request, entities),
        })
    }

    fn weigh(&self, heard: &Heard) -> Decision {
        let failed = heard.forbid.errored.iter().chain(&heard.conditional.errored);
        let errors = self.errored(failed.clone().chain(&heard.permit.errored));
        let failed = self.ranked(failed.map(|(number, _)| *number));
        if let Some(first) = failed.first() {
            return failed_denial(first, &failed, errors);
        }
        let forbids = self.ranked(heard.forbid.satisfied.iter().copied());
        if let Some(first) = forbids.first() {
            return explicit_denial(first, &forbids, errors);
        }
        let permits = self.ranked(heard.permit.satisfied.iter().copied());
        let conditional = self.ranked(heard.conditional.satisfied.iter().copied());
        let obligations = conditional.iter().filter_map(|policy| obligation(policy)).collect();
        let determining: Vec<&Compiled> = permits.iter().chain(&conditional).copied().collect();
        match (self.question.phase, determining.first()) {
            (Phase::Request, _) if permits.is_empty() => default_deny(errors),
            (Phase::Request | Phase::Response, Some(first)) => {
                allow(Named::of(first), obligations, &determining, errors)
            }
            (Phase::Request | Phase::Response, None) => {
                Decision { errors, ..silence(self.question.phase) }
            }
        }
    }

    /// The policies of these numbers, the one to report first.
    fn ranked(&self, numbers: impl Iterator<Item = usize>) -> Vec<&Compiled> {
        let mut numbers: Vec<usize> = numbers.collect();
        numbers.sort_unstable();
        numbers.dedup();
        let found =
            numbers.into_iter().filter_map(|number| Some((number, self.policies.get(number)?)));
        let mut found: Vec<(usize, &Compiled)> = found.collect();
        // Numbers follow names, so a stable sort leaves equals in the order of their names.
        found.sort_by_key(|(number, policy)| {
            (Reverse(policy.annotations.priority), Reverse(self.slot.fit(*number)))
        });
        found.into_iter().map(|(_, policy)| policy).collect()
    }

    fn errored<'f>(&self, found: impl Iterator<Item = &'f (usize, &'static str)>) -> Vec<Errored> {
        let named = |(number, why): &(usize, &'static str)| {
            let policy = Arc::clone(&self.policies.get(*number)?.id);
            Some(Errored { policy, why })
        };
        let mut errors: Vec<Errored> = found.filter_map(named).collect();
        errors.sort_by(|a, b| a.policy.cmp(&b.policy));
        errors
    }

    fn shadow(&self, decision: &mut Decision) {
        if self.stage.has_no_shadow() {
            return;
        }
        let heard = self.hear_shadow();
        let Ok((permit, forbid)) = heard else {
            let flips = matches!(decision.verdict, Verdict::Allow { .. });
            let policy = POLICY_ERROR.into();
            decision.shadow.push(Shadow { policy, would: Would::Deny, flips });
            return;
        };
        decision.errors.extend(self.errored(permit.errored.iter().chain(&forbid.errored)));
        let failed = forbid.errored.iter().map(|(number, _)| (*number, Would::Deny));
        let satisfied = permit.satisfied.iter().chain(&forbid.satisfied);
        let said =
            satisfied.filter_map(|number| Some((*number, would(self.policies.get(*number)?))));
        for (number, would) in failed.chain(said) {
            let Some(policy) = self.policies.get(number) else { continue };
            let flips = flips(would, &decision.verdict);
            decision.shadow.push(Shadow { policy: Arc::clone(&policy.id), would, flips });
        }
        decision.shadow.sort_by(|a, b| a.policy.cmp(&b.policy));
    }

    fn hear_shadow(&self) -> Result<(Found, Found), Unreadable> {
        let entities = self.entities.as_ref().map_err(Clone::clone)?;
        let request = self.slot.request(&self.asker, self.question, &self.stage.shadow_reads)?;
        let (policies, asker) = (self.policies, &self.asker);
        let permit = self.stage.shadow_permit.evaluate(policies, asker, &request, entities);
        let forbid = self.stage.shadow_forbid.evaluate(policies, asker, &request, entities);
        Ok((permit, forbid))
    }
}

/// No active policy can apply.
fn silence(phase: Phase) -> Decision {
    match phase {
        Phase::Request => default_deny(Vec::new()),
        Phase::Response => allow(Named::builtin(DLP_DEFAULT), Vec::new(), &[], Vec::new()),
    }
}

fn would(policy: &Compiled) -> Would {
    match (policy.effect, &policy.annotations.redact) {
        (Effect::Permit, _) => Would::Allow,
        (Effect::Forbid, None) => Would::Deny,
        (Effect::Forbid, Some(_)) => Would::Oblige,
    }
}

fn flips(would: Would, verdict: &Verdict) -> bool {
    match (would, verdict) {
        (Would::Deny, Verdict::Allow { .. }) => true,
        (Would::Allow, Verdict::Deny { cause, .. }) => *cause == Cause::DefaultDeny,
        (Would::Deny, Verdict::Deny { .. })
        | (Would::Allow, Verdict::Allow { .. })
        | (Would::Oblige, _) => false,
    }
}

fn obligation(policy: &Compiled) -> Option<Obligation> {
    let redact = policy.annotations.redact.as_ref()?;
    Some(Obligation::Redact {
        policy: Named::of(policy),
        direction: redact.direction,
        detectors: redact.detectors.clone(),
    })
}

fn ids(policies: &[&Compiled]) -> Vec<Arc<str>> {
    policies.iter().map(|policy| Arc::clone(&policy.id)).collect()
}

fn decision(verdict: Verdict, determining: Vec<Arc<str>>, errors: Vec<Errored>) -> Decision {
    Decision { verdict, determining, shadow: Vec::new(), errors }
}

fn allow(
    policy: Named,
    obligations: Vec<Obligation>,
    determining: &[&Compiled],
    errors: Vec<Errored>,
) -> Decision {
    decision(Verdict::Allow { policy, obligations }, ids(determining), errors)
}

fn default_deny(errors: Vec<Errored>) -> Decision {
    let verdict = Verdict::Deny {
        policy: Named::builtin(DEFAULT_DENY),
        reason: "No policy permits this call".to_owned(),
        cause: Cause::DefaultDeny,
        reads_dlp: false,
        error: false,
    };
    decision(verdict, vec![DEFAULT_DENY.into()], errors)
}

fn explicit_denial(first: &Compiled, all: &[&Compiled], errors: Vec<Errored>) -> Decision {
    let stated = first.annotations.reason.as_ref().or(first.annotations.title.as_ref());
    let verdict = Verdict::Deny {
        policy: Named::of(first),
        reason: stated.map_or_else(|| format!("Denied by policy `{}`", first.id), Clone::clone),
        cause: Cause::ExplicitDeny,
        reads_dlp: first.reads_dlp(),
        error: false,
    };
    decision(verdict, ids(all), errors)
}

fn failed_denial(first: &Compiled, all: &[&Compiled], errors: Vec<Errored>) -> Decision {
    let why = errors.iter().find(|error| error.policy == first.id).map_or("", |error| error.why);
    let verdict = Verdict::Deny {
        policy: Named::of(first),
        reason: format!("The policy could not be evaluated: {why}"),
        cause: Cause::PolicyError,
        reads_dlp: first.reads_dlp(),
        error: true,
    };
    decision(verdict, ids(all), errors)
}

fn policy_error(reason: String) -> Verdict {
    Verdict::Deny {
        policy: Named::builtin(POLICY_ERROR),
        reason,
        cause: Cause::PolicyError,
        reads_dlp: false,
        error: true,
    }
}

fn unfit_denial(first: &Compiled, all: &[&Compiled]) -> Decision {
    let reason = format!(
        "Policy `{}` may forbid this call but no longer fits what the tool declares",
        first.id
    );
    let why = "it does not fit what the tool declares";
    let errors = all.iter().map(|policy| Errored { policy: Arc::clone(&policy.id), why });
    decision(policy_error(reason), ids(all), errors.collect())
}

fn unreadable_denial(unreadable: &Unreadable) -> Decision {
    let reason = format!("The call cannot be shown to the policies: {unreadable}");
    decision(policy_error(reason), vec![POLICY_ERROR.into()], Vec::new())
}
