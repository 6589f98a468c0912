//! Redaction leaves valid JSON without what was selected.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use proptest::prelude::*;

use super::*;

fn redacted(value: &Value) -> Value {
    let findings = scan(value);
    engine().redact_value(value, &findings, |_| Some(Mask::Placeholder))
}

#[test]
fn matches_become_typed_placeholders() {
    let value = json!({
        "to": "ada@example.org and bob@example.org",
        "card": 4_111_111_111_111_111_u64,
        "ada@example.org": "x",
        "[REDACTED:email]": "taken",
        "note": STANDARD.encode("mail ada@example.org"),
        "half": "é ada\u{200B}@example.org é"
    });

    assert_eq!(
        redacted(&value),
        json!({
            "to": "[REDACTED:email] and [REDACTED:email]",
            "card": "[REDACTED:credit_card]",
            "[REDACTED:email]#2": "x",
            "[REDACTED:email]": "taken",
            "note": "[REDACTED:email]",
            "half": "é [REDACTED:email] é"
        })
    );
}

#[test]
fn keys_and_what_is_below_them_are_both_redacted() {
    let value = json!({ "ada@example.org": { "bob@example.org": ["eve@example.org"] } });

    assert_eq!(
        redacted(&value),
        json!({ "[REDACTED:email]": { "[REDACTED:email]": ["[REDACTED:email]"] } })
    );
}

#[test]
fn the_pieces_of_a_cut_secret_are_all_masked() {
    assert_eq!(
        redacted(&json!(["x glpat-F4k3abcd", "efghijklmnop y", "z"])),
        json!(["x [REDACTED:gitlab_token]", "[REDACTED:gitlab_token] y", "z"])
    );
}

#[test]
fn the_codes_of_a_secret_are_masked_as_wholes() {
    const MASK: &str = "[REDACTED:gitlab_token]";
    let codes: Vec<String> =
        concat!("glpat-", "F4k3abcdefghijklmnop").bytes().map(|code| code.to_string()).collect();
    let masked = |first: &str, codes: usize| {
        let rest = std::iter::repeat_n(MASK, codes);
        Value::from(std::iter::once(first).chain(rest).collect::<Vec<_>>())
    };
    let mut named = codes.clone();
    named[0].insert_str(0, "data: ");
    let mut side_by_side = codes.clone();
    let second = side_by_side.remove(1);
    side_by_side[0].push('\0');
    side_by_side[0].push_str(&second);

    assert_eq!(redacted(&json!(codes)), masked(MASK, codes.len() - 1));
    assert_eq!(redacted(&json!(named)), masked(&format!("data: {MASK}"), codes.len() - 1));
    let escaped: Vec<String> = codes.iter().map(|code| spelled(code, "%")).collect();
    assert_eq!(redacted(&json!(escaped)), masked(MASK, codes.len() - 1));
    let both = MASK.repeat(2);
    assert_eq!(redacted(&json!(side_by_side)), masked(&both, codes.len() - 2));
    let list = format!("of: Ann\ncodes:\n- {}\n", codes.join("\n- "));
    let expected = format!("of: Ann\ncodes:\n- {}\n", vec![MASK; codes.len()].join("\n- "));
    assert_eq!(redacted(&json!({ "text": list })), json!({ "text": expected }));
}

#[test]
fn the_private_members_of_a_key_are_all_masked() {
    let member = |name: &str| STANDARD.encode(name.repeat(40)).replace(['+', '/', '='], "0");
    let names = ["d", "p", "q", "dp", "dq", "qi"];
    let members = names.iter().map(|name| ((*name).to_owned(), json!(member(name))));
    let public = [("kty", "RSA".to_owned()), ("e", "AQAB".to_owned()), ("n", member("n"))];
    let public = public.map(|(name, value)| (name.to_owned(), json!(value)));

    let masked = redacted(&Value::Object(members.chain(public).collect()));

    for name in names {
        assert_eq!(masked[name], json!("[REDACTED:jwk_private_key]"), "{name}");
    }
    assert_eq!((&masked["kty"], &masked["n"]), (&json!("RSA"), &json!(member("n"))));
}

