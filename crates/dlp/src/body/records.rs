//! Names and values in texts: bodies of forms, connection strings, `.env` and INI files, rows that SQL inserts, copies
//! or prints, CSV, TSV, tables of Markdown and HTML, lists below a line with a colon.
//!
//! What is not certain stays prose.

use std::ops::Range;

use crate::{
    body::sql::{self, Inserted},
    text::labels,
};

/// Values that are read, at most.
const MOST: usize = 1 << 20;

/// A longer name is none.
const LONGEST: usize = 64;

/// Contents of a text, by ranges of it.
#[derive(Default)]
pub(super) struct Records {
    pub(super) names: Vec<Range<usize>>,
    /// Values, each with the place of its name.
    pub(super) values: Vec<(usize, Range<usize>)>,
    /// True if all of the text is read as prose as well: some forms are told by names and values together, such as
    /// `sig=…`.
    pub(super) is_prose: bool,
}

impl Records {
    /// The ranges that are read, in order.
    pub(super) fn ranges(&self) -> Vec<Range<usize>> {
        let values = self.values.iter().map(|(_, value)| value);
        let mut ranges: Vec<Range<usize>> = self.names.iter().chain(values).cloned().collect();
        ranges.sort_by_key(|range| range.start);
        ranges
    }

    fn add(&mut self, name: Range<usize>, value: Range<usize>) {
        self.values.push((self.names.len(), value));
        self.names.push(name);
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
    let mut records = Records { is_prose: true, ..Records::default() };
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
    let mut records = Records { is_prose: true, ..Records::default() };
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
pub(super) fn in_lines(text: &str) -> Option<Records> {
    let text = text.as_bytes();
    let mut records = Records::default();
    html_rows(text, &mut records);
    let mut at = if records.values.is_empty() { 0 } else { text.len() };
    while at < text.len() && records.values.len() < MOST {
        let line = at..line_end(text, at);
        let begin = text.get(at..).unwrap_or_default();
        let read = match begin.first() {
            Some(b'I' | b'i') if sql::begins(begin, b"insert into ") => {
                inserted(text, at, &mut records)
            }
            Some(b'C' | b'c') if sql::begins(begin, b"copy ") => copied(text, &line, &mut records),
            Some(b'-') if sql::begins(begin, b"-[ record ") => record(text, &line, &mut records),
            Some(_) | None => None,
        };
        let read = read.or_else(|| table(text, &line, &mut records));
        at = read.or_else(|| list(text, &line, &mut records)).unwrap_or(line.end + 1);
    }
    (!records.values.is_empty()).then_some(records)
}

/// Rows of tables in HTML: the cells of a row of `<th>` name those below, and a `<th>` the `<td>` behind it.
fn html_rows(text: &[u8], records: &mut Records) {
    let mut starts: Vec<usize> = memchr::memmem::find_iter(text, b"<tr").collect();
    starts.push(text.len());
    let mut heads = 0..0;
    for [start, end] in starts.array_windows() {
        let cells = html_cells(text, *start..*end);
        if let [(true, name), (false, value)] = cells.as_slice() {
            records.add(name.clone(), value.clone());
        } else if cells.len() > 1 && cells.iter().all(|(is_head, _)| *is_head) {
            heads = records.names.len()..records.names.len() + cells.len();
            records.names.extend(cells.into_iter().map(|(_, cell)| cell));
        } else if cells.len() == heads.len() && records.values.len() < MOST {
            records.values.extend(heads.clone().zip(cells.into_iter().map(|(_, cell)| cell)));
        }
    }
}

/// The cells of a row, and whether each is the head of a column or a row.
fn html_cells(text: &[u8], row: Range<usize>) -> Vec<(bool, Range<usize>)> {
    const TAG: usize = 256;
    let written = text.get(row.clone()).unwrap_or_default();
    let cell = |at: usize| {
        let rest = written.get(at..)?;
        let is_head = rest.starts_with(b"<th");
        let is_cell = is_head || rest.starts_with(b"<td");
        (is_cell && matches!(rest.get(3), Some(b'>' | b' '))).then_some(())?;
        let open = memchr::memchr(b'>', rest.get(..rest.len().min(TAG))?)? + 1;
        let length = memchr::memchr(b'<', rest.get(open..)?)?;
        let start = row.start + at + open;
        Some((is_head, trimmed(text, start..start + length)))
    };
    memchr::memmem::find_iter(written, b"<t").filter_map(cell).collect()
}

fn line_end(text: &[u8], at: usize) -> usize {
    let rest = text.get(at..).unwrap_or_default();
    memchr::memchr(b'\n', rest).map_or(text.len(), |length| at + length)
}

/// The line behind another.
fn next_line(text: &[u8], line: &Range<usize>) -> Option<Range<usize>> {
    let start = line.end + 1;
    (start < text.len()).then(|| start..line_end(text, start))
}

/// A table below a line that names its columns. Gives the offset behind it.
fn table(text: &[u8], line: &Range<usize>, records: &mut Records) -> Option<usize> {
    let (delimiter, heads) = heads(text, line)?;
    let mut below = next_line(text, line)?;
    let is_ruled = is_rule(text.get(below.clone())?);
    if is_ruled {
        below = next_line(text, &below)?;
    }
    let is_row = |row: &Range<usize>| cells(text, row, delimiter).count() == heads.len();
    is_row(&below).then_some(())?;
    let position = |is: fn(&[u8]) -> bool| {
        heads.iter().position(|head| text.get(head.clone()).is_some_and(is))
    };
    let value = position(labels::is_value);
    let label = value.and_then(|_| position(|head| labels::rank(head).is_some()));
    let first = records.names.len();
    records.names.extend(heads.iter().cloned());
    let mut end = below.start;
    let mut row = Some(below);
    while let Some(line) = row.filter(|line| is_row(line) && records.values.len() < MOST) {
        let mut own = None;
        for (column, cell) in cells(text, &line, delimiter).enumerate() {
            let is_label =
                Some(column) == label && text.get(cell.clone()).is_some_and(labels::may_label);
            if is_label {
                own = Some(records.names.len());
                records.names.push(cell);
            } else if !cell.is_empty() {
                let column = first + column;
                let named = own.filter(|_| Some(column - first) == value);
                records.values.push((named.unwrap_or(column), cell));
            }
        }
        end = line.end + 1;
        row = next_line(text, &line);
    }
    Some(end)
}

/// The sign between the cells of a line, and the cells, if they can name columns.
fn heads(text: &[u8], line: &Range<usize>) -> Option<(u8, Vec<Range<usize>>)> {
    let written = text.get(line.clone())?;
    let is_quote = |byte: &u8| matches!(byte, b'"' | b'\'' | b'`' | b'*');
    let is_plain = |byte: &u8| labels::is_part(*byte) || is_quote(byte);
    let near = written.get(..written.len().min(LONGEST))?;
    let open = usize::from(near.first() == Some(&b'|'));
    let first = near.iter().skip(open).position(|byte| !is_plain(byte))? + open;
    let delimiter = *near.get(first).filter(|byte| b"\t|;,".contains(byte))?;
    let heads: Vec<Range<usize>> = cells(text, line, delimiter)
        .zip(0..)
        .map(|(cell, column)| {
            let is_index = cell.is_empty() && column == 0;
            let is_head = || text.get(cell.clone()).is_some_and(|it| may_head(it, delimiter));
            (is_index || is_head()).then_some(cell)
        })
        .collect::<Option<_>>()?;
    (heads.len() > 1).then_some((delimiter, heads))
}

/// Returns true if a cell may name a column: a few words, the first of which begins with a letter.
fn may_head(cell: &[u8], delimiter: u8) -> bool {
    const WORDS: usize = 4;
    let is_prose = |byte: &u8| matches!(byte, b'(' | b')' | b'?' | b':' | b'*');
    let is_initial =
        |first: &u8| !first.is_ascii() || first.is_ascii_alphabetic() || *first == b'_';
    cell.len() <= LONGEST
        && cell.first().is_some_and(is_initial)
        && cell.iter().all(|byte| labels::is_part(*byte))
        && cell.split(|byte| *byte == b' ').count() <= WORDS
        && (matches!(delimiter, b'|' | b'\t') || !cell.iter().any(is_prose))
}

/// Returns true for a line between the names and the rows of a table.
fn is_rule(line: &[u8]) -> bool {
    memchr::memmem::find(line, b"--").is_some()
        && line.iter().all(|byte| b"-+|:= \r".contains(byte))
}

/// The cells of a line, without space and quotes around them. Delimiters in quotes part nothing.
fn cells<'t>(
    text: &'t [u8],
    line: &Range<usize>,
    delimiter: u8,
) -> impl Iterator<Item = Range<usize>> + use<'t> {
    let written = text.get(line.clone()).unwrap_or_default();
    let spare = written.iter().rev().take_while(|byte| matches!(byte, b' ' | b'\r')).count();
    let written = written.get(..written.len() - spare).unwrap_or_default();
    let is_framed = delimiter == b'|' && written.trim_ascii_start().starts_with(b"|");
    let indent = written.iter().position(|byte| *byte == b'|').filter(|_| is_framed);
    let mut from = line.start + indent.map_or(0, |at| at + 1);
    let written = written.strip_suffix(b"|").filter(|_| is_framed).unwrap_or(written);
    let end = line.start + written.len();
    let inside = text.get(from..end).unwrap_or_default();
    let mut is_quoted = false;
    let start = from;
    let ends = memchr::memchr2_iter(b'"', delimiter, inside).filter_map(move |at| {
        if inside.get(at) == Some(&b'"') {
            is_quoted = !is_quoted;
            return None;
        }
        (!is_quoted).then_some(start + at)
    });
    let ends = ends.chain([end.max(from)]);
    ends.map(move |end| trimmed(text, std::mem::replace(&mut from, end + 1)..end))
}

