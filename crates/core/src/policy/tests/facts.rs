//! Facts that the operator declares about inputs, and their use in policies.

use super::*;

fn mail() -> Arc<Capability> {
    tool(
        "mail:send",
        &json!({
            "to": {"type": "array", "items": {"type": "string"}},
            "link": {}, "price": {}, "name": {"type": "string"},
        }),
    )
}

fn with_facts(facts: &str, rules: &str) -> Result<PolicySet, Vec<PolicyError>> {
    load_files(vec![facts_file(facts), file(rules)], &[mail()])
}

/// The value of a fact for an input, as JSON; null when it cannot be computed.
fn fact(kind: &str, from: &str, input: &Value) -> Value {
    let facts = format!("[facts.\"mail:send\"]\nx = {{ type = '{kind}', from = '''{from}''' }}");
    let rules = "@id(\"p\") permit (principal, action, resource) \
                 when { context.facts has x && context.facts.x == context.facts.x };";
    let set = with_facts(&facts, rules).unwrap_or_else(|errors| panic!("{from}: {errors:#?}"));
    let tool = mail();
    let member = caller(Role::Member);
    let mut kept = set.project(&question(&member, &tool, input)).facts;
    kept.as_object_mut().unwrap().remove("x").unwrap_or(Value::Null)
}

#[test]
fn each_function_gives_what_it_says() {
    let table = [
        ("Set<String>", "$.to[*]", json!({"to": ["b", "a"]}), json!(["b", "a"])),
        ("Set<String>", "$.to[*] | lower", json!({"to": ["ÄB"]}), json!(["äb"])),
        ("Set<String>", "$.to[*]", json!({}), json!([])),
        ("Set<String>", "$.to[*]", json!({"to": null}), json!([])),
        ("Set<String>", "$.to[*]", json!({"to": "a"}), Value::Null),
        ("Set<String>", "$.to[*]", json!({"to": [1]}), Value::Null),
        ("String", "$.name", json!({"name": "x"}), json!("x")),
        ("String", "$.name", json!({}), Value::Null),
        ("String", "$.to[*]", json!({"to": ["x"]}), json!("x")),
        ("String", "$.to[*]", json!({"to": ["x", "y"]}), Value::Null),
        ("Long", "$.to[*] | count", json!({"to": ["x", "y"]}), json!(2)),
        ("Long", "$.to[*] | count", json!({}), json!(0)),
        ("Long", "$.name | len", json!({"name": "äß"}), json!(2)),
        ("Long", "$.to | len", json!({"to": ["x", "y", "z"]}), json!(3)),
        ("Long", "$.price", json!({"price": 7.0}), json!(7)),
        ("Long", "$.price", json!({"price": 7.5}), Value::Null),
        ("Bool", "$.name | matches('^a|b$')", json!({"name": "cb"}), json!(true)),
        ("Bool", "$.name | matches(\"^x\")", json!({"name": "cb"}), json!(false)),
        ("String", "$.link | host", json!({"link": "https://u@A.Example:1/x"}), json!("a.example")),
        ("String", "$.link | host", json!({"link": "https:\\\\a.example\\x"}), json!("a.example")),
        ("String", "$.link | host", json!({"link": "a.example/x"}), Value::Null),
        ("String", "$.link | host", json!({"link": 5}), Value::Null),
        ("String", "$.name | basename", json!({"name": "/a/b.txt"}), json!("b.txt")),
        ("String", "$.name | basename", json!({"name": "a\\b"}), json!("b")),
        ("String", "$.name | basename", json!({"name": "a/"}), Value::Null),
        ("decimal", "$.price | number", json!({"price": 12.5}), json!(12.5)),
        ("decimal", "$.price | number", json!({"price": "12.5"}), json!(12.5)),
        ("decimal", "$.price | number", json!({"price": "12.5 "}), json!(12.5)),
        ("decimal", "$.price | number", json!({"price": "1e3"}), json!(1000)),
        ("decimal", "$.price | number", json!({"price": "x"}), Value::Null),
        // Texts that Python's `Decimal` reads as numbers.
        ("decimal", "$.price | number", json!({"price": "1_000"}), Value::Null),
        ("decimal", "$.price | number", json!({"price": "+5"}), Value::Null),
        ("decimal", "$.price | number", json!({"price": "٣"}), Value::Null),
        ("decimal", "$.price | number", json!({"price": "Infinity"}), Value::Null),
        ("decimal", "$.price | number", json!({"price": 0.12345}), Value::Null),
        (
            "Set<String>",
            "$.link[*].a[\"b c\"]",
            json!({"link": [{"a": {"b c": "v"}}]}),
            json!(["v"]),
        ),
        ("Set<String>", "$.link | select([*].a)", json!({"link": [{"a": "v"}, {}]}), json!(["v"])),
    ];
    for (kind, from, input, expected) in table {
        let found = fact(kind, from, &input);
        let same = if let (Some(a), Some(b)) = (found.as_f64(), expected.as_f64()) {
            (a - b).abs() < f64::EPSILON
        } else {
            found == expected
        };

        assert!(same, "{from} of {input}: {found} instead of {expected}");
    }
}

