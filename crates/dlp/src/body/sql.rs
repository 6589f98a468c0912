//! Rows that statements of SQL insert.

use std::ops::Range;

use crate::body::text_lines::trimmed;

/// A longer name or number is none.
const LONGEST: usize = 64;

/// The names of a table and of its columns and the values below them, row by row, and where the statement ends.
pub(super) struct Inserted {
    pub(super) table: Range<usize>,
    pub(super) heads: Vec<Range<usize>>,
    pub(super) values: Vec<Range<usize>>,
    pub(super) end: usize,
}

/// The statement `INSERT INTO t (a, b) VALUES (1, 'x'), (2, 'y')` that begins there.
pub(super) fn inserted(text: &[u8], at: usize) -> Option<Inserted> {
    const BEFORE: usize = "insert into ".len();
    let open = at + memchr::memchr2(b'(', b'\n', text.get(at..)?)?;
    let table = trimmed(text, at + BEFORE..open);
    let mut read = Reader { text, at: open };
    let heads = read.list(Reader::name)?;
    read.word(b"values")?;
    let mut values = Vec::new();
    loop {
        values.extend(read.list(Reader::value).filter(|row| row.len() == heads.len())?);
        if !read.takes(b',') {
            return Some(Inserted { table, heads, values, end: read.at });
        }
    }
}

/// The names between brackets that open there.
pub(super) fn names(text: &[u8], open: usize) -> Option<Vec<Range<usize>>> {
    Reader { text, at: open }.list(Reader::name)
}

/// Returns true if a text begins with a word in any case.
pub(super) fn begins(text: &[u8], with: &[u8]) -> bool {
    text.get(..with.len()).is_some_and(|head| head.eq_ignore_ascii_case(with))
}

/// Reads a statement of SQL.
struct Reader<'a> {
    text: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn space(&mut self) {
        let rest = self.text.get(self.at..).unwrap_or_default();
        self.at += rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
    }

    fn takes(&mut self, sign: u8) -> bool {
        self.space();
        let is_next = self.text.get(self.at) == Some(&sign);
        self.at += usize::from(is_next);
        is_next
    }

    fn word(&mut self, word: &[u8]) -> Option<()> {
        self.space();
        begins(self.text.get(self.at..)?, word).then(|| self.at += word.len())
    }

    /// Items between brackets.
    fn list(&mut self, item: fn(&mut Self) -> Option<Range<usize>>) -> Option<Vec<Range<usize>>> {
        self.takes(b'(').then_some(())?;
        let mut items = Vec::new();
        loop {
            self.space();
            items.push(item(self)?);
            if !self.takes(b',') {
                break;
            }
        }
        self.takes(b')').then_some(items)
    }

    fn name(&mut self) -> Option<Range<usize>> {
        let rest = self.text.get(self.at..)?;
        let quotes = usize::from(matches!(rest.first(), Some(b'"' | b'`' | b'[')));
        let is_part = |byte: &&u8| byte.is_ascii_alphanumeric() || **byte == b'_';
        let length = rest.iter().skip(quotes).take(LONGEST).take_while(is_part).count();
        let start = self.at + quotes;
        self.at = start + length + quotes;
        (length > 0).then_some(start..start + length)
    }

    /// A text in quotes, in which a quote is doubled, or a number or a word.
    fn value(&mut self) -> Option<Range<usize>> {
        let rest = self.text.get(self.at..)?;
        if let [b'\'', inside @ ..] = rest {
            let mut end = 0;
            loop {
                end += memchr::memchr(b'\'', inside.get(end..)?)?;
                if inside.get(end + 1) != Some(&b'\'') {
                    break;
                }
                end += 2;
            }
            let start = self.at + 1;
            self.at = start + end + 1;
            return Some(start..start + end);
        }
        // A masked number stands in brackets.
        let is_part = |byte: &&u8| byte.is_ascii_alphanumeric() || b"_.+-[]:".contains(*byte);
        let length = rest.iter().take(LONGEST).take_while(is_part).count();
        let start = self.at;
        self.at += length;
        (length > 0).then_some(start..start + length)
    }
}
