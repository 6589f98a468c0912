//! The parser against texts that are right, wrong and nearly right.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::canonical;

fn strict(text: &str) -> Result<Value, JsonError> {
    parse(text.as_bytes(), Bounds::REQUEST)
}

#[test]
fn duplicate_members_are_refused_wherever_they_stand() {
    for text in [r#"{"a":1,"a":2}"#, r#"[{"b":{"a":1,"\u0061":1}}]"#] {
        let error = strict(text).unwrap_err().to_string();

        assert!(error.starts_with("duplicate member"), "{error}");
    }
}

#[test]
fn numbers_keep_their_text() {
    let texts = "12345678901234567890123456789 1.10 -0 0 -7 1e+300 0.1000 999999999999999999 \
        -999999999999999999 1000000000000000000 9223372036854775808";
    for text in texts.split(' ') {
        assert_eq!(strict(text).unwrap().to_string(), text);
    }
}

#[test]
fn numbers_beyond_a_double_are_refused_by_place_and_stay_readable_where_they_were_recorded() {
    for number in ["1e400", "-1e400", "1e309", "1e-9990", "0e9990", "1e99999999999999999999"] {
        let text = format!("{{\"a\": [1,\n {number}]}}");

        let error = strict(&text).unwrap_err().to_string();

        assert!(error.starts_with("a number beyond the range of a double at line 2"), "{error}");
        assert!(!error.contains("400") && !error.contains("9990"), "{error}");
        assert!(parse(text.as_bytes(), Bounds::UPSTREAM).is_err());
        assert!(parse(text.as_bytes(), Bounds::RECORDED).is_ok(), "{number}");
    }
    for number in ["1e308", "5e-324", "0e0", "1.5E-300", "1e-400"] {
        assert!(strict(number).is_ok(), "{number}");
    }
}

#[test]
fn depth_nodes_and_lengths_are_bounded() {
    let deep = format!("{}{}", "[".repeat(65), "]".repeat(65));
    let fits = format!("{}{}", "[".repeat(64), "]".repeat(64));
    let many = format!("[{}1]", "1,".repeat(20_000));
    let long = "1".repeat(257);

    assert!(strict(&fits).is_ok());
    assert!(strict(&deep).unwrap_err().to_string().starts_with("nested deeper than 64"));
    assert!(strict(&many).unwrap_err().to_string().starts_with("more than 20000"));
    assert!(strict(&long).unwrap_err().to_string().starts_with("longer than 256"));
}

#[test]
fn what_is_not_json_is_refused_without_an_echo() {
    for text in ["", "{", "nul", "{'hunter2':1}", "[1,]", "1 2", "\u{feff}{}", "NaN", "\"\\ud800\""]
    {
        let error = strict(text).unwrap_err().to_string();

        assert!(error.contains("line"), "{error}");
        assert!(!error.contains("hunter2"), "{error}");
    }
    assert!(parse(b"\"\xff\"", Bounds::REQUEST).is_err());
}

