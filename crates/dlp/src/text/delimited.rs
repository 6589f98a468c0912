//! Tables in texts: lines with the same number of delimiters, the first of which names the columns.
//! CSV, TSV and Markdown are written so. A list below a line that ends with a colon is a table of one
//! column.
//!
//! Lines that are longer than 2 KiB are no table. Quoted cells may hold delimiters, no line feeds.

use std::ops::Range;

/// Longer lines are not read.
const LONGEST_LINE: usize = 2048;
/// A longer cell is no name of a column.
const LONGEST_HEAD: usize = 48;
/// In the order in which they are tried.
const DELIMITERS: [u8; 4] = *b"\t|;,";
/// Delimiter of a list, which stands in no line.
const OF_LIST: u8 = b'\n';

/// A table in a text, as far as it was read. All offsets are those of the text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct DelimitedTable {
    /// Start and end of its first line.
    head: (usize, usize),
    /// End of the last line that is known to belong to it.
    known: usize,
    delimiter: u8,
    delimiters: usize,
}

/// A cell of a line.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct TableCell {
    pub(crate) column: usize,
    start: usize,
    end: usize,
}

impl TableCell {
    /// Returns true if it can be the name of a column.
    pub(crate) const fn may_be_name(&self) -> bool {
        self.end - self.start <= LONGEST_HEAD
    }

    /// The place from which on the cells of a line are read.
    const fn before(start: usize) -> Self {
        Self { column: 0, start, end: start }
    }

    /// The cell and those behind it in a line that ends at an offset.
    fn ahead(self, text: &[u8], end: usize, delimiter: u8) -> impl Iterator<Item = Self> {
        let cells = cells(text, self.start..end, delimiter);
        (self.column..).zip(cells).map(|(column, Range { start, end })| Self { column, start, end })
    }
}

/// The line that was looked at last, its segment, and the table it belongs to.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LastLine {
    segment: u32,
    line: (usize, usize),
    table: Option<DelimitedTable>,
    /// The cell that was looked at last, and the head of its column.
    cell: TableCell,
    head: TableCell,
}

impl LastLine {
    /// The table that an offset in the text of a segment stands in, below its first line. Matches
    /// come in rows: what lies between one and the next is read once.
    pub(crate) fn of(self, segment: u32, text: &[u8], at: usize) -> Option<LastLine> {
        let is_same = self.segment == segment && self.line != (0, 0);
        if is_same && (self.line.0..=self.line.1).contains(&at) {
            return Some(self);
        }
        let line = line(text, at)?;
        let table = DelimitedTable::around(text, &line, self.table.filter(|_| is_same));
        let cell = TableCell::before(line.start);
        let head = TableCell::before(table.map_or(0, |table| table.head.0));
        Some(LastLine { segment, line: (line.start, line.end), table, cell, head })
    }

    /// The cell that was looked at last, if nothing but a table has such lines: commas in prose have a space behind them.
    pub(crate) fn cell_of_table<'t>(&self, text: &'t [u8]) -> Option<&'t [u8]> {
        let DelimitedTable { head, delimiter, .. } = self.table?;
        let is_prose =
            delimiter == b',' && memchr::memmem::find(text.get(head.0..head.1)?, b", ").is_some();
        text.get(self.cell.start..self.cell.end).filter(|_| !is_prose)
    }

    /// Head of the column that an offset in this line stands in. Lines that only end with a delimiter,
    /// as in programs, have one column and no head.
    pub(crate) fn head_above<'t>(&mut self, text: &'t [u8], at: usize) -> Option<&'t [u8]> {
        let DelimitedTable { head, delimiter, delimiters, .. } = self.table?;
        if delimiters == 1 && text.get(head.0..head.1)?.trim_ascii_end().ends_with(&[delimiter]) {
            return None;
        }
        if at < self.cell.start {
            self.cell = TableCell::before(self.line.0);
            self.head = TableCell::before(head.0);
        }
        self.cell = self.cell.ahead(text, self.line.1, delimiter).find(|cell| at <= cell.end)?;
        let mut heads = self.head.ahead(text, head.1, delimiter);
        self.head = heads.find(|head| head.column == self.cell.column)?;
        text.get(self.head.start..self.head.end).filter(|_| self.head.may_be_name())
    }
}

