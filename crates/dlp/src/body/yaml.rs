//! YAML in texts, as far as it is certain: `key: value`, lists, nesting by indentation, quoted scalars, blocks.
//!
//! All of a text has to be of it. It becomes JSON whose names and texts are those of the text, byte by byte,
//! and is walked as that; what is not certain stays prose. People write lines of `Key: value` as well: a text
//! of nothing else is prose besides, and of its values only single words are read.

use std::ops::Range;

use portcullis_json::{Bounds, Document};

/// Lines and levels, at most.
const MOST_LINES: usize = 20_000;
const DEEPEST: usize = 32;

/// A longer key is none.
const LONGEST_KEY: usize = 64;

/// The shortest text that is looked at.
const SHORTEST: usize = 12;

/// Contents of a text in YAML.
pub(super) struct Outline {
    pub(super) document: Document,
    /// Places of the names and texts of the document in the text.
    pub(super) leaves: Vec<Range<usize>>,
    /// True if it has neither lists, levels nor quotes.
    pub(super) is_flat: bool,
}

/// A line that says something.
struct Line<'t> {
    indent: usize,
    /// Offset of what is written, without indentation.
    start: usize,
    written: &'t str,
}

/// Reads lines, and writes JSON.
struct Reader<'t> {
    text: &'t str,
    lines: Vec<Line<'t>>,
    at: usize,
    json: String,
    leaves: Vec<Range<usize>>,
    /// Keys that hold something.
    named: usize,
    is_flat: bool,
}

/// Reads a text that is YAML throughout.
pub(super) fn read(text: &str, bounds: Bounds) -> Option<Outline> {
    let begins = text.trim_ascii_start();
    let first = begins.lines().next()?;
    let may_begin =
        first.starts_with(['-', '#']) || first.contains(": ") || first.trim_end().ends_with(':');
    (text.len() >= SHORTEST && may_begin).then_some(())?;
    let lines = lines(text)?;
    let is_flat = lines.iter().all(is_flat);
    let mut reader = Reader {
        text,
        lines,
        at: 0,
        json: String::with_capacity(text.len() + text.len() / 4),
        leaves: Vec::new(),
        named: 0,
        is_flat,
    };
    reader.documents()?;
    (reader.named > 1).then_some(())?;
    let Reader { json, leaves, .. } = reader;
    let document = Document::parse(json.as_bytes(), bounds).ok()?;
    Some(Outline { document, leaves, is_flat })
}

/// Returns true if neither a level, a list nor quotes begin in a line.
fn is_flat(line: &Line<'_>) -> bool {
    let is_quoted = |part: &str| part.trim_start().starts_with(['"', '\'']);
    line.indent == 0 && !is_item(line.written) && !line.written.split(": ").any(is_quoted)
}

/// The lines that hold more than a remark.
fn lines(text: &str) -> Option<Vec<Line<'_>>> {
    let mut lines = Vec::new();
    let mut start = 0;
    for line in text.split('\n') {
        let written = line.trim_start_matches(' ');
        let indent = line.len() - written.len();
        let kept = written.trim_end();
        if !kept.is_empty() && !kept.starts_with('#') {
            (lines.len() < MOST_LINES && !kept.starts_with('\t')).then_some(())?;
            lines.push(Line { indent, start: start + indent, written: kept });
        }
        start += line.len() + 1;
    }
    Some(lines)
}

impl<'t> Reader<'t> {
    /// Documents between lines of dashes.
    fn documents(&mut self) -> Option<()> {
        let is_mark = |line: &Line<'_>| line.indent == 0 && line.written == "---";
        let marks = self.lines.iter().skip(1).filter(|line| is_mark(line)).count();
        if self.lines.first().is_some_and(is_mark) {
            self.at = 1;
        }
        if marks > 0 {
            self.json.push('[');
        }
        self.node(0, 0)?;
        while self.lines.get(self.at).is_some_and(is_mark) {
            self.at += 1;
            self.json.push(',');
            self.node(0, 0)?;
        }
        if marks > 0 {
            self.json.push(']');
        }
        (self.at == self.lines.len()).then_some(())
    }

    /// A mapping or a list that is indented at least so far.
    fn node(&mut self, least: usize, depth: usize) -> Option<()> {
        let line = self.lines.get(self.at)?;
        let indent = line.indent;
        (indent >= least && depth < DEEPEST).then_some(())?;
        if is_item(line.written) { self.list(indent, depth) } else { self.mapping(indent, depth) }
    }

