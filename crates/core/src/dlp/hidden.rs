//! Characters that a reader cannot see although a model reads them: carriers of smuggled
//! instructions.
//!
//! Only what hardly stands in honest text counts: control characters, tag characters,
//! bidirectional overrides and isolates, and rows of zero-width characters. A single joiner, a
//! soft hyphen or a byte-order mark belongs to many scripts and files and stays.

use std::ops::Range;

use super::{
    body::{Body, Kind},
    kinds::Likelihood,
    scan::Match,
};

/// The name of the detector.
pub(super) const NAME: &str = "hidden_characters";

/// A row of zero-width characters this long carries something.
const ROW: usize = 4;

/// Finds runs of hidden characters in keys and texts. `active` is the index of the detector.
pub(super) fn scan(body: &Body, active: u16, matches: &mut Vec<Match>) {
    if !has_suspect(&body.text) {
        return;
    }
    for (index, segment) in (0..).zip(&body.segments) {
        match segment.kind {
            Kind::Key | Kind::Text => {}
            Kind::Number | Kind::View(_) => continue,
        }
        let bytes = body.slice(segment.range());
        if !has_suspect(bytes) {
            continue;
        }
        let start = segment.start as usize;
        let Ok(text) = std::str::from_utf8(bytes) else { continue };
        matches.extend(runs(text).into_iter().map(|run| Match {
            active,
            segment: index,
            range: start + run.start..start + run.end,
            likelihood: Likelihood::VeryLikely,
        }));
    }
}

/// Written so that a whole block is looked at in one go.
fn has_suspect(bytes: &[u8]) -> bool {
    const BLOCK: usize = 64;
    let any = |block: &[u8]| block.iter().fold(false, |any, byte| any | is_suspect(*byte));
    bytes.chunks(BLOCK).any(any)
}

/// A control character, or what the hidden ones beyond ASCII begin with. Zero separates the
/// segments of the buffer and does not count.
const fn is_suspect(byte: u8) -> bool {
    matches!(byte, 1..=8 | 11 | 12 | 14..=31 | 127 | 0xC2 | 0xE2 | 0xEF | 0xF3)
}

fn runs(text: &str) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    let mut row = 0..0;
    let mut length = 0;
    for (at, char) in text.char_indices() {
        let end = at + char.len_utf8();
        if is_hidden(char) {
            add(&mut runs, at..end);
        }
        if is_zero_width(char) {
            if row.end != at || length == 0 {
                row.start = at;
                length = 0;
            }
            row.end = end;
            length += 1;
            if length >= ROW {
                add(&mut runs, row.clone());
            }
        } else {
            length = 0;
        }
    }
    runs
}

/// Adds a run, as part of the last one where they touch.
fn add(runs: &mut Vec<Range<usize>>, run: Range<usize>) {
    match runs.last_mut() {
        Some(last) if run.start <= last.end => last.end = last.end.max(run.end),
        Some(_) | None => runs.push(run),
    }
}

fn is_hidden(char: char) -> bool {
    matches!(char,
        '\u{1}'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}' | '\u{7f}'..='\u{84}'
        | '\u{86}'..='\u{9f}'
        | '\u{202a}'..='\u{202e}'
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
    fn smuggled_text_is_seen_and_honest_text_is_not() {
        for (text, run) in [
            ("a\u{1b}[31mb", 1..2),
            ("x\u{e0041}\u{e0042}y", 1..9),
            ("a\u{202e}b", 1..4),
            ("a\u{200b}\u{200c}\u{200b}\u{200c}\u{200c}b", 1..16),
        ] {
            assert_eq!(runs(text), std::slice::from_ref(&run), "{text:?}");
        }
        for text in [
            "a\tb\r\nc",
            "\u{feff}name,id",
            "co\u{ad}operate",
            "می\u{200c}خواهم",
            "👨\u{200d}👩\u{200d}👧",
        ] {
            assert!(runs(text).is_empty(), "{text:?}");
        }
    }
}
