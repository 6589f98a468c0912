//! Characters that a reader cannot see although a model or a terminal reads them: carriers of smuggled
//! instructions, and what moves cursors and turns directions.
//!
//! These count: control characters other than tab, line feed, carriage return and a form feed that
//! begins a line, and terminal sequences with all that belongs to them; controls of direction; tag
//! characters other than those of a flag; rows of zero-width characters. Marks of direction are ordinary
//! on a line that holds letters written from right to left, and count elsewhere. A single joiner, a soft
//! hyphen or a byte-order mark hides nothing and stays.

use std::{borrow::Cow, ops::Range};

use crate::terminal::sequence_length;

/// The name of the detector.
pub(crate) const NAME: &str = "hidden_characters";

/// A row of zero-width characters this long carries something.
const ROW: usize = 4;

/// Replacement for hidden characters: nothing, or a line feed for what begins a line or a page.
pub(crate) fn instead_of(matched: &[u8]) -> Cow<'static, str> {
    let breaks = matched.iter().any(|byte| matches!(byte, 0x0B | 0x0C));
    let begins_line = breaks || matched.windows(2).any(|pair| pair == [0xC2, 0x85]);
    Cow::Borrowed(if begins_line { "\n" } else { "" })
}

/// Written so that a whole block is looked at in one go.
pub(crate) fn has_suspect(bytes: &[u8]) -> bool {
    const BLOCK: usize = 64;
    let any = |block: &[u8]| block.iter().fold(false, |any, byte| any | is_suspect(*byte));
    bytes.chunks(BLOCK).any(any)
}

/// A control character, or what the hidden ones beyond ASCII begin with.
const fn is_suspect(byte: u8) -> bool {
    let is_control = byte < 0x20 && !matches!(byte, b'\t' | b'\n' | b'\r');
    is_control || matches!(byte, 0x7F | 0xC2 | 0xD8 | 0xE2 | 0xEF | 0xF3)
}

/// The runs of hidden characters of a text. No terminal sequence goes on beyond its line.
pub(crate) fn runs(text: &str) -> Vec<Range<usize>> {
    let mut runs = Vec::new();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        add_line(line, start, &mut runs);
        start += line.len();
    }
    runs
}

fn add_line(line: &str, start: usize, runs: &mut Vec<Range<usize>>) {
    let mut turns = None;
    let mut row = ZeroWidthRow::default();
    for piece in pieces(line) {
        let range = start + piece.range.start..start + piece.range.end;
        let is_hidden = match piece.kind {
            PieceKind::Sequence => true,
            PieceKind::Flag => false,
            PieceKind::Char(char) if is_mark(char) => {
                !*turns.get_or_insert_with(|| has_right_to_left(line))
            }
            // As programs write the end of a page, on a line of its own.
            PieceKind::Char('\u{c}') if piece.range.start == 0 => false,
            PieceKind::Char(char) => is_hidden(char),
        };
        if is_hidden {
            add(runs, range.clone());
        }
        if let Some(row) = row.extend(&piece.kind, is_hidden, range) {
            add(runs, row);
        }
    }
}

/// A part of a line that is judged as one.
struct LinePiece {
    range: Range<usize>,
    kind: PieceKind,
}

enum PieceKind {
    /// A terminal sequence.
    Sequence,
    /// A flag, with the tags that spell its region.
    Flag,
    Char(char),
}

fn pieces(line: &str) -> impl Iterator<Item = LinePiece> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = line.get(at..)?;
        let char = rest.chars().next()?;
        let (length, kind) = match (char, sequence_length(rest.as_bytes())) {
            (_, Some(length)) => (length, PieceKind::Sequence),
            (BLACK_FLAG, None) => (flag_length(rest), PieceKind::Flag),
            (char, None) => (char.len_utf8(), PieceKind::Char(char)),
        };
        let start = at;
        at += length;
        Some(LinePiece { range: start..at, kind })
    })
}

/// Zero-width characters side by side. Hidden ones between them are taken away and part none.
#[derive(Default)]
struct ZeroWidthRow {
    start: usize,
    length: usize,
}

impl ZeroWidthRow {
    /// Goes on with a piece; gives the row so far when it is long enough to count.
    fn extend(
        &mut self,
        kind: &PieceKind,
        is_hidden: bool,
        range: Range<usize>,
    ) -> Option<Range<usize>> {
        let is_part = matches!(kind, PieceKind::Char(char) if is_zero_width(*char));
        if is_part {
            if self.length == 0 {
                self.start = range.start;
            }
            self.length += 1;
        } else if !is_hidden {
            self.length = 0;
        }
        (is_part && self.length >= ROW).then_some(self.start..range.end)
    }
}

/// Adds a run, as part of those before where they touch.
fn add(runs: &mut Vec<Range<usize>>, mut run: Range<usize>) {
    while let Some(last) = runs.pop_if(|last| run.start <= last.end) {
        run = last.start.min(run.start)..last.end.max(run.end);
    }
    runs.push(run);
}