#[test]
fn renamed_siblings_stay_apart_and_in_order() {
    let value = json!({ "a@example.org": 1, "x": 2, "b@example.org": 3, "c@example.org/d": 4 });

    assert_eq!(
        redacted(&value).to_string(),
        r#"{"[REDACTED:email]":1,"x":2,"[REDACTED:email]#2":3,"[REDACTED:email]/d":4}"#
    );
}

#[test]
fn only_what_is_selected_goes() {
    let value = json!({ "a": "ada@example.org", "b": "4111 1111 1111 1111" });
    let findings = scan(&value);

    let redacted = engine().redact_value(&value, &findings, |finding| {
        (finding.detector() == "email").then_some(Mask::Placeholder)
    });

    assert_eq!(redacted, json!({ "a": "[REDACTED:email]", "b": "4111 1111 1111 1111" }));
}

#[test]
fn what_stands_beside_a_masked_value_under_another_name_stays() {
    let token = "Bearer k9fQ2mZx81LwPq7rTvAb02";
    let request = "7f3c2a9e51b04d68a2c19e7f3b5d8c40";
    let encoded = STANDARD.encode("[REDACTED:us_ssn] placed order 525060204");
    for (value, masked) in [
        (
            json!("user 042-33-1871 placed order 525060204 today"),
            json!("user [REDACTED:us_ssn] placed order 525060204 today"),
        ),
        (
            json!("SSN: 536-22-8726\nOrder: 294995462"),
            json!("SSN: [REDACTED:us_ssn]\nOrder: 294995462"),
        ),
        (
            json!("Order: 294995462\nSSN: 536-22-8726"),
            json!("Order: 294995462\nSSN: [REDACTED:us_ssn]"),
        ),
        (
            json!("DOB 1981-04-02, last visit 2025-01-09"),
            json!("DOB [REDACTED:date_of_birth], last visit 2025-01-09"),
        ),
        (
            json!("name,ssn,ref\nAda,536-22-8726,294995462\nBob,219-46-1783,525060204\n"),
            json!(
                "name,ssn,ref\nAda,[REDACTED:us_ssn],294995462\nBob,[REDACTED:us_ssn],525060204\n"
            ),
        ),
        (
            json!("name,birth_date,joined\nAda,1981-04-02,2025-01-09\nBob,1990-11-30,2024-05-01\n"),
            json!(
                "name,birth_date,joined\nAda,[REDACTED:date_of_birth],2025-01-09\nBob,[REDACTED:date_of_birth],2024-05-01\n"
            ),
        ),
        (
            json!([["Authorization", token], ["X-Request-Id", request]]),
            json!([["Authorization", "Bearer [REDACTED:bearer_token]"], ["X-Request-Id", request]]),
        ),
        (
            json!("ssn 536228726, 219461783 and 042331871"),
            json!("ssn [REDACTED:us_ssn], [REDACTED:us_ssn] and [REDACTED:us_ssn]"),
        ),
        (
            json!({ "[REDACTED:us_ssn]": 525_060_204, "note": "[us_ssn:bcdfghjkmnpqrstv] 525060204" }),
            json!({ "[REDACTED:us_ssn]": 525_060_204, "note": "[us_ssn:bcdfghjkmnpqrstv] 525060204" }),
        ),
        (
            json!("ssn 536228726 of R&amp;D placed order 525060204"),
            json!("ssn [REDACTED:us_ssn] of R&amp;D placed order 525060204"),
        ),
        (json!(encoded), json!(encoded)),
    ] {
        let once = redacted(&value);

        assert_eq!(once, masked);
        assert_eq!(redacted(&once), masked);
    }
    let below = json!({ "[REDACTED:us_ssn]": { "mail": "ada@example.org" } });
    assert_eq!(places(&below), ["email /[REDACTED:us_ssn]/mail"]);
}

