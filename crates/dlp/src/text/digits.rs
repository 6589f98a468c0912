//! Finding runs of digit groups without looking closely at text that has few digits.

use std::ops::Range;

use crate::text::marks::{Marks, STRETCH};

/// Groups of digits with single separators between them, as long as they go.
#[derive(Debug, Default)]
pub(crate) struct DigitRun {
    /// Each group's offsets.
    pub(crate) groups: Vec<Range<usize>>,
    /// Number of digits in all groups.
    pub(crate) total: usize,
}

impl DigitRun {
    /// Becomes another run, counted from an offset.
    pub(crate) fn move_from(&mut self, run: &Self, start: usize) {
        self.total = run.total;
        self.groups.clear();
        let moved = run.groups.iter().map(|group| group.start - start..group.end - start);
        self.groups.extend(moved);
    }
}

/// Bytes before a dense stretch in which a run of interest may begin.
const LEAD: usize = 24;

/// Groups beyond this are another run: no number anyone cares for has more.
const MAX_GROUPS: usize = 48;

/// Calls `each` with every run of digit groups near which digits are dense, in order. `run` is memory
/// for them.
pub(crate) fn each_run(
    text: &[u8],
    marks: &Marks,
    run: &mut DigitRun,
    mut each: impl FnMut(&DigitRun),
) {
    let mut done = marks.start();
    for start in marks.dense_digits() {
        let end = text.len().min(start + 2 * STRETCH);
        if end <= done {
            continue;
        }
        let from = start.saturating_sub(LEAD).max(done);
        let mut at = run_start(text, from, done);
        while let Some(first) = marks.first_digit(at..end) {
            at = fill(text, marks, first, run);
            each(run);
        }
        done = at.max(end);
    }
}

/// Steps back to where the digits around an offset begin.
fn run_start(text: &[u8], at: usize, floor: usize) -> usize {
    let before = text.get(floor..at).unwrap_or_default();
    at - before.iter().rev().take_while(|byte| byte.is_ascii_digit()).count()
}

/// Reads one run from its first digit and returns the offset after it.
fn fill(text: &[u8], marks: &Marks, start: usize, run: &mut DigitRun) -> usize {
    run.groups.clear();
    run.total = 0;
    let mut at = start;
    loop {
        let length = marks.digits_from(at);
        run.groups.push(at..at + length);
        run.total += length;
        at += length;
        let goes_on = match text.get(at..) {
            Some([separator, digit, ..]) => is_separator(*separator) & digit.is_ascii_digit(),
            Some(_) | None => false,
        };
        if !goes_on || run.groups.len() == MAX_GROUPS {
            return at;
        }
        at += 1;
    }
}

fn is_separator(byte: u8) -> bool {
    matches!(byte, b' ' | b'-' | b'.')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::marks::Set;

    fn runs(text: &str) -> Vec<Vec<String>> {
        let mut marks = Marks::default();
        marks.set(text.as_bytes(), 0, &Set::NONE);
        let mut found = Vec::new();
        each_run(text.as_bytes(), &marks, &mut DigitRun::default(), |run| {
            let groups = run.groups.iter().map(|group| text[group.clone()].to_owned());
            found.push(groups.collect());
        });
        found
    }

    #[test]
    fn groups_are_read_with_single_separators() {
        assert_eq!(runs("a 4111-1111 22, 33x"), [vec!["4111", "1111", "22"], vec!["33"]]);
        assert_eq!(runs("a few words and 2 or 3 digits"), Vec::<Vec<String>>::new());
    }

    #[test]
    fn a_run_across_blocks_is_read_once() {
        assert_eq!(runs("0123456789 card: 4111111111111111 and more text").len(), 2);
    }
}