    fn list(&mut self, indent: usize, depth: usize) -> Option<()> {
        self.json.push('[');
        let mut is_first = true;
        while self.lines.get(self.at).is_some_and(|it| it.indent == indent && is_item(it.written)) {
            if !std::mem::take(&mut is_first) {
                self.json.push(',');
            }
            let line = self.lines.get_mut(self.at)?;
            let rest = line.written.get(1..)?.trim_start_matches(' ');
            let skipped = line.written.len() - rest.len();
            if rest.is_empty() {
                self.at += 1;
                self.below(indent + 1, depth)?;
            } else if is_item(rest) || key(rest).is_some() {
                // What stands behind the dash goes on in the lines that begin below it.
                *line =
                    Line { indent: indent + skipped, start: line.start + skipped, written: rest };
                self.node(indent + 1, depth + 1)?;
            } else {
                let start = line.start + skipped;
                self.at += 1;
                self.scalar(start, rest, indent)?;
            }
        }
        self.json.push(']');
        Some(())
    }

    fn mapping(&mut self, indent: usize, depth: usize) -> Option<()> {
        self.json.push('{');
        let mut is_first = true;
        while let Some(line) = self.lines.get(self.at).filter(|line| line.indent == indent) {
            if line.written == "---" || is_item(line.written) {
                break;
            }
            if !std::mem::take(&mut is_first) {
                self.json.push(',');
            }
            let (name, behind) = key(line.written)?;
            let start = line.start;
            let value = line.written.get(behind..)?;
            let rest = value.trim_start_matches(' ');
            let place = start + line.written.len() - rest.len();
            let quotes = usize::from(line.written.starts_with(['"', '\'']));
            self.at += 1;
            self.write(start + quotes, name);
            self.json.push(':');
            if rest.is_empty() || rest.starts_with('#') {
                let is_list = self
                    .lines
                    .get(self.at)
                    .is_some_and(|it| it.indent == indent && is_item(it.written));
                self.below(if is_list { indent } else { indent + 1 }, depth)?;
            } else {
                self.scalar(place, rest, indent)?;
            }
            self.named += 1;
        }
        self.json.push('}');
        (!is_first).then_some(())
    }

    /// The block that is nested below a key or a dash, or nothing.
    fn below(&mut self, least: usize, depth: usize) -> Option<()> {
        if self.lines.get(self.at).is_some_and(|next| next.indent >= least && next.written != "---")
        {
            return self.node(least, depth + 1);
        }
        self.json.push_str("null");
        Some(())
    }

    /// A scalar that begins at an offset, below something that is indented so far.
    fn scalar(&mut self, start: usize, written: &'t str, indent: usize) -> Option<()> {
        if written.starts_with(['|', '>']) {
            return self.block(written, indent);
        }
        let goes_on = self.lines.get(self.at).is_some_and(|next| next.indent > indent);
        (!goes_on).then_some(())?;
        for quote in ['"', '\''] {
            if let Some(inside) = written.strip_prefix(quote) {
                let end = closing(inside, quote)?;
                let behind = inside.get(end + 1..)?.trim_start();
                (behind.is_empty() || behind.starts_with('#')).then_some(())?;
                self.write(start + 1, inside.get(..end)?);
                return Some(());
            }
        }
        let plain = written.split(" #").next().unwrap_or(written).trim_end();
        let is_flow = plain.starts_with(['[', '{']);
        (is_flow || !plain.contains(": ") && !plain.ends_with(':')).then_some(())?;
        if self.is_flat && plain.contains(' ') {
            self.json.push_str("null");
        } else {
            self.write(start, plain);
        }
        Some(())
    }

    /// A block of lines that are indented further, as one text.
    fn block(&mut self, mark: &str, indent: usize) -> Option<()> {
        let signs = mark.split(" #").next().unwrap_or(mark).trim_end();
        let is_sign = |byte: u8| matches!(byte, b'|' | b'>' | b'+' | b'-' | b'1'..=b'9');
        (signs.len() <= 3 && signs.bytes().all(is_sign)).then_some(())?;
        let first = self.lines.get(self.at).filter(|line| line.indent > indent)?.start;
        let mut end = first;
        while let Some(line) = self.lines.get(self.at).filter(|line| line.indent > indent) {
            end = line.start + line.written.len();
            self.at += 1;
        }
        self.write(first, self.text.get(first..end)?);
        Some(())
    }

