//! Secrets that code compares with a name.

use std::ops::Range;

use crate::catalogue::detector::Candidate;
use crate::catalogue::secrets::general::{is_key_text, is_odd};
use crate::text::window::Window;

/// Random text: full of odd characters, or as keys are.
pub(crate) fn code_secret(candidate: &Candidate<'_>) -> Option<i32> {
    (is_odd(candidate.matched()) || is_key_text(candidate)).then_some(0)
}

/// The quoted text before a comparison with the name that the literal is part of.
pub(crate) fn compared(text: &Window<'_>, literal: Range<usize>) -> Option<Range<usize>> {
    const LONGEST: usize = 72;
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'$');
    let is_space = |byte: u8| byte == b' ';
    let name = back(text, literal.start, 64, is_name);
    let sign_end = back(text, name, 3, is_space);
    let equals = back(text, sign_end, 3, |byte| byte == b'=');
    let sign = back(text, equals, 1, |byte| byte == b'!');
    if sign_end - sign < 2 || equals == sign_end {
        return None;
    }
    let end = back(text, sign, 3, is_space).checked_sub(1)?;
    let quote = *text.get(end).filter(|byte| matches!(byte, b'"' | b'\'' | b'`'))?;
    let start = back(text, end, LONGEST + 1, |byte| byte != quote);
    (8..=LONGEST).contains(&(end - start)).then_some(start..end)
}

/// Number of bytes back from an offset that count, at most `most`.
fn back(text: &[u8], from: usize, most: usize, counts: impl Fn(u8) -> bool) -> usize {
    let before = text.get(..from).unwrap_or_default();
    from - before.iter().rev().take(most).take_while(|byte| counts(**byte)).count()
}
