//! Names and values in texts that are nothing else: bodies of forms, connection strings, `.env` and INI files.

use std::ops::Range;

use crate::{body::sql, text::labels};

/// Names of a form or a file of settings, at most.
const MOST: usize = 1 << 20;

/// A longer name is none.
pub(super) const LONGEST: usize = 64;

/// Contents of a text, by ranges of it.
#[derive(Default)]
pub(crate) struct Records {
    pub(crate) names: Vec<Range<usize>>,
    /// Values, each with the place of its name.
    pub(crate) values: Vec<(usize, Range<usize>)>,
    /// Parts that are not read as prose as well: tables that are nothing else.
    cut: Vec<Range<usize>>,
    /// True if values are read as prose as well.
    pub(super) is_read_again: bool,
    /// True if something is written across cells.
    pub(super) is_read_whole: bool,
}

impl Records {
    /// The parts that are no prose, in order.
    pub(super) fn cut(&self) -> &[Range<usize>] {
        if self.is_read_whole { &[] } else { &self.cut }
    }

    pub(super) fn add(&mut self, name: Range<usize>, value: Range<usize>) {
        self.values.push((self.names.len(), value));
        self.names.push(name);
    }

    /// Bytes of all names and values.
    pub(super) fn bytes(&self) -> usize {
        let values = self.values.iter().map(|(_, value)| value);
        self.names.iter().chain(values).map(Range::len).sum()
    }

    /// Leaves a part out of the prose.
    pub(super) fn cut_out(&mut self, part: Range<usize>) {
        self.cut.push(part);
    }

    /// Reads all as prose as well if a name says only that a value follows.
    pub(super) fn doubt(&mut self, text: &[u8], name: &Range<usize>) {
        self.is_read_whole |= text.get(name.clone()).is_some_and(labels::is_value);
    }

    /// The same in order, unless there is nothing.
    pub(super) fn in_order(mut self, text: &[u8]) -> Option<Self> {
        (!self.values.is_empty()).then_some(())?;
        self.cut.sort_unstable_by_key(|part| part.start);
        // A private key goes over rows, items and cells.
        self.is_read_whole |= memchr::memmem::find(text, b"BEGIN ").is_some();
        self.is_read_again |= self.is_read_whole;
        Some(self)
    }

    /// All of a text that is read as prose as well: some forms are told by names and values together, such as `sig=…`.
    fn of_prose() -> Self {
        Self { is_read_again: true, ..Self::default() }
    }
}

/// Returns false if a text holds no records, which few bytes tell of most.
#[inline]
pub(super) fn may_hold(text: &str) -> bool {
    const SHORTEST: usize = 16;
    let text = text.as_bytes();
    text.len() >= SHORTEST
        && (text.starts_with(b"<")
            || matches!(text.first(), Some(b'I' | b'i')) && sql::begins(text, b"insert into ")
            || has_lines_or_names(text))
}

/// Returns true for lines, and for two names with a sign behind them, the first of which the text begins with.
fn has_lines_or_names(text: &[u8]) -> bool {
    let next = |from: usize| {
        let at = from + memchr::memchr2(b'\n', b'=', text.get(from..)?)?;
        Some((at, text.get(at) == Some(&b'\n')))
    };
    let Some((end, is_line)) = next(0) else { return false };
    if is_line {
        return true;
    }
    match next(end + 1) {
        Some((_, true)) => true,
        Some((second, false)) => {
            end <= LONGEST && text.iter().take(end).all(|byte| is_part(*byte) || *byte == b' ')
                || text.get(second..).is_some_and(|rest| memchr::memchr(b'\n', rest).is_some())
        }
        None => false,
    }
}

/// Returns true if a byte may be part of a name in a form.
fn is_part(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'[' | b']' | b'%')
}

/// The names and values that all of a text is made of.
pub(super) fn read(text: &str) -> Option<Records> {
    memchr::memchr(b'=', text.as_bytes())?;
    b"&; ".iter().find_map(|sign| form(text, *sign)).or_else(|| settings(text))
}

/// `a=1&b=2`, `Server=a;User Id=b` or `host=a user=b`, with nothing else in it.
fn form(text: &str, sign: u8) -> Option<Records> {
    let mut records = Records::of_prose();
    let mut at = 0;
    let sign = char::from(sign);
    for pair in text.trim_ascii_end().trim_end_matches(sign).split(sign) {
        let (name, value) = pair.split_once('=')?;
        let is_part = |byte: u8| is_part(byte) || byte == b' ' && sign == ';';
        let is_name = (1..=LONGEST).contains(&name.len()) && name.bytes().all(is_part);
        let is_value =
            value.bytes().all(|byte| byte.is_ascii_graphic() && !b"\"<>{}".contains(&byte));
        (is_name && is_value && records.names.len() < MOST).then_some(())?;
        let start = at + name.len() + 1;
        let indent = name.len() - name.trim_ascii_start().len();
        records.add(at + indent..at + name.len(), start..start + value.len());
        at += pair.len() + 1;
    }
    (records.names.len() > 1).then_some(records)
}

/// Lines of `NAME=value`, and below a `[section]` of `name = value`, with remarks and empty lines.
fn settings(text: &str) -> Option<Records> {
    let mut records = Records::of_prose();
    let mut has_section = false;
    let mut at = 0;
    for line in text.split('\n') {
        let start = at;
        at += line.len() + 1;
        let written = line.trim();
        if written.is_empty() || written.starts_with(['#', ';']) {
            continue;
        }
        if written.starts_with('[') && written.ends_with(']') {
            has_section = true;
            continue;
        }
        let rest = written.strip_prefix("export ").unwrap_or(written);
        let (name, value) = rest.split_once('=')?;
        let is_variable =
            name.bytes().all(|it| it.is_ascii_uppercase() || it.is_ascii_digit() || it == b'_');
        let name = if has_section { name.trim_end() } else { name };
        let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"_-. ".contains(&byte);
        let is_name = (1..=LONGEST).contains(&name.len()) && name.bytes().all(is_part);
        (is_name && (is_variable || has_section) && records.names.len() < MOST).then_some(())?;
        let value = unquoted(value.trim());
        let place = |part: &str| {
            let from = start + (part.as_ptr().addr() - line.as_ptr().addr());
            from..from + part.len()
        };
        records.add(place(name), place(value));
    }
    (records.names.len() > 1).then_some(records)
}

/// A value without quotes around it, or without a remark behind it.
fn unquoted(value: &str) -> &str {
    for quote in ['"', '\''] {
        if let Some(inside) = value.strip_prefix(quote) {
            return inside.split(quote).next().unwrap_or(inside);
        }
    }
    value.split(" #").next().unwrap_or(value).trim_end()
}
