//! Payment cards.

use std::ops::Range;

use crate::dlp::{
    catalogue::{
        builders::{SERIALS, number},
        checks,
        detector::{Before, Candidate, Detector, Edges, NormalForm, Shape},
        naming::name,
    },
    text::{digits::DigitRun, words},
    vocabulary::Category,
};

pub(super) const ALL: &[Detector] = &[
    Detector {
        name: "credit_card",
        category: Category::Financial,
        description: "Payment card number: issuer range, length and Luhn digit",
        shape: Shape::Digits { least: 13, before: Before::Anything, find: cards },
        edges: Edges::Word,
        bits: 6,
        check: card,
        context: CARD_WORDS,
        context_bits: 14,
        against: &[
            "id",
            "ids",
            "order",
            "tracking",
            "timestamp",
            "serial",
            "uuid",
            "hash",
            "offset",
            "size",
            "bytes",
            "version",
            "phone",
            "isbn",
            "sku",
        ],
        normal_form: NormalForm::Alphanumeric,
        positives: &[
            "paid with 4111 1111 1111 1111 yesterday",
            "5555-5555-5555-4444",
            "the card is 378282246310005",
            "3782 822463 10005",
            "4111.1111.1111.1111",
            r#"{"card": 6011111111111117}"#,
            r#"{"pan": "4 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1"}"#,
            r#"{"card_number": "4222222222222"}"#,
        ],
        negatives: &[
            "4111 1111 1111 1112",
            r#"{"order_id": "4111111111111111"}"#,
            "4111111111111111",
            "5466648-600613-81252-1",
            "0.4111111111111111",
            "a4111111111111111f",
            "4111111111111111.25",
            "1700000000000 1700000000001",
            "12345678-4111-1111-1111-111111111111",
            "0000000000000000",
            "41111111111111111111111",
        ],
    },
    number(
        "card_security_code",
        Category::Financial,
        "Security code of a payment card, beside words that name it",
        |_| Some(0),
    )
    .named(&["999", "9999"])
    .beside(&["cvv", "cvv2", "cvc", "cvc2", "security code", "card verification", "cid code"])
    .fires(&["CVV 123", r#"{"cvc": "4321"}"#])
    .passes(&["123", "CVV 12"]),
    Detector {
        shape: Shape::Pattern {
            literals: &["%b", ";3", ";4", ";5", ";6"],
            pattern: r"%B[0-9]{12,19}\^[^^\r\n]{2,26}\^[0-9]{4}|;[3-6][0-9]{11,18}=[0-9]{7}",
            before: 0,
            after: 64,
        },
        edges: Edges::Any,
        ..number("card_track", Category::Financial, "Magnetic stripe of a payment card", track)
    }
    .fires(&[
        "%B4111111111111111^DOE/JANE^29121010000000000000?",
        ";4111111111111111=29121010000000000000?",
    ])
    .passes(&["%B4111111111111112^DOE/JANE^29121010000000000000?", ";4111"]),
];

/// Words that name a card.
pub(super) const CARD_WORDS: &[&str] = &[
    "card",
    "cardnumber",
    "credit",
    "debit",
    "visa",
    "mastercard",
    "amex",
    "american express",
    "discover",
    "pan",
    "ccn",
    "cc",
    "payment",
];

/// The card number of a track.
fn track(candidate: &Candidate<'_>) -> Option<i32> {
    let matched = candidate.matched();
    let number = matched.split(|byte| matches!(byte, b'^' | b'=')).next()?;
    let digits: Vec<u8> = number.iter().filter(|b| b.is_ascii_digit()).map(|b| b - b'0').collect();
    checks::luhn(&digits).then_some(26)
}

/// Runs of groups in this run that may be a card, at most one from each group on.
fn cards(text: &[u8], run: &DigitRun) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut first = 0;
    while let Some(groups) = run.groups.get(first..) {
        if groups.is_empty() {
            break;
        }
        match card_at(text, groups, first == 0) {
            Some((taken, range)) => {
                found.push(range);
                first += taken;
            }
            None => first += 1,
        }
    }
    found
}

/// The ways people group card numbers.
const CARD_GROUPS: &[&[usize]] =
    &[&[4, 4, 4, 4], &[4, 6, 5], &[4, 6, 4], &[4, 4, 4, 4, 3], &[4, 4, 5], &[8, 8]];

fn card_at(text: &[u8], groups: &[Range<usize>], is_first: bool) -> Option<(usize, Range<usize>)> {
    let usual = CARD_GROUPS.iter().find(|lengths| {
        groups.len() >= lengths.len() && groups.iter().zip(**lengths).all(|(g, l)| g.len() == *l)
    });
    let alone = groups.first().is_some_and(|group| (13..=19).contains(&group.len()));
    let taken = match usual {
        Some(lengths) => lengths.len(),
        None if alone => 1,
        // Any other grouping counts only when it is all there is: `4 1 1 1 …`.
        None if is_first => groups.len(),
        None => return None,
    };
    let range = groups.first()?.start..groups.get(taken - 1)?.end;
    let digits: usize = groups.get(..taken)?.iter().map(Range::len).sum();
    let free = stands_free(text, &range, groups.len() > taken, is_first);
    let even = has_one_separator(text, groups.get(..taken)?);
    ((13..=19).contains(&digits) && free && even).then_some((taken, range))
}

/// A card is no part of a decimal, a version or a dashed identifier.
fn stands_free(text: &[u8], range: &Range<usize>, goes_on: bool, is_first: bool) -> bool {
    let before = range.start.checked_sub(1).and_then(|at| text.get(at));
    let after = text.get(range.end);
    let joins = |byte: Option<&u8>| matches!(byte, Some(b'.' | b'-'));
    (is_first || !joins(before)) && (!goes_on || !joins(after))
}

fn has_one_separator(text: &[u8], groups: &[Range<usize>]) -> bool {
    let mut separators = groups.windows(2).map(|pair| pair.first().and_then(|g| text.get(g.end)));
    let first = separators.next();
    separators.all(|separator| Some(separator) == first)
}

fn card(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let issuer = issuer_bits(&digits)?;
    if !is_varied(&digits) || !checks::luhn(&digits) {
        return None;
    }
    // In JSON or code that is carried as text, a name before the number may tell what it is.
    if name(candidate).is_some_and(|name| words::names(name, SERIALS) || words::names(name, IDS)) {
        return None;
    }
    Some(issuer + grouping_bits(candidate.matched()))
}

/// Returns true if there is more than one digit.
pub(super) fn is_varied(digits: &[u8]) -> bool {
    digits.iter().any(|digit| Some(digit) != digits.first())
}

/// Evidence of the grouping. People group a card's digits in one of a few ways; digits in one row,
/// or in groups that no card has, are rather a number that programs count with.
fn grouping_bits(matched: &[u8]) -> i32 {
    let groups: Vec<usize> =
        matched.split(|byte| !byte.is_ascii_digit()).map(<[u8]>::len).collect();
    let is_usual = CARD_GROUPS.iter().any(|usual| **usual == groups);
    let is_spelled = groups.iter().all(|length| *length == 1);
    if is_usual {
        12
    } else if is_spelled {
        0
    } else {
        -4
    }
}

/// Names of numbers that programs count with.
pub(super) const IDS: &[&str] =
    &["id", "ids", "offset", "size", "bytes", "score", "count", "time", "ts"];

/// Evidence of issuer range and length; `None` for a range no scheme uses.
pub(super) fn issuer_bits(digits: &[u8]) -> Option<i32> {
    let prefix = digits.iter().take(4).fold(0_u32, |sum, digit| sum * 10 + u32::from(*digit));
    let usual = match prefix {
        4000..=4999 | 5100..=5599 | 2221..=2720 | 6011 | 6440..=6599 | 3528..=3589 => 16,
        3400..=3499 | 3700..=3799 => 15,
        3000..=3059 | 3095 | 3600..=3699 | 3800..=3999 => 14,
        6200..=6299
        | 8100..=8171
        | 2200..=2204
        | 5000
        | 5018..=5099
        | 5600..=5999
        | 6000..=6399
        | 6760..=6799 => 17,
        _ => return None,
    };
    match (usual, digits.len()) {
        (15, 15) | (16, 16) => Some(10),
        (17, 16) => Some(4),
        (14, 14 | 16) | (16, 13 | 18 | 19) | (17, 13..=19) => Some(1),
        _ => None,
    }
}