#[test]
fn an_address_that_could_be_several_has_no_domain() {
    let table = [
        ("ana@acme.com", Some("acme.com")),
        ("Ana A. <ana@acme.com>", Some("acme.com")),
        ("ana@ACME.com.", Some("ACME.com")),
        ("evil@x.com,ana@acme.com", None),
        ("evil@x.com;ana@acme.com", None),
        ("evil@x.com ana@acme.com", None),
        ("evil@x.com, <ana@acme.com>", None),
        ("\"evil@x.com\" <ana@acme.com>", None),
        ("<evil@x.com> <ana@acme.com>", None),
        ("evil@x.com@acme.com", None),
        ("ana@", None),
        ("@acme.com", None),
        ("acme.com", None),
        ("ana@[10.0.0.1]", None),
        ("a\r\nb@acme.com", None),
        ("", None),
    ];
    for (address, expected) in table {
        let found = fact("String", "$.name | email_domain", &json!({"name": address}));

        assert_eq!(found.as_str(), expected, "{address:?}");
    }
}

const INTERNAL: &str = r#"
    [facts."mail:send"]
    domains = { type = "Set<String>", from = "$.to[*] | email_domain | lower" }
"#;
const RULES: &str = r#"
    @id("base") permit (principal, action, resource);
    @id("internal") @reason("Only inside")
    forbid (principal, action == Mcp::Action::"mail:send", resource)
    unless { ["acme.com", "acme.de"].containsAll(context.facts.domains) };
"#;

#[test]
fn facts_that_were_kept_are_taken_as_they_are() {
    let set = with_facts(INTERNAL, RULES).unwrap();
    let tool = mail();
    let member = caller(Role::Member);
    let nothing = json!({});
    let kept = json!({"domains": ["evil.com"]});
    let asked = Question { facts: Some(&kept), ..question(&member, &tool, &nothing) };

    assert_eq!(said(&set.decide(&asked)), "deny internal");
}

#[test]
fn what_is_wrong_in_the_file_is_said_where_it_stands() {
    let fact = |kind: &str, from: &str| {
        format!("[facts.\"mail:send\"]\nx = {{ type = '{kind}', from = '''{from}''' }}")
    };
    let table = [
        ("[fact]".to_owned(), "1:2 syntax"),
        ("[facts.\"mail:send\"]\nx = 5".to_owned(), "2:5 syntax"),
        ("[facts.\"mail:send\"]\nx = { type = \"Long\" }".to_owned(), "2:5 syntax"),
        ("[facts.mail]\nx = { type = \"Long\", from = \"$.a\" }".to_owned(), "2:5 invalid_fact"),
        ("[labels]\na = [\"mail\"]".to_owned(), "2:5 invalid_label"),
        (fact("Text", "$.a"), "2:5 invalid_fact"),
        (fact("Long", "a"), "2:5 invalid_fact"),
        (fact("Long", "$a"), "2:5 invalid_fact"),
        (fact("Long", "$.a[0]"), "2:5 invalid_fact"),
        (fact("Long", "$.a | size"), "2:5 invalid_fact"),
        (fact("Long", "$.a | lower"), "2:5 invalid_fact"),
        (fact("String", "$.a | count | lower"), "2:5 invalid_fact"),
        (fact("Bool", "$.a | matches(x)"), "2:5 invalid_fact"),
        (fact("Bool", "$.a | matches('(')"), "2:5 invalid_fact"),
        (fact("Bool", "$.a | matches('x)"), "2:5 invalid_fact"),
        (fact("Bool", "$.a | matches('(a{1000}){1000}')"), "2:5 invalid_fact"),
    ];
    for (text, expected) in table {
        let errors = with_facts(&text, "").unwrap_err();

        let found: Vec<String> =
            errors.iter().map(|e| format!("{}:{} {}", e.line, e.column, e.code)).collect();
        assert_eq!(found, [expected], "{text}");
        assert!(errors.iter().all(|error| error.path == FACTS_FILE));
    }
}

#[test]
fn an_unknown_fact_and_a_wrong_use_of_one_are_errors_of_the_policy() {
    let rule =
        |when: &str| format!("@id(\"p\") permit (principal, action, resource) when {{ {when} }};");

    let unknown = with_facts(INTERNAL, &rule("context.facts.domain.contains(\"x\")"));
    let wrong = with_facts(INTERNAL, &rule("context.facts.domains == \"x\""));

    assert_eq!(unknown.unwrap_err()[0].code, "unknown_attribute");
    assert_eq!(wrong.unwrap_err()[0].code, "type_mismatch");
}

#[test]
fn another_fact_is_another_set_and_changes_its_tool_alone() {
    let set = with_facts(INTERNAL, RULES).unwrap();
    let changed = INTERNAL.replace(" | lower", "");
    let reload = |text: &str| {
        let files = vec![facts_file(text), file(RULES)];
        set.reload(files, &catalogue(&[mail()]), &DETECTORS, Timestamp::default()).unwrap()
    };

    assert_eq!(reload(INTERNAL).version(), set.version());
    assert!(reload(INTERNAL).is_same_for(&set, &mail()));
    assert_ne!(reload(&changed).version(), set.version());
    let shouting = json!({"to": ["a@ACME.COM"]});
    assert_eq!(said(&ask(&set, &mail(), &shouting)), "allow base");
    assert_eq!(said(&ask(&reload(&changed), &mail(), &shouting)), "deny internal");
}

#[test]
fn a_label_of_no_tool_is_warned_of() {
    let facts = facts_file("[labels]\npci = [\"mail:*\"]");
    let rules = "@id(\"p\") permit (principal, action, resource in Mcp::Label::\"pii\");";

    let set = load_files(vec![facts, file(rules)], &[mail()]).unwrap();

    assert!(set.find("p").unwrap().validation.warnings.join(" ").contains("nobody's"));
}
