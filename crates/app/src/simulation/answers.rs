//! Hypothetical calls, answered one by one.

use std::{collections::BTreeSet, sync::Arc};

use portcullis_core::{
    call::PinState,
    clock::Timestamp,
    json::Document,
    policy::{Agent, Identity, PolicySet, Principal},
    tool::Tool,
};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{
    judge::{Case, Simulator},
    report::{ComparedCall, RequestReport, SimulatedCall, SimulationCounts},
    request::{Ask, Options, Who},
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
        let call = judge(simulator, ask, case, sets, options).answered(options.include_shadow);
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

fn judge<'a>(
    simulator: &Simulator<'_>,
    ask: &'a Ask,
    case: &Case,
    sets: &Sets,
    options: &Options,
) -> ComparedCall<'a> {
    let began = Instant::now();
    let prepared = simulator.prepare(case);
    let judged = simulator.judge(&sets.candidate, case, &prepared, options.explain);
    let evaluated_us = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
    ComparedCall {
        id: ask.id.as_deref(),
        tool: &ask.tool,
        judged,
        before: sets.baseline().map(|set| simulator.judge(set, case, &prepared, None)),
        expect: ask.expect.as_ref(),
        evaluated_us,
    }
}

/// A call as it is judged.
pub(super) fn case(ask: &Ask, principal: Arc<Principal>, tool: Arc<Tool>, now: Timestamp) -> Case {
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
pub(super) fn identity(who: Who, org: String) -> Identity {
    let Who { kind, id, roles, scopes, groups, claims, agent } = who;
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
