//! Readers that take escapes and disguises out of a text, byte by byte.

use std::ops::Range;

use crate::dlp::body::segment::small;
use crate::terminal::sequence_length;

/// A text read another way, and where each of its bytes came from.
#[derive(Default)]
pub(in crate::dlp) struct Unescaped {
    pub(in crate::dlp) text: Vec<u8>,
    /// One offset per byte, and one for the end.
    pub(in crate::dlp) from: Vec<u32>,
}

/// Step of a reader at the beginning of the rest: the number of bytes it takes, and the character
/// that replaces them. `None` leaves one byte as it is.
type ReadStep = fn(&[u8]) -> Option<(usize, Option<char>)>;

/// The text with every escape and disguise taken off at once; `None` when there is none.
pub(in crate::dlp) fn plain(text: &[u8]) -> Option<Unescaped> {
    let step: ReadStep = |rest| match rest.first()? {
        b'%' => percent(rest),
        b'&' => entity(rest),
        b'\\' => backslash(rest),
        _ => plain_character(rest),
    };
    if text.is_ascii() && controls(text) == 0 {
        return read(text, |rest| memchr::memchr3(b'%', b'&', b'\\', rest), step);
    }
    let may_begin =
        |byte: &u8| *byte >= 0xC2 || is_control(*byte) || matches!(byte, b'%' | b'&' | b'\\');
    read(text, |rest| rest.iter().position(may_begin), step)
}

/// Number of control characters other than tabs and line ends. Written so that a whole block is
/// counted at once.
pub(in crate::dlp) fn controls(text: &[u8]) -> usize {
    const BLOCK: usize = 128;
    let count = |block: &[u8]| {
        block.iter().fold(0_u8, |sum, byte| sum.wrapping_add(u8::from(is_control(*byte))))
    };
    text.chunks(BLOCK).map(|block| usize::from(count(block))).sum()
}

const fn is_control(byte: u8) -> bool {
    byte < 9 || matches!(byte, 11 | 12 | 127) || byte.wrapping_sub(14) < 18
}

/// The text with tag characters read as the ASCII they smuggle; `None` when there are none.
pub(in crate::dlp) fn tags(text: &[u8]) -> Option<Unescaped> {
    let step: ReadStep = |rest| {
        let (taken, char) = first_char(rest)?;
        matches!(char, '\u{E0020}'..='\u{E007E}')
            .then(|| (taken, char::from_u32(u32::from(char) - 0xE0000)))
    };
    read(text, |rest| memchr::memchr(0xF3, rest), step)
}

/// The text without the sequences that a terminal reads; `None` when there are none. A reader that
/// only drops control characters, which [`plain`] is, keeps what follows them.
pub(in crate::dlp) fn terminal(text: &[u8]) -> Option<Unescaped> {
    let step: ReadStep = |rest| sequence_length(rest).map(|taken| (taken, None));
    read(text, |rest| memchr::memchr2(0x1B, 0xC2, rest), step)
}

/// Goes from one byte that may begin something to the next, and copies what is between.
fn read(text: &[u8], find: impl Fn(&[u8]) -> Option<usize>, step: ReadStep) -> Option<Unescaped> {
    let mut out: Option<Unescaped> = None;
    let mut copied = 0;
    let mut at = 0;
    while let Some(skipped) = text.get(at..).and_then(&find) {
        at += skipped;
        let Some((taken, char)) = step(text.get(at..)?) else {
            at += 1;
            continue;
        };
        let out = out.get_or_insert_with(Unescaped::default);
        out.copy(text, copied..at);
        out.put(char, at);
        at += taken;
        copied = at;
    }
    let mut out = out?;
    out.copy(text, copied..text.len());
    out.from.push(small(text.len()));
    Some(out)
}

impl Unescaped {
    fn copy(&mut self, text: &[u8], range: Range<usize>) {
        self.from.extend(small(range.start)..small(range.end));
        self.text.extend_from_slice(text.get(range).unwrap_or_default());
    }

    fn put(&mut self, char: Option<char>, origin: usize) {
        let mut utf8 = [0; 4];
        let encoded = char.map_or(0, |char| char.encode_utf8(&mut utf8).len());
        self.text.extend(utf8.iter().take(encoded));
        self.from.extend(std::iter::repeat_n(small(origin), encoded));
    }
}

