//! The time a check takes, whatever the schema and the value.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::super::{MAX_VIOLATIONS, Schema, SchemaError, Violation};
use super::{list, of_x, read, schema};
use crate::json::Document;

/// Processor time of this thread: others on the machine do not count.
fn spent() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec.try_into().unwrap(), now.tv_nsec.try_into().unwrap())
}

/// Violations, and the least processor time of a few looks: what else runs on the machine makes one
/// longer, but none shorter than the work takes.
fn timed(compiled: &Schema, value: &Value) -> (Vec<Violation>, Duration) {
    let look = || {
        let before = spent();
        let found = compiled.violations(Document::of(value).root());
        (spent().saturating_sub(before), found)
    };
    let (mut least, found) = look();
    for _ in 0..4 {
        if least < SHORT {
            break;
        }
        least = least.min(look().0);
    }
    (found, least)
}

/// Time that is short in any case, and need not be measured again.
const SHORT: Duration = Duration::from_millis(500);

/// Time limit: a multiple of what a plain schema takes for a value of 19,000 plain numbers. The
/// machine is shared, and tests are not optimised.
fn patience() -> Duration {
    let plain = list((0..19_000).map(|number| number.to_string()));
    let (found, elapsed) =
        timed(&of_x(json!({"items": {"type": "integer", "minimum": 0}})), &plain);
    assert!(found.is_empty());
    elapsed * 100 + SHORT
}

#[test]
fn numbers_cost_much_the_same_whatever_their_exponent_and_digits() {
    let patience = patience();
    let long = format!("0.{}1", "0".repeat(250));
    let digits = format!("{}.5", "9".repeat(250));
    let literals = ["1e-300", "1.5e300", "1e308", "-5e-324", "123456789012345678901234567.5"];
    for number in literals.into_iter().chain([long.as_str(), digits.as_str()]) {
        let value = list((0..19_000).map(|_| number.to_owned()));
        for keyword in [
            json!({"type": "integer"}),
            json!({"multipleOf": 0.01}),
            json!({"multipleOf": 1e-300}),
            json!({"multipleOf": 3}),
            json!({"minimum": 0.5}),
            json!({"exclusiveMaximum": 1e300}),
            json!({"maximum": 12_345}),
            json!({"enum": [1, 2.5, 1e300]}),
            json!({"const": 7}),
        ] {
            let (found, elapsed) = timed(&of_x(json!({"items": keyword})), &value);

            assert!(elapsed < patience, "{number} {keyword} {elapsed:?} of {patience:?} {found:?}");
        }
    }
}

#[test]
fn a_thousand_values_of_an_enum_cost_no_more_than_one() {
    let patience = patience();
    let values: Vec<Value> = (0..4_900).map(|number| read(&format!("{number}.25"))).collect();
    let value = list((0..3_000).map(|number| format!("{number}.2500e0")));

    let (found, elapsed) = timed(&of_x(json!({"items": {"enum": values}})), &value);

    assert!(found.is_empty() && elapsed < patience, "{elapsed:?} {found:?}");
}

#[test]
fn unique_items_are_found_in_linear_time() {
    let patience = patience();
    let compiled = of_x(json!({"uniqueItems": true}));
    let fraction = "1".repeat(200);
    for item in [
        |number: usize, long: &str| format!("{number}.{long}"),
        |number: usize, long: &str| format!("\"{long}{number}\""),
        |number: usize, long: &str| format!("{{\"a\": \"{long}\", \"b\": [{number}]}}"),
    ] {
        let value = list((0..3_000).map(|number| item(number, &fraction)));
        let again = list((0..3_000).map(|number| item(number % 2_999, &fraction)));

        let (found, elapsed) = timed(&compiled, &value);
        assert!(found.is_empty() && elapsed < patience, "{elapsed:?} {found:?}");
        let (found, elapsed) = timed(&compiled, &again);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].message, "the value has non-unique elements");
        assert!(elapsed < patience, "{elapsed:?}");
    }
}

