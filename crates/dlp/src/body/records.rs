//! Names and values in texts that are nothing else: bodies of forms, `.env` and INI files, rows that SQL inserts.
//!
//! All of a text has to be of one form; what is not certain stays prose.

use std::ops::Range;

/// Values that are read, at most.
const MOST: usize = 10_000;

/// A longer name is none.
const LONGEST: usize = 64;

/// Contents of a text, by ranges of it.
pub(super) enum Records {
    /// Names and their values.
    Members(Vec<(Range<usize>, Range<usize>)>),
    /// Names of columns, and rows.
    Rows(Vec<Range<usize>>, Vec<Vec<Range<usize>>>),
}

impl Records {
    /// The ranges that are read, in order.
    pub(super) fn ranges(&self) -> Vec<Range<usize>> {
        match self {
            Self::Members(members) => {
                members.iter().flat_map(|(name, value)| [name.clone(), value.clone()]).collect()
            }
            Self::Rows(heads, rows) => heads.iter().chain(rows.iter().flatten()).cloned().collect(),
        }
    }
}

/// Returns false if a text holds no records, which few bytes tell of most.
#[inline]
pub(super) fn may_hold(text: &str) -> bool {
    const SHORTEST: usize = 24;
    let text = text.as_bytes();
    let is_insert = || matches!(text.first(), Some(b'I' | b'i')) && begins(text, b"insert into ");
    text.len() >= SHORTEST && (memchr::memchr2(b'&', b'\n', text).is_some() || is_insert())
}

/// The records that a text is made of.
pub(super) fn read(text: &str) -> Option<Records> {
    form(text).or_else(|| settings(text)).map(Records::Members).or_else(|| inserted(text))
}

fn begins(text: &[u8], with: &[u8]) -> bool {
    text.get(..with.len()).is_some_and(|head| head.eq_ignore_ascii_case(with))
}

/// `a=1&b=2`, with nothing else in it.
fn form(text: &str) -> Option<Vec<(Range<usize>, Range<usize>)>> {
    let mut members = Vec::new();
    let mut at = 0;
    for pair in text.trim_ascii_end().split('&') {
        let (name, value) = pair.split_once('=')?;
        let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.[]%".contains(&byte);
        let is_name = (1..=LONGEST).contains(&name.len()) && name.bytes().all(is_part);
        let is_value =
            value.bytes().all(|byte| byte.is_ascii_graphic() && !b"\"<>{}".contains(&byte));
        (is_name && is_value && members.len() < MOST).then_some(())?;
        let start = at + name.len() + 1;
        members.push((at..at + name.len(), start..start + value.len()));
        at += pair.len() + 1;
    }
    (members.len() > 1).then_some(members)
}

/// Lines of `NAME=value`, and below a `[section]` of `name = value`, with remarks and empty lines.
fn settings(text: &str) -> Option<Vec<(Range<usize>, Range<usize>)>> {
    let mut members = Vec::new();
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
        (is_name && (is_variable || has_section) && members.len() < MOST).then_some(())?;
        let value = unquoted(value.trim());
        let place = |part: &str| {
            let from = start + (part.as_ptr().addr() - line.as_ptr().addr());
            from..from + part.len()
        };
        members.push((place(name), place(value)));
    }
    (members.len() > 1).then_some(members)
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

/// `INSERT INTO t (a, b) VALUES (1, 'x'), (2, 'y')`.
fn inserted(text: &str) -> Option<Records> {
    let text = text.as_bytes();
    begins(text, b"insert into ").then_some(())?;
    let open = memchr::memchr(b'(', text)?;
    let mut read = Reader { text, at: open };
    let heads = read.list(Reader::name)?;
    read.word(b"values")?;
    let mut rows = Vec::new();
    let mut count = 0;
    loop {
        let row = read.list(Reader::value)?;
        count += row.len();
        (row.len() == heads.len() && count <= MOST).then_some(())?;
        rows.push(row);
        if !read.takes(b',') {
            break;
        }
    }
    let _has_end = read.takes(b';');
    read.space();
    (read.at == text.len()).then_some(Records::Rows(heads, rows))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str) -> Option<Vec<&str>> {
        read(text).map(|records| records.ranges().into_iter().map(|range| &text[range]).collect())
    }

    #[test]
    fn names_and_values_are_read_where_nothing_else_stands() {
        for (text, expected) in [
            (
                "ssn=536228726&name=Ann%20Lee&x=",
                vec!["ssn", "536228726", "name", "Ann%20Lee", "x", ""],
            ),
            ("# db\nDB_HOST=db\nexport DB_PASS='a b'\n", vec!["DB_HOST", "db", "DB_PASS", "a b"]),
            ("[db]\nuser = app # who\nssn=1\n", vec!["user", "app", "ssn", "1"]),
            (
                "INSERT INTO t (id, `ssn`) VALUES (1, 'it''s'),\n (2, NULL);",
                vec!["id", "ssn", "1", "it''s", "2", "NULL"],
            ),
        ] {
            assert_eq!(parts(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn other_texts_stay_prose() {
        for text in [
            "a=1&b",
            "https://x.example/?a=1&b=2",
            "if a=1 && b=2 then",
            "a = b\npassword = get(c)\n",
            "USER=x\nsome words",
            "INSERT INTO t (a, b) VALUES (1)",
            "INSERT INTO t (a) SELECT b FROM c",
            "insert into the slot (a) and values (b) too",
        ] {
            assert_eq!(parts(text), None, "{text}");
        }
    }
}
