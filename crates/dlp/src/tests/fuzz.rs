//! Random values with secrets in random disguises. `PROPTEST_CASES=100000` makes a long run of it.

use base64::{
    Engine as _,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use proptest::prelude::*;

use super::*;
use crate::{
    text::marks::{Marks, Set},
    views::{encoded, inflate::Inflater, unescape},
};

/// Secrets that are planted. Each is found wherever it stands and however it is disguised.
const PLANTED: [&str; 5] = [
    "ada.lovelace@example.org",
    "4111 1111 1111 1111",
    "DE89 3704 0044 0532 0130 00",
    concat!("glpat-", "F4k3abcdefghijklmnop"),
    concat!("ghp_", "F4k3F4k3abcdefghijklmnopqrst01234567"),
];

/// A way to write a text so that it does not look like itself.
#[derive(Debug, Clone, Copy)]
enum Disguise {
    Plain,
    Base64,
    Base64Url,
    Hex,
    Percent,
    Entities,
    Escapes,
    ZeroWidth,
    FullWidth,
    Tags,
}

const DISGUISES: [Disguise; 10] = [
    Disguise::Plain,
    Disguise::Base64,
    Disguise::Base64Url,
    Disguise::Hex,
    Disguise::Percent,
    Disguise::Entities,
    Disguise::Escapes,
    Disguise::ZeroWidth,
    Disguise::FullWidth,
    Disguise::Tags,
];

impl Disguise {
    fn put_on(self, text: &str) -> String {
        let each = |write: &dyn Fn(char) -> String| text.chars().map(write).collect();
        match self {
            Disguise::Plain => text.to_owned(),
            Disguise::Base64 => STANDARD.encode(text),
            Disguise::Base64Url => URL_SAFE_NO_PAD.encode(text),
            Disguise::Hex => spelled(text, ""),
            Disguise::Percent => spelled(text, "%"),
            Disguise::Entities => each(&|char| format!("&#{};", u32::from(char))),
            Disguise::Escapes => each(&|char| format!("\\u{:04x}", u32::from(char))),
            Disguise::ZeroWidth => each(&|char| format!("{char}\u{200B}")),
            Disguise::FullWidth => each(&|char| shifted(char, 0xFEE0)),
            Disguise::Tags => each(&|char| shifted(char, 0xE0000)),
        }
    }
}

fn shifted(char: char, by: u32) -> String {
    let shifted = char::from_u32(u32::from(char) + by).filter(|_| char.is_ascii_graphic());
    shifted.unwrap_or(char).to_string()
}

/// A planted value in one or two disguises, with the form it then has.
fn planted() -> impl Strategy<Value = (usize, String)> {
    let inner = [Disguise::Plain, Disguise::Base64, Disguise::Percent, Disguise::Escapes];
    let disguises =
        (prop::sample::select(inner.to_vec()), prop::sample::select(DISGUISES.to_vec()));
    (0..PLANTED.len(), disguises).prop_map(|(index, (inner, outer))| {
        let form = outer.put_on(&inner.put_on(PLANTED[index]));
        (index, form)
    })
}

/// Values with planted texts among others, as keys, strings and elements; and what was planted.
fn value() -> impl Strategy<Value = (Value, Vec<(usize, String)>)> {
    let words = prop::sample::select(vec!["", "see ", "to: ", "é ", "\u{4f60}\u{597d} ", "x\n"]);
    let leaf = (words.clone(), planted(), words)
        .prop_map(|(before, planted, after)| (format!("{before}{} {after}", planted.1), planted));
    let place = (0..4_u8, leaf).prop_map(|(place, (text, planted))| {
        let value = match place {
            0 => json!({ text: [1, null] }),
            1 => json!({ "content": [{ "type": "text", "text": text }] }),
            2 => json!([7, text, { "a": true }]),
            _ => json!({ "a/b": { "m~n": text } }),
        };
        (value, planted)
    });
    prop::collection::vec(place, 1..4).prop_map(|parts| {
        let (values, planted) = parts.into_iter().unzip();
        (Value::Array(values), planted)
    })
}

/// Pieces of escapes and of what looks like them.
fn fragments() -> impl Strategy<Value = String> {
    let known = "% %4 %41 %zz & &# &#64; &#x40; &amp; &nope; \\ \\u \\u0041 \\ud800 \\x41 \
        \u{200B} \u{FF21} \u{E0041} \u{0661}";
    let known: Vec<&str> = known.split(' ').collect();
    let piece = prop_oneof![prop::sample::select(known).prop_map(str::to_owned), "\\PC{0,3}"];
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(cases(64))]

    #[test]
    fn what_is_masked_never_holds_what_was_found((value, planted) in value()) {
        let engine = engine();
        let findings = engine.scan(&value, &key()).unwrap();

        for mask in [Mask::Placeholder, Mask::Pseudonym, Mask::KeepLast(4)] {
            let masked = engine.redact_value(&value, &findings, |_| Some(mask));

            let text = masked.to_string();
            let again: Value = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(&again, &masked);
            for (index, form) in &planted {
                prop_assert!(!text.contains(PLANTED[*index]), "{mask}: {text}");
                prop_assert!(!strings(&masked).contains(form.as_str()), "{mask}: {form:?} in {text}");
            }
            let rest = engine.scan(&masked, &key()).unwrap();
            prop_assert!(rest.is_empty(), "{mask}: {rest:?} in {text}");
        }
    }

    #[test]
    fn offsets_of_views_never_leave_their_text(text in fragments()) {
        for read in [unescape::plain, unescape::tags] {
            let Some(view) = read(text.as_bytes()) else { continue };

            prop_assert_eq!(view.from.len(), view.text.len() + 1);
            prop_assert!(view.from.is_sorted());
            prop_assert_eq!(view.from.last().copied(), u32::try_from(text.len()).ok());
            prop_assert!(std::str::from_utf8(&view.text).is_ok(), "{:?}", view.text);
        }
    }

    #[test]
    fn runs_are_in_order_and_decode_without_panic(text in "[ -~]{0,80}[A-Za-z0-9+/=_-]{0,120}") {
        let mut done = 0;
        let mut marks = Marks::default();
        marks.set(text.as_bytes(), 0, &Set::NONE);
        encoded::each(text.as_bytes(), &marks, |run| {
            assert!(done <= run.start && run.start < run.end && run.end <= text.len());
            done = run.end;
            let _ = encoded::decode(&text.as_bytes()[run], &mut Inflater::default(), 1 << 20);
        });
    }
}

/// All keys and strings, one after the other.
fn strings(value: &Value) -> String {
    match value {
        Value::String(text) => format!("{text}\n"),
        Value::Array(elements) => elements.iter().map(strings).collect(),
        Value::Object(members) => {
            let each =
                members.iter().flat_map(|(key, member)| [format!("{key}\n"), strings(member)]);
            each.collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => String::new(),
    }
}
