//! Names and values in texts: bodies of forms, connection strings, `.env` and INI files, rows that SQL inserts, copies
//! or prints, CSV, TSV, tables of Markdown and HTML, lists below a line with a colon.
//!
//! What is not certain is prose as well.

use std::ops::Range;

use crate::{
    body::{
        columns::Columns,
        html_rows,
        sql::{self, Inserted},
        text_tables,
    },
    text::labels,
};

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

    /// Leaves a part out of the prose.
    pub(super) fn cut_out(&mut self, part: Range<usize>) {
        self.cut.push(part);
    }

    /// Reads all as prose as well if one of some names says only that a value follows: the one before names that.
    pub(super) fn doubt(&mut self, text: &[u8], names: &[Range<usize>]) {
        let is_value = |name: &Range<usize>| text.get(name.clone()).is_some_and(labels::is_value);
        self.is_read_whole |= names.iter().any(is_value);
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
    let is_insert =
        || matches!(text.first(), Some(b'I' | b'i')) && sql::begins(text, b"insert into ");
    text.len() >= SHORTEST
        && (memchr::memchr3(b'&', b'\n', b'=', text).is_some()
            || text.starts_with(b"<")
            || is_insert())
}

/// The names and values that all of a text is made of.
pub(super) fn read(text: &str) -> Option<Records> {
    b"&; ".iter().find_map(|sign| form(text, *sign)).or_else(|| settings(text))
}

