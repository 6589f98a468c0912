//! The file that is scanned, in pieces of bounded size.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Cursor, Read},
    mem,
    ops::Range,
    path::Path,
};

use clap::ValueEnum;
use portcullis_core::json::{Bounds, parse};

use crate::cli::output::Failure;

/// Form of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Form {
    Auto,
    Json,
    Jsonl,
    Text,
}

/// A file from its beginning to its end.
pub(super) struct Source {
    input: Box<dyn BufRead>,
    /// The bytes that the next window begins with.
    carried: Vec<u8>,
    /// Offset of the next window, and the number of lines that end before.
    start: u64,
    lines: u64,
    /// End of what the windows so far owned.
    owned: u64,
    ended: bool,
}

/// A part of a text.
pub(super) struct Window {
    pub(super) text: String,
    /// The place in the file.
    pub(super) start: u64,
    /// Number of lines that end before it.
    pub(super) lines: u64,
    /// A match that begins here is reported with this window; others with one of its neighbours.
    pub(super) owned: Range<usize>,
}

/// Outcome of reading a line.
pub(super) enum Line {
    Read,
    TooLong,
    End,
}

/// Bytes of one JSON value; what it holds is bounded more tightly.
const MOST_JSON: u64 = 32 << 20;

/// Bytes that two windows share.
const OVERLAP: usize = 64 << 10;

/// Bytes that are looked at to tell the form.
const HEAD: u64 = 64 << 10;

impl Source {
    /// Said of JSON that is beyond the bound.
    pub(super) const TOO_LONG: &str = "the JSON is longer than 32 MiB";

    /// Opens a file, or standard input for `-`, and tells its form where `form` does not.
    pub(super) fn open(path: &Path, form: Form) -> Result<(Self, Form), Failure> {
        let unreadable = |error| format!("`{}` cannot be read: {error}", path.display());
        let mut input: Box<dyn BufRead> = if path.as_os_str() == "-" {
            Box::new(BufReader::new(io::stdin()))
        } else {
            Box::new(BufReader::new(File::open(path).map_err(unreadable)?))
        };
        let mut head = Vec::new();
        input.by_ref().take(HEAD).read_to_end(&mut head).map_err(unreadable)?;
        let form = match form {
            Form::Auto => guess_form(path, &head),
            Form::Json | Form::Jsonl | Form::Text => form,
        };
        let input = Box::new(Cursor::new(head).chain(input));
        let carried = Vec::new();
        Ok((Self { input, carried, start: 0, lines: 0, owned: 0, ended: false }, form))
    }

    /// All of it, unless that is too long for JSON.
    pub(super) fn whole(&mut self) -> Result<Option<Vec<u8>>, Failure> {
        let mut bytes = Vec::new();
        let read = self.input.by_ref().take(MOST_JSON + 1).read_to_end(&mut bytes)?;
        Ok(u64::try_from(read).is_ok_and(|read| read <= MOST_JSON).then_some(bytes))
    }

    /// The next line; the rest of one that is too long is passed over.
    pub(super) fn line(&mut self, bytes: &mut Vec<u8>) -> Result<Line, Failure> {
        bytes.clear();
        if self.input.by_ref().take(MOST_JSON).read_until(b'\n', bytes)? == 0 {
            return Ok(Line::End);
        }
        if bytes.ends_with(b"\n") || self.input.fill_buf()?.is_empty() {
            return Ok(Line::Read);
        }
        while !bytes.ends_with(b"\n") {
            bytes.clear();
            if self.input.by_ref().take(MOST_JSON).read_until(b'\n', bytes)? == 0 {
                break;
            }
        }
        Ok(Line::TooLong)
    }

    /// The next window of at most `most` bytes.
    pub(super) fn window(&mut self, most: usize) -> Result<Option<Window>, Failure> {
        let mut bytes = mem::take(&mut self.carried);
        let room = most.max(LEAST_WINDOW).saturating_sub(bytes.len());
        self.input.by_ref().take(u64::try_from(room)?).read_to_end(&mut bytes)?;
        if self.ended || bytes.is_empty() {
            return Ok(None);
        }
        self.ended = self.input.fill_buf()?.is_empty();
        let cut = self.whole_characters(&bytes)?;
        let rest = bytes.split_off(cut);
        let text = String::from_utf8(bytes)?;
        let overlap = OVERLAP.min(most / 4);
        let length = text.len();
        let owned_end = if self.ended { length } else { length.saturating_sub(overlap / 2) };
        let owned = usize::try_from(self.owned - self.start)?..owned_end;
        let window = Window { text, start: self.start, lines: self.lines, owned };
        let next = window.text.floor_char_boundary(length.saturating_sub(overlap));
        let (passed, shared) = window.text.as_bytes().split_at(next);
        self.carried.extend(shared.iter().chain(&rest));
        self.owned = self.start + u64::try_from(owned_end)?;
        self.start += u64::try_from(next)?;
        self.lines += newlines(passed);
        Ok(Some(window))
    }