#[test]
fn what_only_looks_like_a_placeholder_hides_nothing() {
    for (value, found) in [
        (json!(["[REDACTED:ssn_of_ada]: 536228726"]), "us_ssn /0"),
        (json!(["Social Security Number [*]: 536228726"]), "us_ssn /0"),
        (json!(["Social Security Number [**********]: 536228726"]), "us_ssn /0"),
        (json!(["536228726 [*] is my SSN"]), "us_ssn /0"),
        (json!({ "password": "Zq[*]9w!k" }), "password /password"),
        (json!({ "password": "x[REDACTED:correct_horse_battery]" }), "password /password"),
        (json!({ "password": "x[correct:bcdfghjkmnpqrstv]" }), "password /password"),
    ] {
        assert_eq!(places(&value), [found], "{value}");
    }
}

fn sensitive() -> impl Strategy<Value = String> {
    let plain = prop_oneof![
        Just("ada@example.org".to_owned()),
        Just("4111 1111 1111 1111".to_owned()),
        Just("DE89 3704 0044 0532 0130 00".to_owned()),
        Just("536-22-8726".to_owned()),
        Just(concat!("glpat-", "F4k3abcdefghijklmnop").to_owned()),
        Just("postgres://app:n0t-a-real-0ne@db/app".to_owned()),
        "\\PC{0,12}",
    ];
    (plain, 0..4_u8).prop_map(|(text, way)| match way {
        0 => STANDARD.encode(text),
        1 => text.chars().flat_map(|c| [c, '\u{200B}']).collect(),
        2 => spelled(&text, "%"),
        _ => text,
    })
}

fn text() -> impl Strategy<Value = String> {
    prop::collection::vec(prop_oneof![sensitive(), "[ -~]{0,6}"], 0..5).prop_map(|p| p.concat())
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        text().prop_map(Value::String),
        Just(json!(4_111_111_111_111_111_u64)),
        any::<i64>().prop_map(|number| json!(number)),
        Just(Value::Null),
    ];
    // Small values: what two texts beside each other cannot show, more of them seldom do.
    leaf.prop_recursive(3, 8, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            prop::collection::vec((text(), inner), 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(cases(20_000))]

    #[test]
    fn a_redacted_value_has_no_findings_and_is_valid_json(value in json_value()) {
        let findings = scan(&value);
        let redacted = engine().redact_value(&value, &findings, |_| Some(Mask::Placeholder));

        prop_assert!(findings.count() >= findings.iter().count() as u64);
        prop_assert!(scan(&redacted).is_empty(), "{redacted}");
        let again: Value = serde_json::from_str(&redacted.to_string()).unwrap();
        prop_assert_eq!(again, redacted);
    }
}

#[test]
fn what_nobody_sees_is_taken_away_whole() {
    let masked = |text: &str| {
        let value = json!(text);
        let findings = scan(&value);
        let all = |_: &Finding| Some(Mask::Placeholder);
        engine().redact_value(&value, &findings, all).as_str().unwrap().to_owned()
    };
    for (text, shown) in [
        ("\u{1b}[1;31merror\u{1b}[0m: no such file", "error: no such file"),
        ("see \u{1b}]8;;https://x.example\u{1b}\\this\u{1b}]8;;\u{1b}\\", "see this"),
        ("one\u{c}two\u{85}three\u{7}", "one\ntwo\nthree"),
        ("\u{202e}txt.exe\u{202c}", "txt.exe"),
        ("\u{1b}]0;unended", "0;unended"),
        ("glpat-F4k3\u{1b}[0mabcdefghijklmnop", "[REDACTED:gitlab_token]"),
        ("\u{1b}]0;glpat-F4k3abcdefghijklmnop\u{7}", "[REDACTED:gitlab_token]"),
        ("a\u{200b}\u{200b}\u{1}\u{200b}\u{200b}b", "ab"),
    ] {
        assert_eq!(masked(text), shown, "{text:?}");
    }
}
