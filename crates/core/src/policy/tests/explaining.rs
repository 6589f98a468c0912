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

fn pay() -> Arc<Tool> {
    tool("pay:send", &json!({"amount": {"type": "integer"}, "country": {"type": "string"}}))
}

fn examined(text: &str, input: &Value, known: &Known, explain: Explain) -> Examined {
    let (tool, member) = (pay(), caller(Role::Member));
    loaded(text, &[Arc::clone(&tool)]).examine(&question(&member, &tool, input), known, explain)
}

fn everything(input: &Value, explain: Explain) -> Examined {
    examined(RULES, input, &Known::everything(), explain)
}

#[test]
fn the_decision_is_the_one_that_is_made_without_asking_why() {
    let (tool, member) = (pay(), caller(Role::Member));
    let set = loaded(RULES, &[Arc::clone(&tool)]);
    for amount in [100, 450, 501] {
        let input = json!({"amount": amount});
        let plain = set.decide(&question(&member, &tool, &input));
        for explain in [Explain::Determining, Explain::Candidates, Explain::Full] {
            assert_eq!(everything(&input, explain).decision, plain, "{amount} {explain:?}");
        }
    }
}

#[test]
fn candidates_are_those_whose_scope_matches() {
    let examined = everything(&json!({"amount": 450}), Explain::Candidates);

    let found: Vec<_> = examined.candidates.iter().map(|c| (&*c.policy, c.outcome)).collect();
    assert_eq!(
        found,
        [("huge", Outcome::True), ("night", Outcome::False), ("small", Outcome::True)]
    );
    assert_eq!(examined.considered, 3);
    assert!(examined.candidates.iter().all(|candidate| candidate.clauses.is_empty()));
}

#[test]
fn in_full_each_clause_is_shown_with_what_it_said() {
    let examined = everything(&json!({"amount": 501}), Explain::Full);

    let small = examined.candidates.iter().find(|c| &*c.policy == "small").unwrap();
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

#[test]
fn a_denial_by_default_tells_which_permit_nearly_applied() {
    let examined = everything(&json!({"amount": 501}), Explain::Candidates);

    let misses: Vec<_> =
        examined.near_misses.iter().map(|m| (&*m.policy, m.clause.as_str(), m.outcome)).collect();
    assert_eq!(misses, [("small", "context.input.amount <= 500", Outcome::False)]);
    assert!(everything(&json!({"amount": 5}), Explain::Full).near_misses.is_empty());
}

#[test]
fn what_is_not_known_makes_a_decision_indeterminate_only_if_it_could_turn_it() {
    let denied = "@id(\"f\") @reason(\"r\") forbid (principal, action, resource);";
    let forbid = "@id(\"f\") @reason(\"r\") forbid (principal, action, resource) \
                  when { context.input has country && context.input.country == \"yy\" };";
    let permit = "@id(\"p\") permit (principal, action, resource);";
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
        (
            format!("{permit}{}", forbid.replace("@reason", "@mode(\"shadow\") @reason")),
            &amount,
            "allow p",
            &[],
        ),
    ];
    for (text, known, expected, could_turn) in table {
        let known = Known::only(known.iter().copied());

        let examined = examined(&text, &json!({"amount": 5}), &known, Explain::Determining);

        assert_eq!(said(&examined.decision), expected, "{text}");
        let names = examined.indeterminate.map_or_else(Vec::new, |it| it.policies);
        assert_eq!(names.iter().map(|id| &**id).collect::<Vec<_>>(), could_turn, "{text}");
    }
}

#[test]
fn a_clause_that_does_not_hold_settles_what_comes_after_it() {
    let text = "@id(\"p\") permit (principal, action, resource) \
                when { context.input has amount && context.input.amount < 0 && \
                       context.input has country };";
    let known = Known::only(["context.input.amount"]);

    let examined = examined(text, &json!({"amount": 5}), &known, Explain::Determining);

    assert_eq!(examined.indeterminate, None);
}

#[test]
fn what_is_missing_is_named() {
    let known = Known::only(["context.input.amount"]);

    let examined = examined(RULES, &json!({"amount": 5}), &known, Explain::Determining);

    let indeterminate = examined.indeterminate.unwrap();
    assert_eq!(indeterminate.missing, ["context.input.country"]);
}

#[test]
fn a_call_is_judged_again_from_what_was_kept_of_it() {
    let (tool, member) = (pay(), caller(Role::Member));
    let set = loaded(RULES, &[Arc::clone(&tool)]);
    let input = json!({"amount": 5, "note": "not read", "more": {"a": 1}});
    let asked = question(&member, &tool, &input);

    let kept = set.project(&asked);

    assert_eq!(kept.input, json!({"amount": 5}));
    assert_eq!(
        *kept.paths,
        ["context.input.amount", "context.input.country", "context.request.hour_utc"]
    );
    let known = Known::only(kept.paths.iter().map(String::as_str));
    let again = Question { input: node(&kept.input), ..asked };
    let examined = set.examine(&again, &known, Explain::Determining);
    assert_eq!(examined.decision, set.decide(&asked));
    assert_eq!(examined.indeterminate, None);
}
