//! Detectors that woke in the first line of a table of text look at the cells below.

use std::ops::Range;

use crate::{
    body::buffer::Body,
    scan::{active::Active, reach::Reach, window::Stretch},
    text::delimited::{self, DelimitedTable, TableCell},
};

/// Tables in whose first line detectors woke.
#[derive(Default)]
pub(super) struct Columns {
    list: Vec<Woken>,
    /// The stretch of the buffer that was looked at last, and whether it begins a table, which is
    /// then the last of the list.
    seen: Range<usize>,
    begins: bool,
}

/// A table, and the detectors that look at each of its columns.
struct Woken {
    segment: u32,
    table: DelimitedTable,
    /// The cell of the first line in which a detector woke last.
    cell: Option<TableCell>,
    who: Vec<Vec<u16>>,
}

impl Columns {
    pub(super) fn clear(&mut self) {
        self.list.clear();
        (self.seen, self.begins) = (0..0, false);
    }

    /// Notes that a detector woke at a literal in a text. Texts without lines hold no tables.
    pub(super) fn note(&mut self, body: &Body, segment: u32, literal: &Range<usize>, active: u16) {
        if !body.marks.has_lines() {
            return;
        }
        let Some(home) = body.segment(segment) else { return };
        let start = home.start as usize;
        let text = body.slice(home.range());
        let at = literal.start - start;
        if !self.seen.contains(&literal.start) {
            let line = delimited::line(text, at).unwrap_or(at..at + literal.len());
            let table = DelimitedTable::beginning_with(text, &line);
            (self.seen, self.begins) = (start + line.start..start + line.end, table.is_some());
            let woken = |table| Woken { segment, table, cell: None, who: Vec::new() };
            self.list.extend(table.map(woken));
        }
        let Some(woken) = self.list.last_mut().filter(|_| self.begins) else { return };
        woken.cell = woken.table.head_cell(text, woken.cell, at);
        let Some(cell) = woken.cell.filter(TableCell::may_be_name) else { return };
        if woken.who.len() <= cell.column {
            woken.who.resize_with(cell.column + 1, Vec::new);
        }
        if let Some(who) = woken.who.get_mut(cell.column)
            && !who.contains(&active)
        {
            who.push(active);
        }
    }

    /// Calls `search` with every cell that holds something and that a detector shall look at. Returns how many
    /// bytes were read for that.
    pub(super) fn each_cell(
        &self,
        body: &Body,
        detectors: &[Active],
        mut search: impl FnMut(&Stretch),
    ) -> usize {
        let mut work = 0;
        for Woken { segment, table, who, .. } in &self.list {
            let Some(home) = body.segment(*segment) else { continue };
            let segment = *segment;
            let start = home.start as usize;
            let text = body.slice(home.range());
            let moved = |range: &Range<usize>| start + range.start..start + range.end;
            let heads: Vec<Range<usize>> = table.cells(text, table.head()).collect();
            for row in table.rows(text) {
                work += row.len();
                let cells = table.cells(text, row).zip(&heads).zip(who);
                for ((cell, head), who) in cells.filter(|((cell, _), _)| !cell.is_empty()) {
                    for active in who.iter().copied() {
                        let reach = detectors.get(usize::from(active)).map(|it| it.reach);
                        let key = matches!(reach, Some(Reach::Own { .. })).then(|| moved(head));
                        work += cell.len();
                        search(&Stretch { active, segment, range: moved(&cell), key });
                    }
                }
            }
        }
        work
    }
}
