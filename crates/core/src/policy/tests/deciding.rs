//! The order of a decision, the name it reports, and what policies can look at.

use std::collections::BTreeSet;

use super::*;
use crate::trust::Login;

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
fn the_order_of_the_decision() {
    let yes = "when { context.input has amount && context.input.amount == 5 }";
    let no = "when { context.input has amount && context.input.amount == 6 }";
    let overflow =
        "when { context.input has amount && context.input.amount * 9223372036854775807 > 0 }";
    let p = |id: &str, annotations: &str, effect: &str, when: &str| {
        format!("@id(\"{id}\") {annotations} {effect} (principal, action, resource) {when};")
    };
    let table: Vec<(Vec<String>, &str)> = vec![
        (vec![], "allow base"),
        (vec![p("f", "", "forbid", yes)], "deny f"),
        (vec![p("f", "", "forbid", no)], "allow base"),
        // An errored forbid denies by its name, before a true one.
        (vec![p("e", "", "forbid", overflow)], "deny e"),
        (vec![p("e", "", "forbid", overflow), p("a", "", "forbid", yes)], "deny e"),
        (vec![p("e", "@redact(\"input: *\")", "forbid", overflow)], "deny e"),
        // An errored permit is passed over.
        (vec![p("a", "@priority(\"9\")", "permit", overflow)], "allow base"),
        // Obligations come last.
        (vec![p("r", "@redact(\"input: *\")", "forbid", yes)], "allow base"),
        (vec![p("r", "@redact(\"input: *\")", "forbid", yes), p("f", "", "forbid", yes)], "deny f"),
        // Shadow and disabled policies change nothing.
        (vec![p("f", "@mode(\"shadow\")", "forbid", yes)], "allow base"),
        (vec![p("f", "@mode(\"disabled\")", "forbid", yes)], "allow base"),
        (vec![p("f", "@mode(\"shadow\")", "forbid", overflow)], "allow base"),
        // A response policy says nothing about a request.
        (vec![p("f", "@phase(\"response\")", "forbid", yes)], "allow base"),
        // Priority never changes the outcome.
        (vec![p("f", "@priority(\"-9\")", "forbid", yes)], "deny f"),
    ];
    for (policies, expected) in table {
        let text = policies.join("\n");

        assert_eq!(said(&refund(&text)), expected, "{text}");
    }
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
fn groups_of_actions_follow_provider_and_hints() {
    let table = [
        ("*:*", [true, true, true]),
        ("pay:*", [true, true, false]),
        ("mail:*", [false, false, true]),
        ("hint:read_only", [false, true, false]),
        // A tool that does not say is taken for destructive and open.
        ("hint:destructive", [true, false, false]),
        ("hint:open_world", [true, false, true]),
    ];
    for (group, expected) in table {
        let text =
            format!("@id(\"p\") permit (principal, action in Mcp::Action::\"{group}\", resource);");
        let set = loaded(&text, &tools());
        let found = tools()
            .iter()
            .map(|tool| said(&ask(&set, tool, &json!({}))) == "allow p")
            .collect::<Vec<_>>();

        assert_eq!(found, expected, "{group}");
    }
}

#[test]
fn principals_are_in_their_role_scopes_org_and_groups() {
    let table = [
        ("principal", true),
        ("principal is Mcp::User", true),
        ("principal is Mcp::Service", false),
        ("principal in Mcp::Role::\"member\"", true),
        ("principal in Mcp::Role::\"admin\"", false),
        ("principal in Mcp::Scope::\"mcps:invoke\"", true),
        ("principal in Mcp::Scope::\"mcps:read\"", false),
        ("principal in Mcp::Org::\"org_01M754BKTKX1YB8Q05NMW9TP4G\"", true),
        ("principal in Mcp::Org::\"org_01M754BKTKX1YB8Q05NMW9TP4H\"", false),
        ("principal == Mcp::User::\"usr_01M754BKTKX1YB8Q05NMW9TP4G\"", true),
        ("principal == Mcp::Service::\"sa_01M754BKTKX1YB8Q05NMW9TP4G\"", false),
        ("principal in Mcp::Group::\"staff\"", true),
        ("principal in Mcp::Group::\"boss\"", false),
        ("principal is Mcp::User in Mcp::Group::\"staff\"", true),
        ("principal is Mcp::Service in Mcp::Group::\"staff\"", false),
    ];
    let groups = vec!["staff".to_owned()];
    let member = Identity { groups, ..Identity::of(&caller_as(Role::Member)) };
    let tools = tools();
    let member = Principal::new(member);
    for (scope, expected) in table {
        let set = loaded(&format!("@id(\"p\") permit ({scope}, action, resource);"), &tools);
        let decision = ask_as(&member, &set, &tools[0], &json!({}));

        assert_eq!(said(&decision) == "allow p", expected, "{scope}");
    }
}

#[test]
fn resources_are_tools_in_their_provider() {
    let table = [
        ("resource", true),
        ("resource == Mcp::Tool::\"pay:refund\"", true),
        ("resource == Mcp::Tool::\"pay:list\"", false),
        ("resource in Mcp::Provider::\"pay\"", true),
        ("resource in Mcp::Provider::\"mail\"", false),
        ("resource is Mcp::Tool", true),
        ("resource is Mcp::Tool in Mcp::Provider::\"pay\"", true),
    ];
    for (scope, expected) in table {
        let set = loaded(&format!("@id(\"p\") permit (principal, action, {scope});"), &tools());

        let decision = ask(&set, &tools()[0], &json!({}));

        assert_eq!(said(&decision) == "allow p", expected, "{scope}");
    }
}

#[test]
fn the_context_holds_the_request_and_the_findings() {
    let tools = tools();
    let mut caller = caller_as(Role::Member);
    let input = json!({});
    caller.via = Some("sa_01M754BKTKX1YB8Q05NMW9TP4G".parse().unwrap());
    let caller = Principal::of(&caller);
    let asked = Question {
        dlp: DlpFacts { detectors: &["email", "iban"], count: 3, max_severity: 4, media: 0 },
        source_ip: Some("::ffff:10.1.2.3".parse().unwrap()),
        bytes: 77,
        mfa: true,
        ..question(&caller, &tools[0], &input)
    };
    for condition in [
        "context.request.hour_utc == 11",
        "context.request.weekday == 5",
        "context.request.time > datetime(\"2026-11-20T11:02:15Z\")",
        "context.request.time < datetime(\"2026-11-20T11:02:16Z\")",
        "context.request.bytes == 77",
        "context.request.mfa",
        "context.request has ip && context.request.ip.isInRange(ip(\"10.0.0.0/8\"))",
        "!(context.request has session)",
        "context.dlp.findings.contains(\"iban\") && context.dlp.count == 3",
        "context.dlp.max_severity >= 4",
        "context has agent && context.agent.kind == \"service\"",
        "context has agent && context.agent.id like \"sa_*\"",
        "!(context has output) && !(context has dlp_output)",
        "context has input && !(context.input has amount)",
        "principal.id like \"usr_*\"",
        "resource.name == \"refund\" && resource.destructive && !resource.read_only",
    ] {
        let text = format!(
            "@id(\"p\") permit (principal, action == Mcp::Action::\"pay:refund\", resource) when {{ {condition} }};"
        );

        let decision = loaded(&text, &tools).decide(&asked);

        assert_eq!(said(&decision), "allow p", "{condition}: {decision:?}");
    }
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
fn a_result_needs_no_permit_and_a_forbid_suppresses_it() {
    let output = json!({"type": "object", "properties": {"status": {"type": "string"}}});
    let tool = tool_with("pay:status", &json!({}), &json!({}), Some(output));
    let caller = caller(Role::Member);
    let input = json!({});
    let result = json!({"status": "bad"});
    let asked = Question {
        phase: Phase::Response,
        output: Some(node(&result)),
        dlp_output: Some(DlpFacts { detectors: &["email"], count: 1, max_severity: 1, media: 0 }),
        ..question(&caller, &tool, &input)
    };
    let p = |annotations: &str, when: &str| {
        format!(
            "@id(\"r\") @phase(\"response\") {annotations} forbid (principal, action, resource) when {{ {when} }};"
        )
    };
    let bad = "context has output && context.output has status && context.output.status == \"bad\"";
    let found = "context has dlp_output && context.dlp_output.findings.contains(\"email\")";
    let table = [
        (String::new(), "allow dlp-default"),
        (p("", "false"), "allow dlp-default"),
        (p("", bad), "deny r"),
        (p("", found), "deny r"),
        (p("@redact(\"output: email\")", found), "allow r"),
    ];
    for (text, expected) in table {
        let decision = loaded(&text, &[Arc::clone(&tool)]).decide(&asked);

        assert_eq!(said(&decision), expected, "{text}");
    }
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

#[test]
fn policies_see_the_level_and_the_methods_of_the_login_of_a_person() {
    let tool = tool("sample:list", &json!({}));
    let set = loaded(
        "@id(\"gold\") permit (principal, action, resource)
         when { principal has acr && principal.acr == \"urn:acme:gold\" };
         @id(\"key\") permit (principal, action, resource) when { principal.amr.contains(\"hwk\") };",
        std::slice::from_ref(&tool),
    );
    let logged_in = |role: Role, acr: &str, amr: &str| {
        let said = |text: &str| text.split_whitespace().map(str::to_owned).collect();
        let claims = [("acr".to_owned(), said(acr)), ("amr".to_owned(), said(amr))];
        let claims = claims.into_iter().filter(|(_, values): &(_, BTreeSet<_>)| !values.is_empty());
        let login = Login { claims: claims.collect(), ..Login::default() };
        Principal::new(Identity::logged_in(&caller_as(role), &login))
    };
    let input = json!({});
    for (who, wanted) in [
        (logged_in(Role::Member, "urn:acme:gold", ""), "allow gold"),
        (logged_in(Role::Member, "urn:acme:silver", "pwd hwk"), "allow key"),
        (logged_in(Role::Member, "", "pwd"), "deny default-deny"),
        (caller(Role::Member), "deny default-deny"),
        (logged_in(Role::Service(ScopeSet::ALL), "urn:acme:gold", "hwk"), "deny default-deny"),
    ] {
        assert_eq!(said(&ask_as(&who, &set, &tool, &input)), wanted);
    }
}
