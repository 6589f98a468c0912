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

/// Ways to spell that each reader reads otherwise.
const SPELLED: [&str; 7] =
    ["%41b ", "&amp; ", "x=3D41=3D ", "\u{e0041}", "\u{1b}[1mx\u{1b}[0m ", r"\\u0041 ", "'a'+'b' "];

/// Detectors of a text, of whose views no more may be whole than four times its length.
fn found_tightly(text: &str) -> Result<Vec<String>, Unscannable> {
    static TIGHT: LazyLock<Engine> = LazyLock::new(|| {
        let limits = Limits { max_decoded_bytes: 0, ..Limits::default() };
        Engine::new(&Settings { limits, ..Settings::default() }).unwrap()
    });
    let findings = TIGHT.scan(&json!(text), &key())?;
    Ok(findings.detectors().into_iter().map(str::to_owned).collect())
}

#[test]
fn a_text_spelled_in_many_ways_is_read_as_long_as_most_of_it_is_plain() {
    let secret = spelled(concat!("glpat-", "F4k3abcdefghijklmnop"), "%");
    let plain = "function f(a, b) { return a + b; } ".repeat(64);
    let code = SPELLED.map(|way| format!("{plain}{way}")).concat();

    for text in [format!("{code} {secret}"), format!("{secret} {code}")] {
        let found = found_tightly(&text).unwrap();
        assert!(found.iter().any(|it| it == "gitlab_token"), "{found:?}");
    }
}

#[test]
fn a_secret_behind_spellings_is_found_or_its_body_is_refused() {
    let secret = concat!("glpat-", "F4k3abcdefghijklmnop");
    let hidden =
        [STANDARD.encode(secret), spelled(secret, "%"), spelled(&spelled(secret, "%"), "%")];
    let all = SPELLED.concat();
    let others = [spelled(&all, "%"), STANDARD.encode("nothing to see here, move on. "), all];
    let mut refused = 0;
    for filler in SPELLED.into_iter().chain(others.iter().map(String::as_str)) {
        for secret in &hidden {
            let fillers = format!("{filler} ").repeat(8192 / filler.len());
            match found_tightly(&format!("{fillers} {secret} ")) {
                Ok(found) => assert!(found.iter().any(|it| it == "gitlab_token"), "{filler:?}"),
                Err(Unscannable::TooMuchDecoding { .. }) => refused += 1,
                Err(other) => panic!("{other}"),
            }
        }
    }
    assert!(refused > 0, "none of these is more than the bound");
}
