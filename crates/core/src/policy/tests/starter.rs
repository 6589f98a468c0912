//! The starter policies load without warnings and decide as they say.

use super::*;

pub(super) const STARTER: &str = include_str!("../../../../gateway/assets/starter.cedar");

pub(super) fn sample() -> Vec<Arc<Capability>> {
    let reads = json!({"readOnlyHint": true});
    let writes = json!({"readOnlyHint": false, "destructiveHint": false});
    let text = json!({"type": "string"});
    let echo = json!({"seconds": {"type": "number"}, "text": text});
    vec![
        tool_with("sample:list_items", &json!({"limit": {"type": "integer"}}), &reads, None),
        tool_with("sample:get_customer", &json!({"id": text}), &reads, None),
        tool_with("sample:create_note", &json!({"title": text, "text": text}), &writes, None),
        tool_with("sample:slow_echo", &echo, &writes, None),
        tool_with("sample:always_fails", &json!({}), &writes, None),
    ]
}

#[test]
fn the_starter_set_loads_without_a_warning() {
    let set = loaded(STARTER, &sample());

    for record in set.records() {
        assert_eq!(record.validation.warnings, Vec::<String>::new(), "{}", record.id);
        assert!(record.validation.valid);
    }
}

#[test]
fn the_starter_set_loads_before_the_sample_server_told_its_tools() {
    let unknown = Catalogue::new([("sample".parse().unwrap(), None)]);
    let files = vec![file(STARTER)];

    assert!(PolicySet::load(files, &unknown, &DETECTORS, Timestamp::default()).is_ok());
}

#[test]
fn everybody_may_use_every_sample_tool() {
    let tools = sample();
    let set = loaded(STARTER, &sample());
    for role in [Role::Member, Role::Service(ScopeSet::ALL)] {
        for tool in &tools {
            let decision = set.decide(&question(&caller(role), tool, &json!({})));

            assert!(matches!(decision.verdict, Verdict::Allow { .. }), "{role:?} {decision:?}");
        }
    }
}

#[test]
fn a_long_list_is_refused_with_the_reason() {
    let tools = sample();
    let set = loaded(STARTER, &sample());

    let short = ask(&set, &tools[0], &json!({"limit": 100}));
    let long = ask(&set, &tools[0], &json!({"limit": 101}));

    assert_eq!(said(&short), "allow read-only-tools");
    assert_eq!(said(&long), "deny no-bulk-listing");
    assert!(reason(&long).starts_with("Lists are limited"));
}

#[test]
fn a_secret_in_the_input_is_refused() {
    let tools = sample();
    let set = loaded(STARTER, &sample());
    let caller = caller(Role::Member);
    let input = json!({"title": "t", "text": "x"});
    let found = DlpFacts { detectors: &["private_key"], count: 1, max_severity: 9, media: 0 };

    let decision = set.decide(&Question { dlp: found, ..question(&caller, &tools[2], &input) });

    assert_eq!(said(&decision), "deny no-secrets-out");
    assert!(matches!(decision.verdict, Verdict::Deny { reads_dlp: true, .. }));
}

#[test]
fn contact_data_in_a_result_is_masked() {
    let tools = sample();
    let set = loaded(STARTER, &sample());
    let caller = caller(Role::Member);
    let input = json!({"id": "c1"});
    let found = DlpFacts { detectors: &["email"], count: 1, max_severity: 3, media: 0 };
    let asked = question(&caller, &tools[1], &input);

    let decision =
        set.decide(&Question { phase: Phase::Response, dlp_output: Some(found), ..asked });

    let Verdict::Allow { policy, obligations } = decision.verdict else { panic!("denied") };
    let [Obligation::Redact { direction, detectors, .. }] = obligations.as_slice() else {
        panic!("{obligations:?}")
    };
    let wanted = ["credit_card", "email"].map(|name| (Arc::from(name), None)).into();
    assert_eq!(&*policy.id, "mask-contact-data");
    assert_eq!((*direction, detectors), (Direction::Output, &Detectors::Named(wanted)));
}