#[test]
fn a_member_that_looks_like_the_library_s_own_number_is_no_way_around() {
    for name in ["Number", "RawValue"] {
        for text in ["1", "not a number"] {
            let twin = format!(r#"[{{"$serde_json::private::{name}":"{text}"}}]"#);

            assert!(strict(&twin).unwrap_err().to_string().starts_with("a reserved name"));
            let behind = twin.replace('{', r#"{"a":1,"#);
            // Where members are sorted it stands first.
            let recorded = canonical(&strict(&behind).unwrap());
            let read = parse(recorded.as_bytes(), Bounds::RECORDED).unwrap();
            assert_eq!(canonical(&read), recorded);
        }
    }
}

/// Nearly JSON: pieces of it in any order.
fn almost() -> impl Strategy<Value = Vec<u8>> {
    let pieces: Vec<&[u8]> = vec![
        b"{",
        b"}",
        b"[",
        b"]",
        b",",
        b":",
        b"\"a\"",
        b"\"b\"",
        b"\"\\u00e9\"",
        b"\"\\ud83d\\ude00\"",
        b"\"\\ud800\"",
        b"\"\\ud800\\u0041\"",
        b"\"\\ud800\\ud800\"",
        b"\"\\udc00\"",
        b"\"\\uD83D\\uDE00\\/\\b\\f\\r\\t\"",
        b"\"\\x41\"",
        b"\"\\u00g0\"",
        b"\"more than a word\\\\and \\\"another\\\"\"",
        b"\"more than a word\x1f\"",
        b"\"\xc3\xa9\"",
        b"\"\xc3\"",
        b"\"\n\"",
        b"\"\\n\"",
        b"\"",
        b"\\",
        b"0",
        b"-0",
        b"-",
        b"01",
        b"1",
        b"12",
        b"1.5",
        b"1.",
        b".5",
        b"1e5",
        b"1E+05",
        b"1e+",
        b"+1",
        b"1e",
        b"-1.0e-2",
        b"99999999999999999999",
        b"true",
        b"false",
        b"null",
        b"nul",
        b"NaN",
        b"Infinity",
        b"-Infinity",
        b" ",
        b"\t",
        b"\r\n",
        b"\x0c",
        b"\xef\xbb\xbf",
        b"\x00",
    ];
    proptest::collection::vec(proptest::sample::select(pieces), 0..14)
        .prop_map(|chosen| chosen.concat())
}

/// JSON that is right, members of the same name perhaps included.
fn whole() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        any::<bool>().prop_map(|it| it.to_string()),
        any::<i64>().prop_map(|it| it.to_string()),
        any::<f64>().prop_map(|it| json!(it).to_string()),
        // A colon stands after names only, so that names can be counted.
        "\\PC{0,20}".prop_map(|it| json!(it.replace(':', ";")).to_string()),
    ];
    leaf.prop_recursive(5, 60, 6, |inner| {
        let member = ("[a-d]{1,2}", inner.clone());
        prop_oneof![
            proptest::collection::vec(inner, 0..6).prop_map(|it| format!("[{}]", it.join(", "))),
            proptest::collection::vec(member, 0..6).prop_map(|members| {
                let all: Vec<String> =
                    members.iter().map(|(name, it)| format!("\"{name}\" :{it}")).collect();
                format!("{{{}}}", all.join(","))
            }),
        ]
    })
}

/// Returns true if an object holds two members of the same name, as the tokens of the text say.
fn is_ambiguous(text: &str, value: &Value) -> bool {
    fn members(value: &Value) -> usize {
        match value {
            Value::Array(items) => items.iter().map(members).sum(),
            Value::Object(map) => map.len() + map.values().map(members).sum::<usize>(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
        }
    }
    text.matches("\" :").count() != members(value)
}

proptest! {
    #[test]
    fn what_is_json_is_what_the_usual_parser_takes(bytes in almost()) {
        let usual = serde_json::from_slice::<Value>(&bytes);
        let ours = parse(&bytes, Bounds::REQUEST);

        match (usual, ours) {
            (Ok(usual), Ok(ours)) => prop_assert_eq!(usual.to_string(), ours.to_string()),
            (Err(_), Err(_)) => {}
            (Ok(_), Err(no)) => {
                let no = no.to_string();
                let ours = ["duplicate", "a number beyond the range"];
                prop_assert!(ours.iter().any(|rule| no.starts_with(rule)), "{}", no);
            }
            (Err(no), Ok(_)) => prop_assert!(false, "taken, though {}", no),
        }
    }

    #[test]
    fn whole_texts_are_read_as_the_usual_parser_reads_them(text in whole()) {
        let usual: Value = serde_json::from_str(&text).unwrap();

        match strict(&text) {
            Ok(ours) => {
                prop_assert!(!is_ambiguous(&text, &usual));
                prop_assert_eq!(usual, ours);
            }
            Err(no) => {
                prop_assert!(no.to_string().starts_with("duplicate"), "{}", no);
                prop_assert!(is_ambiguous(&text, &usual));
            }
        }
    }

    #[test]
    fn what_is_taken_is_taken_again(
        digits in "[1-9]\\.[0-9]{240,260}",
        exponent in "(e|E|e-|e\\+)[1-9]{1,6}",
    ) {
        if let Ok(value) = strict(&format!("{digits}{exponent}")) {
            prop_assert!(strict(&canonical(&value)).is_ok());
        }
    }

    #[test]
    fn no_bytes_make_the_parser_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = parse(&bytes, Bounds::REQUEST);
    }
}
