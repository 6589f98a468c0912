//! Names and values in the lines of a text, between prose or without: rows that SQL inserts, copies or prints, CSV, TSV,
//! tables of Markdown and HTML, lists below a line with a colon.
//!
//! What is not certain is prose as well.

use std::ops::Range;

use crate::{
    body::{
        columns::Columns,
        html_rows, lists,
        records::Records,
        sql::{self, Inserted},
        text_lines::{line_end, lines, next_line, trimmed},
        text_tables::{Tables, delimiters},
    },
    text::line_marks::LineMarks,
};

/// The tables, lists and statements that stand in a text, with prose around them or without.
pub(crate) fn in_lines(text: &[u8]) -> Option<Records> {
    let mut records = Records::default();
    let marks = LineMarks::of(text);
    html_rows::read(text, &marks, &mut records);
    read_lines(text, &marks, &mut records);
    records.in_order(text)
}

fn read_lines(text: &[u8], marks: &LineMarks, records: &mut Records) {
    let mut tables = Tables::of(text, marks);
    let mut rest = lines(marks, 0);
    let mut above = rest.next();
    while let Some(line) = above {
        let below = rest.next();
        let read = statement(text, &line.range, records).or_else(|| {
            let below = below.as_ref()?;
            let tried = delimiters(text, marks, &line, below)?;
            tables.read(&line.range, &below.range, tried, records)
        });
        above = if let Some(start) = read {
            below.filter(|below| below.range.start >= start).or_else(|| {
                rest = lines(marks, start);
                rest.next()
            })
        } else {
            if lists::may_begin(text, &line.range) {
                lists::read(text, &line.range, records);
            }
            below
        };
    }
}

/// Adds the names and values of a statement of SQL, or of what `psql` prints line by line. Gives the offset behind it.
fn statement(text: &[u8], line: &Range<usize>, records: &mut Records) -> Option<usize> {
    let begin = text.get(line.start..)?;
    match begin.first()? {
        b'I' | b'i' if sql::begins(begin, b"insert into ") => inserted(text, line, records),
        b'C' | b'c' if sql::begins(begin, b"copy ") => copied(text, line, records),
        b'-' if sql::begins(begin, b"-[ record ") => record(text, line, records),
        _ => None,
    }
}

/// Lines of `name | value` below `-[ RECORD 1 ]-`.
fn record(text: &[u8], line: &Range<usize>, records: &mut Records) -> Option<usize> {
    let mut end = None;
    let mut row = next_line(text, line);
    while let Some(line) = row {
        let written = text.get(line.clone()).unwrap_or_default();
        let Some(sign) = memchr::memchr(b'|', written) else { break };
        let name = trimmed(text, line.start..line.start + sign);
        // A value goes on in lines without a name.
        records.is_read_whole |= name.is_empty() || written.trim_ascii_end().ends_with(b"+");
        records.doubt(text, &name);
        records.add(name, trimmed(text, line.start + sign + 1..line.end));
        end = Some(line.end + 1);
        row = next_line(text, &line);
    }
    records.cut_out(line.end..end?);
    end
}

/// `COPY t (a, b) FROM stdin;` above lines with tabs.
fn copied(text: &[u8], line: &Range<usize>, records: &mut Records) -> Option<usize> {
    const BEFORE: usize = "copy ".len();
    let written = text.get(line.clone())?;
    memchr::memmem::find(&written.to_ascii_lowercase(), b" from stdin")?;
    let open = line.start + memchr::memchr(b'(', written)?;
    let heads = sql::names(text, open)?;
    let table = trimmed(text, line.start + BEFORE..open);
    let columns = Columns::add(text, &heads, || Some(table.clone()), records);
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
        records.is_read_whole |= !columns.add_row(text, &cells, records);
        end = line.end + 1;
        row = next_line(text, &line);
    }
    records.cut_out(line.end..end);
    Some(end)
}

/// The rows of `INSERT INTO t (a, b) VALUES (1, 'x'), (2, 'y')`.
fn inserted(text: &[u8], line: &Range<usize>, records: &mut Records) -> Option<usize> {
    let Inserted { table, heads, values, end } = sql::inserted(text, line.start)?;
    for range in heads.iter().chain(&values) {
        records.cut_out(range.clone());
    }
    let columns = Columns::add(text, &heads, || Some(table.clone()), records);
    for row in values.chunks(heads.len().max(1)) {
        records.is_read_whole |= !columns.add_row(text, row, records);
    }
    Some(line_end(text, end) + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::body::records;

    /// The pairs of a text as `name=value`.
    fn pairs(text: &str) -> Vec<String> {
        let records = records::read(text).or_else(|| in_lines(text.as_bytes())).unwrap_or_default();
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
            ("INSERT INTO t (Field, Value) VALUES ('SSN', '7'), ('x', 8)", "SSN=7 x=8"),
            ("INSERT INTO ssn (id, value) VALUES (1, '7')", "id=1 ssn=7"),
            ("## SSNs:\n\nvalue,name,number\n1,Bob,2\n", "Bob=1 SSNs=2"),
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
