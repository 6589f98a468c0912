//! What events keep of a decision.

use super::*;

const READING: &str = r#"@id("base") permit (principal, action, resource)
    when { context.input.amount < 100 };
    @id("note") @mode("shadow") @reason("x") forbid (principal, action, resource)
    when { context.input has note && context.input.note like "*x*" };
    @id("nested") @reason("x") forbid (principal, action, resource)
    when { context.input has to && context.input.to has name && context.input.to.name == "eve" };"#;

fn bank() -> Arc<Tool> {
    tool(
        "bank:pay",
        &json!({
            "amount": {"type": "integer"},
            "note": {"type": "string"},
            "secret": {"type": "string"},
            "to": {"type": "object", "properties": {"name": {"type": "string"}, "iban": {"type": "string"}}},
        }),
    )
}

fn kept(set: &PolicySet, tool: &Tool, input: &Value, found: &[&str]) -> Value {
    let principal = caller(Role::Member);
    let question = question(&principal, tool, input);
    Value::Object(set.inputs(&question, found))
}

fn reading() -> (Arc<Tool>, PolicySet) {
    let text = READING.replace(
        "context.input.amount < 100",
        "context.input has amount && context.input.amount < 100",
    );
    let tool = bank();
    let set = loaded(&text, &[Arc::clone(&tool)]);
    (tool, set)
}

#[test]
fn only_what_a_policy_reads_is_kept() {
    let (tool, set) = reading();
    let input = json!({"amount": 7, "secret": "s3cr3t", "to": {"name": "bob", "iban": "DE00"}});

    let kept = kept(&set, &tool, &input, &[]);

    assert_eq!(kept["input"], json!({"amount": 7, "to": {"name": "bob"}}));
    let paths = ["context.input.amount", "context.input.note", "context.input.to.name"];
    assert_eq!(kept["input_paths"], json!(paths));
    assert_eq!(kept["principal"], json!({"roles": ["member"], "scopes": ["mcps:invoke"]}));
    assert!(!kept.to_string().contains("s3cr3t"));
}

#[test]
fn what_dlp_found_something_in_is_named_and_not_kept() {
    let (tool, set) = reading();
    let input = json!({"amount": 7, "note": "me@example.com", "to": {"name": "bob"}});

    let kept = kept(&set, &tool, &input, &["/note", "/to/iban"]);

    assert_eq!(kept["input"], json!({"amount": 7}));
    assert_eq!(kept["input_withheld"], json!(["context.input.note", "context.input.to"]));
}

#[test]
fn a_member_that_is_too_large_is_named_and_not_kept() {
    let (tool, set) = reading();
    let input = json!({"amount": 7, "note": "n".repeat(5000)});

    let kept = kept(&set, &tool, &input, &[]);

    assert_eq!(kept["input_withheld"], json!(["context.input.note"]));
}

#[test]
fn nothing_of_the_input_is_kept_when_no_policy_reads_it() {
    let tool = bank();
    let set = loaded("@id(\"base\") permit (principal, action, resource);", &[Arc::clone(&tool)]);

    let kept = kept(&set, &tool, &json!({"amount": 7}), &[]);

    assert_eq!(kept.get("input"), None);
}
