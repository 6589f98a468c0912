//! Keys, tokens and passwords: what opens doors.

use crate::dlp::{
    checks,
    detector::{Candidate, Detector, Edges, NormalForm, Shape},
    kinds::Category,
};

mod ai;
mod assigned;
mod aws;
mod chat;
mod cloud;
mod code;
mod compared;
mod data;
mod general;
mod insight;
mod keys;
mod mail;
mod money;
mod office;
mod own;
mod published;

use assigned::assigned;

/// By what they open.
pub(super) const ALL: &[&[Detector]] = &[
    keys::ALL,
    own::ALL,
    aws::ALL,
    cloud::ALL,
    data::ALL,
    code::ALL,
    ai::ALL,
    chat::ALL,
    money::ALL,
    mail::ALL,
    insight::ALL,
    office::ALL,
    general::ALL,
    compared::ALL,
];

/// Words that make what stands beside a vendor's name a secret.
const WORDS: &[&str] = &[
    "token",
    "key",
    "secret",
    "api",
    "apikey",
    "auth",
    "authorization",
    "password",
    "pass",
    "pwd",
    "credential",
    "access",
    "client",
    "client id",
    "app id",
    "application id",
    "bearer",
    "pat",
    "signing",
    "private",
    "encryption",
    "authtoken",
    "login",
];

/// Bytes from the start of a mark that most secrets need.
const USUAL_REACH: u16 = 420;

/// A secret that its vendor marks with a prefix of its own. What follows must look random, so
/// that documentation may speak of the prefix.
const fn vendor(
    name: &'static str,
    description: &'static str,
    literals: &'static [&'static str],
    pattern: &'static str,
) -> Detector {
    Detector {
        name,
        category: Category::Secret,
        description,
        shape: Shape::Pattern { literals, pattern, before: 0, after: USUAL_REACH },
        edges: Edges::Mark,
        bits: 32,
        check: random,
        context: &[],
        context_bits: 0,
        against: &[],
        normal_form: NormalForm::Verbatim,
        positives: &[],
        negatives: &[],
    }
}

/// A secret without a mark of its own. Its vendor's name must stand before it, and a word that
/// says that it is a secret.
const fn named(
    name: &'static str,
    description: &'static str,
    literals: &'static [&'static str],
    pattern: &'static str,
) -> Detector {
    Detector {
        shape: Shape::Beside { literals, pattern, after: 160 },
        edges: Edges::Word,
        bits: 8,
        check: assigned,
        context: WORDS,
        context_bits: 14,
        ..vendor(name, description, literals, pattern)
    }
}

impl Detector {
    /// For patterns that begin before their literal.
    const fn reaching_back(self, bytes: u16) -> Detector {
        self.reaching(bytes, USUAL_REACH)
    }

    /// For patterns longer than usual.
    const fn reaching(mut self, bytes: u16, far: u16) -> Detector {
        if let Shape::Pattern { literals, pattern, .. } = self.shape {
            self.shape = Shape::Pattern { literals, pattern, before: bytes, after: far };
        }
        // What does not begin with its mark needs a free beginning.
        if bytes > 0 && matches!(self.edges, Edges::Mark) {
            self.edges = Edges::Word;
        }
        self
    }

    /// For secrets that may touch letters and digits.
    const fn at_any_edge(mut self) -> Detector {
        self.edges = Edges::Any;
        self
    }

    /// For forms that hardly anything else has: the vendor's name is enough.
    const fn telling(mut self) -> Detector {
        self.bits = 16;
        self
    }

    /// For prefixes that ordinary words may follow.
    const fn needing_digits(mut self) -> Detector {
        self.check = random_with_digits;
        self
    }

    /// For prefixes that hex digits may follow.
    const fn needing_letters(mut self) -> Detector {
        self.check = random_with_letters;
        self
    }

    /// For prefixes that names in programs have, too.
    const fn mixed_case(mut self) -> Detector {
        self.check = random_letters;
        self
    }

    /// For marks so clear that what follows need not look random.
    const fn even_if_dull(mut self) -> Detector {
        self.check = clear;
        self
    }
}

/// What a dummy of a marked secret has less than a real one.
const DUMMY_BITS: i32 = -12;

/// Nothing more, if the match is no mere placeholder; less if it is a row of one letter, as people
/// write them to try a scanner.
fn random(candidate: &Candidate<'_>) -> Option<i32> {
    let matched = candidate.matched();
    if is_inside_base64(candidate) {
        return None;
    }
    if checks::looks_random(matched, 3.0) {
        return Some(0);
    }
    is_row(matched).then_some(DUMMY_BITS)
}

/// Whether a text ends in a row of one letter that is not the usual sign for what is left out.
fn is_row(text: &[u8]) -> bool {
    const LEAST: usize = 16;
    let Some(last) = text.last() else { return false };
    let length = text.iter().rev().take_while(|byte| *byte == last).count();
    length >= LEAST && last.is_ascii_alphabetic() && !last.eq_ignore_ascii_case(&b'x')
}

/// Nothing more.
fn clear(candidate: &Candidate<'_>) -> Option<i32> {
    (!is_inside_base64(candidate)).then_some(0)
}

/// Between two signs that only base64 has on both sides.
fn is_inside_base64(candidate: &Candidate<'_>) -> bool {
    let is_sign = |byte: Option<&u8>| matches!(byte, Some(b'+' | b'/'));
    let before = candidate.range.start.checked_sub(1).and_then(|at| candidate.text.get(at));
    is_sign(before) && is_sign(candidate.text.get(candidate.range.end))
}

fn random_with_digits(candidate: &Candidate<'_>) -> Option<i32> {
    let is_mixed = candidate.digits().len() >= 4 || case_changes(candidate.matched()) >= 8;
    if is_mixed { random(candidate) } else { None }
}

fn random_with_letters(candidate: &Candidate<'_>) -> Option<i32> {
    let is_beyond_hex = |byte: &u8| byte.to_ascii_lowercase() > b'f';
    let tail = candidate.matched().get(4..).unwrap_or_default();
    let telling = tail.iter().filter(|byte| byte.is_ascii_alphabetic() && is_beyond_hex(byte));
    if telling.count() < 4 { None } else { random(candidate) }
}

/// Both cases, changing more often than in names, or letters that nobody can speak.
fn random_letters(candidate: &Candidate<'_>) -> Option<i32> {
    let matched = candidate.matched();
    if case_changes(matched) >= 8 || is_unspeakable(matched) { random(candidate) } else { None }
}

/// How often the case changes from one character to the next.
fn case_changes(text: &[u8]) -> usize {
    let changes = text.windows(2).filter(|pair| match pair {
        [a, b] => a.is_ascii_lowercase() != b.is_ascii_lowercase(),
        _ => false,
    });
    changes.count()
}

/// Whether consonants stand in rows as no language has them.
fn is_unspeakable(text: &[u8]) -> bool {
    const ROW: usize = 5;
    const ROWS: usize = 2;
    let is_vowel = |byte: &u8| {
        !byte.is_ascii_alphabetic()
            || matches!(byte.to_ascii_lowercase(), b'a' | b'e' | b'i' | b'o' | b'u' | b'y')
    };
    text.split(is_vowel).filter(|row| row.len() >= ROW).count() >= ROWS
}