/// First character of flags of regions; tags that spell the region follow it (UTS #51, ED-14a).
const BLACK_FLAG: char = '\u{1f3f4}';

/// Length of a flag in bytes, with the tags that spell its region and the one that ends them:
/// without tags when they spell anything else.
fn flag_length(text: &str) -> usize {
    const TAG: usize = '\u{e0061}'.len_utf8();
    let is_letter =
        |char: &char| matches!(char, '\u{e0030}'..='\u{e0039}' | '\u{e0061}'..='\u{e007a}');
    let mut tags = text.chars().skip(1);
    let letters = tags.by_ref().take(7).take_while(is_letter).count();
    let is_ended = text.chars().nth(letters + 1) == Some('\u{e007f}');
    let is_region = (3..=6).contains(&letters) && is_ended;
    BLACK_FLAG.len_utf8() + if is_region { TAG * (letters + 1) } else { 0 }
}

/// Returns true if a line shows letters of right-to-left scripts.
fn has_right_to_left(line: &str) -> bool {
    pieces(line).any(|piece| match piece.kind {
        PieceKind::Char(char) => is_right_to_left(char),
        PieceKind::Sequence | PieceKind::Flag => false,
    })
}

/// The blocks of scripts that are written from right to left, such as Hebrew, Arabic and Adlam, but
/// for the mark among them.
fn is_right_to_left(char: char) -> bool {
    char != '\u{61c}'
        && matches!(char,
            '\u{590}'..='\u{8ff}'
            | '\u{fb1d}'..='\u{fdff}'
            | '\u{fe70}'..='\u{fefc}'
            | '\u{10800}'..='\u{10fff}'
            | '\u{1e800}'..='\u{1efff}')
}

/// Marks of direction: they show nothing, and turn what is neutral beside them.
fn is_mark(char: char) -> bool {
    matches!(char, '\u{61c}' | '\u{200e}' | '\u{200f}')
}

fn is_hidden(char: char) -> bool {
    char.is_control() && !matches!(char, '\t' | '\n' | '\r')
        || matches!(char,
            '\u{202a}'..='\u{202e}'
            | '\u{2066}'..='\u{206f}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}')
}

fn is_zero_width(char: char) -> bool {
    matches!(char, '\u{200b}'..='\u{200f}' | '\u{2060}'..='\u{2064}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn smuggled_text_is_seen() {
        for (text, run) in [
            ("a\u{1b}[2Kb", 1..5),
            ("a\u{1b}[0;8mb", 1..7),
            ("\u{1b}[1;31merror", 0..7),
            ("a\u{1b}]0;title", 1..3),
            ("a\u{1b}]8;;https://x.example\u{7}b", 1..24),
            ("a\u{9b}31mb", 1..6),
            ("binary \u{3}\u{7} as text", 7..9),
            ("one page\u{c}the next", 8..9),
            ("a\u{7f}b", 1..2),
            ("a\u{85}b", 1..3),
            ("a\u{2067}b\nc", 1..4),
            ("of \u{2068}three", 3..6),
            ("a\u{202c}", 1..4),
            ("call \u{200e}+1 415\nשלום", 5..8),
            ("a\u{61c}b", 1..3),
            ("\u{1f3f4}\u{e0061}\u{e0062}b", 4..12),
            ("x\u{e0041}\u{e0042}y", 1..9),
            ("a\u{202e}b", 1..4),
            ("a\u{200b}\u{200c}\u{200b}\u{200c}\u{200c}b", 1..16),
            ("a\u{200b}\u{200c}\u{1}\u{200b}\u{200c}b", 1..14),
        ] {
            assert_eq!(runs(text), std::slice::from_ref(&run), "{text:?}");
        }
    }

    #[test]
    fn honest_text_is_not() {
        for text in [
            "a\tb\r\nc",
            "one page\n\u{c}\nthe next",
            "\u{1f3f4}\u{e0067}\u{e0062}\u{e0073}\u{e0063}\u{e0074}\u{e007f}",
            "\u{feff}name,id",
            "co\u{ad}operate",
            "می\u{200c}خواهم",
            "שלום\u{200f}, (world)\u{200e}!",
            "السعر \u{200e}+1 415\u{61c} ريال",
            "👨\u{200d}👩\u{200d}👧",
            "café © 2026\u{a0}Ω",
        ] {
            assert!(runs(text).is_empty(), "{text:?}");
        }
    }

    #[test]
    fn letters_in_a_sequence_turn_no_line() {
        assert_eq!(runs("\u{1b}]0;שלום\u{7}a\u{200f}b"), [0..13, 14..17]);
    }

    #[test]
    fn pages_stay_apart() {
        assert_eq!(instead_of(b"\x0c"), "\n");
        assert_eq!(instead_of("\u{85}".as_bytes()), "\n");
        assert_eq!(instead_of(b"\x01\x0b"), "\n");
        assert_eq!(instead_of(b"\x1b[31m"), "");
        assert_eq!(instead_of(b"\x07"), "");
    }
}
