//! Random calls under random policies, judged as actual and as simulated ones: ruling, denial and the
//! value that would leave are the same.

use std::sync::{Arc, LazyLock};

use portcullis_core::{
    audit::{Capture, RecordedDecision},
    call::{Answer, Asker, CallResult, Cleared, Denial, Limiter, PinState, Ruling, Use},
    capability::{Capability, Definition},
    clock::Timestamp,
    dlp::{Engine, FingerprintKey, Settings, Subject},
    id::PrincipalKind,
    json::Document,
    policy::{
        Catalogue, Explain, Full, Identity, Obligation, Phase, PolicyFile, PolicySet, Principal,
        Rate,
    },
};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::PEM;
use crate::simulation::judge::{Case, Judged, Simulator};

/// Value that passes, with its ruling, or the denial.
type Outcome = Result<(Value, Ruling), Denial>;

struct Unlimited;

impl Limiter for Unlimited {
    fn take(&self, _: &str, _: Rate) -> Result<(), Full> {
        Ok(())
    }

    fn give_back(&self, _: &str, _: Rate) {}
}

static TOOL: LazyLock<Arc<Capability>> = LazyLock::new(|| {
    let text = json!({ "type": "string" });
    let to = json!({ "type": "string", "pattern": "^[a-z@. ]*$" });
    let input = json!({ "n": { "type": "integer" }, "to": to, "text": text });
    let output = json!({ "state": text, "mail": text });
    let definition = Definition {
        output_schema: Some(json!({ "type": "object", "properties": output })),
        annotations: json!({}),
        ..Definition::new("send".parse().unwrap(), json!({ "type": "object", "properties": input }))
    };
    Arc::new(Capability::new(&"mail".parse().unwrap(), definition, Timestamp::default()).unwrap())
});

/// Settings that ship, settings that mask and block more, and settings that scan next to nothing.
static ENGINES: LazyLock<[Engine; 3]> = LazyLock::new(|| {
    let stricter = json!({
        "actions": {
            "input": { "contact": "redact", "secret": "redact" },
            "output": { "contact": "redact", "financial": "block" },
        },
    });
    let narrow = json!({ "limits": { "max_bytes": 40 } });
    let engine = |settings: Value| {
        Engine::new(&serde_json::from_value::<Settings>(settings).unwrap()).unwrap()
    };
    [json!({}), stricter, narrow].map(engine)
});

fn rule() -> impl Strategy<Value = String> {
    let scope = prop::sample::select(vec![
        "principal, action, resource",
        "principal in Mcp::Role::\"member\", action, resource",
        "principal, action == Mcp::Action::\"mail:send\", resource",
    ]);
    let condition = prop::sample::select(vec![
        "",
        "when { context.input has n && context.input.n > 0 }",
        "unless { context.input has n && context.input.n + 9223372036854775806 > 0 }",
        "when { context.dlp.findings.contains(\"email\") }",
        "when { context.dlp.count > 1 || context.dlp.max_severity > 2 }",
        "when { context.request.mfa && context.request.hour_utc < 12 }",
    ]);
    let asked = prop::sample::select(vec![
        "",
        "@redact(\"input: email\")",
        "@redact(\"input: *\")",
        "@redact(\"output: email keep_last=4\")",
        "@redact(\"output: *\")",
        "@rate_limit(\"5/1h per=principal\")",
        "@rate_limit(\"1/1d per=org\") @redact(\"input: financial\")",
        "@notify(\"log\")",
        "@log(\"redacted\")",
        "@require_approval(\"approvers=finance\")",
        "@require_approval(\"approvers=finance hidden=true\")",
    ]);
    (0..3u8, scope, condition, asked, annotations()).prop_map(
        |(kind, scope, condition, asked, annotations)| {
            if kind == 0 {
                format!("{annotations} permit ({scope}) {condition};")
            } else {
                format!("{annotations} {asked} @reason(\"Not now\") forbid ({scope}) {condition};")
            }
        },
    )
}

