//! Characters that look like ASCII, or like nothing.

use std::ops::Range;

/// Step of a reader: the number of bytes it takes, and the character that replaces them.
pub(super) type Step = (usize, Option<char>);

/// Invisible characters gone; full-width forms and foreign digits made ASCII, and so are odd
/// dashes and spaces between digits. A character whose UTS #39 skeleton is one character of ASCII
/// is read as that one in a word that holds ASCII, too, or before such a word, which `is_mixed` tells.
pub(super) fn plain_character(
    text: &[u8],
    at: usize,
    is_mixed: impl FnOnce() -> bool,
) -> Option<Step> {
    let rest = text.get(at..)?;
    let (taken, char) = first_char(rest)?;
    let joins_digits = rest.get(taken).is_some_and(|next| next.is_ascii_digit() || *next >= 0x80);
    match char {
        '\u{FF01}'..='\u{FF5E}' => Some((taken, char::from_u32(u32::from(char) - 0xFEE0))),
        '\u{2010}'..='\u{2015}' | '\u{2212}' | '\u{FE63}' if joins_digits => {
            Some((taken, Some('-')))
        }
        '\u{A0}' | '\u{2000}'..='\u{200A}' | '\u{202F}' | '\u{205F}' | '\u{3000}'
            if joins_digits =>
        {
            Some((taken, Some(' ')))
        }
        _ if is_invisible(char) => Some((taken, None)),
        '\u{24B6}'..='\u{24CF}' => Some((taken, shifted(char, 0x24B6, b'A'))),
        '\u{24D0}'..='\u{24E9}' => Some((taken, shifted(char, 0x24D0, b'a'))),
        _ => {
            let plain = match digit(char) {
                Some(digit) => {
                    (!is_ornamental(char) || is_in_word(text, at, taken)).then_some(digit)
                }
                None => is_mixed().then(|| prototype(char)).flatten(),
            };
            let plain = plain.map(|plain| {
                let digit = digit_alike(plain).filter(|_| is_among_digits(text, &(at..at + taken)));
                digit.unwrap_or(plain)
            });
            plain.map(|plain| (taken, Some(plain)))
        }
    }
}

fn shifted(char: char, from: u32, to: u8) -> Option<char> {
    char::from_u32(u32::from(char) - from + u32::from(to))
}

/// The last row of characters beyond ASCII that was looked at. A row of them is looked at once.
#[derive(Debug, Default)]
pub(super) struct Neighbours {
    end: usize,
    are_ascii: bool,
}

impl Neighbours {
    /// Returns true if the row of characters beyond ASCII that `at` stands in touches a letter, a
    /// digit or a joint of ASCII, or the next word has letters of both.
    pub(super) fn are_ascii(&mut self, text: &[u8], at: usize) -> bool {
        if at >= self.end {
            let is_beyond = |byte: &&u8| **byte >= 0x80;
            let rest = text.get(at..).unwrap_or_default();
            self.end = at + rest.iter().take_while(is_beyond).count();
            let start = at
                - text
                    .get(..at)
                    .map_or(0, |before| before.iter().rev().take_while(is_beyond).count());
            let touches = |byte: Option<&u8>| {
                byte.is_some_and(|byte| {
                    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'@')
                })
            };
            let before = start.checked_sub(1).and_then(|before| text.get(before));
            self.are_ascii = touches(before)
                || touches(text.get(self.end))
                || is_mixed(text.get(self.end..).unwrap_or_default());
        }
        self.are_ascii
    }
}

/// Returns true if a text begins with a space and a word that has letters of ASCII and beyond it.
fn is_mixed(rest: &[u8]) -> bool {
    const NEAR: usize = 24;
    let [b' ', rest @ ..] = rest else { return false };
    let word = || rest.iter().take(NEAR).take_while(|byte| !byte.is_ascii_whitespace());
    word().any(u8::is_ascii_alphabetic) && word().any(|byte| !byte.is_ascii())
}

/// The letter, digit or joint of ASCII that is the whole UTS #39 skeleton of a character. The
/// skeleton of a capital I is a small L; it becomes a capital again.
fn prototype(char: char) -> Option<char> {
    let mut utf8 = [0; 4];
    let mut skeleton = unicode_security::skeleton(char.encode_utf8(&mut utf8));
    let (first, None) = (skeleton.next()?, skeleton.next()) else { return None };
    let is_part = first.is_ascii_alphanumeric()
        || matches!(first, '_' | '-' | '.' | '@' | '/' | ':' | '=' | '+');
    let plain = if first == 'l' && char.is_uppercase() { 'I' } else { first };
    is_part.then_some(plain)
}

pub(super) fn first_char(rest: &[u8]) -> Option<(usize, char)> {
    let head = rest.get(..rest.len().min(4))?;
    let valid = match std::str::from_utf8(head) {
        Ok(valid) => valid,
        Err(error) => std::str::from_utf8(head.get(..error.valid_up_to())?).ok()?,
    };
    valid.chars().next().map(|char| (char.len_utf8(), char))
}

fn is_invisible(char: char) -> bool {
    matches!(
        char,
        '\0'..='\u{8}'
            | '\u{B}'..='\u{C}'
            | '\u{E}'..='\u{1F}'
            | '\u{7F}'..='\u{9F}'
            | '\u{AD}'
            | '\u{300}'..='\u{36F}'
            | '\u{61C}'
            | '\u{115F}'
            | '\u{1160}'
            | '\u{17B4}'
            | '\u{17B5}'
            | '\u{180B}'..='\u{180F}'
            | '\u{1AB0}'..='\u{1AFF}'
            | '\u{1DC0}'..='\u{1DFF}'
            | '\u{200B}'..='\u{200F}'
            | '\u{202A}'..='\u{202E}'
            | '\u{2060}'..='\u{206F}'
            | '\u{20D0}'..='\u{20FF}'
            | '\u{2800}'
            | '\u{3164}'
            | '\u{FE00}'..='\u{FE0F}'
            | '\u{FE20}'..='\u{FE2F}'
            | '\u{FEFF}'
            | '\u{FFA0}'
            | '\u{E0000}'..='\u{E0FFF}'
    )
}