/// `a=1&b=2`, `Server=a;User Id=b` or `host=a user=b`, with nothing else in it.
fn form(text: &str, sign: u8) -> Option<Records> {
    let mut records = Records::of_prose();
    let mut at = 0;
    let sign = char::from(sign);
    for pair in text.trim_ascii_end().trim_end_matches(sign).split(sign) {
        let (name, value) = pair.split_once('=')?;
        let is_part = |byte: u8| {
            byte.is_ascii_alphanumeric() || b"_-.[]%".contains(&byte) || byte == b' ' && sign == ';'
        };
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

/// The tables, lists and statements that stand in a text, with prose around them or without.
pub(crate) fn in_lines(text: &[u8]) -> Option<Records> {
    let mut records = Records::default();
    html_rows::read(text, &mut records);
    read_lines(text, &mut records);
    if records.values.is_empty() {
        return None;
    }
    records.cut.sort_unstable_by_key(|part| part.start);
    // A private key goes over rows, items and cells.
    records.is_read_whole |= memchr::memmem::find(text, b"BEGIN ").is_some();
    records.is_read_again |= records.is_read_whole;
    Some(records)
}

fn read_lines(text: &[u8], records: &mut Records) {
    let mut at = 0;
    while at < text.len() {
        let line = at..line_end(text, at);
        let begin = text.get(at..).unwrap_or_default();
        let read = match begin.first() {
            Some(b'I' | b'i') if sql::begins(begin, b"insert into ") => inserted(text, at, records),
            Some(b'C' | b'c') if sql::begins(begin, b"copy ") => copied(text, &line, records),
            Some(b'-') if sql::begins(begin, b"-[ record ") => record(text, &line, records),
            Some(_) | None => None,
        };
        let read = read.or_else(|| text_tables::table(text, &line, records));
        if read.is_none() {
            text_tables::list(text, &line, records);
        }
        at = read.unwrap_or(line.end + 1);
    }
}

pub(super) fn line_end(text: &[u8], at: usize) -> usize {
    let rest = text.get(at..).unwrap_or_default();
    memchr::memchr(b'\n', rest).map_or(text.len(), |length| at + length)
}

/// The line behind another.
pub(super) fn next_line(text: &[u8], line: &Range<usize>) -> Option<Range<usize>> {
    let start = line.end + 1;
    (start < text.len()).then(|| start..line_end(text, start))
}

/// Lines of `name | value` below `-[ RECORD 1 ]-`.
fn record(text: &[u8], line: &Range<usize>, records: &mut Records) -> Option<usize> {
    let mut end = None;
    let mut row = next_line(text, line);
    while let Some(line) = row {
        let written = text.get(line.clone()).unwrap_or_default();
        let Some(sign) = memchr::memchr(b'|', written) else { break };
        let name = text_tables::trimmed(text, line.start..line.start + sign);
        // A value goes on in lines without a name.
        records.is_read_whole |= name.is_empty() || written.trim_ascii_end().ends_with(b"+");
        records.doubt(text, std::slice::from_ref(&name));
        records.add(name, text_tables::trimmed(text, line.start + sign + 1..line.end));
        end = Some(line.end + 1);
        row = next_line(text, &line);
    }
    records.cut_out(line.end..end?);
    end
}

/// `COPY t (a, b) FROM stdin;` above lines with tabs.
fn copied(text: &[u8], line: &Range<usize>, records: &mut Records) -> Option<usize> {
    let written = text.get(line.clone())?;
    memchr::memmem::find(&written.to_ascii_lowercase(), b" from stdin")?;
    let heads = sql::names(text, line.start + memchr::memchr(b'(', written)?)?;
    records.doubt(text, &heads);
    let columns = Columns::add(text, &heads, records);
    let mut end = line.end + 1;
    let mut row = next_line(text, line);
    while let Some(line) = row {
        let mut start = line.start;
        let written = text.get(line.clone()).unwrap_or_default();
        let cells = written.split(|byte| *byte == b'\t').map(|cell| {
            let from = start;
            start += cell.len() + 1;
            from..from + cell.len()
        });
        let cells: Vec<Range<usize>> = cells.collect();
        if cells.len() != heads.len() {
            break;
        }
        columns.add_row(text, &cells, records);
        end = line.end + 1;
        row = next_line(text, &line);
    }
    records.cut_out(line.end..end);
    Some(end)
}

/// The rows of `INSERT INTO t (a, b) VALUES (1, 'x'), (2, 'y')`.
fn inserted(text: &[u8], at: usize, records: &mut Records) -> Option<usize> {
    let Inserted { heads, values, end } = sql::inserted(text, at)?;
    records.doubt(text, &heads);
    for range in heads.iter().chain(&values) {
        records.cut_out(range.clone());
    }
    let columns = Columns::add(text, &heads, records);
    for row in values.chunks(heads.len().max(1)) {
        columns.add_row(text, row, records);
    }
    Some(line_end(text, end) + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The pairs of a text as `name=value`.
    fn pairs(text: &str) -> Vec<String> {
        let records = read(text).or_else(|| in_lines(text.as_bytes())).unwrap_or_default();
        let pair = |(name, value): &(usize, Range<usize>)| {
            format!("{}={}", &text[records.names[*name].clone()], &text[value.clone()])
        };
        records.values.iter().map(pair).collect()
    }

    #[test]
    fn names_and_values_are_read_in_their_forms() {
        for (text, expected) in [
            ("ssn=536228726&name=Ann%20Lee&x=", "ssn=536228726 name=Ann%20Lee x="),
            ("Server=db1; User Id=app;Password=a/b;", "Server=db1 User Id=app Password=a/b"),
            ("host=db1 user=app password=x1", "host=db1 user=app password=x1"),
            ("# db\nDB_HOST=db\nexport DB_PASS='a b'\n", "DB_HOST=db DB_PASS=a b"),
            ("[db]\nuser = app # who\nssn=1\n", "user=app ssn=1"),
            (
                "INSERT INTO t (id, `ssn`) VALUES (1, 'it''s'),\n (2, NULL);\n--\ninsert into u (a) values (3);",
                "id=1 ssn=it''s id=2 ssn=NULL a=3",
            ),
            ("COPY p (id, ssn) FROM stdin;\n1\t2\n3\t4\n\\.\n", "id=1 ssn=2 id=3 ssn=4"),
            (
                "People:\nname,ssn\n\"Lee, Ann\",1\nBob,2\n\nend, of it\n",
                "name=Lee, Ann ssn=1 name=Bob ssn=2",
            ),
            ("a, b\n1, 2\n", "a=1 b=2"),
            (" id | ssn \n----+-----\n  1 | 7\n(1 row)", "id=1 ssn=7"),
            ("+----+-----+\n| id | ssn |\n+----+-----+\n| 1  | 7   |\n+----+-----+", "id=1 ssn=7"),
            ("See:\n\n| Name | Tax id |\n|------|:------:|\n| Ann  | 7 |\nso", "Name=Ann Tax id=7"),
            ("| Field | Value |\n|---|---|\n| SSN | 7 |\n| **x** | 8 |", "SSN=7 x=8"),
            ("-[ RECORD 1 ]-\nid  | 1\nssn | 7\n", "id=1 ssn=7"),
            ("<tr><th>SSN<td>7</td></tr><tr><th>id</th><td> 1 </td></tr>", "SSN=7 id=1"),
            ("<tr><th>SSN</th><th>id</th></tr>\n<tr class=a><td>7</td><td>1</td>", "SSN=7 id=1"),
            ("see: x\n\nPasswords:\n - Bob\n2. Ann\nend\n\n- Tom", "Passwords=Bob Passwords=Ann"),
        ] {
            assert_eq!(pairs(text).join(" "), expected, "{text}");
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
            "f(a, b)\ng(c, d)\n",
            "So, my ssn is 5,\nand, as I said, 6",
            "one, two\n\nthree, four\n",
        ] {
            assert!(pairs(text).is_empty(), "{text}");
        }
    }
}
