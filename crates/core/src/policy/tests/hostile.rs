//! Input and schemas made to mislead a policy.

use super::*;

fn pay() -> Arc<Capability> {
    tool(
        "pay:send",
        &json!({
            "to": {"type": "string"},
            "amount": {"type": "integer"},
            "price": {"type": "number"},
            "tags": {"type": "array", "items": {"type": "string"}},
            "deep": {"type": "object", "properties": {"flag": {"type": "boolean"}}},
            "open": {"anyOf": [{"type": "string"}, {"type": "array"}]},
        }),
    )
}

const RULES: &str = r#"
    @id("base") permit (principal, action, resource);
    @id("limit") forbid (principal, action, resource)
    when { context.input has amount && context.input.amount > 100 };
    @id("price") forbid (principal, action, resource)
    when { context.input has price && context.input.price.greaterThan(decimal("9.5")) };
    @id("to") forbid (principal, action, resource)
    when { context.input has to && context.input.to like "evil*" };
    @id("tags") forbid (principal, action, resource)
    when { context.input has tags && context.input.tags.contains("x") };
    @id("deep") forbid (principal, action, resource)
    when { context.input has deep && context.input.deep has flag && context.input.deep.flag };
"#;

#[test]
fn no_notation_and_no_escape_gets_past_a_forbid() {
    let table = [
        (r#"{"amount": 100}"#, "allow base"),
        (r#"{"amount": 101}"#, "deny limit"),
        (r#"{"amount": 101.0}"#, "deny limit"),
        (r#"{"amount": 1.01e2}"#, "deny limit"),
        (r#"{"amount": 9223372036854775808}"#, "deny policy-error"),
        (r#"{"amount": 18446744073709551615}"#, "deny policy-error"),
        (r#"{"amount": 1e999}"#, "deny policy-error"),
        (r#"{"amount": -1e999}"#, "deny policy-error"),
        (r#"{"amount": null}"#, "allow base"),
        (r#"{"amount": "101"}"#, "deny policy-error"),
        (r#"{"amount": {"__extn": {"fn": "decimal", "arg": "1.0"}}}"#, "deny policy-error"),
        (r#"{"price": 9.5}"#, "allow base"),
        (r#"{"price": 9.5001}"#, "deny price"),
        (r#"{"price": 9.50001}"#, "deny policy-error"),
        (r#"{"price": 1e20}"#, "deny policy-error"),
        (r#"{"to": "evil@x"}"#, "deny to"),
        (r#"{"to": {"__entity": {"type": "Mcp::Role", "id": "admin"}}}"#, "deny policy-error"),
        (r#"{"to": ["evil"]}"#, "deny policy-error"),
        (r#"{"tags": ["a", "x"]}"#, "deny tags"),
        (r#"{"tags": []}"#, "allow base"),
        (r#"{"tags": ["a", null]}"#, "deny policy-error"),
        (r#"{"tags": "x"}"#, "deny policy-error"),
        (r#"{"deep": {"flag": true}}"#, "deny deep"),
        (r#"{"deep": {"flag": true, "more": [[[[1]]]]}}"#, "deny deep"),
        (r#"{"deep": {"flag": null}}"#, "allow base"),
        (r#"{"deep": [true]}"#, "deny policy-error"),
        (r#"{"__entity": {"type": "Mcp::Role", "id": "admin"}}"#, "allow base"),
        (r#"{"other": 1e999, "open": ["evil"]}"#, "allow base"),
        (r"[]", "deny policy-error"),
        (r"null", "deny policy-error"),
    ];
    let set = loaded(RULES, &[pay()]);
    for (input, expected) in table {
        let input: Value = serde_json::from_str(input).unwrap();

        let decision = ask(&set, &pay(), &input);

        assert_eq!(said(&decision), expected, "{input}");
    }
}

#[test]
fn a_value_that_cannot_be_shown_is_named_by_its_path_alone() {
    let set = loaded(RULES, &[pay()]);

    let decision = ask(&set, &pay(), &serde_json::from_str(r#"{"amount": 4711e99}"#).unwrap());

    assert_eq!(
        reason(&decision),
        "The call cannot be shown to the policies: `context.input.amount` is outside the range of \
         a 64-bit integer"
    );
}

#[test]
fn a_member_that_is_read_but_not_declared_in_a_readable_form_is_refused() {
    let other = tool("pay:other", &json!({}));
    let text = r#"
        @id("base") permit (principal, action, resource);
        @id("open") forbid (principal, action, resource)
        when { context.input has open && context.input has amount && context.input.amount > 1 };
    "#;
    let set = loaded(text, &[pay(), Arc::clone(&other)]);

    let absent = ask(&set, &pay(), &json!({"to": "a"}));
    let present = ask(&set, &pay(), &json!({"open": "x"}));
    let undeclared = ask(&set, &other, &json!({"amount": 5}));

    assert_eq!(said(&absent), "allow base");
    assert_eq!(said(&present), "deny policy-error");
    assert_eq!(said(&undeclared), "deny policy-error");
}

#[test]
fn deep_input_is_cut_to_what_is_declared() {
    let mut deep = json!(1);
    for _ in 0..60 {
        deep = json!({"deep": deep});
    }
    let set = loaded(RULES, &[pay()]);

    assert_eq!(said(&ask(&set, &pay(), &deep)), "allow base");
}

#[test]
fn input_as_deep_as_parsers_go_is_judged_by_what_is_declared() {
    let deep = format!("{}{}{}", "{\"deep\":".repeat(126), "{\"flag\":true}", "}".repeat(126));
    let input: Value = serde_json::from_str(&deep).unwrap();
    let beyond = format!("{}1{}", "[".repeat(129), "]".repeat(129));

    assert_eq!(said(&ask(&loaded(RULES, &[pay()]), &pay(), &input)), "allow base");
    assert!(serde_json::from_str::<Value>(&beyond).is_err());
}
