//! JSON in texts is read and masked like any other JSON.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;

/// By detector: count, greatest likelihood and fingerprints.
type Sum = BTreeMap<String, (u32, Likelihood, BTreeSet<String>)>;

fn sum(value: &Value) -> Sum {
    let mut sum = Sum::new();
    for finding in &scan(value) {
        let prints = finding.fingerprints().iter().map(|print| format!("{print:?}"));
        let (count, likelihood, known) = sum
            .entry(finding.detector().to_owned())
            .or_insert_with(|| (0, Likelihood::Possible, BTreeSet::new()));
        *count += finding.count();
        *likelihood = finding.likelihood().max(*likelihood);
        known.extend(prints);
    }
    sum
}

fn masked(value: &Value) -> Value {
    engine().redact_value(value, &scan(value), |it| Some(engine().default_mask(it)))
}

/// The JSON that a text holds.
fn inside(text: &Value) -> Value {
    serde_json::from_str(text.as_str().unwrap()).unwrap()
}

/// Gives the JSON in a text back.
type Back = fn(&Value) -> Value;

/// Texts that hold a value, each with how to get it back.
fn texts(value: &Value) -> [(String, Back); 5] {
    let compact = value.to_string();
    let pretty = serde_json::to_string_pretty(value).unwrap();
    let fenced: Back = |text| {
        let inside = text.as_str().unwrap().strip_prefix("Here it is:\n```json\n").unwrap();
        serde_json::from_str(inside.strip_suffix("\n```\n").unwrap()).unwrap()
    };
    [
        (json!(compact).to_string(), |text| inside(&inside(text))),
        (format!("Here it is:\n```json\n{pretty}\n```\n"), fenced),
        (format!(" {pretty}\r\n"), inside),
        (json!({ "text": pretty }).to_string(), |text| inside(&inside(text)["text"])),
        (compact, inside),
    ]
}

fn assert_alike(value: &Value) {
    let expected = (sum(&json!({ "result": value })), masked(&json!({ "result": value })));
    for (text, back) in texts(value) {
        let body = json!({ "result": text });
        assert_eq!(sum(&body), expected.0, "{text}");
        assert_eq!(back(&masked(&body)["result"]), expected.1["result"], "{text}");
    }
}

/// Shapes in which servers answer.
fn shapes() -> Vec<Value> {
    let card = 4_111_111_111_111_111_u64;
    vec![
        json!({ "columns": ["id", "card_number"], "rows": [[7, "4111 1111 1111 1111"], [8, card]] }),
        json!([["name", "ssn"], ["Ann", "536228726"], ["Bob", 536_228_726]]),
        json!([{ "name": "DB_PASSWORD", "value": "hunter" }, { "name": "PORT", "value": "5432" }]),
        json!({ "birthDate": "1979-05-17", "hireDate": "2023-11-05" }),
        json!({ "ada@example.org": 1, "bob@example.org": { "card": card }, "[REDACTED:email]": 2 }),
        json!({ "note": "é \"quoted\" ada@example.org\n", "password": "tab\there" }),
        json!({ "data": ["x glpat-F4k3abcd", "efghijklmnop y"], "part1": "ghp_4k", "part2": "z" }),
        json!({ "q": "YWRhQGV4YW1wbGUub3JnIGlzIHRoZSBhZGRyZXNz", "p": "ada%40example.org" }),
        json!({ "colour": "\u{1b}[31mred\u{1b}[0m", "direction": "\u{202e}txt.exe" }),
        json!({ "users": [{ "id": 1, "email": "ada@example.org", "iban": "DE89370400440532013000" }] }),
    ]
}

#[test]
fn each_shape_is_read_alike_in_a_text() {
    for shape in shapes() {
        assert_alike(&shape);
    }
}

#[test]
fn lines_of_json_are_rows_of_their_own() {
    let rows = [json!({ "ssn": "536228726" }), json!({ "note": "536228726" })];
    let text = format!("{}\n{}\n", rows[0], rows[1]);

    assert_eq!(sum(&json!(text)), sum(&json!(rows)));
    let masked = masked(&json!(text));
    assert_eq!(masked, json!(format!("{{\"ssn\":\"[REDACTED:us_ssn]\"}}\n{}\n", rows[1])));
}

#[test]
fn what_is_not_masked_keeps_its_bytes() {
    let text = "{ \"a\" :\t1.50, \"\\u00e9\": \"\\/x\",\n\"card\": 4111111111111111 }";

    let masked = masked(&json!({ "text": text }));

    let expected = text.replace("4111111111111111", "\"[REDACTED:credit_card]\"");
    assert_eq!(masked["text"], json!(expected));
}

#[test]
fn prose_around_json_is_read_as_prose() {
    let text = "Write to ada@example.org:\n{\"ssn\": \"536228726\"}\nand bob@example.org\n";

    assert_eq!(
        masked(&json!(text)),
        json!("Write to ada@example.org:\n{\"ssn\": \"[REDACTED:us_ssn]\"}\nand bob@example.org\n")
            .as_str()
            .map(|text| text.replace("ada@example.org", "[REDACTED:email]"))
            .map(|text| text.replace("bob@example.org", "[REDACTED:email]"))
            .unwrap()
    );
}

