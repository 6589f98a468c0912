//! Values judged as the JSON Schema library judges them, and as `schema/cases.toml` says.

mod cost;

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde::Deserialize;
use serde_json::{Map, json};

use super::*;
use crate::json::{Bounds, Document, parse};

#[expect(clippy::needless_pass_by_value, reason = "schemas are written in place")]
fn schema(schema: Value) -> Result<Schema, SchemaError> {
    Schema::compile(&schema)
}

fn violations(schema: &Schema, value: &Value) -> Vec<Violation> {
    schema.violations(Document::of(value).root())
}

#[test]
fn violations_name_path_and_keyword_and_echo_no_value() {
    let compiled = schema(json!({
        "type": "object",
        "properties": {"limit": {"type": "integer", "maximum": 100}},
        "required": ["name"], "additionalProperties": false,
    }))
    .unwrap();

    let found = violations(&compiled, &json!({"limit": 4711, "hunter2": "hunter3"}));

    let keywords: Vec<_> = found.iter().filter_map(|v| v.keyword.as_deref()).collect();
    assert_eq!(found.len(), 3, "{found:?}");
    assert!(keywords.contains(&"maximum") && keywords.contains(&"required"), "{keywords:?}");
    assert!(!format!("{found:?}").contains("4711"), "{found:?}");
    assert!(!format!("{found:?}").contains("hunter3"), "{found:?}");
}

#[derive(Deserialize)]
struct Cases {
    refused: BTreeMap<String, Vec<String>>,
    law: Vec<Law>,
}

#[derive(Deserialize)]
struct Law {
    says: String,
    schema: String,
    inputs: BTreeMap<String, Vec<String>>,
}

#[test]
fn schemas_and_inputs_are_as_the_cases_say() {
    let Cases { refused, law: laws } = toml::from_str(include_str!("cases.toml")).unwrap();

    for (error, texts) in &refused {
        for text in texts {
            assert_eq!(format!("{:?}", schema(read(text)).unwrap_err()), *error, "{text}");
        }
    }
    for Law { says, schema: text, inputs } in &laws {
        let compiled = schema(read(text)).unwrap();
        for (keyword, inputs) in inputs {
            for input in inputs {
                let found = violations(&compiled, &read(input));
                let broken = found.iter().filter_map(|found| found.keyword.as_deref());
                assert_eq!(broken.collect::<Vec<_>>().join(" "), *keyword, "{says}: {input}");
            }
        }
    }
}

#[test]
fn a_schema_that_is_too_large_is_refused() {
    let huge = json!({"type": "object", "enum": vec![0; MAX_SCHEMA_NODES]});

    assert_eq!(schema(huge).err(), Some(SchemaError::TooLarge));
}

#[test]
fn a_recursive_schema_and_a_backtracking_pattern_stay_bounded() {
    let compiled = schema(json!({
        "type": "object",
        "properties": {"next": {"$ref": "#"}, "s": {"type": "string", "pattern": "^(a+)+$"}},
    }))
    .unwrap();
    let trap = format!("{}!", "a".repeat(5_000));

    assert_eq!(violations(&compiled, &json!({"next": {"next": {"s": trap}}})).len(), 1);
}

/// A schema of an object with one member `x`.
#[expect(clippy::needless_pass_by_value, reason = "schemas are written in place")]
fn of_x(x: Value) -> Schema {
    schema(json!({"type": "object", "properties": {"x": x}})).unwrap()
}

fn read(text: &str) -> Value {
    parse(text.as_bytes(), Bounds::REQUEST).unwrap()
}

/// `{"x": [item, item, …]}`.
fn list(items: impl Iterator<Item = String>) -> Value {
    read(&format!("{{\"x\": [{}]}}", items.collect::<Vec<_>>().join(",")))
}

#[test]
fn messages_of_our_keywords_read_as_those_of_the_library() {
    let parts = json!({
        "a": {"enum": ["a", 1]}, "b": {"enum": [1, 2, 3]}, "c": {"enum": [1, 2, 3, 4]},
        "d": {"const": {"k": 1}}, "e": {"pattern": "^a\\d$"}, "f": {"enum": ["only"]},
        "g": {"minimum": 7.5}, "h": {"exclusiveMinimum": 7}, "i": {"maximum": 1}, "j": {"exclusiveMaximum": 7}, "k": {"multipleOf": 0.3},
    });
    let schema_of_all = json!({"type": "object", "properties": parts});
    let value = json!({"a": 7, "b": 7, "c": 7, "d": 7, "e": "x", "f": 7, "g": 7, "h": 7, "i": 7, "j": 7, "k": 7});
    let library = jsonschema::options()
        .with_pattern_options(PatternOptions::regex())
        .build(&schema_of_all)
        .unwrap();

    let mut ours = violations(&schema(schema_of_all).unwrap(), &value);

    let mut usual: Vec<Violation> =
        library.iter_errors(&value).map(|error| violation(&error)).collect();
    for found in [&mut ours, &mut usual] {
        found.sort_by(|a, b| a.path.cmp(&b.path));
    }
    assert_eq!(ours, usual);
}

#[test]
fn a_value_that_takes_too_long_is_refused_without_a_place() {
    let compiled = of_x(json!({"pattern": "a[ab]{900}c"}));

    let found = violations(&compiled, &json!({"x": "ab".repeat(15_000)}));

    assert_eq!(found.len(), 1);
    assert_eq!((found[0].path.as_str(), &found[0].keyword), ("", &None));
    assert!(found[0].message.contains("too many steps"), "{found:?}");
    let short = json!({"x": format!("a{}c", "ab".repeat(450))});
    assert!(violations(&compiled, &short).is_empty());
    assert_eq!(violations(&compiled, &json!({"x": "ab"}))[0].keyword.as_deref(), Some("pattern"));
}

