//! Hypothetical calls, answered one by one.

use std::{collections::BTreeSet, sync::Arc};

use portcullis_core::{
    audit::RecordedDecision,
    call::PinState,
    capability::Capability,
    clock::Timestamp,
    json::Document,
    policy::{Agent, Explain, Identity, PolicySet, Principal},
};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{
    judge::{Case, Judged, Simulator},
    report::{RequestReport, SimulatedCall, SimulatedDlp, SimulatedExpectation, SimulationCounts},
    request::{Ask, Expectation, Options, SimulatedPrincipal},
    sets::Sets,
};
use crate::base::long_work::Stop;

/// End of a report: what is judged after it is left out.
#[derive(Clone, Copy)]
pub(super) struct Until<'a> {
    pub(super) stop: &'a Stop,
    /// The most policies that it names beside its decisions: each call can list them all.
    pub(super) named: usize,
}

/// The report, and the part of it that is recorded.
pub(super) fn answer(
    simulator: &Simulator<'_>,
    asks: &[Ask],
    cases: &[Case],
    sets: &Sets,
    options: &Options,
    until: Until<'_>,
) -> (RequestReport, Value) {
    let started = Instant::now();
    let mut summary = SimulationCounts::default();
    let mut results = Vec::with_capacity(asks.len());
    let mut named = 0_usize;
    for (ask, case) in asks.iter().zip(cases) {
        if until.stop.is_due() || named > until.named {
            break;
        }
        let call = judge(simulator, ask, case, sets, options);
        summary.count(&call);
        named = named.saturating_add(policies_named(&call));
        results.push(call);
    }
    let complete = results.len() == asks.len();
    let duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    let recorded = json!({
        "mode": "requests", "candidate": sets.candidate.version(),
        "baseline": sets.baseline().map(PolicySet::version), "summary": summary,
    });
    let report = RequestReport {
        mode: "requests",
        simulated: true,
        policy_set: sets.reported(),
        results,
        summary,
        complete,
        duration_ms,
    };
    (report, recorded)
}

/// Number of policies that a call names beside its decision.
fn policies_named(call: &SimulatedCall) -> usize {
    let explained = call.explain.as_ref().map_or(0, |explain| {
        let near = explain.near_misses.iter().map(|near| near.permits.len()).sum::<usize>();
        near + explain.candidates.as_ref().map_or(0, Vec::len)
    });
    let shadow = call.shadow.as_ref().map_or(0, Vec::len);
    explained + shadow + call.errors.len() + call.determining_policies.len()
}

fn judge(
    simulator: &Simulator<'_>,
    ask: &Ask,
    case: &Case,
    sets: &Sets,
    options: &Options,
) -> SimulatedCall {
    let began = Instant::now();
    let prepared = simulator.prepare(case);
    let judged = simulator.judge(&sets.candidate, case, &prepared, options.explain);
    let evaluated_us = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
    let alone = |set| simulator.judge(set, case, &prepared, Explain::Decision);
    let before = sets.baseline().map(alone);
    SimulatedCall {
        id: ask.id.clone(),
        tool: ask.tool.clone(),
        baseline: before.as_ref().map(Judged::summarize),
        change: before.map(|before| judged.change_since(&before)),
        expectation: ask.expect.as_ref().map(|expected| expected.compared(&judged)),
        decision: judged.decision,
        cause: judged.cause,
        policy: judged.policy,
        reason: judged.reason,
        determining_policies: judged.determining,
        obligations: judged.obligations,
        dlp: SimulatedDlp { findings: judged.found, action: judged.action },
        shadow: options.include_shadow.then_some(judged.shadow),
        errors: judged.errors,
        violations: judged.violations,
        explain: judged.explanation.filter(|_| options.explain > Explain::Decision),
        evaluated_us,
    }
}

/// A call as it is judged.
pub(super) fn case(
    ask: &Ask,
    principal: Arc<Principal>,
    tool: Arc<Capability>,
    now: Timestamp,
) -> Case {
    let body = json!({ "input": ask.input }).to_string();
    let known = principal.identity();
    let principal = match ask.mfa {
        Some(mfa) if mfa != known.mfa => {
            Arc::new(Principal::new(Identity { mfa, ..known.clone() }))
        }
        Some(_) | None => principal,
    };
    Case {
        principal,
        tool,
        input: Document::of(&ask.input),
        phase: ask.phase,
        output: ask.output.as_ref().map(Document::of),
        time: ask.time.unwrap_or(now),
        ip: ask.ip,
        bytes: u64::try_from(body.len()).unwrap_or(u64::MAX),
        dlp: ask.dlp.clone(),
        dlp_output: ask.dlp_output.clone(),
        pin: PinState::Accepted,
    }
}

/// The principal exactly as the request describes it.
pub(super) fn identity(who: SimulatedPrincipal, org: String) -> Identity {
    let SimulatedPrincipal { kind, id, roles, scopes, groups, claims, agent } = who;
    Identity {
        kind,
        id: id.unwrap_or_else(|| "somebody".to_owned()),
        org,
        roles: roles.unwrap_or_default(),
        scopes: scopes.unwrap_or_default(),
        groups: groups.unwrap_or_default(),
        claims: claims
            .unwrap_or_default()
            .into_iter()
            .map(|(name, values)| (name, values.into_iter().collect()))
            .collect(),
        withheld: BTreeSet::new(),
        mfa: false,
        agent: agent.map(|(id, kind)| Agent { id, kind }),
        client: None,
    }
}

impl Expectation {
    fn compared(&self, judged: &Judged) -> SimulatedExpectation {
        let mut unmet = Vec::new();
        let mut compare = |what: &str, wanted: Option<&str>, got: Option<&str>| {
            if let Some(wanted) = wanted.filter(|wanted| got != Some(*wanted)) {
                let got = got.unwrap_or("none");
                unmet.push(format!("{what}: expected `{wanted}`, got `{got}`"));
            }
        };
        let decision = |decision: Option<RecordedDecision>| decision.map(RecordedDecision::as_str);
        compare("decision", decision(self.decision), decision(judged.decision));
        compare("policy", self.policy.as_deref(), judged.policy.as_deref());
        compare("cause", self.cause.as_deref(), Some(judged.cause.as_str()));
        SimulatedExpectation { met: unmet.is_empty(), unmet }
    }
}
