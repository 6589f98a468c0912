//! Every snippet of the policy reference, and the policy of the page on approvals, is what it says it is.

use super::*;

const REFERENCE: &str = include_str!("../../../../../docs/policy-reference.md");
const APPROVALS: &str = include_str!("../../../../../docs/approvals.md");

/// The fenced blocks of a page in this language.
fn blocks(page: &'static str, language: &str) -> Vec<&'static str> {
    let fence = format!("```{language}\n");
    let rest = page.split(fence.as_str()).skip(1);
    rest.map(|block| block.split("```").next().unwrap()).collect()
}

/// A tool with these properties that requires its amount.
fn with_amount(id: &str, properties: &Value) -> Arc<Tool> {
    let mut definition = tool(id, properties).definition.clone();
    definition.input_schema["required"] = json!(["amount"]);
    let provider: ProviderSlug = id.split_once(':').unwrap().0.parse().unwrap();
    Arc::new(Tool::new(&provider, definition, Timestamp::default()).unwrap())
}

#[test]
fn every_snippet_of_the_reference_loads_without_a_warning() {
    let text = json!({"type": "string"});
    let input = json!({
        "to": {"type": "array", "items": text}, "subject": text, "amount": {"type": "integer"},
    });
    let tools = [with_amount("stripe:create-refund", &input), tool("gmail:send", &input)];
    let [facts, policies] = ["toml", "cedar"].map(|language| blocks(REFERENCE, language).concat());
    let files = vec![facts_file(&facts), file(&policies)];

    let set = load_files(files, &tools).unwrap_or_else(|errors| panic!("{errors:#?}"));

    assert_eq!(set.records().iter().filter(|record| !record.builtin).count(), 3);
    for record in set.records() {
        let warnings = &record.validation.warnings;
        assert!(warnings.is_empty(), "{}: {warnings:?}", record.id);
    }
}

#[test]
fn the_policy_of_the_page_on_approvals_looks_at_amounts_of_either_type() {
    let page = blocks(APPROVALS, "cedar").concat();
    let whole = page.replace(".greaterThan(decimal(\"1000.0\"))", " > 1000");
    assert!(whole != page && APPROVALS.contains("`context.input.amount > 1000`"), "{page}");
    for (policies, kind) in [(page, "number"), (whole, "integer")] {
        let pay = with_amount("bank:pay", &json!({"amount": {"type": kind}}));
        let set = loaded(
            &format!("{policies}\n@id(\"all\") permit (principal, action, resource);"),
            &[Arc::clone(&pay)],
        );

        let owed = |amount: u32| match ask(&set, &pay, &json!({"amount": amount})).verdict {
            Verdict::Allow { obligations, .. } => obligations.len(),
            Verdict::Deny { policy, .. } => panic!("{}", policy.id),
        };

        assert_eq!((owed(1000), owed(1001)), (0, 1), "{kind}");
    }
}