    /// End of the last character that is there in full.
    fn whole_characters(&self, bytes: &[u8]) -> Result<usize, Failure> {
        match str::from_utf8(bytes) {
            Ok(text) => Ok(text.len()),
            Err(error) if error.error_len().is_none() && !self.ended => Ok(error.valid_up_to()),
            Err(error) => {
                let at = self.start + u64::try_from(error.valid_up_to())?;
                Err(format!("it is neither JSON nor text in UTF-8 (byte {at})").into())
            }
        }
    }
}

/// A window holds at least a few characters.
const LEAST_WINDOW: usize = 16;

/// Number of lines that end in a text.
pub(super) fn newlines(text: &[u8]) -> u64 {
    text.iter().map(|byte| u64::from(*byte == b'\n')).sum()
}

/// The form that a name and the first bytes tell.
fn guess_form(path: &Path, head: &[u8]) -> Form {
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    let begins_as_json = begins_as_json(head);
    match extension {
        "jsonl" | "ndjson" => Form::Jsonl,
        _ if begins_as_json && is_value_a_line(head) => Form::Jsonl,
        "json" => Form::Json,
        _ if begins_as_json => Form::Json,
        _ => Form::Text,
    }
}

/// Returns true for `{"`, `{}`, `[{`, `["` and `[]`, with white space between. Other text begins
/// with a bracket, too: `[section]`, `{{ template }}`.
fn begins_as_json(head: &[u8]) -> bool {
    let mut letters = head.iter().filter(|byte| !byte.is_ascii_whitespace());
    matches!(
        (letters.next(), letters.next()),
        (Some(b'{'), Some(b'"' | b'}')) | (Some(b'['), Some(b'{' | b'"' | b']'))
    )
}

/// Returns true if the first line is a value of its own, and not the last line.
fn is_value_a_line(head: &[u8]) -> bool {
    let mut lines = head.trim_ascii_start().splitn(2, |byte| *byte == b'\n');
    let first = lines.next().unwrap_or_default();
    let has_more = lines.next().is_some_and(|rest| !rest.trim_ascii().is_empty());
    has_more && parse(first, Bounds::UPSTREAM).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(text: &str) -> Source {
        let input = Box::new(Cursor::new(text.as_bytes().to_vec()));
        Source { input, carried: Vec::new(), start: 0, lines: 0, owned: 0, ended: false }
    }

    #[test]
    fn every_byte_of_a_text_is_owned_by_one_window() {
        let text = "Größe 1\nund 二\n".repeat(500);

        for most in [1, 16, 17, 100, 1000, text.len() - 1, text.len(), text.len() + 1] {
            let mut source = source(&text);
            let mut next = 0;
            while let Some(window) = source.window(most).unwrap() {
                let start = usize::try_from(window.start).unwrap();
                assert!(window.text.len() <= most.max(LEAST_WINDOW));
                assert_eq!(text[start..start + window.text.len()], window.text);
                assert_eq!(window.lines, newlines(&text.as_bytes()[..start]));
                assert_eq!(start + window.owned.start, next, "{most}");
                next = start + window.owned.end;
            }
            assert_eq!(next, text.len(), "{most}");
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_told_by_their_place() {
        let input = Box::new(Cursor::new(b"abc\xFFdef".to_vec()));
        let mut source =
            Source { input, carried: Vec::new(), start: 0, lines: 0, owned: 0, ended: false };

        let error = source.window(100).err().unwrap().to_string();

        assert!(error.contains("byte 3"), "{error}");
    }

    #[test]
    fn the_form_is_told_by_the_name_and_the_beginning() {
        for (name, head, form) in [
            ("a.json", "{\n  \"a\": 1\n}\n", Form::Json),
            ("a.json", "// a comment\n{}", Form::Json),
            ("-", "{\"a\": 1}\n", Form::Json),
            ("-", "\n[\n{\"a\": 1}]", Form::Json),
            ("a.log", "{\"a\": 1}\n{\"a\": 2}\n", Form::Jsonl),
            ("a.jsonl", "{\"a\": 1}\n", Form::Jsonl),
            ("a.ini", "[section]\na = 1\n", Form::Text),
            ("a.html", "{{ name }}", Form::Text),
            ("a.txt", "4111", Form::Text),
            ("a.txt", "", Form::Text),
        ] {
            assert_eq!(guess_form(Path::new(name), head.as_bytes()), form, "{name} {head}");
        }
    }

    #[test]
    fn a_line_ends_at_the_end_of_the_file_too() {
        let mut source = source("one\n\ntwo");
        let mut bytes = Vec::new();
        let mut read = Vec::new();

        while let Line::Read = source.line(&mut bytes).unwrap() {
            read.push(String::from_utf8(bytes.clone()).unwrap());
        }

        assert_eq!(read, ["one\n", "\n", "two"]);
    }
}