#[test]
fn recursion_as_deep_as_schema_and_value_allow_fits_the_stack_of_a_thread() {
    let mut defs = Map::new();
    for number in 0..50 {
        let next = json!({"$ref": format!("#/$defs/d{}", number + 1)});
        defs.insert(format!("d{number}"), json!({"allOf": [next]}));
    }
    defs.insert(
        "d50".to_owned(),
        json!({"type": ["object", "integer"], "properties": {"n": {"$ref": "#/$defs/d0"}}}),
    );
    let compiled = schema(json!({
        "type": "object", "$defs": defs, "properties": {"n": {"$ref": "#/$defs/d0"}}}))
    .unwrap();
    let nested = |leaf: &str| read(&format!("{}{leaf}{}", "{\"n\":".repeat(60), "}".repeat(60)));
    let fits = nested("1");
    let breaks = nested("\"x\"");

    let found = std::thread::Builder::new()
        .stack_size(1 << 20)
        .spawn(move || [violations(&compiled, &fits).len(), violations(&compiled, &breaks).len()])
        .unwrap()
        .join();

    assert_eq!(found.unwrap(), [0, 1]);
}

#[test]
fn names_of_a_value_are_cut_in_messages() {
    let compiled =
        schema(json!({"type": "object", "properties": {"a": {}}, "additionalProperties": false}));

    let found = violations(&compiled.unwrap(), &json!({ "é".repeat(3_000): 1 }));

    assert_eq!(found.len(), 1);
    assert!(found[0].message.len() < 1_010 && found[0].message.ends_with('…'), "{found:?}");
}

#[test]
fn plain_values_of_the_largest_size_are_checked_whole() {
    let object = json!({"type": "object", "required": ["id", "name"], "additionalProperties": false, "properties": {
        "id": {"type": "integer", "minimum": 0, "maximum": 1e9}, "name": {"type": "string", "minLength": 1, "maxLength": 200, "pattern": "^[a-z0-9 ]+$"},
        "kind": {"enum": ["a", "b", "c"]}, "at": {"anyOf": [{"type": "null"}, {"type": "string", "format": "date-time"}, {"type": "number"}]},
        "tags": {"type": "array", "uniqueItems": true, "items": {"type": "string"}}}});
    let compiled = of_x(json!({"type": "array", "items": object}));
    let item = |n: usize| {
        format!(
            "{{\"id\":{n},\"name\":\"item {n}\",\"kind\":\"b\",\"at\":1.5,\"tags\":[\"x\",\"y\"]}}"
        )
    };

    assert!(violations(&compiled, &list((0..2_000).map(item))).is_empty());
    let wrong =
        list((0..2_000).map(|n| if n == 1_999 { "{\"id\":1}".to_owned() } else { item(n) }));
    let found = violations(&compiled, &wrong);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(
        (found[0].path.as_str(), found[0].keyword.as_deref()),
        ("/x/1999", Some("required"))
    );
}

/// Values that are often equal to one another.
fn small() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        any::<bool>().prop_map(|it| it.to_string()),
        (0..3_i32, 0..3_u8).prop_map(|(number, zeros)| match zeros {
            0 => number.to_string(),
            1 => format!("{number}.0"),
            _ => format!("{}e-2", number * 100),
        }),
        "[ab]{0,2}".prop_map(|it| json!(it).to_string()),
    ];
    let any = leaf.prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..3)
                .prop_map(|it| format!("[{}]", it.join(","))),
            proptest::collection::btree_map("[ab]", inner, 0..3).prop_map(|members| {
                let all: Vec<String> =
                    members.iter().map(|(name, it)| format!("\"{name}\":{it}")).collect();
                format!("{{{}}}", all.join(","))
            }),
        ]
    });
    any.prop_map(|text| read(&text))
}

fn keyword() -> impl Strategy<Value = Value> {
    prop_oneof![
        proptest::collection::vec(small(), 1..4).prop_map(|values| json!({"enum": values})),
        small().prop_map(|value| json!({"const": value})),
        Just(json!({"uniqueItems": true})),
        Just(json!({"type": "integer"})),
        Just(json!({"type": ["number", "object"], "minimum": 1})),
        Just(json!({"multipleOf": 2})),
        Just(json!({"exclusiveMaximum": 1.5})),
        Just(json!({"pattern": "^a?b$"})),
        Just(json!({"contains": {"type": "integer"}, "minContains": 2})),
        Just(
            json!({"patternProperties": {"^a": {"type": "integer"}}, "additionalProperties": false})
        ),
        Just(json!({"properties": {"a": true}, "unevaluatedProperties": false})),
        Just(json!({"propertyNames": {"const": "a"}, "required": ["a"]})),
        Just(json!({"prefixItems": [{"type": "integer"}], "unevaluatedItems": {"type": "string"}})),
    ]
}

proptest! {
    #[test]
    fn values_fit_as_the_library_says(
        keywords in proptest::collection::vec(keyword(), 1..4), value in small(),
    ) {
        let whole = json!({"type": "object", "properties": {"x": {"anyOf": [{"allOf": keywords}, {"not": keywords[0]}],
            "items": keywords[0], "additionalProperties": {"oneOf": keywords}}}});
        let library = jsonschema::options()
            .with_pattern_options(PatternOptions::regex()).build(&whole).unwrap();
        let value = json!({"x": value});

        let ours = violations(&schema(whole).unwrap(), &value);

        prop_assert_eq!(ours.is_empty(), library.is_valid(&value), "{:?}", ours);
    }
}
