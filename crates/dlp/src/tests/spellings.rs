//! Secrets spelled in every way that a reader of views covers, and other texts spelled alike.
//!
//! The generator makes the same texts in every run.

use std::io::Read as _;

use base64::{
    Engine as _,
    engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE_NO_PAD},
};
use flate2::{
    Compression,
    read::{DeflateEncoder, GzEncoder, ZlibEncoder},
};

use super::*;
use crate::{catalogue::checks::sums, vocabulary::Category};

/// Texts that each spelling is tried on.
pub(super) const ROUNDS: usize = 40;

/// A generator of numbers that look random (xorshift).
pub(super) struct Numbers(pub(super) u64);

impl Numbers {
    pub(super) fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap() % end
    }

    pub(super) fn of(&mut self, alphabet: &str, count: usize) -> String {
        (0..count).map(|_| char::from(alphabet.as_bytes()[self.below(alphabet.len())])).collect()
    }
}

const CAPITALS: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
pub(super) const ALPHANUMERIC: &str =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/// A secret of each of some vendors.
pub(super) fn secrets(numbers: &mut Numbers) -> Vec<String> {
    let body = numbers.of(ALPHANUMERIC, 30);
    let checksum: String = sums::base62(body.as_bytes()).iter().collect();
    let aws = format!("{}7", numbers.of("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", 15));
    vec![
        format!("ghp_{body}{checksum}"),
        format!("glpat-{}4", numbers.of(ALPHANUMERIC, 19)),
        format!("sk_live_{}9", numbers.of(ALPHANUMERIC, 23)),
        format!("AKIA{aws}"),
    ]
}

/// Returns true if a value holds a secret that would be blocked or masked.
pub(super) fn is_found(value: &Value) -> bool {
    scan(value).iter().any(|found| found.category() == Category::Secret)
}

/// The share of the secrets that are found as they are and also when they are spelled so, and how
/// many were tried.
pub(super) fn share(spell: impl Fn(&str, &mut Numbers) -> Value) -> (usize, usize) {
    let mut numbers = Numbers(0x9E37_79B9_7F4A_7C15);
    let mut found = 0;
    let mut tried = 0;
    for _ in 0..ROUNDS {
        for secret in secrets(&mut numbers).iter().filter(|secret| is_found(&json!(secret))) {
            let spelled = spell(secret, &mut numbers);
            let is_found = is_found(&spelled);
            found += usize::from(is_found);
            tried += 1;
            if !is_found && std::env::var("SPELLINGS").is_ok() {
                println!("{secret} as {spelled}");
            }
        }
    }
    (found, tried)
}

type Spell = fn(&str, &mut Numbers) -> String;

fn escaped(text: &str, escape: impl FnMut(char) -> String) -> String {
    text.chars().map(escape).collect()
}

/// Every third character or so as its look-alike.
fn confused(text: &str, numbers: &mut Numbers) -> String {
    const ALIKE: &[(char, &str)] = &[
        ('a', "\u{430}\u{251}\u{1d41a}"),
        ('c', "\u{441}\u{3f2}\u{217d}"),
        ('e', "\u{435}\u{212f}"),
        ('g', "\u{261}\u{1d420}\u{24d6}"),
        ('h', "\u{4bb}\u{210e}"),
        ('i', "\u{456}\u{2170}"),
        ('k', "\u{1d424}\u{24da}"),
        ('l', "\u{217c}\u{1d425}"),
        ('o', "\u{43e}\u{3bf}\u{585}"),
        ('p', "\u{440}\u{3c1}"),
        ('s', "\u{455}\u{a731}"),
        ('t', "\u{1d42d}\u{24e3}"),
        ('A', "\u{410}\u{391}\u{1d400}"),
        ('B', "\u{412}\u{392}"),
        ('I', "\u{406}\u{399}"),
        ('K', "\u{41a}\u{39a}\u{212a}"),
        ('M', "\u{41c}\u{39c}"),
        ('T', "\u{422}\u{3a4}"),
        ('-', "\u{2010}\u{2212}"),
        ('_', "\u{ff3f}"),
    ];
    let first = numbers.below(3);
    let spell = |(at, char): (usize, char)| {
        let alike = ALIKE.iter().find(|(plain, _)| *plain == char && at % 3 == first % 3);
        alike.map_or(char, |(_, alike)| {
            alike.chars().nth(numbers.below(alike.chars().count())).unwrap()
        })
    };
    text.chars().enumerate().map(spell).collect()
}