fn response_rule() -> impl Strategy<Value = String> {
    let condition = prop::sample::select(vec![
        "",
        "when { context has output && context.output has state && context.output.state == \"odd\" }",
        "when { context has dlp_output && context.dlp_output.findings.contains(\"email\") }",
        "when { context.input has to && context.input.to like \"*@*\" }",
        "when { context.dlp.count > 0 }",
    ]);
    let asked = prop::sample::select(vec![
        "", "@redact(\"output: email\")", "@redact(\"output: *\")", "@log(\"off\")",
    ]);
    (condition, asked, annotations()).prop_map(|(condition, asked, annotations)| {
        format!("{annotations} {asked} @phase(\"response\") forbid (principal, action, resource) {condition};")
    })
}

fn annotations() -> impl Strategy<Value = String> {
    (prop::bool::weighted(0.2), -2..3i32).prop_map(|(shadow, priority)| {
        let mode = if shadow { "@mode(\"shadow\")" } else { "" };
        format!("@priority(\"{priority}\") {mode}")
    })
}

/// Mostly with a permit for everything, so that calls come as far as their obligations.
fn policies() -> impl Strategy<Value = String> {
    let rules = prop::collection::vec(rule(), 0..5);
    let responses = prop::collection::vec(response_rule(), 0..3);
    (prop::bool::weighted(0.8), rules, responses).prop_map(|(open, rules, responses)| {
        let open = open.then(|| "permit (principal, action, resource);".to_owned());
        let all = open.into_iter().chain(rules).chain(responses);
        let named = all.enumerate().map(|(number, rule)| format!("@id(\"p{number}\") {rule}"));
        named.collect::<Vec<_>>().join("\n")
    })
}

fn input() -> impl Strategy<Value = Value> {
    let n = prop_oneof![
        9 => prop::sample::select(vec![json!(null), json!(-1), json!(5)]),
        1 => Just(json!("five")),
    ];
    let to = prop_oneof![
        9 => prop::sample::select(vec!["nobody", "ana@acme.com", "a@acme.com b@acme.com"]),
        1 => Just("ANA"),
    ];
    let text = prop_oneof![
        9 => prop::sample::select(vec![
            "hello",
            "card 4111 1111 1111 1111, iban DE89370400440532013000",
            "write to ana@acme.com or bob@acme.com",
            "pay\u{e0041}\u{e007f} it \u{202e}now",
        ]),
        1 => Just(PEM),
    ];
    (n, prop::option::of(to), prop::option::of(text)).prop_map(|(n, to, text)| {
        let mut input = json!({});
        if !n.is_null() {
            input["n"] = n;
        }
        if let Some(to) = to {
            input["to"] = json!(to);
        }
        if let Some(text) = text {
            input["text"] = json!(text);
        }
        input
    })
}

fn output() -> impl Strategy<Value = Option<Value>> {
    prop::sample::select(vec![
        None,
        Some(json!({ "state": "odd", "mail": "bob@acme.com" })),
        Some(json!({ "state": "even", "mail": "ana@acme.com" })),
        Some(json!({ "state": "card 4111 1111 1111 1111", "mail": PEM })),
        Some(json!(["ana@acme.com"])),
    ])
}

/// The call or the answer as an invocation judges it; none when there is no answer to judge.
fn invoked(engine: &Engine, set: &PolicySet, case: &Case) -> Option<Outcome> {
    let asker = Asker {
        principal: &case.principal,
        time: case.time,
        source_ip: case.ip,
        capture: Capture::Off,
    };
    let subject = Subject::of(key()).calling(case.tool.id.as_str());
    let call = || -> Result<Cleared<Use>, Denial> {
        let tool = Arc::clone(&case.tool);
        let input = case.input.clone();
        let call = Use::new(engine, tool, case.pin, input, case.bytes)?;
        let permitted = call.scan(engine, &subject)?.decide(set, engine, asker)?;
        permitted.fulfil(engine, &Unlimited)
    };
    match case.phase {
        Phase::Request => Some(call().map(|it| (it.input().to_value(), it.ruling().clone()))),
        Phase::Response => {
            let call = call().ok()?;
            let answer = || {
                let structured = case.output.clone();
                let answer = Answer::structured(CallResult { structured, ..CallResult::default() });
                let scanned = answer.scan(engine, &subject)?;
                let permitted = scanned.decide(&call, set, engine, asker)?;
                permitted.fulfil(engine, call.tool())
            };
            Some(answer().map(|it| (it.result().root().to_value(), it.ruling().clone())))
        }
    }
}