/// Schemas that make the validator look again and again, each with a value for it.
#[expect(clippy::too_many_lines, reason = "a table")]
fn traps() -> Vec<(&'static str, Value, Value)> {
    let nested = |depth: usize, leaf: &str| {
        read(&format!("{{\"x\":{}{leaf}{}}}", "{\"n\":".repeat(depth), "}".repeat(depth)))
    };
    let twice = json!([{"properties": {"n": {"$ref": "#/$defs/t"}}}, {"properties": {"n": {"$ref": "#/$defs/t"}}}]);
    let doubling = |keyword: &str| json!({"type": "object", "properties": {"x": {"$ref": "#/$defs/t"}}, "$defs": {"t": {keyword: twice}}});
    let left_over = json!({"type": "object", "properties": {"x": {"$ref": "#/$defs/t"}}, "$defs": {"t": {
        "anyOf": [{"properties": {"n": {"$ref": "#/$defs/t"}}}, {"required": ["zz"]}],
        "unevaluatedProperties": {"type": "integer"}}}});
    let alternatives: Vec<Value> =
        (0..900).map(|n| json!({"properties": {"n": {"items": {"const": n}}}})).collect();
    let names: Map<String, Value> = (0..60).map(|n| (format!("^(a|b)+{n}c"), json!({}))).collect();
    let members: Vec<String> =
        (0..15_000).map(|n| format!("\"{n}{}\":1", "ab".repeat(20))).collect();
    let many = read(&format!("{{\"x\":{{{}}}}}", members.join(",")));
    let numbers = list((0..19_000).map(|n| n.to_string()));
    let of = |x: Value| json!({"type": "object", "properties": {"x": x}});
    vec![
        ("allOf", doubling("allOf"), nested(60, "{\"n\":1}")),
        ("anyOf", doubling("anyOf"), nested(60, "{\"n\":1}")),
        ("oneOf", doubling("oneOf"), nested(60, "{\"n\":1}")),
        ("unevaluated", left_over, nested(60, "{\"n\":\"s\"}")),
        (
            "alternatives",
            of(json!({"anyOf": alternatives})),
            read(&format!("{{\"x\":{{\"n\":[{}]}}}}", vec!["1000"; 19_000].join(","))),
        ),
        (
            "contains",
            of(
                json!({"allOf": (0..900).map(|n| json!({"contains": {"const": -n - 1}, "minContains": 0, "maxContains": 3})).collect::<Vec<_>>()}),
            ),
            numbers.clone(),
        ),
        (
            "pattern properties",
            of(json!({"patternProperties": names, "additionalProperties": false})),
            many.clone(),
        ),
        (
            "property names",
            of(
                json!({"propertyNames": {"allOf": (0..200).map(|n| json!({"pattern": format!("^{n}(ab)*$")})).collect::<Vec<_>>()}}),
            ),
            many.clone(),
        ),
        (
            "required",
            of(
                json!({"items": {"required": (0..4_000).map(|n| format!("m{n}")).collect::<Vec<_>>()}}),
            ),
            list((0..9_000).map(|_| "{}".to_owned())),
        ),
        ("nothing", of(json!({"items": {"allOf": vec![json!({}); 1_900]}})), numbers.clone()),
        (
            "dependent",
            of(
                json!({"dependentSchemas": (0..900).map(|n| (format!("{n}abababababababababababababababababababab"), json!({"unevaluatedProperties": {"type": "string"}}))).collect::<Map<_, _>>()}),
            ),
            many,
        ),
        (
            "slow pattern",
            of(json!({"items": {"pattern": "a[ab]{900}c"}})),
            list((0..30).map(|_| format!("\"{}\"", "ab".repeat(15_000)))),
        ),
        (
            "unique at each level",
            of(
                json!({"items": {"items": {"uniqueItems": true}, "uniqueItems": true}, "uniqueItems": true}),
            ),
            list((0..900).map(|n| format!("[[{n},\"{}\"]]", "a".repeat(900)))),
        ),
    ]
}

#[test]
fn no_schema_makes_a_check_take_more_than_its_steps() {
    let patience = patience();
    for (name, trap, value) in traps() {
        let compiled = match schema(trap) {
            Ok(compiled) => compiled,
            // Refused when it is listed.
            Err(error) => {
                assert!(
                    matches!(error, SchemaError::Unbounded | SchemaError::PatternsTooLarge),
                    "{name} {error}"
                );
                continue;
            }
        };

        let (found, elapsed) = timed(&compiled, &value);

        assert!(elapsed < patience, "{name} took {elapsed:?} of {patience:?}");
        let size: usize = found.iter().map(|it| it.path.len() + it.message.len()).sum();
        assert!(found.len() <= MAX_VIOLATIONS && size < 50_000, "{name} {size}");
    }
}