/// The mark in the other case.
fn recased(text: &str, _: &mut Numbers) -> String {
    if text.starts_with("AKIA") {
        return text.to_lowercase();
    }
    let joint = text.rfind(['_', '-']).unwrap();
    format!("{}{}", text[..joint].to_uppercase(), &text[joint..])
}

fn within(text: &str, numbers: &mut Numbers) -> String {
    let lead = numbers.below(9);
    format!("{} {text}\n{}", &"lead text"[..lead], &"and more"[..numbers.below(8)])
}

/// Lines of a few characters.
fn folded(text: &str, line_end: &str, numbers: &mut Numbers) -> String {
    let width = 16 + numbers.below(60);
    let lines = text.as_bytes().chunks(width).map(|line| std::str::from_utf8(line).unwrap());
    lines.collect::<Vec<_>>().join(line_end)
}

fn wide(text: &str, unit: fn(u16) -> [u8; 2]) -> Vec<u8> {
    text.encode_utf16().flat_map(unit).collect()
}

fn base32(bytes: &[u8]) -> String {
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    let bits: Vec<u8> =
        bytes.iter().flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1)).collect();
    let letter = |bits: &[u8]| {
        let value = (0..5).fold(0, |sum, at| sum << 1 | bits.get(at).copied().unwrap_or(0));
        char::from(LETTERS[usize::from(value)])
    };
    bits.chunks(5).map(letter).collect()
}

fn pieces(text: &str, mark: &str, joint: &str) -> String {
    pieces_of(text.as_bytes(), mark, joint)
}

fn pieces_of(bytes: &[u8], mark: &str, joint: &str) -> String {
    bytes.iter().map(|byte| format!("{mark}{byte:02x}")).collect::<Vec<_>>().join(joint)
}

fn packed(text: &str, format: usize) -> String {
    let long = format!("a note to nobody: {text} is what it says, and nothing else");
    let bytes = long.as_bytes();
    let level = Compression::default();
    let mut packed = Vec::new();
    let read = match format {
        0 => GzEncoder::new(bytes, level).read_to_end(&mut packed),
        1 => ZlibEncoder::new(bytes, level).read_to_end(&mut packed),
        _ => DeflateEncoder::new(bytes, level).read_to_end(&mut packed),
    };
    read.unwrap();
    STANDARD.encode(packed)
}

/// One layer of escapes, in any mixture.
fn mixed(text: &str, numbers: &mut Numbers) -> String {
    escaped(text, |char| {
        let code = u32::from(char);
        match numbers.below(9) {
            0 => format!("%{code:02x}"),
            1 => format!("%{code:02X}"),
            2 => format!("&#{code};"),
            3 => format!("&#x{code:x};"),
            4 => format!("\\u{code:04x}"),
            5 => format!("\\x{code:02x}"),
            6 => format!("\\u{{{code:x}}}"),
            7 => format!("%u{code:04X}"),
            _ => char.to_string(),
        }
    })
}

/// Groups of so many characters, with a sign between them.
fn apart(text: &str, length: usize, sign: &str) -> String {
    let groups = text.as_bytes().chunks(length).map(|group| std::str::from_utf8(group).unwrap());
    groups.collect::<Vec<_>>().join(sign)
}

/// The code of each character, in decimal.
fn coded(text: &str, joint: &str) -> String {
    text.bytes().map(|byte| byte.to_string()).collect::<Vec<_>>().join(joint)
}

