//! Numbers of persons and ways to reach them.

use std::ops::Range;

use crate::dlp::{
    detector::{Candidate, Detector, DigitRun, Edges, NormalForm, Shape},
    kinds::Category,
};

pub(super) const ALL: &[Detector] = &[
    Detector {
        name: "us_ssn",
        category: Category::NationalId,
        description: "US social security number; without dashes only beside words that name it",
        shape: Shape::Digits(ssns),
        edges: Edges::Word,
        bits: 4,
        check: ssn,
        context: &[
            "ssn",
            "ssns",
            "social security",
            "socialsecurity",
            "social_security",
            "ssid",
            "tax id",
            "taxpayer",
        ],
        context_bits: 14,
        against: &[
            "id",
            "order",
            "tracking",
            "timestamp",
            "serial",
            "phone",
            "fax",
            "version",
            "build",
        ],
        normal_form: NormalForm::Alphanumeric,
        positives: &[
            "his number is 536-22-8726.",
            "SSN: 536 22 8726",
            r#"{"ssn": 536228726}"#,
            r#"{"socialSecurityNumber": "536228726"}"#,
        ],
        negatives: &[
            "536228726",
            "000-22-8726",
            "666-22-8726",
            "900-22-8726",
            "536-00-8726",
            "536-22-0000",
            "1-536-22-8726-4",
            "536-22-87261",
            "2024-11-05",
        ],
    },
    Detector {
        name: "email",
        category: Category::Contact,
        description: "E-mail address",
        shape: Shape::At(email),
        edges: Edges::Any,
        bits: 24,
        check: |_| Some(0),
        context: &["email", "e-mail", "mail", "contact"],
        context_bits: 8,
        against: &[],
        normal_form: NormalForm::LowerCase,
        positives: &[
            "write to ada.lovelace+maths@example.co.uk, please",
            r#"{"ada@example.org": 1}"#,
            "<mailto:ada@example.org>",
        ],
        negatives: &[
            "@types/node",
            "left-pad@1.3.0",
            "git@github.com:org/repo.git",
            "logo@2x.png",
            "user@localhost",
            "https://user:pw@host.example.com/",
            "a @ b.com",
            "image@sha256.x1",
        ],
    },
];

/// Three groups of 3, 2 and 4 digits, or nine digits alone.
fn ssns(text: &[u8], run: &DigitRun) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    if run.total < 9 {
        return found;
    }
    let length = |at: usize| run.groups.get(at).map(Range::len);
    for (first, group) in run.groups.iter().enumerate() {
        let taken = match (group.len(), length(first + 1), length(first + 2)) {
            (9, ..) => 1,
            (3, Some(2), Some(4)) => 3,
            _ => continue,
        };
        let Some(last) = run.groups.get(first + taken - 1) else { continue };
        let separator = text.get(group.end);
        let even = taken == 1
            || run.groups.get(first + 1).is_some_and(|middle| text.get(middle.end) == separator);
        let starts = first == 0 || text.get(group.start - 1) == Some(&b' ');
        let ends = first + taken == run.groups.len() || text.get(last.end) == Some(&b' ');
        if even && starts && ends && separator_fits(taken, separator) {
            found.push(group.start..last.end);
        }
    }
    found
}

fn separator_fits(groups: usize, separator: Option<&u8>) -> bool {
    groups == 1 || matches!(separator, Some(b'-' | b' '))
}

fn ssn(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let number = |range: Range<usize>| {
        digits.get(range).map(|part| part.iter().fold(0_u32, |sum, d| sum * 10 + u32::from(*d)))
    };
    let (area, group, serial) = (number(0..3)?, number(3..5)?, number(5..9)?);
    let is_valid = !matches!(area, 0 | 666 | 900..) && group != 0 && serial != 0;
    let is_varied = digits.iter().any(|digit| Some(digit) != digits.first());
    // Two numbers that were printed on sample cards and in advertisements.
    let is_sample = matches!((area, group, serial), (78, 5, 1120) | (219, 9, 9999));
    let bits = match candidate.matched().get(3) {
        Some(b'-') => 14,
        Some(b' ') => 4,
        Some(_) | None => 0,
    };
    (is_valid && is_varied && !is_sample).then_some(bits)
}

/// Around an `@`: RFC 5321 dot-atoms, a domain with a letters-only top level.
fn email(text: &[u8], at: usize) -> Option<Range<usize>> {
    let before = text.get(at.saturating_sub(64)..at)?;
    let local = before.iter().rev().take_while(|byte| is_local(**byte)).count();
    let start = at - local;
    let after = text.get(at + 1..text.len().min(at + 255))?;
    let length = after.iter().take_while(|byte| is_domain(**byte)).count();
    let domain = trim_end(after.get(..length)?);
    let local = text.get(start..at)?;
    let dotted = local.first() == Some(&b'.') || local.last() == Some(&b'.') || local.is_empty();
    let end = at + 1 + domain.len();
    let is_remote = local == b"git" && text.get(end) == Some(&b':');
    (!dotted && has_top_level(domain) && !is_remote && !is_user_info(text, start))
        .then_some(start..end)
}

fn is_local(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(byte, b'.' | b'_' | b'%' | b'+' | b'-' | b'\'')
        || byte >= 0x80
}

fn is_domain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-') || byte >= 0x80
}

fn trim_end(domain: &[u8]) -> &[u8] {
    let dots = domain.iter().rev().take_while(|byte| matches!(byte, b'.' | b'-')).count();
    domain.get(..domain.len() - dots).unwrap_or_default()
}

/// File suffixes that follow an `@` in names such as `logo@2x.png`.
const FILES: &[&[u8]] = &[
    b"png", b"jpg", b"jpeg", b"gif", b"svg", b"webp", b"js", b"mjs", b"ts", b"tsx", b"jsx", b"css",
    b"json", b"html", b"tgz", b"gz", b"zip", b"service", b"lock", b"yaml", b"yml", b"toml",
];

fn has_top_level(domain: &[u8]) -> bool {
    let mut labels = domain.rsplit(|byte| *byte == b'.');
    let top = labels.next().unwrap_or_default();
    let is_word =
        top.len() >= 2 && top.iter().all(|byte| byte.is_ascii_alphabetic() || *byte >= 0x80);
    let is_coded =
        top.len() > 4 && top.get(..4).is_some_and(|head| head.eq_ignore_ascii_case(b"xn--"));
    let is_file = FILES.iter().any(|file| top.eq_ignore_ascii_case(file));
    let mut rest = labels.peekable();
    rest.peek().is_some()
        && rest.all(|label| !label.is_empty() && label.first() != Some(&b'-'))
        && (is_word || is_coded)
        && !is_file
}

/// Whether the text before is the user part of a URL: `https://user:`.
fn is_user_info(text: &[u8], start: usize) -> bool {
    let before = text.get(start.saturating_sub(80)..start).unwrap_or_default();
    let ends = |byte: &u8| matches!(byte, b'/' | b'@') || byte.is_ascii_whitespace();
    let length = before.iter().rev().take_while(|byte| !ends(byte)).count();
    before.get(..before.len() - length).is_some_and(|head| head.ends_with(b"://"))
}
