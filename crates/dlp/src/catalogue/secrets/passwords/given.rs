//! Values that stand in a text: where each ends, and in which way it is given to a name.

use std::ops::Range;

/// Longest value.
pub(super) const LONGEST: usize = 256;
/// Space between a name, a sign and a value.
pub(super) const SPACE: usize = 16;

/// Way in which a value is given to a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// `PASSWORD=value`, and JSON or XML: nothing else stands there.
    Plain,
    /// The same in a line of a program, between quotes.
    Quoted,
    /// All that is left of a line.
    Line,
    /// A word of a sentence or a command line.
    Word,
}

/// A value, and whether quotes stand around it.
pub(super) struct Value {
    pub(super) range: Range<usize>,
    pub(super) is_quoted: bool,
}

/// Number of spaces and tabs at an offset.
pub(super) fn space(text: &[u8], at: usize) -> usize {
    let is_space = |byte: &&u8| matches!(**byte, b' ' | b'\t');
    text.get(at..).unwrap_or_default().iter().take(SPACE).take_while(is_space).count()
}

/// Returns true if a name stands in the query of an address.
pub(super) fn is_query(text: &[u8], name: &Range<usize>) -> bool {
    matches!(name.start.checked_sub(1).and_then(|at| text.get(at)), Some(b'?' | b'&'))
}

/// The value that begins at an offset.
pub(super) fn value_at(text: &[u8], at: usize, name: &Range<usize>) -> Option<Value> {
    let rest = text.get(at..text.len().min(at + LONGEST + 4))?;
    let (open, quote) = match rest {
        [b'\\' | b'r' | b'b' | b'u' | b'@', quote @ (b'"' | b'\''), ..] => (2, Some(*quote)),
        [quote @ (b'"' | b'\'' | b'`'), ..] => (1, Some(*quote)),
        _ => (0, None),
    };
    let inside = rest.get(open..)?;
    if let Some(quote) = quote {
        let end = inside.iter().position(|byte| *byte == quote || matches!(byte, b'\n' | b'\r'))?;
        let is_closed = inside.get(end) == Some(&quote);
        let end =
            end - usize::from(rest.first() == Some(&b'\\') && inside.get(..end)?.ends_with(b"\\"));
        let range = at + open..at + open + end;
        return is_closed.then_some(Value { range, is_quoted: true });
    }
    let is_query = is_query(text, name);
    let ends = |byte: &u8| {
        byte.is_ascii_whitespace() || b"\"'`<>,;".contains(byte) || *byte == b'&' && is_query
    };
    let length = inside.iter().position(ends).unwrap_or(inside.len());
    let escape =
        inside.get(..length)?.array_windows::<2>().position(|pair| matches!(pair, b"\\n" | b"\\r"));
    let value = inside.get(..escape.unwrap_or(length))?;
    let is_tail =
        |byte: &&u8| matches!(**byte, b'.' | b'!' | b'?' | b')' | b']' | b'}' | b'*' | b':');
    let tail = if value.iter().any(|byte| matches!(byte, b'(' | b'[' | b'{')) {
        0
    } else {
        value.iter().rev().take_while(is_tail).count()
    };
    let kept = if tail == value.len() { 0 } else { tail };
    let range = at..at + value.len() - kept;
    (!range.is_empty()).then_some(Value { range, is_quoted: false })
}