/// Two parts of a text.
pub(super) fn cut<'a>(text: &'a str, numbers: &mut Numbers) -> (&'a str, &'a str) {
    text.split_at(3 + numbers.below(text.len() - 6))
}

const SPELLINGS: &[(&str, Spell)] = &[
    ("look-alikes", confused),
    ("look-alikes in percent-encoding", |text, numbers| {
        let confused = confused(text, numbers);
        pieces(&confused, "%", "")
    }),
    ("accents", |text, _| escaped(text, |char| format!("{char}\u{332}"))),
    ("the mark in another case", recased),
    ("base64 of a longer text", |text, numbers| STANDARD.encode(within(text, numbers))),
    ("base64 without padding", |text, numbers| URL_SAFE_NO_PAD.encode(within(text, numbers))),
    ("base64 over lines", |text, numbers| {
        let long = format!("{} {text}\n", "some words before it ".repeat(numbers.below(5)));
        folded(&STANDARD.encode(long), "\n", numbers)
    }),
    ("base64 over indented lines", |text, numbers| {
        let long = format!("{} {text}\n", "some words before it ".repeat(numbers.below(5)));
        folded(&STANDARD.encode(long), "\r\n    ", numbers)
    }),
    ("base64 of binary", |text, numbers| {
        let lead: Vec<u8> =
            (0..numbers.below(40)).map(|at| u8::try_from(at * 37 % 256).unwrap()).collect();
        STANDARD.encode([&lead[..], b"\x1a\x28", text.as_bytes(), b"\x22\x01\xff\xfe"].concat())
    }),
    ("base32", |text, numbers| base32(within(text, numbers).as_bytes())),
    ("base32 in lower case", |text, _| base32(text.as_bytes()).to_lowercase() + "===="),
    ("hex", |text, _| spelled(text, "")),
    ("hex in capitals", |text, _| spelled(text, "").to_uppercase()),
    ("hex behind 0x", |text, _| format!("0x{}", spelled(text, ""))),
    ("hex behind a name", |text, _| format!("blob_{}", spelled(text, ""))),
    ("hex with spaces", |text, _| pieces(text, "", " ")),
    ("hex with colons", |text, _| format!("it is {}.", pieces(text, "", ":"))),
    ("hex with dashes", |text, _| pieces(text, "", "-")),
    ("hex of an array", |text, _| format!("[{}]", pieces(text, "0x", ", "))),
    ("hex of escapes", |text, _| pieces(text, "\\x", "")),
    ("UTF-16 in base64", |text, _| STANDARD.encode(wide(text, u16::to_le_bytes))),
    ("big-endian UTF-16 in base64", |text, _| STANDARD_NO_PAD.encode(wide(text, u16::to_be_bytes))),
    ("UTF-16 in hex", |text, _| pieces_of(&wide(text, u16::to_le_bytes), "", "")),
    ("NUL between", |text, _| escaped(text, |char| format!("{char}\0"))),
    ("gzip", |text, _| packed(text, 0)),
    ("zlib", |text, _| packed(text, 1)),
    ("deflate", |text, _| packed(text, 2)),
    ("gzip over lines", |text, numbers| folded(&packed(text, 0), "\n", numbers)),
    ("decimal references", |text, _| escaped(text, |char| format!("&#{};", u32::from(char)))),
    ("hexadecimal references", |text, _| {
        escaped(text, |char| format!("&#x{:06X};", u32::from(char)))
    }),
    ("references without an end", |text, _| {
        let first = u32::from(text.chars().next().unwrap());
        format!("&#{first}{}", text[1..].replace('_', "&#x00005f;").replace('-', "&hyphen;"))
    }),
    ("named references", |text, _| {
        text.replace('_', "&lowbar;").replace('-', "&dash;") + "&period;"
    }),
    ("a mixture once", mixed),
    ("a mixture twice", |text, numbers| {
        let once = mixed(text, numbers);
        mixed(&once, numbers)
    }),
    ("percent-encoding three times", |text, _| spelled(text, "%").replace('%', "%2525")),
    ("base64 in percent-encoding in references", |text, numbers| {
        let encoded = STANDARD.encode(within(text, numbers));
        escaped(&spelled(&encoded, "%"), |char| format!("&#{};", u32::from(char)))
    }),
    ("literals side by side", |text, numbers| {
        let (head, tail) = cut(text, numbers);
        format!("export KEY=\"{head}\"\"{tail}\"")
    }),
    ("literals of two quotes", |text, numbers| {
        let (head, tail) = cut(text, numbers);
        format!("curl -H '{head}'\"{tail}\"")
    }),
    ("literals added", |text, numbers| {
        let (head, tail) = cut(text, numbers);
        format!("let key = '{head}' + '{tail}';")
    }),
    ("escapes that are escaped again", |text, numbers| {
        let doubled = ["\\\\", "\\\\\\\\"][numbers.below(2)];
        escaped(text, |char| format!("{doubled}u{:04x}", u32::from(char)))
    }),
    ("characters apart", |text, _| format!("it is {} now", apart(text, 1, " "))),
    ("characters in quotes", |text, _| format!("['{}'].join('')", apart(text, 1, "', '"))),
    ("groups with bars", |text, _| apart(text, 4, "|")),
    ("codes in decimal", |text, _| coded(text, ", ")),
    ("calls of a function for each code", |text, _| format!("chr({})", coded(text, ") . chr("))),
    ("binary digits", |text, _| {
        text.bytes().map(|byte| format!("{byte:08b}")).collect::<Vec<_>>().join(" ")
    }),
    ("code points", |text, _| pieces(text, "U+00", " ")),
    ("quoted-printable", |text, _| pieces(text, "=", "").to_uppercase()),
    ("soft line breaks", |text, _| apart(text, 5, "=\r\n")),
    ("tags", |text, _| apart(text, 3, "<b></b>")),
    ("comments", |text, _| apart(text, 2, "<!-- of it -->")),
    ("literals joined by bars", |text, _| format!("'{}'", apart(text, 6, "' || '"))),
    ("a line that goes on", |text, numbers| {
        let (head, tail) = cut(text, numbers);
        format!("login {head}\\\n{tail}")
    }),
    ("literals on lines that go on", |text, numbers| {
        let (head, tail) = cut(text, numbers);
        format!("KEY=\"{head}\"\\\n\"{tail}\"")
    }),
];