impl DelimitedTable {
    /// The table that begins with a line.
    pub(crate) fn beginning_with(text: &[u8], line: &Range<usize>) -> Option<DelimitedTable> {
        let after = after(text, line)?;
        if is_list_head(text, line) && is_item(text, &after) {
            let head = (line.start, line.end);
            let known = line.end;
            return Some(DelimitedTable { head, known, delimiter: OF_LIST, delimiters: 0 });
        }
        let before = before(text, line);
        DELIMITERS.into_iter().find_map(|delimiter| {
            let delimiters = count(text, line, delimiter);
            let has_as_many = |it: &Range<usize>| count(text, it, delimiter) == delimiters;
            let begins =
                delimiters > 0 && !before.as_ref().is_some_and(has_as_many) && has_as_many(&after);
            let head = (line.start, line.end);
            let known = line.end;
            begins.then_some(DelimitedTable { head, known, delimiter, delimiters })
        })
    }

    /// The table that a line belongs to, unless it is its first one; `last` is the one that was
    /// found last.
    fn around(
        text: &[u8],
        line: &Range<usize>,
        last: Option<DelimitedTable>,
    ) -> Option<DelimitedTable> {
        if let Some(last) = last.filter(|it| it.head.0 <= line.start && line.end <= it.known) {
            return (line.start != last.head.0).then_some(last);
        }
        if is_item(text, line) {
            return DelimitedTable::of_item(text, line, last);
        }
        let before = before(text, line)?;
        let (delimiter, delimiters) = DELIMITERS.into_iter().find_map(|delimiter| {
            let delimiters = count(text, line, delimiter);
            let fits = delimiters > 0 && count(text, &before, delimiter) == delimiters;
            fits.then_some((delimiter, delimiters))
        })?;
        let mut head = before;
        while let Some(above) = crate::text::delimited::before(text, &head) {
            if let Some(last) = last.filter(|it| {
                (it.delimiter, it.delimiters, it.known) == (delimiter, delimiters, head.end)
            }) {
                return Some(DelimitedTable { known: line.end, ..last });
            }
            if count(text, &above, delimiter) != delimiters {
                break;
            }
            head = above;
        }
        let head = (head.start, head.end);
        Some(DelimitedTable { head, known: line.end, delimiter, delimiters })
    }

    /// The list that an item belongs to.
    fn of_item(
        text: &[u8],
        line: &Range<usize>,
        last: Option<DelimitedTable>,
    ) -> Option<DelimitedTable> {
        const MOST: usize = 64;
        let mut above = before(text, line)?;
        for _ in 0..MOST {
            if !is_item(text, &above) {
                break;
            }
            if let Some(last) = last.filter(|it| (it.delimiter, it.known) == (OF_LIST, above.end)) {
                return Some(DelimitedTable { known: line.end, ..last });
            }
            above = before(text, &above)?;
        }
        let head = (above.start, above.end);
        is_list_head(text, &above).then_some(DelimitedTable {
            head,
            known: line.end,
            delimiter: OF_LIST,
            delimiters: 0,
        })
    }

    /// The cell of its first line that an offset stands in, behind one that is known.
    pub(crate) fn head_cell(
        &self,
        text: &[u8],
        known: Option<TableCell>,
        at: usize,
    ) -> Option<TableCell> {
        let from =
            known.filter(|known| known.start <= at).unwrap_or(TableCell::before(self.head.0));
        from.ahead(text, self.head.1, self.delimiter).find(|cell| at <= cell.end)
    }

