//! Readers that take escapes and disguises out of a text, byte by byte.

use std::ops::Range;

use crate::terminal::sequence_length;
use crate::{
    body::segment::small,
    views::{
        characters::{Neighbours, Step, first_char, plain_character},
        escapes,
    },
};

/// A text read another way, and where each of its bytes came from.
#[derive(Default)]
pub(crate) struct Unescaped {
    pub(crate) text: Vec<u8>,
    /// One offset per byte, and one for the end.
    pub(crate) from: Vec<u32>,
}

/// The text with every escape and disguise taken off at once; `None` when there is none.
pub(crate) fn plain(text: &[u8]) -> Option<Unescaped> {
    let mut neighbours = Neighbours::default();
    let step = |text: &[u8], at: usize| {
        let rest = text.get(at..)?;
        match rest.first()? {
            b'%' => escapes::percent(rest),
            b'&' => escapes::entity(rest),
            b'\\' => escapes::backslash(rest),
            _ => plain_character(text, at, || neighbours.are_ascii(text, at)),
        }
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
pub(crate) fn controls(text: &[u8]) -> usize {
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
pub(crate) fn tags(text: &[u8]) -> Option<Unescaped> {
    let step = |text: &[u8], at: usize| {
        let (taken, char) = first_char(text.get(at..)?)?;
        matches!(char, '\u{E0020}'..='\u{E007E}')
            .then(|| (taken, char::from_u32(u32::from(char) - 0xE0000)))
    };
    read(text, |rest| memchr::memchr(0xF3, rest), step)
}

/// The text with the escapes taken off whose backslashes are doubled; `None` when there are none.
pub(crate) fn doubled(text: &[u8]) -> Option<Unescaped> {
    let step = |text: &[u8], at: usize| escapes::doubled(text.get(at..)?);
    read(text, |rest| memchr::memmem::find(rest, b"\\\\"), step)
}

/// The text with the escapes of quoted-printable taken off (RFC 2045 §6.7); `None` when there are too few
/// of them to be certain: `a=41&b=42` is no text of a mail.
pub(crate) fn quoted(text: &[u8]) -> Option<Unescaped> {
    const CERTAIN: usize = 3;
    let mut escapes = 0;
    let step = |text: &[u8], at: usize| {
        let step = escapes::quoted(text, at)?;
        let (taken, char) = step;
        let is_followed = text.get(at + taken) == Some(&b'=');
        escapes += match char {
            None if has_digit(text, at) => CERTAIN,
            None => 2,
            Some('=') => CERTAIN,
            Some(_) if is_followed => CERTAIN,
            Some(_) => 1,
        };
        Some(step)
    };
    let read = read(text, |rest| memchr::memchr(b'=', rest), step);
    read.filter(|_| escapes >= CERTAIN)
}

/// Returns true if a digit stands near an offset, as in most values, and in few names that nothing is given to.
fn has_digit(text: &[u8], at: usize) -> bool {
    const NEAR: usize = 16;
    let near = text.get(at.saturating_sub(NEAR)..text.len().min(at + NEAR));
    near.is_some_and(|near| near.iter().any(u8::is_ascii_digit))
}

/// The text without the sequences that a terminal reads; `None` when there are none. A reader that
/// only drops control characters, which [`plain`] is, keeps what follows them.
pub(crate) fn terminal(text: &[u8]) -> Option<Unescaped> {
    let step = |text: &[u8], at: usize| sequence_length(text.get(at..)?).map(|taken| (taken, None));
    read(text, |rest| memchr::memchr2(0x1B, 0xC2, rest), step)
}

/// Goes from one byte that may begin something to the next, and copies what is between. `step` is
/// given the text and the offset; where it gives nothing, one byte stays as it is.
pub(super) fn read(
    text: &[u8],
    find: impl Fn(&[u8]) -> Option<usize>,
    mut step: impl FnMut(&[u8], usize) -> Option<Step>,
) -> Option<Unescaped> {
    let mut out: Option<Unescaped> = None;
    let mut copied = 0;
    let mut at = 0;
    while let Some(skipped) = text.get(at..).and_then(&find) {
        at += skipped;
        let Some((taken, char)) = step(text, at) else {
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
    out.end(text.len());
    Some(out)
}

impl Unescaped {
    pub(super) fn copy(&mut self, text: &[u8], range: Range<usize>) {
        self.from.extend(small(range.start)..small(range.end));
        self.text.extend_from_slice(text.get(range).unwrap_or_default());
    }

    pub(super) fn end(&mut self, at: usize) {
        self.from.push(small(at));
    }

    /// The same by offsets of the text that was read another way `before`.
    pub(super) fn behind(mut self, before: &Self) -> Self {
        for at in &mut self.from {
            *at = before.from.get(*at as usize).copied().unwrap_or_default();
        }
        self
    }

    /// The parts of it in which something is read otherwise, with so many bytes and some of a word on either side.
    pub(super) fn changed_parts(&self, near: usize) -> Vec<Self> {
        let follows = |[at, next]: &[u32; 2]| at + 1 == *next;
        let changes = self.from.array_windows().enumerate().filter(|(_, pair)| !follows(pair));
        let begun = self.from.first().filter(|first| **first > 0).map(|_| 0);
        let mut ranges: Vec<Range<usize>> = Vec::new();
        for at in begun.into_iter().chain(changes.map(|(at, _)| at)) {
            let end = self.text.len().min(at + 1 + near);
            match ranges.last_mut() {
                Some(last) if at.saturating_sub(near) <= last.end => last.end = end,
                Some(_) | None => ranges.push(at.saturating_sub(near)..end),
            }
        }
        ranges.into_iter().map(|range| self.part(range)).collect()
    }

    /// A part of it that begins and ends with whole words.
    fn part(&self, Range { start, end }: Range<usize>) -> Self {
        let text = self.text.get(start..end).unwrap_or_default();
        let is_word = |byte: &&u8| byte.is_ascii_alphanumeric() || !byte.is_ascii();
        let cut = text.iter().take_while(is_word).count();
        let start = if start == 0 || cut == text.len() { start } else { start + cut };
        let text = self.text.get(start..end).unwrap_or_default();
        let cut = text.iter().rev().take_while(is_word).count();
        let end = if end == self.text.len() || cut == text.len() { end } else { end - cut };
        let text = self.text.get(start..end).unwrap_or_default().to_vec();
        Self { text, from: self.from.get(start..=end).unwrap_or_default().to_vec() }
    }

    fn put(&mut self, char: Option<char>, origin: usize) {
        let mut utf8 = [0; 4];
        let encoded = char.map_or(0, |char| char.encode_utf8(&mut utf8).len());
        self.text.extend(utf8.iter().take(encoded));
        self.from.extend(std::iter::repeat_n(small(origin), encoded));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<String> {
        let views = [plain, doubled, tags, terminal, quoted]
            .into_iter()
            .filter_map(|read| read(text.as_bytes()));
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
            "ada\\100example.org",
            "ada\\u{40}example.org",
            "ada\\U00000040example.org",
            "ada%u0040example.org",
            r"ada\\u0040example.org",
            r"ada\\\\x40example.org",
            "ada&#64example.org",
            "ada=40example.o=\nrg",
            "ada=40ex=61mple=2Eorg",
            "ada&#x0000040;example.org",
            "ada\\\n@exam\\\r\nple.org",
            "\u{430}da@ex\u{430}mple.\u{3bf}rg",
            "a\u{332}d\u{332}a@example.org",
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
        for text in [
            "", "plain", "100 % of it", "a & b", "C:\\dir", r"C:\\dir", "Grüße, 世界", "a=41&b=42",
            "m² ①", "x =\n y",
        ] {
            assert!(texts(text).is_empty(), "{text:?}");
        }
    }

    #[test]
    fn parts_hold_what_is_read_otherwise() {
        let text = format!("a%40b {0} c%40d {0}e", "word ".repeat(9));

        let parts = plain(text.as_bytes()).unwrap().changed_parts(12);

        let texts: Vec<&str> =
            parts.iter().map(|part| std::str::from_utf8(&part.text).unwrap()).collect();
        assert_eq!(texts, ["a@b word word ", " word  c@d word word "]);
        for part in &parts {
            assert_eq!(part.from.len(), part.text.len() + 1);
            let at = part.text.iter().position(|byte| *byte == b'@').unwrap();
            let origin = part.from[at] as usize;
            assert_eq!(text.get(origin..origin + 3), Some("%40"));
        }
    }

    #[test]
    fn offsets_lead_back_to_the_origin() {
        let view = plain(b"a%40b").unwrap();

        assert_eq!(view.text, b"a@b");
        assert_eq!(view.from, [0, 1, 4, 5]);
    }
}
