//! Places in which things are found, however they are hidden.

use base64::{
    Engine as _,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};

use super::*;
use crate::catalogue::detector::{Edges, Shape};

const EMAIL: &str = "ada@example.org";

#[test]
fn pointers_name_keys_values_numbers_and_elements() {
    let value = json!({
        "a/b": { "m~n": [null, true, [EMAIL]] },
        EMAIL: 1,
        "card": 4_111_111_111_111_111_u64,
        "": EMAIL
    });

    assert_eq!(
        places(&value),
        ["email /a~1b/m~0n/2/0", "email /[REDACTED:email] (key)", "credit_card /card", "email /"]
    );
    assert_eq!(places(&json!(EMAIL)), ["email "]);
}

#[test]
fn a_number_is_read_as_it_is_written() {
    let value: Value =
        serde_json::from_str(r#"{"cards": [4111111111111111.00, 4.111111111111111e15, 1e3]}"#)
            .unwrap();

    assert_eq!(places(&value), ["credit_card /cards/0", "credit_card /cards/1"]);
}

#[test]
fn disguises_are_seen_through() {
    let hex = spelled(EMAIL, "");
    let percent = spelled(EMAIL, "%");
    let tags: String = EMAIL.chars().filter_map(|c| char::from_u32(0xE0000 + c as u32)).collect();
    for hidden in [
        STANDARD.encode(format!("to: {EMAIL}?")),
        URL_SAFE_NO_PAD.encode(format!("to: {EMAIL}\u{7FF}")),
        STANDARD.encode(STANDARD.encode(STANDARD.encode(EMAIL))),
        STANDARD.encode(&percent),
        format!("data:text/plain;base64,{}", STANDARD.encode(EMAIL)),
        hex,
        percent,
        tags,
        EMAIL.replace('@', "\u{FF20}"),
        EMAIL.replace("example", "exam\u{200B}ple"),
        EMAIL.replace('@', "&#64;"),
        EMAIL.replace('@', "\\u0040"),
        EMAIL.replace('@', "%2540"),
    ] {
        assert_eq!(emails(&json!({ "x": [hidden] })), ["email /x/0"], "{hidden}");
        assert_eq!(emails(&json!({ hidden.as_str(): 1 })).len(), 1, "{hidden} as a key");
    }
}

#[test]
fn a_segment_of_a_path_is_told_from_letters_of_base64() {
    let token = concat!("ghp_", "F4k3F4k3abcdefghijklmnopqrst01234567");
    let key = concat!("AIza", "SyF4k3F4k3abcdefghijklmnopqrst01234");
    for (text, is_found) in [
        (format!("https://h.example/{token}/x"), true),
        (format!("notes://files/2026/{key}/x.md"), true),
        (format!("kJ8sQ2vT/{token}/pW3zRtYx"), true),
        (format!("kJ8sQ2vTb0/{key}/pW3zRtYxL9"), false),
    ] {
        assert_eq!(places(&json!({ "uri": text })).len(), usize::from(is_found), "{text}");
    }
}

fn emails(value: &Value) -> Vec<String> {
    places(value).into_iter().filter(|place| place.starts_with("email ")).collect()
}

#[test]
fn a_secret_cut_in_pieces_is_found_in_each() {
    let head = "glpat-F4k3abcd";
    let tail = "efghijklmnop";
    let encoded = STANDARD.encode(format!("{head}{tail}"));
    let (first, second) = encoded.split_at(17);
    let long = "words ".repeat(400);

    let cut = ["gitlab_token /0", "gitlab_token /1"];
    assert_eq!(places(&json!([head, tail])), cut);
    assert_eq!(places(&json!([first, second])), cut);
    assert_eq!(places(&json!([format!("{long}{head}"), format!("{tail} {long}")])), cut);
    assert_eq!(
        places(&json!({ "content": [{ "type": "text", "text": head }, { "text": tail }] })),
        ["gitlab_token /content/0/text", "gitlab_token /content/1/text"]
    );
    assert_eq!(places(&json!([EMAIL, format!("{head}{tail}"), "efgh"])).len(), 2);
    assert!(places(&json!(["see", "a@b", ".org", "4111", "1111", "1111", "1111"])).is_empty());
}

#[test]
fn a_value_seen_twice_is_counted_once() {
    let findings = scan(&json!(format!("caf\u{E9}\u{200B} {EMAIL} 100%25")));

    assert_eq!(findings.count(), 1);
}

#[test]
fn what_exceeds_a_limit_is_refused() {
    let limits = Limits { max_bytes: 100, max_nodes: 10, max_depth: 3, max_decoded_bytes: 0 };
    let engine = Engine::new(&Settings { limits, ..Settings::default() }).unwrap();
    let refused = |value: Value| engine.scan(&value, &key()).unwrap_err();

    assert_eq!(refused(json!("x".repeat(101))), Unscannable::TooLarge { limit: 100 });
    assert_eq!(refused(json!(vec![0; 11])), Unscannable::TooManyNodes { limit: 10 });
    assert_eq!(refused(json!([[[[1]]]])), Unscannable::TooDeep { limit: 3 });
}

#[test]
fn the_name_of_a_column_is_a_key_to_its_cells() {
    let row = json!(["Ann", 7, "536228726"]);
    let heads = json!(["name", "visits", "ssn"]);
    let objects = json!([{"name": "name"}, {"type": "int", "name": "visits"}, {"name": "ssn"}]);

    for value in [
        json!({"columns": heads, "rows": [row, row]}),
        json!({"rows": [row, row], "fields": objects}),
        json!({"result": {"headers": heads, "data": [row, ["Bob", 8, 536_228_726]]}}),
    ] {
        let found = places(&value);
        assert_eq!(found.len(), 2, "{value}: {found:?}");
        let in_column = |it: &String| it.starts_with("us_ssn ") && it.ends_with("/2");
        assert!(found.iter().all(in_column), "{found:?}");
    }
    assert_eq!(places(&json!({"values": [heads, row]})), ["us_ssn /values/1/2"]);
    assert_eq!(places(&json!([heads, row, row])), ["us_ssn /1/2", "us_ssn /2/2"]);
    let other = json!(["name", "ssn", "visits"]);
    assert!(places(&json!({"columns": other, "rows": [row]})).is_empty());
    assert!(places(&json!({"notes": heads, "rows": [row]})).is_empty());
}

#[test]
fn the_head_of_a_column_of_text_counts_however_far_above() {
    let rows = |delimiter: &str| -> String {
        let row = ["Paris, where else".replace(',', ""), "536228726".to_owned(), "x".to_owned()];
        format!("{}\n", row.join(delimiter)).repeat(40)
    };
    for (delimiter, head) in [
        (",", "city,ssn,note"),
        ("\t", "city\tssn\tnote"),
        (";", "\"city\";\"ssn\";\"note\""),
        (" | ", "city | Social Security Number | note"),
    ] {
        let text = format!("All of them:\n\n{head}\n{}", rows(delimiter));
        let findings = scan(&json!(text));
        assert_eq!((findings.count(), findings.detectors()), (40, vec!["us_ssn"]), "{head}");
    }
    let other = format!("ssn,city,note\n{}", rows(",").replace("Paris", "none; Paris"));
    let near = scan(&json!(other)).count();
    assert!(near < 3, "only what stands near the word: {near}");
    let quoted = format!("city,ssn\n{}", "\"Paris, Texas\",536228726\n".repeat(20));
    assert_eq!(scan(&json!(quoted)).count(), 20);
}

#[test]
fn a_key_also_names_what_is_decoded_below_it() {
    let encoded = STANDARD.encode("it is 536228726 they say");

    assert_eq!(places(&json!({ "ssn": encoded })), ["us_ssn /ssn"]);
    assert!(places(&json!({ "note": encoded })).is_empty());
}

/// Characters that terminals and readers show as nothing.
const UNSEEN: &str = "\u{0} \u{8} \u{b} \u{c} \u{7f} \u{85} \u{9b}0m \u{1b}[0m \u{1b}4 \
    \u{1b}]8;;https://x.example\u{7} \u{1b}Pq#0\u{1b}\\ \u{202a} \u{2069} \u{200e} \u{61c}";

#[test]
fn a_secret_split_by_what_nobody_sees_is_found() {
    let head = "glpat-F4k3abcd";
    let tail = "efghijklmnop";
    for split in UNSEEN.split(' ') {
        let text = format!("a {head}{split}{tail} b");
        let findings = scan(&json!({ "x": text }));
        assert_eq!(findings.detectors(), ["gitlab_token", "hidden_characters"], "{text:?}");
    }
    // A terminal takes the letter with the escape, a reader of plain text does not.
    let text = format!("a {head}\u{1b}{tail} b");
    assert!(places(&json!(text)).contains(&"gitlab_token ".to_owned()));
}

#[test]
fn marks_of_vendors_are_found_behind_a_word() {
    let text = |token: &str| json!(format!("see {token}, please"));
    let mut missed = [Vec::new(), Vec::new()];
    for detector in engine().detectors().filter(|it| it.edges == Edges::Mark) {
        let Shape::Pattern { before: 0, .. } = detector.shape else { continue };
        for example in detector.positives().iter().filter(|it| !it.starts_with('{')) {
            let findings = scan(&json!(example));
            let own = findings.iter().find(|it| it.detector() == detector.name()).unwrap();
            let token = &example[own.ranges().next().unwrap()];
            for (before, missed) in ["MY_", "token"].iter().zip(&mut missed) {
                let found = scan(&text(&format!("{before}{token}")));
                if !found.detectors().contains(&detector.name()) {
                    missed.push(detector.name());
                }
            }
        }
    }
    let [underscore, letter] = missed;
    assert_eq!(underscore, ["mailgun_key"]);
    for name in CLEAR.split(' ') {
        assert!(!letter.contains(&name), "{name}");
    }
}

/// Detectors of marks that no word ends in, or of keys that nothing else looks like.
const CLEAR: &str = "anthropic_api_key aws_access_key digitalocean_token docker_token \
    figma_token github_token gitlab_token google_api_key linear_token npm_token openai_api_key \
    portcullis_token pypi_token sendgrid_api_key shopify_token slack_token stripe_key \
    vault_token";
