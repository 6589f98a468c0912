//! Texts that are written in several ways at once, and what is decoded beside other text.

use base64::{
    Engine as _,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};

use super::{
    spellings::{cut, is_found, share},
    *,
};

/// Lines of mails and pages.
const LINES: [&str; 3] = [
    "<p><b>Name</b>:&nbsp;x <a href=3D\"https://x.io/\">y</a>.</p>\n",
    "<li><a href=\"/i?w=640&amp;h=480&v=20\">A&B</a><i>C</i> 100%25 'it''s'</li>\n",
    "GET https://x.io/?w=640&h=480&v=20&q=%D1%8F \"a\"\"b\"\n",
];

#[test]
fn pages_in_mails_are_scanned_at_any_length() {
    for line in LINES {
        for size in [12_000, 200_000] {
            let text = json!({ "text": line.repeat(size / line.len()) });
            let scanned = engine().scan(&text, &key());
            assert!(scanned.is_ok_and(|found| found.count() == 0), "{size} bytes of {line}");
        }
    }
}

#[test]
fn a_secret_that_is_written_in_several_ways_at_once_is_found() {
    let (found, tried) = share(|text, numbers| {
        let (head, tail) = cut(text, numbers);
        let head = head.replace('_', "=5F").replace('-', "&#45;");
        json!({ "text": format!("<p class=3D\"x\">{head}<b></b>{tail}</p>") })
    });

    assert_eq!(found, tried);
}

#[test]
fn a_token_is_found_in_base64_behind_any_sign() {
    let header = URL_SAFE_NO_PAD.encode(r#"{"alg":"HS256","typ":"JWT"}"#);
    let payload = URL_SAFE_NO_PAD.encode(r#"{"sub":"ada","scope":"all of it"}"#);
    let token = format!("{header}.{payload}.{}", URL_SAFE_NO_PAD.encode([0xA7; 32]));
    assert!(is_found(&json!(token)));
    for before in ["?s=", "x:", "key_", "+", "(", "see "] {
        let text = format!("{before}{}, and so on", STANDARD.encode(&token));
        assert!(is_found(&json!(text)), "{before}");
    }
}

#[test]
fn the_words_around_a_run_are_read_once() {
    let bytes = b"readable\x01".repeat(20_000);
    let before = "the cards and the telephones of all that were asked are ";
    let text = format!("{before}{} and so on, as they said", STANDARD.encode(bytes));

    assert!(engine().scan(&json!(text), &key()).is_ok());
}