    /// The first line.
    pub(crate) fn head(&self) -> Range<usize> {
        self.head.0..self.head.1
    }

    /// The lines below the first, as long as the table goes on.
    pub(crate) fn rows<'t>(&self, text: &'t [u8]) -> impl Iterator<Item = Range<usize>> + 't {
        let DelimitedTable { delimiter, delimiters, .. } = *self;
        let next = move |line: &Range<usize>| {
            let goes_on = |next: &Range<usize>| match delimiter {
                OF_LIST => is_item(text, next),
                _ => count(text, next, delimiter) == delimiters,
            };
            after(text, line).filter(goes_on)
        };
        std::iter::successors(next(&self.head()), next)
    }

    /// The cells of a line of it.
    pub(crate) fn cells<'t>(
        &self,
        text: &'t [u8],
        line: Range<usize>,
    ) -> impl Iterator<Item = Range<usize>> + 't {
        cells(text, line, self.delimiter)
    }
}

/// The line that an offset stands in, without its line feed; `None` if it is too long.
pub(crate) fn line(text: &[u8], at: usize) -> Option<Range<usize>> {
    let (before, after) = text.split_at_checked(at)?;
    let near = before.get(before.len().saturating_sub(LONGEST_LINE)..)?;
    let start = match memchr::memrchr(b'\n', near) {
        Some(found) => at - near.len() + found + 1,
        None if near.len() == before.len() => 0,
        None => return None,
    };
    let near = after.get(..after.len().min(LONGEST_LINE))?;
    let end = match memchr::memchr(b'\n', near) {
        Some(found) => at + found,
        None if near.len() == after.len() => text.len(),
        None => return None,
    };
    Some(start..end)
}

/// Returns true if a line ends with a colon and is no item itself.
fn is_list_head(text: &[u8], line: &Range<usize>) -> bool {
    let written = text.get(line.clone()).unwrap_or_default().trim_ascii_end();
    written.ends_with(b":") && written.len() <= LONGEST_HEAD && !is_item(text, line)
}

/// Returns true if a line is an item of a list.
fn is_item(text: &[u8], line: &Range<usize>) -> bool {
    bullet(text.get(line.clone()).unwrap_or_default()) > 0
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

fn before(text: &[u8], at: &Range<usize>) -> Option<Range<usize>> {
    line(text, at.start.checked_sub(1)?)
}

fn after(text: &[u8], at: &Range<usize>) -> Option<Range<usize>> {
    (at.end < text.len()).then(|| line(text, at.end + 1)).flatten()
}

/// Number of delimiters in a part of a line that begins with it.
fn count(text: &[u8], part: &Range<usize>, delimiter: u8) -> usize {
    delimiters(text, part.clone(), delimiter).count()
}

/// The delimiters in a part of a line that begins with it, outside of quotes.
fn delimiters(
    text: &[u8],
    part: Range<usize>,
    delimiter: u8,
) -> impl Iterator<Item = usize> + use<'_> {
    let start = part.start;
    let line = text.get(part).unwrap_or_default();
    let mut is_quoted = false;
    memchr::memchr2_iter(b'"', delimiter, line).filter_map(move |at| {
        if line.get(at) == Some(&b'"') {
            is_quoted = !is_quoted;
            return None;
        }
        (!is_quoted).then_some(start + at)
    })
}

