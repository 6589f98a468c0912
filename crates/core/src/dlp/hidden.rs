//! Characters that a reader cannot see although a model reads them: carriers of smuggled
//! instructions.
//!
//! Only what hardly stands in honest text counts: tag characters other than those of a flag,
//! bidirectional overrides, embeddings and isolates that nothing ends, rows of zero-width
//! characters, and terminal sequences that do more than colour. A single joiner, a soft hyphen, a
//! byte-order mark, a page break or a control character of a binary file hides nothing and stays.

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
    if !body.has_odd(body.segments.len()) {
        return;
    }
    for (index, segment) in (0..).zip(&body.segments) {
        match segment.kind {
            Kind::Key | Kind::Text => {}
            Kind::Number | Kind::View(_) | Kind::Joined(_) => continue,
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

/// An escape, or what the hidden ones beyond ASCII begin with.
const fn is_suspect(byte: u8) -> bool {
    matches!(byte, 0x1B | 0xC2 | 0xE2 | 0xEF | 0xF3)
}

fn runs(text: &str) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    let mut row = 0..0;
    let mut length = 0;
    // Where directions were begun that are not ended yet on this line.
    let mut open: Vec<Range<usize>> = Vec::new();
    let mut chars = text.char_indices();
    while let Some((at, char)) = chars.next() {
        let end = at + char.len_utf8();
        let rest = chars.as_str();
        match char {
            BLACK_FLAG => {
                if let Some(tags) = flag(rest) {
                    chars.nth(tags - 1);
                }
            }
            '\u{1b}' | '\u{9b}' if does_more_than_colour(char, rest) => add(&mut runs, at..end),
            '\u{202a}' | '\u{202b}' | '\u{2066}'..='\u{2068}' => open.push(at..end),
            '\u{202c}' | '\u{2069}' => drop(open.pop()),
            '\n' => {
                for opened in open.drain(..) {
                    insert(&mut runs, opened);
                }
            }
            _ if is_hidden(char) => add(&mut runs, at..end),
            _ => {}
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
    for opened in open {
        insert(&mut runs, opened);
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

/// Adds a run that may begin before the last one.
fn insert(runs: &mut Vec<Range<usize>>, run: Range<usize>) {
    let at = runs.partition_point(|known| known.start < run.start);
    runs.insert(at, run);
}

/// What flags of regions begin with; tags that spell the region follow it (UTS #51, ED-14a).
const BLACK_FLAG: char = '\u{1f3f4}';

/// How many tags spell the region of a flag, with the one that ends them; `None` when they spell
/// anything else.
fn flag(rest: &str) -> Option<usize> {
    let is_letter =
        |char: &char| matches!(char, '\u{e0030}'..='\u{e0039}' | '\u{e0061}'..='\u{e007a}');
    let letters = rest.chars().take_while(is_letter).count();
    let is_ended = rest.chars().nth(letters) == Some('\u{e007f}');
    ((3..=6).contains(&letters) && is_ended).then_some(letters + 1)
}

/// Whether a terminal sequence does anything but choose a colour or a weight, or chooses to
/// conceal (ECMA-48, SGR 8).
fn does_more_than_colour(char: char, rest: &str) -> bool {
    let parameters = match char {
        '\u{1b}' => match rest.strip_prefix('[') {
            Some(parameters) => parameters,
            // Window titles, links and the like; a lone escape does nothing.
            None => return rest.starts_with([']', 'P', '_', '^', 'X']),
        },
        _ => rest,
    };
    let is_parameter = |char: char| char.is_ascii_digit() || matches!(char, ';' | ':' | '?');
    let end = parameters.find(|char| !is_parameter(char)).unwrap_or(parameters.len());
    let (chosen, after) = parameters.split_at_checked(end).unwrap_or_default();
    match after.chars().next() {
        Some('m') => conceals(chosen),
        Some(last) => last.is_ascii_alphabetic(),
        None => false,
    }
}

/// Whether one of the codes conceals; those that follow 38, 48 and 58 name a colour.
fn conceals(codes: &str) -> bool {
    let mut codes = codes.split([';', ':']).map(|code| code.trim_start_matches('0'));
    while let Some(code) = codes.next() {
        match code {
            "8" => return true,
            "38" | "48" | "58" => {
                let parts = if codes.next() == Some("2") { 3 } else { 1 };
                codes.nth(parts - 1);
            }
            _ => {}
        }
    }
    false
}

fn is_hidden(char: char) -> bool {
    matches!(char,
        '\u{202d}' | '\u{202e}'
        | '\u{206a}'..='\u{206f}'
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
            ("a\u{1b}[2Kb", 1..2),
            ("a\u{1b}[0;8mb", 1..2),
            ("a\u{1b}]0;title", 1..2),
            ("a\u{2067}b\nc", 1..4),
            ("\u{1f3f4}\u{e0061}\u{e0062}b", 4..12),
            ("x\u{e0041}\u{e0042}y", 1..9),
            ("a\u{202e}b", 1..4),
            ("a\u{200b}\u{200c}\u{200b}\u{200c}\u{200c}b", 1..16),
        ] {
            assert_eq!(runs(text), std::slice::from_ref(&run), "{text:?}");
        }
        for text in [
            "a\tb\r\nc",
            "one page\u{c}the next",
            "\u{1b}[38;5;8mgrey",
            "\u{1b}[1;31merror\u{1b}[0m: no such file",
            "call \u{202a}+1 415 555 0132\u{202c}",
            "of \u{2068}three\u{2069} files",
            "\u{1f3f4}\u{e0067}\u{e0062}\u{e0073}\u{e0063}\u{e0074}\u{e007f}",
            "binary \u{3}\u{7} as text",
            "\u{feff}name,id",
            "co\u{ad}operate",
            "می\u{200c}خواهم",
            "👨\u{200d}👩\u{200d}👧",
        ] {
            assert!(runs(text).is_empty(), "{text:?}");
        }
    }
}