/// The part of a range without space, and without quotes around all of it.
fn trimmed(text: &[u8], range: Range<usize>) -> Range<usize> {
    let cell = text.get(range.clone()).unwrap_or_default();
    let start = range.start + cell.len() - cell.trim_ascii_start().len();
    let cell = cell.trim_ascii();
    let inside = match cell {
        [open @ (b'"' | b'\'' | b'`'), inside @ .., close] if open == close => inside,
        _ => cell,
    };
    let start = start + usize::from(inside.len() < cell.len());
    start..start + inside.len()
}

/// Items below a line that ends with a colon.
fn list(text: &[u8], line: &Range<usize>, records: &mut Records) -> Option<usize> {
    let written = text.get(line.clone())?.trim_ascii_end();
    let head = trimmed(text, line.start..line.start + written.strip_suffix(b":")?.len());
    let name = text.get(head.clone())?;
    (may_head(name, b',') && bullet(written) == 0).then_some(())?;
    let mut row = next_line(text, line);
    let mut end = None;
    while let Some(line) = row.filter(|_| records.values.len() < MOST) {
        let length = bullet(text.get(line.clone())?);
        let item = trimmed(text, line.start + length..line.end);
        if length == 0 {
            break;
        }
        if end.is_none() {
            records.names.push(head.clone());
        }
        if !item.is_empty() {
            records.values.push((records.names.len() - 1, item));
        }
        end = Some(line.end + 1);
        row = next_line(text, &line);
    }
    end
}