#[test]
fn names_and_values_in_texts_are_members() {
    for (text, expected) in [
        (
            "name=Ann&ssn=536228726&order=536228726",
            "name=Ann&ssn=[REDACTED:us_ssn]&order=536228726",
        ),
        ("ORDER=536228726\nSSN=536228726\n", "ORDER=536228726\nSSN=[REDACTED:us_ssn]\n"),
        (
            "INSERT INTO people (id, ssn) VALUES (536228726, '536228726'), (2, 536228726);",
            "INSERT INTO people (id, ssn) VALUES (536228726, '[REDACTED:us_ssn]'), (2, [REDACTED:us_ssn]);",
        ),
        (
            "[db]\n; of ada@example.org\nuser = app\npassword = summer\n",
            "[db]\n; of [REDACTED:email]\nuser = app\npassword = [REDACTED:password]\n",
        ),
        (
            "ssns: # of ada@example.org\n  of Ann:\n  - 536228726\norders:\n  - 536228726\n",
            "ssns: # of [REDACTED:email]\n  of Ann:\n  - [REDACTED:us_ssn]\norders:\n  - 536228726\n",
        ),
        (
            "env:\n- name: DB_PASSWORD\n  note: '1'\n  value: \"summer\"\n",
            "env:\n- name: DB_PASSWORD\n  note: '1'\n  value: \"[REDACTED:password]\"\n",
        ),
    ] {
        let value = json!({ "text": text });
        let masked = engine().redact_value(&value, &scan(&value), |_| Some(Mask::Placeholder));
        assert_eq!(masked["text"], json!(expected));
    }
}

#[test]
fn lines_of_keys_and_values_are_prose_as_well() {
    let likelihood = |text: &str| scan(&json!(text)).iter().map(Finding::likelihood).max();

    for likely in
        ["Document: credit card\nNumber: 5105105105105100\n", "db_host: db1\ndb_password: summer\n"]
    {
        assert!(likelihood(likely) >= Some(Likelihood::Likely), "{likely}");
    }
    let sentence = "Host: db1\nPassword: ask Bob Miller\n";
    assert!(likelihood(sentence) < Some(Likelihood::Likely), "{sentence}");
    let masked = masked(&json!("Mail: ada@example.org\nName: Ann\n"));
    assert_eq!(masked, json!("Mail: [REDACTED:email]\nName: Ann\n"));
}

#[test]
fn yaml_beyond_the_bounds_is_read_as_prose() {
    let indented = |level: usize| format!("{}k{level}:\n", "  ".repeat(level));
    let deep: String = (0..9).map(indented).collect();
    let deep = json!(format!("{deep}{}mail: ada@example.org\n", "  ".repeat(9)));
    let long = json!("LONG_NAME=ada@example.org\n".repeat(20));

    for (limits, text) in [
        (Limits { max_depth: 8, ..Limits::default() }, deep),
        (Limits { max_bytes: 700, ..Limits::default() }, long),
    ] {
        let engine = Engine::new(&Settings { limits, ..Settings::default() }).unwrap();
        assert_eq!(engine.scan(&text, &key()).unwrap().detectors(), ["email"]);
    }
}

#[test]
fn json_beyond_the_bounds_is_read_as_prose() {
    let limits = Limits { max_nodes: 8, ..Limits::default() };
    let engine = Engine::new(&Settings { limits, ..Settings::default() }).unwrap();
    let many = json!([1, 2, 3, 4, 5, 6, 7, 8, 9, "ada@example.org"]);

    let found = engine.scan(&json!(many.to_string()), &key()).unwrap();

    assert_eq!(found.detectors(), ["email"]);
    let deep = format!("{}\"ada@example.org\"{}", "[".repeat(500), "]".repeat(500));
    assert_eq!(places(&json!(deep)), ["email "]);
}

fn leaf() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!("ada@example.org")),
        Just(json!(4_111_111_111_111_111_u64)),
        Just(json!("536-22-8726")),
        Just(json!("536228726")),
        Just(json!("hunter2xyz")),
        Just(json!(concat!("glpat-", "F4k3abcdefghijklmnop"))),
        Just(json!("1979-05-17")),
        Just(json!("a \"b\"\\ \n é ada@example.org")),
        "[ -~é]{0,6}".prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        Just(Value::Null),
    ]
}

fn name() -> impl Strategy<Value = String> {
    let known = "ssn password name value type key columns rows card birthDate text data";
    let known: Vec<&'static str> = known.split(' ').collect();
    prop_oneof![
        4 => prop::sample::select(known).prop_map(str::to_owned),
        1 => Just("ada@example.org".to_owned()),
        1 => "[a-z\"]{1,3}",
    ]
}

fn any_shape() -> impl Strategy<Value = Value> {
    let any = leaf().prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((name(), inner), 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    });
    any.prop_filter("holds something", |value| {
        value.as_array().is_some_and(|it| !it.is_empty())
            || value.as_object().is_some_and(|it| !it.is_empty())
    })
}

proptest! {
    #![proptest_config(cases(2_000))]

    #[test]
    fn any_shape_is_read_alike_in_a_text(value in any_shape()) {
        assert_alike(&value);
    }
}