#[test]
fn secrets_are_found_however_they_are_spelled() {
    let mut missed = Vec::new();
    for (name, spell) in SPELLINGS {
        let (found, tried) = share(|text, numbers| json!({ "text": spell(text, numbers) }));
        assert!(tried > 3 * ROUNDS, "{name}: {tried} were tried");
        // Twice escaped, the end of a reference may look like its number.
        if 100 * found < 99 * tried {
            missed.push(format!("{name}: {found} of {tried}"));
        }
    }
    assert!(missed.is_empty(), "{missed:#?}");
}

#[test]
fn cards_are_found_beside_their_word_however_they_are_spelled() {
    const CARD: &str = "5105105105105100";
    let encoded = STANDARD.encode(CARD);
    let spelled = [
        encoded.clone(),
        STANDARD.encode(&encoded),
        STANDARD.encode(spelled(CARD, "")),
        spelled(CARD, ""),
        spelled(&encoded, "%"),
        pieces(CARD, "", " "),
        pieces(CARD, "%25", ""),
        coded(CARD, ","),
        apart(CARD, 1, "_"),
        apart(CARD, 4, "|"),
        apart(CARD, 3, ", "),
        apart(CARD, 2, "<i></i>"),
        apart(CARD, 4, "\u{200B}"),
        CARD.replace('0', "\u{41E}"),
        CARD.chars().filter_map(|it| char::from_u32(u32::from(it) - 0x30 + 0x2080)).collect(),
        CARD.chars().filter_map(|it| char::from_u32(u32::from(it) - 0x30 + 0xBE6)).collect(),
    ];
    let is_masked = |value: &Value| {
        let found = scan(value);
        found.iter().any(|it| engine().default_action(it, Direction::Output) > Action::Flag)
    };
    let missed: Vec<_> = spelled
        .iter()
        .flat_map(|it| [json!(format!("my card is {it} and yours?")), json!({ "card": it })])
        .filter(|value| !is_masked(value))
        .collect();
    assert!(missed.is_empty(), "{missed:#?}");
    let unnamed: Vec<_> =
        spelled.iter().map(|it| json!(format!("see {it} of it"))).filter(is_masked).collect();
    assert!(unnamed.is_empty(), "{unnamed:#?}");
}