/// Length of the space and the sign before an item; 0 where there is none.
fn bullet(line: &[u8]) -> usize {
    let rest = line.trim_ascii_start();
    let indent = line.len() - rest.len();
    let digits = rest.iter().take(3).take_while(|byte| byte.is_ascii_digit()).count();
    match rest.get(digits..) {
        Some([b'-' | b'*' | b'+', b' ', ..]) if digits == 0 => indent + 2,
        Some([b'.' | b')', b' ', ..]) if digits > 0 => indent + digits + 2,
        Some(_) | None => 0,
    }
}

/// Lines of `name | value` below `-[ RECORD 1 ]-`.
fn record(text: &[u8], line: &Range<usize>, records: &mut Records) -> Option<usize> {
    let mut row = next_line(text, line);
    let mut end = None;
    while let Some(line) = row {
        let pair: Vec<Range<usize>> = cells(text, &line, b'|').take(3).collect();
        let [name, value] = pair.as_slice() else { break };
        records.add(name.clone(), value.clone());
        end = Some(line.end + 1);
        row = next_line(text, &line);
    }
    end
}

/// `COPY t (a, b) FROM stdin;` above lines with tabs.
fn copied(text: &[u8], line: &Range<usize>, records: &mut Records) -> Option<usize> {
    let written = text.get(line.clone())?;
    memchr::memmem::find(&written.to_ascii_lowercase(), b" from stdin")?;
    let open = line.start + memchr::memchr(b'(', written)?;
    let heads = sql::names(text, open)?;
    let first = records.names.len();
    records.names.extend(heads.iter().cloned());
    let mut end = line.end + 1;
    let mut row = next_line(text, line);
    let is_row = |row: &Range<usize>| cells(text, row, b'\t').count() == heads.len();
    while let Some(line) = row.filter(|row| is_row(row) && records.values.len() < MOST) {
        records.values.extend((first..).zip(cells(text, &line, b'\t')));
        end = line.end + 1;
        row = next_line(text, &line);
    }
    Some(end)
}

/// The rows of `INSERT INTO t (a, b) VALUES (1, 'x'), (2, 'y')`.
fn inserted(text: &[u8], at: usize, records: &mut Records) -> Option<usize> {
    let Inserted { heads, values, end } = sql::inserted(text, at)?;
    let first = records.names.len();
    records.values.extend((first..first + heads.len()).cycle().zip(values));
    records.names.extend(heads);
    Some(line_end(text, end) + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The pairs of a text as `name=value`.
    fn pairs(text: &str) -> Vec<String> {
        let records = read(text).or_else(|| in_lines(text)).unwrap_or_default();
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
            (
                "| Field | Value |\n|---|---|\n| SSN | 7 |\n| **x** | 8 |",
                "SSN=7 Field=**x** Value=8",
            ),
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
