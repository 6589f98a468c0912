//! Documents: their values by name, their text, and texts that are wrong.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::{Bounds, ObjectWriter, canonical, testing::any_json};

fn read(text: &str) -> Document {
    Document::parse(text.as_bytes(), Bounds::REQUEST).unwrap()
}

#[test]
fn values_are_found_by_name_and_keep_their_text() {
    let text = r#" {"a" : [1, 2.50, {"b": "x\ny", "é": null}], "A": true, "": {}} "#;

    let document = read(text);

    let root = document.root();
    assert_eq!(root.raw(), text.trim());
    let items: Vec<Node<'_>> = root.get("a").unwrap().items().unwrap().collect();
    assert_eq!(items[1].number(), Some("2.50"));
    assert_eq!(items[2].get("b").and_then(Node::text), Some("x\ny"));
    assert!(items[2].get("é").unwrap().is_null());
    assert_eq!(root.get("A").unwrap().as_bool(), Some(true));
    assert!(root.get("").unwrap().is_empty());
    assert!(root.get("b").is_none() && items[0].get("a").is_none());
    assert_eq!(root.len(), 3);
}

#[test]
fn many_members_are_found_and_no_name_stands_twice() {
    let members: Vec<String> = (0..300).map(|n| format!("\"n{}\":{n}", n * 7 % 300)).collect();
    let text = format!("{{{}}}", members.join(","));

    let document = read(&text);

    for n in [0, 1, 150, 299] {
        let found = document.root().get(&format!("n{}", n * 7 % 300));
        assert_eq!(found.and_then(Node::number), Some(n.to_string().as_str()));
    }
    assert!(document.root().get("n300").is_none());
    let twice = format!("{{{},\"n0\":1}}", members.join(","));
    let error = Document::parse(twice.as_bytes(), Bounds::REQUEST).unwrap_err();
    assert!(error.to_string().starts_with("duplicate member"), "{error}");
}

#[test]
fn a_text_in_canonical_form_is_borrowed_and_another_is_written() {
    for text in [r#"{"a":[1,-2.5e+7,"é"],"b":{}}"#, "[]", "\"x\"", "1e-3", "[[],[0]]"] {
        assert!(matches!(read(text).root().canonical(), Cow::Borrowed(_)), "{text}");
    }
    for (text, form) in [
        (r#"{"b":1,"a":2}"#, r#"{"a":2,"b":1}"#),
        (r#"{"d":"é","c" :1,"b": "x","\u0061":[]}"#, r#"{"a":[],"b":"x","c":1,"d":"é"}"#),
        (r#"{"a": 1}"#, r#"{"a":1}"#),
        (r#"{"a":1 }"#, r#"{"a":1}"#),
        (r#"{ "a":1}"#, r#"{"a":1}"#),
        (r#"{"a" :1}"#, r#"{"a":1}"#),
        ("[1 ,2]", "[1,2]"),
        ("[1,2 ]", "[1,2]"),
        ("[ ]", "[]"),
        ("{ }", "{}"),
        (r#"["\u0061"]"#, r#"["a"]"#),
        (r#"{"\u0061":1}"#, r#"{"a":1}"#),
        ("[1E5]", "[1e+5]"),
        ("[1e5]", "[1e+5]"),
    ] {
        assert_eq!(read(text).root().canonical(), form, "{text}");
    }
}

#[test]
fn a_part_of_a_document_is_a_document() {
    let document = read(r#"{"input": {"b": "\"", "a": [1]}}"#);

    let part = document.member("input").unwrap();

    assert_eq!(part.root().raw(), r#"{"b": "\"", "a": [1]}"#);
    assert_eq!(part.root().to_value(), json!({"a": [1], "b": "\""}));
    assert_eq!(part.root().line(), part.root().raw());
    assert_eq!(format!("{part:?}"), "JSON of 21 bytes");
}

#[test]
fn leaves_are_told_with_their_places() {
    let text = r#" {"a" : ["x\ny", 2.50, null], "\u00e9": true} "#;

    let document = read(text);

    let leaves: Vec<_> = document
        .leaves()
        .map(|leaf| (leaf.text.to_owned(), &text[leaf.range], leaf.is_escaped, leaf.is_number))
        .collect();
    let expected = [
        ("a", "a", false, false),
        ("x\ny", r"x\ny", true, false),
        ("2.50", "2.50", false, true),
        ("é", r"\u00e9", true, false),
    ];
    assert_eq!(
        leaves,
        expected.map(|(text, raw, escaped, number)| (text.to_owned(), raw, escaped, number))
    );
}

#[test]
fn what_stands_in_several_lines_is_written_in_one() {
    let document = read("{\"b\":\n 1E2, \"a\": \"x\\ny\"}");

    assert_eq!(document.root().line(), r#"{"b":1E2,"a":"x\ny"}"#);
}

proptest! {
    #[test]
    fn a_document_holds_what_a_tree_holds(value in any_json()) {
        let texts = [value.to_string(), serde_json::to_string_pretty(&value).unwrap()];
        for text in texts {
            let document = read(&text);

            prop_assert_eq!(document.root().to_value(), value.clone());
            prop_assert_eq!(document.root().canonical(), canonical(&value));
            prop_assert_eq!(serde_json::to_value(&document).unwrap(), value.clone());
            let made = Document::of(document.root());
            prop_assert_eq!(made.root().to_value(), value.clone());
            prop_assert_eq!(&made, &document);
        }
    }

    #[test]
    fn what_is_put_together_is_what_a_parser_would_read(
        one in any_json(), other in any_json(), name in "\\PC{0,8}",
    ) {
        let document = read(&serde_json::to_string_pretty(&one).unwrap());
        let mut object = ObjectWriter::default();
        object.member("made", &other);
        object.member(&format!("x{name}\""), document.root());

        let object = object.finish();

        let again = read(object.root().raw());
        prop_assert_eq!(&object, &again);
        let found = object.root().get(&format!("x{name}\"")).unwrap();
        prop_assert_eq!(found.to_value(), one);
        prop_assert_eq!(object.root().canonical(), canonical(&object.root().to_value()));
    }
}