/// Invisible characters gone; full-width forms and foreign digits made ASCII, and so are odd
/// dashes and spaces between digits.
fn plain_character(rest: &[u8]) -> Option<(usize, Option<char>)> {
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
        _ => digit(char).map(|digit| (taken, Some(digit))),
    }
}

/// RFC 3986 percent-encoding, for ASCII.
fn percent(rest: &[u8]) -> Option<(usize, Option<char>)> {
    Some((3, Some(ascii(hex(rest.get(1..3)?)?)?)))
}

/// HTML character references: numeric ones and the few names that spell ASCII.
fn entity(rest: &[u8]) -> Option<(usize, Option<char>)> {
    let length = rest.iter().take(12).position(|byte| *byte == b';')?;
    let name = std::str::from_utf8(rest.get(1..length)?).ok()?;
    let char = match name.strip_prefix('#') {
        Some(number) => match number.strip_prefix(['x', 'X']) {
            Some(digits) => char::from_u32(u32::from_str_radix(digits, 16).ok()?)?,
            None => char::from_u32(number.parse().ok()?)?,
        },
        None => named(name)?,
    };
    Some((length + 1, Some(char)))
}

/// `\u0040`, `\x40` and `\/` as they stand in text that was escaped once more.
fn backslash(rest: &[u8]) -> Option<(usize, Option<char>)> {
    match rest.get(1)? {
        b'u' => Some((6, Some(char::from_u32(hex(rest.get(2..6)?)?)?))),
        b'x' => Some((4, Some(ascii(hex(rest.get(2..4)?)?)?))),
        b'/' => Some((2, Some('/'))),
        _ => None,
    }
}

fn named(name: &str) -> Option<char> {
    const NAMES: &[(&str, char)] = &[
        ("amp", '&'),
        ("lt", '<'),
        ("gt", '>'),
        ("quot", '"'),
        ("apos", '\''),
        ("nbsp", ' '),
        ("commat", '@'),
        ("period", '.'),
        ("lowbar", '_'),
        ("hyphen", '-'),
        ("dash", '-'),
        ("colon", ':'),
        ("sol", '/'),
        ("plus", '+'),
        ("equals", '='),
        ("num", '#'),
    ];
    NAMES.iter().find(|(known, _)| *known == name).map(|(_, char)| *char)
}

fn hex(digits: &[u8]) -> Option<u32> {
    digits.iter().try_fold(0, |sum, digit| Some(sum * 16 + char::from(*digit).to_digit(16)?))
}

fn ascii(value: u32) -> Option<char> {
    char::from_u32(value).filter(char::is_ascii)
}

fn first_char(rest: &[u8]) -> Option<(usize, char)> {
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
            | '\u{34F}'
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

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<String> {
        let views = [plain, tags, terminal].into_iter().filter_map(|read| read(text.as_bytes()));
        views.map(|view| String::from_utf8(view.text).unwrap()).collect()
    }

    #[test]
    fn each_disguise_is_taken_off() {
        let email = "ada@example.org";
        for disguised in [
            "ada\u{200B}@exam\u{FEFF}ple.org",
            "ada\u{FF20}example.org",
            "ada%40example.org",
            "ada&#64;example.org",
            "ada&#x40;example.org",
            "ada&commat;example&period;org",
            "ada\\u0040example.org",
            "ada\\x40example.org",
            "ada@exam\0ple.org",
            "ada@\u{1}example.\u{7f}org",
            "ada@exa\u{c}mple\u{85}.o\u{202a}rg",
            "ada@\u{1b}[1mexample\u{1b}[0m.org",
            "ada@exam\u{1b}]8;;https://x.example\u{7}ple.org",
        ] {
            assert!(texts(disguised).iter().any(|text| text == email), "{disguised:?}");
        }
        let tags: String =
            email.chars().filter_map(|c| char::from_u32(0xE0000 + c as u32)).collect();
        assert!(texts(&tags).iter().any(|text| text == email));
    }

    #[test]
    fn ordinary_text_has_no_views() {
        for text in ["", "plain", "100 % of it", "a & b", "C:\\dir", "Grüße, 世界"] {
            assert!(texts(text).is_empty(), "{text:?}");
        }
    }

    #[test]
    fn offsets_lead_back_to_the_origin() {
        let view = plain(b"a%40b").unwrap();

        assert_eq!(view.text, b"a@b");
        assert_eq!(view.from, [0, 1, 4, 5]);
    }
}