fn cells(
    text: &[u8],
    line: Range<usize>,
    delimiter: u8,
) -> impl Iterator<Item = Range<usize>> + '_ {
    let written = text.get(line.clone()).unwrap_or_default();
    let mut from = line.start + if delimiter == OF_LIST { bullet(written) } else { 0 };
    let ends = delimiters(text, line.clone(), delimiter).chain([line.end]);
    ends.map(move |end| std::mem::replace(&mut from, end + 1)..end)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CSV: &str = "People:\nname,ssn\n\"Lee, Ann\",1\nBob,2\n\nend, of it\n";

    fn head(text: &str, at: usize) -> Option<&str> {
        let mut line = LastLine::default().of(0, text.as_bytes(), at)?;
        line.head_above(text.as_bytes(), at).map(|head| std::str::from_utf8(head).unwrap())
    }

    #[test]
    fn a_cell_has_the_head_of_its_column() {
        let at = |what: &str| CSV.find(what).unwrap();

        assert_eq!(head(CSV, at("2\n")), Some("ssn"));
        assert_eq!(head(CSV, at("1\n")), Some("ssn"));
        assert_eq!(head(CSV, at("Ann")), Some("name"));
        for none in ["ssn", "People", "of it"] {
            assert_eq!(head(CSV, at(none)), None, "{none}");
        }
        let list = "see: x\n\nPasswords:\n - Bob\n - Lee\n2. Ann\nend\n\n- Tom";
        for (item, expected) in [("Bob", Some("Passwords:")), ("Ann", Some("Passwords:"))] {
            assert_eq!(head(list, list.find(item).unwrap()), expected, "{item}");
        }
        for none in ["end", "Tom", "see", "Passwords"] {
            assert_eq!(head(list, list.find(none).unwrap()), None, "{none}");
        }
        let markdown = "| Name | Tax id |\n|------|:------:|\n| Ann  | 7 |";
        assert_eq!(head(markdown, markdown.find('7').unwrap()), Some(" Tax id "));
    }

    #[test]
    fn cells_of_a_line_have_their_heads_in_any_order() {
        let text = "a,\"b,c\",d\n1,\"2,3\",4\n";
        let places = [("1", "a"), ("3", "\"b,c\""), ("2", "\"b,c\""), ("4", "d"), ("1", "a")];
        let mut line = LastLine::default().of(0, text.as_bytes(), text.find('1').unwrap()).unwrap();

        for (cell, head) in places {
            let found = line.head_above(text.as_bytes(), text.find(cell).unwrap());
            assert_eq!(found, Some(head.as_bytes()), "{cell}");
        }
    }

    #[test]
    fn what_was_read_is_not_read_again() {
        let text = format!("a,b\n{}", "1,2\n".repeat(100));
        let mut last = LastLine::default();
        for at in (4..text.len()).step_by(4) {
            last = last.of(0, text.as_bytes(), at).unwrap();
            let table = last.table.unwrap();
            assert_eq!((table.head(), table.known), (0..3, at + 3));
        }
        assert_eq!(last.of(0, text.as_bytes(), 8).unwrap().table, last.table);
        assert_eq!(last.of(1, text.as_bytes(), 8).unwrap().table.unwrap().known, 11);
    }

    #[test]
    fn a_table_begins_at_its_first_line_and_ends_with_its_last() {
        let beginning = |what: &str| {
            let line = line(CSV.as_bytes(), CSV.find(what).unwrap()).unwrap();
            DelimitedTable::beginning_with(CSV.as_bytes(), &line)
        };
        let table = beginning("ssn").unwrap();

        let cell = table.head_cell(CSV.as_bytes(), None, CSV.find("ssn").unwrap());
        assert_eq!(cell.map(|cell| cell.column), Some(1));
        let rows: Vec<&str> = table.rows(CSV.as_bytes()).map(|row| &CSV[row]).collect();
        assert_eq!(rows, ["\"Lee, Ann\",1", "Bob,2"]);
        assert!(beginning("Bob").is_none() && beginning("of it").is_none());
        let list = b"Codes:\n- a\n- b\nc";
        let table = DelimitedTable::beginning_with(list, &(0..6)).unwrap();
        let cells = table.rows(list).flat_map(|row| table.cells(list, row));
        assert_eq!(cells.map(|cell| &list[cell]).collect::<Vec<_>>(), [b"a", b"b"]);
        let long = format!("{}\n{}\n", "a,".repeat(1100), "b,".repeat(1100));
        assert_eq!(line(long.as_bytes(), 0), None);
    }
}
