//! Every snippet of the policy reference, and of the page on approvals, is what it says it is.

use super::*;

const REFERENCE: &str = include_str!("../../../../../docs/policy-reference.md");

const APPROVALS: &str = include_str!("../../../../../docs/approvals.md");

/// The fenced blocks of a page in this language.
fn blocks(page: &'static str, language: &str) -> Vec<&'static str> {
    let fence = format!("```{language}\n");
    let rest = page.split(fence.as_str()).skip(1);
    rest.map(|block| block.split("```").next().unwrap()).collect()
}

#[test]
fn every_snippet_of_the_reference_loads_without_a_warning() {
    let text = json!({"type": "string"});
    let input = json!({
        "to": {"type": "array", "items": text}, "subject": text, "amount": {"type": "integer"},
    });
    let required = |id: &str| {
        let mut definition = tool(id, &input).definition.clone();
        definition.input_schema["required"] = json!(["amount"]);
        let provider: ProviderSlug = id.split_once(':').unwrap().0.parse().unwrap();
        Arc::new(Capability::new(&provider, definition, Timestamp::default()).unwrap())
    };
    let tools = [required("stripe:create-refund"), tool("gmail:send", &input)];
    let files = vec![
        facts_file(&blocks(REFERENCE, "toml").concat()),
        file(&blocks(REFERENCE, "cedar").concat()),
    ];

    let set = load_files(files, &tools).unwrap_or_else(|errors| panic!("{errors:#?}"));

    assert_eq!(set.records().iter().filter(|record| !record.builtin).count(), 3);
    for record in set.records() {
        let warnings = &record.validation.warnings;
        assert!(warnings.is_empty(), "{}: {warnings:?}", record.id);
    }
}

#[test]
fn the_policies_of_the_page_on_approvals_load_for_a_tool_with_an_amount() {
    let mut definition =
        tool("bank:pay", &json!({"amount": {"type": "number"}})).definition.clone();
    definition.input_schema["required"] = json!(["amount"]);
    let provider: ProviderSlug = "bank".parse().unwrap();
    let pay = Arc::new(Capability::new(&provider, definition, Timestamp::default()).unwrap());

    let set = loaded(&blocks(APPROVALS, "cedar").concat(), &[pay]);

    let asked = set.records().iter().filter(|it| !it.builtin).map(|it| &it.validation.warnings);
    assert_eq!(asked.collect::<Vec<_>>(), [&Vec::<String>::new()]);
}