    fn write(&mut self, start: usize, text: &str) {
        self.leaves.push(start..start + text.len());
        portcullis_json::write_string(text, &mut self.json);
    }
}

fn is_item(written: &str) -> bool {
    written.starts_with("- ") || written == "-"
}

/// The key that a line begins with, without quotes, and the offset behind its colon.
fn key(written: &str) -> Option<(&str, usize)> {
    for quote in ['"', '\''] {
        if let Some(inside) = written.strip_prefix(quote) {
            let end =
                inside.get(..inside.len().min(LONGEST_KEY + 1)).unwrap_or(inside).find(quote)?;
            let behind = inside.get(end + 1..)?.strip_prefix(':')?;
            let is_end = behind.is_empty() || behind.starts_with(' ');
            return is_end.then(|| (inside.get(..end).unwrap_or_default(), end + 3));
        }
    }
    let length = written.bytes().take(LONGEST_KEY + 1).position(|byte| byte == b':')?;
    let name = written.get(..length)?;
    let is_part =
        |char: char| char.is_alphanumeric() || matches!(char, '_' | '-' | '.' | '/' | '$' | ' ');
    let is_end = matches!(written.as_bytes().get(length + 1), None | Some(b' '));
    let is_key = name
        .starts_with(|first: char| first.is_alphanumeric() || matches!(first, '_' | '.' | '$'))
        && name.chars().all(is_part)
        && name.split(' ').count() <= WORDS;
    (is_end && is_key).then_some((name, length + 1))
}

/// Words of a key without quotes, at most.
const WORDS: usize = 3;

/// Offset of the quote that ends a scalar.
fn closing(inside: &str, quote: char) -> Option<usize> {
    let bytes = inside.as_bytes();
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match (*byte, quote) {
            (b'\\', '"') => at += 2,
            (b'\'', '\'') if bytes.get(at + 1) == Some(&b'\'') => at += 2,
            (byte, quote) if char::from(byte) == quote => return Some(at),
            _ => at += 1,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> Option<String> {
        let outline = read(text, crate::body::embedded::bounds(64))?;
        let raw = outline.document.root().raw().to_owned();
        for (leaf, range) in outline.document.leaves().zip(&outline.leaves) {
            assert_eq!(leaf.text, &text[range.clone()], "{text}");
        }
        assert_eq!(outline.document.leaves().count(), outline.leaves.len());
        Some(raw)
    }

    #[test]
    fn what_is_certain_is_read() {
        for (text, expected) in [
            (
                "card:\n  number: 4111  # of Ann\n  cvc: '12'\n",
                r#"{"card":{"number":"4111","cvc":"12"}}"#,
            ),
            (
                "env:\n- name: A_B\n  value: \"x\\\"y\"\n- name: C\n",
                r#"{"env":[{"name":"A_B","value":"x\\\"y"},{"name":"C"}]}"#,
            ),
            ("# top\n---\na: '1'\nb: [1, 2]\n---\nc: d\n", r#"[{"a":"1","b":"[1, 2]"},{"c":"d"}]"#),
            ("Host: db1\nPassword: ask Ann\n", r#"{"Host":"db1","Password":null}"#),
            ("ids:\n  - 1\n  - - 2\n    - 3\nnone:\n", r#"{"ids":["1",["2","3"]],"none":null}"#),
            (
                "note: |-\n  one: 1\n\n  two\nend: x y\n",
                r#"{"note":"one: 1\n\n  two","end":"x y"}"#,
            ),
        ] {
            assert_eq!(json(text).as_deref().unwrap_or(""), expected, "{text}");
        }
    }

    #[test]
    fn other_texts_stay_prose() {
        for text in [
            "Note: the first: and the second\nmore: x\n",
            "one: two\nand some words\n",
            "- a list\n- of words\n",
            "Dear all: \nthis is the news of the week\n",
            "a: 1\na: 2\n",
            "key: \"open\nother: x\n",
            "a: b\n   c: d\n",
            "12:30: started\n12:31: ended\n",
        ] {
            assert_eq!(json(text), None, "{text}");
        }
    }
}