fn simulated(simulator: &Simulator<'_>, set: &PolicySet, case: &Case) -> (Outcome, Judged) {
    let prepared = simulator.prepare(case);
    let outcome = match case.phase {
        Phase::Request => {
            let cleared = simulator.request(set, case, &prepared);
            cleared.map(|it| (it.input().to_value(), it.ruling().clone()))
        }
        Phase::Response => {
            let cleared = simulator.response(set, case, &prepared);
            cleared.map(|it| (it.result().root().to_value(), it.ruling().clone()))
        }
    };
    (outcome, simulator.judge(set, case, &prepared, Explain::Full))
}

/// Outcome as a simulation shows it: decision, policy, reason and obligations.
fn simulated_ruling(
    outcome: &Outcome,
) -> (Option<RecordedDecision>, Option<&str>, Option<&str>, Vec<Value>) {
    let obligations =
        |ruling: &Ruling| ruling.obligations.iter().map(Obligation::to_json).collect();
    match outcome {
        Ok((_, ruling)) => {
            let policy = Some(ruling.policy.as_str());
            (Some(RecordedDecision::Allow), policy, None, obligations(ruling))
        }
        Err(denial) => {
            let decided = denial.policy().map(|_| (RecordedDecision::Deny, denial.reason.as_str()));
            let owed = denial.ruling().map(obligations).unwrap_or_default();
            (decided.map(|it| it.0), denial.policy(), decided.map(|it| it.1), owed)
        }
    }
}

fn key() -> FingerprintKey {
    FingerprintKey::new([7; 32])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(800))]
    #[test]
    fn a_simulated_call_is_judged_like_an_actual_one(
        text in policies(),
        input in input(),
        output in output(),
        response in prop::bool::weighted(0.7),
        engine in prop_oneof![6 => Just(0usize), 3 => Just(1), 1 => Just(2)],
        member in any::<bool>(),
        mfa in any::<bool>(),
        hour in 0i64..24,
        held in prop::bool::weighted(0.05),
    ) {
        let slug = "mail".parse().unwrap();
        let catalogue = Catalogue::new([(slug, Some(vec![Arc::clone(&TOOL)]))]);
        let engine = &ENGINES[engine];
        let file = PolicyFile { path: "p.cedar".to_owned(), text };
        let set = PolicySet::load(vec![file], &catalogue, &engine.names(), Timestamp::default());
        let set = set.map_err(|errors| TestCaseError::fail(format!("{errors:?}")))?;
        let somebody = Identity::new(PrincipalKind::User, "ana".to_owned(), "org".to_owned());
        let roles = if member { vec!["member".to_owned()] } else { Vec::new() };
        let principal = Arc::new(Principal::new(Identity { roles, mfa, ..somebody }));
        let case = Case {
            principal,
            tool: Arc::clone(&TOOL),
            pin: if held { PinState::Quarantined } else { PinState::Accepted },
            input: Document::of(&input),
            phase: if response { Phase::Response } else { Phase::Request },
            output: output.filter(|_| response).as_ref().map(Document::of),
            time: Timestamp::default().plus_seconds(hour * 3_600),
            ip: None,
            bytes: 100,
            dlp: None,
            dlp_output: None,
        };
        let Some(actual) = invoked(engine, &set, &case) else { return Ok(()) };

        let simulator = Simulator { engine, key: &key(), node: None, org: None };
        let (outcome, judged) = simulated(&simulator, &set, &case);

        prop_assert_eq!(&outcome, &actual, "value, ruling and denial");
        let policy = judged.policy.as_deref();
        let reason = judged.reason.as_deref();
        let told = (judged.decision, policy, reason, judged.obligations.clone());
        prop_assert_eq!(told, simulated_ruling(&actual));
    }
}
