//! Explanations of decisions, also when not all of the call is known.

use super::*;

const RULES: &str = r#"
    @id("small") permit (principal in Mcp::Role::"member", action, resource)
    when { context.input has amount && context.input.amount <= 500 }
    unless { context.input has country && context.input.country == "xx" };
    @id("admin") permit (principal in Mcp::Role::"admin", action, resource);
    @id("night") @reason("r") forbid (principal, action, resource)
    when { context.request.hour_utc < 6 };
    @id("huge") @mode("shadow") @reason("r") forbid (principal, action, resource)
    when { context.input has amount && context.input.amount > 400 };
"#;

fn pay() -> Arc<Capability> {
    tool("pay:send", &json!({"amount": {"type": "integer"}, "country": {"type": "string"}}))
}

/// Does something with a set of these rules, and with a member's call of `pay:send`.
fn with_call<R>(text: &str, input: &Value, act: impl FnOnce(&PolicySet, &Question<'_>) -> R) -> R {
    let tool = pay();
    act(&loaded(text, &[Arc::clone(&tool)]), &question(&caller(Role::Member), &tool, input))
}

fn explained(text: &str, input: &Value, known: &KnownContext, explain: Explain) -> Explanation {
    with_call(text, input, |set, asked| set.explain(asked, known, explain, None))
}

fn everything(input: &Value, explain: Explain) -> Explanation {
    explained(RULES, input, &KnownContext::everything(), explain)
}

#[test]
fn the_decision_is_the_one_that_is_made_without_asking_why() {
    for amount in [100, 450, 501] {
        let input = json!({"amount": amount});
        let plain = with_call(RULES, &input, PolicySet::decide);
        for explain in [Explain::Decision, Explain::Determining, Explain::Candidates, Explain::Full]
        {
            assert_eq!(everything(&input, explain).decision, plain, "{amount} {explain:?}");
        }
    }
}

#[test]
fn candidates_are_those_whose_scope_matches() {
    let explained = everything(&json!({"amount": 450}), Explain::Candidates);

    let candidates = explained.candidates.unwrap();
    let found: Vec<_> = candidates.iter().map(|c| (&*c.policy, c.outcome)).collect();
    assert_eq!(
        found,
        [("huge", Outcome::True), ("night", Outcome::False), ("small", Outcome::True)]
    );
    assert_eq!(explained.considered, Some(3));
    assert!(candidates.iter().all(|candidate| candidate.clauses.is_empty()));
}

#[test]
fn in_full_each_clause_is_shown_with_what_it_said() {
    let explained = everything(&json!({"amount": 501}), Explain::Full);

    let small = explained.candidates.iter().flatten().find(|c| &*c.policy == "small").unwrap();
    let clauses: Vec<_> = small.clauses.iter().map(|c| (c.clause.as_str(), c.outcome)).collect();
    assert_eq!(
        clauses,
        [
            ("context.input has amount", Outcome::True),
            ("context.input.amount <= 500", Outcome::False),
            ("!(context.input has country && context.input.country == \"xx\")", Outcome::True),
        ]
    );
    assert_eq!(small.outcome, Outcome::False);
}

/// Near misses of a call, as `part: policies`, those that an org is told of.
fn misses(text: &str, input: &Value, org: Option<&OrgView>) -> Vec<String> {
    let tools = [pay(), tool("pay:list", &json!({})), tool("crm:find", &json!({}))];
    let member = caller(Role::Member);
    let set = loaded(text, &tools);
    let asked = question(&member, &tools[0], input);
    let named = |miss: &NearMiss| {
        let names: Vec<&str> = miss.permits.iter().map(|permit| &*permit.policy).collect();
        format!("{:?} +{}: {}", miss.differs, miss.more, names.join(" "))
    };
    let known = KnownContext::everything();
    let explained = set.explain(&asked, &known, Explain::Determining, org);
    explained.near_misses.iter().map(named).collect()
}

#[test]
fn a_denial_by_default_tells_which_permit_nearly_applied_and_the_clause_that_failed() {
    let misses = everything(&json!({"amount": 501}), Explain::Determining).near_misses;

    let small = &misses[0];
    assert_eq!(small.differs, MissedPart::Condition);
    assert_eq!(small.principal, "principal in Mcp::Role::\"member\"");
    assert_eq!((small.action.as_str(), small.resource.as_str()), ("action", "resource"));
    let clause = small.permits[0].clause.as_deref();
    assert_eq!(clause, Some("context.input.amount <= 500"));
    assert_eq!(small.permits[0].outcome, Some(Outcome::False));
    assert_eq!(
        (misses[1].differs, &*misses[1].permits[0].policy),
        (MissedPart::Principal, "admin")
    );
}

#[test]
fn near_misses_stand_by_their_heads_and_the_nearest_come_first() {
    let admins = |n: usize| {
        format!(
            "@id(\"a{n}\") permit (principal in Mcp::Role::\"admin\", \
             action in Mcp::Action::\"pay:*\", resource);"
        )
    };
    let text = (0..7).map(admins).collect::<String>()
        + r#"@id("all-tools") permit (principal is Mcp::Service, action, resource);
            @id("list") permit (principal, action == Mcp::Action::"pay:list", resource);
            @id("find") permit (principal in Mcp::Role::"member", action == Mcp::Action::"crm:find", resource);
            @id("anybody") permit (principal, action == Mcp::Action::"crm:find", resource);
            @id("off") @mode("disabled") permit (principal, action, resource);
            @id("no") @reason("r") forbid (principal, action, resource) when { context.request.mfa };
            @id("small") permit (principal, action, resource) when { context.input has amount };"#;

    let all = misses(&text, &json!({}), None);
    let org = OrgView::new(format!("org_{ULID}").parse().unwrap(), [], ["crm".to_owned()]);
    let some = misses(&text, &json!({}), Some(&org));

    let nearest =
        ["Condition +0: small", "Principal +2: a0 a1 a2 a3 a4", "Principal +0: all-tools"];
    assert_eq!(all[..3], nearest);
    assert_eq!(all[3..], ["Action +0: list", "Action +0: find"]);
    assert_eq!(some[..3], nearest);
    assert_eq!(some[3..], ["Action +0: list"]);
}

#[test]
fn a_clause_is_shown_as_it_is_written_whatever_the_library_makes_of_it() {
    let text = "@id(\"p\") permit (principal, action, resource) \
                when { context has input && context.input has amount && context.input.amount > 5 } \
                when { !(context.input.amount >= 7) && context.input.amount != 8 } \
                unless { context.input.amount >= 9 } unless { !context.request.mfa } \
                unless { principal is Mcp::User in Mcp::Group::\"x\" } \
                when { principal is Mcp::User in Mcp::Role::\"member\" };";

    let explained =
        explained(text, &json!({"amount": 6}), &KnownContext::everything(), Explain::Values);

    let clauses = &explained.candidates.unwrap()[0].clauses;
    let told: Vec<_> = clauses.iter().map(|it| (it.clause.as_str(), it.outcome)).collect();
    assert_eq!(
        told[2..],
        [
            ("context.input.amount > 5", Outcome::True),
            ("!(context.input.amount >= 7)", Outcome::True),
            ("context.input.amount != 8", Outcome::True),
            ("!(context.input.amount >= 9)", Outcome::True),
            ("!(!context.request.mfa)", Outcome::False),
            ("!(principal is Mcp::User in Mcp::Group::\"x\")", Outcome::True),
            ("principal is Mcp::User in Mcp::Role::\"member\"", Outcome::True),
        ]
    );
    assert_eq!((&clauses[0].values, clauses[1].values.len()), (&vec![], 1));
}

#[test]
fn each_clause_tells_the_values_that_it_reads_as_far_as_they_are_known() {
    let known = KnownContext::only(["context.input.amount"]);

    let explained = explained(RULES, &json!({"amount": 501}), &known, Explain::Values);

    let small = explained.candidates.iter().flatten().find(|c| &*c.policy == "small").unwrap();
    assert_eq!(
        json!(small.clauses[1].values),
        json!([{"path": "context.input.amount", "value": 501}])
    );
    assert_eq!((small.clauses[2].outcome, &small.clauses[2].values), (Outcome::Unknown, &vec![]));
    let night = explained.candidates.iter().flatten().find(|c| &*c.policy == "night").unwrap();
    assert_eq!(night.clauses[0].values[0].value, Some(json!(11)));
}

/// Permit that is suggested for a call of a tool with these properties.
fn suggested(properties: &Value, input: &Value, known: &KnownContext) -> (Arc<Capability>, String) {
    let tool = tool("pay:send", properties);
    let member = caller(Role::Member);
    let asked = question(&member, &tool, input);
    let permit = suggested_permit(&tool, &asked, known, "evt_X").expect("a permit");
    (tool, permit)
}

#[test]
fn a_suggested_permit_allows_the_call_and_no_other() {
    let text = json!({"type": "string"});
    let list = json!({"type": "array", "items": text});
    let to = json!({
        "type": "object", "properties": {"name": text, "na me": text}, "required": ["name"],
    });
    let properties = json!({
        "amount": {"type": "integer"}, "price": {"type": "number"}, "urgent": {"type": "boolean"},
        "note": text, "in": text, "tags": list, "none": list, "to": to, "absent": text,
    });
    let input = json!({
        "amount": -5, "price": 1.5, "urgent": true, "note": "a \"b\"\n\u{202e}", "in": "x",
        "tags": ["a", "b"], "none": [], "to": {"name": "bob", "na me": "é"},
    });

    let (tool, permit) = suggested(&properties, &input, &KnownContext::everything());

    let set = loaded(&permit, &[Arc::clone(&tool)]);
    assert_eq!(said(&ask(&set, &tool, &input)), "allow suggested-evt_x");
    assert!(!permit.contains('\u{202e}') && permit.contains("exactly this input"), "{permit}");
    let others = [
        ("amount", json!(5)),
        ("price", json!(1.25)),
        ("urgent", json!(false)),
        ("note", json!("")),
        ("in", json!("y")),
        ("tags", json!(["a"])),
        ("none", json!(["a"])),
        ("absent", json!("z")),
        ("to", json!({"name": "eve", "na me": "é"})),
        ("to", json!({"name": "bob"})),
    ];
    for (name, value) in others {
        let mut other = input.clone();
        other[name] = value;
        assert_eq!(said(&ask(&set, &tool, &other)), "deny default-deny", "{other}\n{permit}");
    }
    let admin = caller(Role::Admin);
    let stranger = Principal::new(Identity { id: "usr_2".to_owned(), ..admin.identity().clone() });
    assert_eq!(said(&set.decide(&question(&stranger, &tool, &input))), "deny default-deny");
}

#[test]
fn a_suggested_permit_says_what_it_leaves_open() {
    let properties = json!({
        "amount": {"type": "integer"}, "note": {"type": "string"}, "odd": {"type": ["string", "integer"]},
    });
    let input = json!({"amount": 5, "odd": 1});
    let known = KnownContext::only(["context.input.amount"]);

    let (tool, permit) = suggested(&properties, &input, &known);

    assert!(permit.contains("// context.input.note, context.input.odd.\n"), "{permit}");
    let set = loaded(&permit, &[Arc::clone(&tool)]);
    assert_eq!(said(&ask(&set, &tool, &json!({"amount": 5}))), "allow suggested-evt_x");
    assert_eq!(said(&ask(&set, &tool, &json!({"amount": 6}))), "deny default-deny");
}

#[test]
fn what_is_not_known_makes_a_decision_indeterminate_only_if_it_could_turn_it() {
    let denied = "@id(\"f\") @reason(\"r\") forbid (principal, action, resource);";
    let forbid = "@id(\"f\") @reason(\"r\") forbid (principal, action, resource) \
                  when { context.input has country && context.input.country == \"yy\" };";
    let permit = "@id(\"p\") permit (principal, action, resource);";
    let shadow = forbid.replace("@reason", "@mode(\"shadow\") @reason");
    let amount = ["context.input.amount"];
    let nothing: [&str; 0] = [];
    let all = ["context.input.amount", "context.input.country"];
    let table: Vec<(String, &[&str], &str, &[&str])> = vec![
        (RULES.to_owned(), &all, "allow small", &[]),
        // The permit depends on the country.
        (RULES.to_owned(), &amount, "deny default-deny", &["small"]),
        (RULES.to_owned(), &nothing, "deny default-deny", &["small"]),
        // Whatever the country, a forbid stands.
        (format!("{RULES}{denied}"), &nothing, "deny f", &[]),
        // Whatever the country, there is a permit.
        (format!("{RULES}{permit}"), &amount, "allow p", &[]),
        (format!("{permit}{forbid}"), &amount, "allow p", &["f"]),
        (forbid.to_owned(), &amount, "deny default-deny", &[]),
        // Only what shadow policies read is unknown.
        (format!("{permit}{shadow}"), &amount, "allow p", &[]),
    ];
    for (text, known, expected, could_turn) in table {
        let known = KnownContext::only(known.iter().copied());

        let explained = explained(&text, &json!({"amount": 5}), &known, Explain::Determining);

        assert_eq!(said(&explained.decision), expected, "{text}");
        let names = explained.indeterminate.map_or_else(Vec::new, |it| it.policies);
        assert_eq!(names.iter().map(|id| &**id).collect::<Vec<_>>(), could_turn, "{text}");
    }
}

#[test]
fn a_clause_that_does_not_hold_settles_what_comes_after_it() {
    let text = "@id(\"p\") permit (principal, action, resource) \
                when { context.input has amount && context.input.amount < 0 && \
                       context.input has country };";
    let known = KnownContext::only(["context.input.amount"]);

    let explained = explained(text, &json!({"amount": 5}), &known, Explain::Determining);

    assert_eq!(explained.indeterminate, None);
}

#[test]
fn what_is_missing_is_named() {
    let known = KnownContext::only(["context.input.amount"]);

    let explained = explained(RULES, &json!({"amount": 5}), &known, Explain::Determining);

    let indeterminate = explained.indeterminate.unwrap();
    assert_eq!(indeterminate.missing, ["context.input.country"]);
}

#[test]
fn a_call_is_judged_again_from_what_was_kept_of_it() {
    let tool = pay();
    let member = caller(Role::Member);
    let set = loaded(RULES, &[Arc::clone(&tool)]);
    let input = json!({"amount": 5, "note": "not read", "more": {"a": 1}});
    let asked = question(&member, &tool, &input);

    let kept = set.project(&asked);

    assert_eq!(kept.input, json!({"amount": 5}));
    assert_eq!(
        *kept.paths,
        ["context.input.amount", "context.input.country", "context.request.hour_utc"]
    );
    let known = KnownContext::only(kept.paths.iter().map(String::as_str));
    let again = Question { input: node(&kept.input), ..asked };
    let explained = set.explain(&again, &known, Explain::Decision, None);
    assert_eq!(explained.decision, set.decide(&asked));
    assert_eq!(explained.indeterminate, None);
}
