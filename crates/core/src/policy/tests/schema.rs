//! The schema that is printed for editors is one that Cedar's own validator judges policies by.

use cedar_policy::{Schema, ValidationMode, Validator};

use super::*;

/// The errors of Cedar's validator about a text, by the schema that a set prints.
fn errors(policies: &str, set: &PolicySet) -> Vec<String> {
    let printed = set.cedarschema().unwrap();
    let (schema, warnings) = Schema::from_cedarschema_str(&printed).unwrap();
    assert_eq!(warnings.count(), 0);
    let policies = policies.parse::<cedar_policy::PolicySet>().unwrap();
    let result = Validator::new(schema).validate(&policies, ValidationMode::Strict);
    result.validation_errors().map(ToString::to_string).collect()
}

#[test]
fn the_starter_policies_are_valid_by_it() {
    let set = load_files(Vec::new(), &starter::sample()).unwrap();

    assert_eq!(errors(starter::STARTER, &set), Vec::<String>::new());
    let wrong = r#"forbid (principal, action == Mcp::Action::"sample:list_items", resource)
        when { context.input has limit && context.input.limit == "ten" };"#;
    assert_eq!(errors(wrong, &set).len(), 1);
}

#[test]
fn names_kinds_and_facts_are_those_that_policies_are_checked_by() {
    let text = json!({"type": "string"});
    let properties = json!({
        "customer-id": text, "if": text, "a b": {"type": "number"}, "to": {"type": "array", "items": text},
        "nested": {"type": "object", "properties": {"x.y": {"type": "integer"}}, "required": ["x.y"]},
        "any": {"anyOf": [text, {"type": "integer"}]},
    });
    let reads = json!({"readOnlyHint": true});
    let found = json!({"type": "object", "properties": {"found": {"type": "boolean"}}});
    let tools =
        [tool("a:get.it-now", &properties), tool_with("b:x", &json!({}), &reads, Some(found))];
    let facts =
        "[facts.\"a:get.it-now\"]\nrecipients = { type = \"Long\", from = \"$.to[*] | count\" }\n";
    let policies = r#"
        @id("a") @reason("r")
        forbid (principal is Mcp::User, action == Mcp::Action::"a:get.it-now", resource)
        when {
            context.input has "customer-id" && context.input["customer-id"] == "x"
            && context.input has "if" && context.input["if"] like "y*"
            && context.input has "a b" && context.input["a b"].greaterThan(decimal("1.5"))
            && context.input has nested && context.input.nested["x.y"] > 1
            && context.facts.recipients > 3
        };
        @id("b") @reason("r")
        forbid (principal in Mcp::Role::"member", action in Mcp::Action::"hint:read_only", resource)
        when { context has output && context.output has found && context.output.found };
    "#;

    let set = load_files(vec![facts_file(facts), file(policies)], &tools);

    let set = set.unwrap_or_else(|errors| panic!("{errors:#?}"));
    assert_eq!(errors(policies, &set), Vec::<String>::new());
    let json = set.schema();
    assert!(json["Mcp"]["actions"]["a:get.it-now"]["appliesTo"].is_object(), "{json}");
    assert!(Schema::from_json_value(json).is_ok());
}