/// Rows of digits in other scripts and signs: the first character, its value, and how many there are.
const DIGITS: &[(u32, u32, u32)] = &[
    (0xB2, 2, 2),
    (0xB9, 1, 1),
    (0x660, 0, 10),
    (0x6F0, 0, 10),
    (0x7C0, 0, 10),
    (0x966, 0, 10),
    (0x9E6, 0, 10),
    (0xA66, 0, 10),
    (0xAE6, 0, 10),
    (0xB66, 0, 10),
    (0xBE6, 0, 10),
    (0xC66, 0, 10),
    (0xCE6, 0, 10),
    (0xD66, 0, 10),
    (0xDE6, 0, 10),
    (0xE50, 0, 10),
    (0xED0, 0, 10),
    (0xF20, 0, 10),
    (0x1040, 0, 10),
    (0x1090, 0, 10),
    (0x17E0, 0, 10),
    (0x1810, 0, 10),
    (0x1946, 0, 10),
    (0x19D0, 0, 10),
    (0x1A80, 0, 10),
    (0x1A90, 0, 10),
    (0x1B50, 0, 10),
    (0x1BB0, 0, 10),
    (0x1C40, 0, 10),
    (0x1C50, 0, 10),
    (0x2070, 0, 1),
    (0x2074, 4, 6),
    (0x2080, 0, 10),
    (0x2460, 1, 9),
    (0x2474, 1, 9),
    (0x2488, 1, 9),
    (0x24EA, 0, 1),
    (0x24F5, 1, 9),
    (0x24FF, 0, 1),
    (0x2776, 1, 9),
    (0x2780, 1, 9),
    (0x278A, 1, 9),
    (0xA620, 0, 10),
    (0xA8D0, 0, 10),
    (0xA900, 0, 10),
    (0xA9D0, 0, 10),
    (0xA9F0, 0, 10),
    (0xAA50, 0, 10),
    (0xABF0, 0, 10),
    (0x104A0, 0, 10),
    (0x10D30, 0, 10),
    (0x1D7CE, 0, 10),
    (0x1D7D8, 0, 10),
    (0x1D7E2, 0, 10),
    (0x1D7EC, 0, 10),
    (0x1D7F6, 0, 10),
    (0x1E950, 0, 10),
    (0x1F100, 0, 1),
    (0x1FBF0, 0, 10),
];

/// Decimal digits of other scripts and signs, as ASCII.
fn digit(char: char) -> Option<char> {
    let code = u32::from(char);
    let after = DIGITS.partition_point(|(first, ..)| *first <= code);
    let (first, value, count) = DIGITS.get(after.checked_sub(1)?)?;
    char::from_digit((code - first < *count).then(|| code - first + value)?, 10)
}

/// Returns true for digits that stand above a line, below one, or in a frame: one of them alone is a note
/// or an exponent.
fn is_ornamental(char: char) -> bool {
    matches!(char, '\u{B2}' | '\u{B3}' | '\u{B9}' | '\u{2070}'..='\u{2089}' | '\u{2460}'..='\u{24FF}' | '\u{2776}'..='\u{2793}')
}

/// Returns true if letters or digits stand on both sides of a character, or another digit that is none of
/// ASCII on one of them.
fn is_in_word(text: &[u8], at: usize, taken: usize) -> bool {
    const LONGEST: usize = 4;
    let is_digit = |part: &[u8]| first_char(part).is_some_and(|(_, char)| digit(char).is_some());
    let is_part = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let behind = text.get(at + taken..).unwrap_or_default();
    let before = text.get(at.saturating_sub(LONGEST)..at).unwrap_or_default();
    let last = before.iter().rev().take_while(|byte| **byte & 0xC0 == 0x80).count() + 1;
    let last = before.get(before.len().saturating_sub(last)..).unwrap_or_default();
    is_part(before.last()) && is_part(behind.first()) || is_digit(behind) || is_digit(last)
}

/// Digits for which letters are written that look like them.
fn digit_alike(letter: char) -> Option<char> {
    match letter {
        'O' | 'o' => Some('0'),
        'l' | 'I' => Some('1'),
        _ => None,
    }
}

/// Returns true if two digits or more of ASCII stand right before or behind a range of a text, and no letter
/// of ASCII does. Other characters may stand between, for which there are digits as well.
fn is_among_digits(text: &[u8], range: &Range<usize>) -> bool {
    const NEAR: usize = 12;
    let before = text.get(..range.start).unwrap_or_default().iter().rev().take(NEAR);
    let behind = text.get(range.end..).unwrap_or_default().iter().take(NEAR);
    let [before, behind] = [near_digits(before), near_digits(behind)];
    before.zip(behind).is_some_and(|(before, behind)| before + behind > 1)
}

/// Number of digits, up to three, before the first character of ASCII that is none; `None` if that is a letter.
fn near_digits<'a>(bytes: impl Iterator<Item = &'a u8>) -> Option<usize> {
    const ENOUGH: usize = 3;
    let mut ascii = bytes.filter(|byte| byte.is_ascii()).take(ENOUGH);
    let mut count = 0;
    let next = ascii.find(|byte| {
        let is_digit = byte.is_ascii_digit();
        count += usize::from(is_digit);
        !is_digit
    });
    (!next.is_some_and(u8::is_ascii_alphabetic)).then_some(count)
}
