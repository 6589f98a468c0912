//! Every snippet of the policy reference is what it says it is.

use super::*;

const REFERENCE: &str = include_str!("../../../../../docs/policy-reference.md");

/// The fenced blocks in this language.
fn blocks(language: &str) -> Vec<&'static str> {
    let fence = format!("```{language}\n");
    let rest = REFERENCE.split(fence.as_str()).skip(1);
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
        Arc::new(Tool::new(&provider, definition, Timestamp::default()).unwrap())
    };
    let tools = [required("stripe:create-refund"), tool("gmail:send", &input)];
    let files = vec![facts_file(&blocks("toml").concat()), file(&blocks("cedar").concat())];

    let set = load_files(files, &tools).unwrap_or_else(|errors| panic!("{errors:#?}"));

    assert_eq!(set.records().iter().filter(|record| !record.builtin).count(), 3);
    for record in set.records() {
        let warnings = &record.validation.warnings;
        assert!(warnings.is_empty(), "{}: {warnings:?}", record.id);
    }
}