#[test]
fn a_secret_in_codes_of_an_array_is_found() {
    let (found, tried) = share(|text, _| json!({ "type": "Buffer", "data": text.as_bytes() }));
    assert_eq!(found, tried);
}

#[test]
fn base64_is_read_behind_and_before_other_letters() {
    let (found, tried) = share(|text, numbers| {
        let before = numbers.below(8);
        let after = numbers.below(8);
        let encoded = STANDARD_NO_PAD.encode(text);
        json!(format!(
            "{}{encoded}{}",
            numbers.of(ALPHANUMERIC, before),
            numbers.of(ALPHANUMERIC, after)
        ))
    });

    // Letters around it may decode to letters that touch the secret.
    assert!(20 * found >= 19 * tried, "{found} of {tried}");
}

#[test]
fn other_texts_spelled_alike_are_left_alone() {
    let mut numbers = Numbers(0xD1B5_4A32_D192_ED03);
    let mut wrong = Vec::new();
    for (name, spell) in SPELLINGS {
        for round in 0..ROUNDS {
            let text = match round % 5 {
                0 => format!("ghp_{}", numbers.of(ALPHANUMERIC, 9)),
                1 => format!("glpat-of-the-year_{}", numbers.of(CAPITALS, 3)),
                2 => {
                    format!("the {} of sk_live_mode-{}", numbers.of("aeiou", 8), numbers.below(99))
                }
                3 => format!("AKIA_{}_{}", numbers.of(CAPITALS, 5), numbers.below(1000)),
                _ => format!(
                    "minutes of the meeting of {}-{}",
                    numbers.below(30),
                    numbers.below(9999)
                ),
            };
            let spelled = json!({ "text": spell(&text, &mut numbers) });
            if is_found(&spelled) {
                wrong.push(format!("{name}: {text} as {spelled}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn random_runs_of_each_alphabet_hold_no_secret() {
    let mut numbers = Numbers(0xA076_1D64_78BD_642F);
    let alphabets = [
        "0123456789abcdef",
        "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567",
        ALPHANUMERIC,
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
    ];
    for alphabet in alphabets {
        let lines: Vec<String> = (0..400)
            .map(|_| {
                let count = 16 + numbers.below(90);
                numbers.of(alphabet, count)
            })
            .collect();
        let text = json!({ "text": lines.join("\n") });
        assert!(!is_found(&text), "{alphabet}: {:?}", places(&text));
        let rows: Vec<String> = (0..400)
            .map(|_| {
                (0..16).map(|_| numbers.of("0123456789abcdef", 2)).collect::<Vec<_>>().join(":")
            })
            .collect();
        assert!(!is_found(&json!(rows)));
    }
}

#[test]
fn a_decompression_bomb_is_refused() {
    let mut packed = Vec::new();
    let long = vec![b'a'; 1 << 20];
    GzEncoder::new(&long[..], Compression::best()).read_to_end(&mut packed).unwrap();
    let bomb = STANDARD.encode(packed);

    let refused = engine().scan(&json!({ "text": bomb }), &key()).unwrap_err();

    assert!(matches!(refused, Unscannable::TooMuchDecoding { .. }), "{refused}");
}
