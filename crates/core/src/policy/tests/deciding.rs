//! Parts of a decision beside allow or deny: names, reasons, obligations, shadows.

use super::*;

fn tools() -> Vec<Arc<Capability>> {
    let amount = json!({"amount": {"type": "integer"}});
    let reads = json!({"readOnlyHint": true, "openWorldHint": false});
    vec![
        tool("pay:refund", &amount),
        tool_with("pay:list", &amount, &reads, None),
        tool_with("mail:send", &json!({}), &json!({"destructiveHint": false}), None),
    ]
}

const BASE: &str = r#"
    @id("base") permit (principal, action in Mcp::Action::"*:*", resource);
"#;

/// Loads `BASE` and these, and asks about `pay:refund` with amount 5.
fn refund(more: &str) -> Decision {
    let tools = tools();
    ask(&loaded(&format!("{BASE}{more}"), &tools), &tools[0], &json!({"amount": 5}))
}

#[test]
fn the_reported_name_is_by_priority_then_closeness_then_name() {
    let f = |id: &str, priority: i32, action: &str| {
        format!("@id(\"{id}\") @priority(\"{priority}\") forbid (principal, {action}, resource);")
    };
    let tool = "action == Mcp::Action::\"pay:refund\"";
    let provider = "action in Mcp::Action::\"pay:*\"";
    let table = [
        (vec![f("b", 0, "action"), f("a", 0, "action")], vec!["a", "b"]),
        (vec![f("a", 0, "action"), f("z", 0, provider)], vec!["z", "a"]),
        (vec![f("a", 0, provider), f("z", 0, tool)], vec!["z", "a"]),
        (vec![f("a", 0, tool), f("z", 1, "action")], vec!["z", "a"]),
        (vec![f("a", -1, tool), f("z", 0, "action")], vec!["z", "a"]),
    ];
    for (policies, expected) in table {
        let decision = refund(&policies.join("\n"));

        let found: Vec<&str> = decision.determining.iter().map(|id| &**id).collect();
        assert_eq!(found, expected);
        assert_eq!(said(&decision), format!("deny {}", expected[0]));
    }
}

#[test]
fn a_reason_is_the_annotation_or_the_title_or_the_name() {
    let f = |annotations: &str| {
        reason(&refund(&format!("@id(\"f\") {annotations} forbid (principal, action, resource);")))
    };

    assert_eq!(f("@reason(\"because\") @title(\"T\")"), "because");
    assert_eq!(f("@title(\"T\")"), "T");
    assert_eq!(f(""), "Denied by policy `f`");
}

#[test]
fn an_error_is_reported_in_fixed_words() {
    let decision = refund(
        "@id(\"e\") forbid (principal, action, resource) when \
         { context.input has amount && context.input.amount * 9223372036854775807 > 0 };",
    );

    assert_eq!(reason(&decision), "The policy could not be evaluated: a number became too large");
    assert!(matches!(
        decision.verdict,
        Verdict::Deny { cause: Cause::PolicyError, error: true, .. }
    ));
    assert_eq!(decision.errors.len(), 1);
}

#[test]
fn shadow_policies_are_reported_with_what_they_would_change() {
    let s = |effect: &str, more: &str| {
        format!("@id(\"s\") @mode(\"shadow\") {more} {effect} (principal, action, resource);")
    };
    let forbid = "@id(\"f\") forbid (principal, action, resource);";
    let shadow = |decision: Decision| {
        decision.shadow.into_iter().map(|s| (s.would, s.flips)).collect::<Vec<_>>()
    };
    let tools = tools();
    let alone = |text: &str| ask(&loaded(text, &tools), &tools[0], &json!({}));

    assert_eq!(shadow(refund(&s("forbid", ""))), [(Would::Deny, true)]);
    assert_eq!(shadow(refund(&format!("{}{forbid}", s("forbid", "")))), [(Would::Deny, false)]);
    assert_eq!(shadow(refund(&s("permit", ""))), [(Would::Allow, false)]);
    assert_eq!(shadow(alone(&s("permit", ""))), [(Would::Allow, true)]);
    assert_eq!(shadow(alone(&format!("{}{forbid}", s("permit", "")))), [(Would::Allow, false)]);
    assert_eq!(shadow(refund(&s("forbid", "@redact(\"input: *\")"))), [(Would::Oblige, false)]);
}

#[test]
fn what_only_a_shadow_policy_reads_cannot_deny() {
    let text = format!(
        "{BASE} @id(\"s\") @mode(\"shadow\") forbid (principal, action == Mcp::Action::\"pay:refund\", resource) when {{ context.input has amount && context.input.amount > 1 }};"
    );
    let tools = tools();

    let decision = ask(&loaded(&text, &tools), &tools[0], &json!({"amount": 1e30}));

    assert_eq!(said(&decision), "allow base");
    assert_eq!(&*decision.shadow[0].policy, "policy-error");
    assert!(decision.shadow[0].flips);
}

#[test]
fn obligations_say_what_to_mask() {
    let decision = refund(
        "@id(\"i\") @redact(\"input: iban, email\") forbid (principal, action, resource);
         @id(\"o\") @redact(\"output: *\") forbid (principal, action, resource);",
    );

    let Verdict::Allow { policy, obligations } = decision.verdict else { panic!("denied") };
    assert_eq!(&*policy.id, "base");
    let asking: Vec<_> = obligations.iter().map(|owed| owed.policy().clone()).collect();
    assert!(asking.iter().all(|policy| policy.version.is_some()), "{asking:?}");
    let named = Detectors::Named(["email", "iban"].map(|name| (Arc::from(name), None)).into());
    let redact = |number: usize, direction, detectors| {
        let policy = asking[number].clone();
        Obligation::Redact { policy, direction, detectors }
    };
    let input = redact(0, Direction::Input, named);
    assert_eq!(obligations, [input, redact(1, Direction::Output, Detectors::All(None))]);
    assert_eq!(asking.iter().map(|policy| &*policy.id).collect::<Vec<_>>(), ["i", "o"]);
}

#[test]
fn the_version_of_the_deciding_policy_is_in_its_record() {
    let set = loaded(BASE, &tools());

    let Verdict::Allow { policy, .. } = ask(&set, &tools()[0], &json!({})).verdict else {
        panic!("denied")
    };

    assert_eq!(policy.version, set.find("base").unwrap().version);
}
