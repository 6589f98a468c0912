//! Characters that look like ASCII, or like nothing.

/// Step of a reader: the number of bytes it takes, and the character that replaces them.
pub(super) type Step = (usize, Option<char>);

/// Invisible characters gone; full-width forms and foreign digits made ASCII, and so are odd
/// dashes and spaces between digits. A character whose UTS #39 skeleton is one character of ASCII
/// is read as that one in a word that holds ASCII, too, or before such a word, which `is_mixed` tells.
pub(super) fn plain_character(rest: &[u8], is_mixed: impl FnOnce() -> bool) -> Option<Step> {
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
            let plain = digit(char).or_else(|| is_mixed().then(|| prototype(char)).flatten());
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
            | '\u{200B}'..='\u{200F}'
            | '\u{202A}'..='\u{202E}'
            | '\u{2060}'..='\u{206F}'
            | '\u{3164}'
            | '\u{FE00}'..='\u{FE0F}'
            | '\u{FEFF}'
            | '\u{FFA0}'
            | '\u{E0000}'..='\u{E0FFF}'
    )
}

/// Decimal digits of other scripts, as ASCII.
fn digit(char: char) -> Option<char> {
    const ZEROS: &[u32] =
        &[0x660, 0x6F0, 0x966, 0x9E6, 0xE50, 0x1D7CE, 0x1D7D8, 0x1D7E2, 0x1D7EC, 0x1D7F6];
    let code = u32::from(char);
    let zero = ZEROS.iter().find(|zero| (**zero..**zero + 10).contains(&code))?;
    char::from_digit(code - zero, 10)
}
