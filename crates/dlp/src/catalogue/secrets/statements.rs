//! Passwords in statements, options of commands and settings of programs that have a form of their own.

use crate::catalogue::{
    checks::looks_random,
    detector::Candidate,
    secrets::{general::classes, keys::password},
};

/// No dummy, no reference and no parameter.
pub(crate) fn given(candidate: &Candidate<'_>) -> Option<i32> {
    let is_parameter = matches!(candidate.matched().first(), Some(b':' | b'?' | b'@' | b'&'));
    let letters = candidate.matched().iter().filter(|byte| byte.is_ascii_alphanumeric()).count();
    (!is_parameter && letters > 3).then(|| password(candidate))?
}

/// Two words that a slash joins are none.
pub(crate) fn option(candidate: &Candidate<'_>) -> Option<i32> {
    let before = candidate.text.get(..candidate.range.start)?;
    let is_word = candidate.matched().iter().all(u8::is_ascii_alphabetic);
    (!is_word || !before.ends_with(b"/")).then(|| given(candidate))?
}

/// Letters of both cases, digits and perhaps signs, and no name of a file.
pub(crate) fn mixed(candidate: &Candidate<'_>) -> Option<i32> {
    let matched = candidate.matched();
    let has = |is: fn(&u8) -> bool| matched.iter().any(is);
    let is_file = matched.split(|byte| *byte == b'.').next_back().is_some_and(|end| {
        matched.contains(&b'.')
            && matches!(end.len(), 2..=4)
            && end.iter().all(u8::is_ascii_alphabetic)
    });
    (has(u8::is_ascii_digit) && classes(matched) > 2 && !is_file && !matched.contains(&b'/'))
        .then(|| given(candidate))?
}

/// Randomness, with a digit, as ids of sessions have.
pub(crate) fn session(candidate: &Candidate<'_>) -> Option<i32> {
    let matched = candidate.matched();
    (matched.iter().any(u8::is_ascii_digit) && looks_random(matched, 3.0)).then_some(0)
}

/// A key between lines that say so is known by these.
pub(crate) fn without_lines(candidate: &Candidate<'_>) -> Option<i32> {
    let before = candidate.text.get(..candidate.range.start)?.trim_ascii_end();
    let is_between = before.ends_with(b"-----") || before.ends_with(br"-----\n");
    (!is_between).then_some(0)
}
