//! Finding runs of digit groups without looking closely at text that has few digits.

use std::ops::Range;

use super::detector::DigitRun;

/// Text is weighed in blocks of this many bytes.
const BLOCK: usize = 16;

/// Two blocks side by side with fewer digits than this are skipped. The shortest number of
/// interest has five digits within the length of one block.
const DENSE: u8 = 5;

/// How far before a dense block a run may begin and still be of interest.
const LEAD: usize = 24;

/// Groups beyond this are another run: no number anyone cares for has more.
const MAX_GROUPS: usize = 48;

/// Calls `each` with every run of digit groups near which digits are dense, in order.
pub(super) fn each_run(text: &[u8], range: Range<usize>, mut each: impl FnMut(&DigitRun)) {
    let mut run = DigitRun::default();
    let mut done = range.start;
    each_dense(
        text,
        range.clone(),
        DENSE,
        |byte| byte.wrapping_sub(b'0') < 10,
        |start, end| {
            if end <= done {
                return;
            }
            let mut at = run_start(text, start.saturating_sub(LEAD).max(done), done);
            while let Some(skipped) = first_digit(text.get(at..end).unwrap_or_default()) {
                at = fill(text, at + skipped, range.end, &mut run);
                each(&run);
            }
            done = at.max(end);
        },
    );
}

/// Calls `each` with the bounds of every two blocks side by side that have at least `least` of
/// the bytes that count.
pub(super) fn each_dense(
    text: &[u8],
    range: Range<usize>,
    least: u8,
    counts: impl Fn(u8) -> bool + Copy,
    mut each: impl FnMut(usize, usize),
) {
    let part = text.get(range.clone()).unwrap_or_default();
    let mut before = (range.start, 0);
    for (start, block) in (range.start..).step_by(BLOCK).zip(part.chunks(BLOCK)) {
        let count = count(block, counts);
        if before.1 + count >= least {
            each(before.0, start + block.len());
        }
        before = (start, count);
    }
}

/// Written so that a whole block is counted at once.
fn count(block: &[u8], counts: impl Fn(u8) -> bool) -> u8 {
    // Wrapping, though it never does: a checked sum goes byte by byte.
    let ones = |bytes: &[u8]| {
        bytes.iter().fold(0_u8, |sum, byte| sum.wrapping_add(u8::from(counts(*byte))))
    };
    match block.first_chunk::<BLOCK>() {
        Some(whole) => ones(whole),
        None => ones(block),
    }
}

fn first_digit(text: &[u8]) -> Option<usize> {
    text.iter().position(|byte| byte.wrapping_sub(b'0') < 10)
}

/// Steps back to where the digits around an offset begin.
fn run_start(text: &[u8], at: usize, floor: usize) -> usize {
    let before = text.get(floor..at).unwrap_or_default();
    at - before.iter().rev().take_while(|byte| byte.is_ascii_digit()).count()
}

/// Reads one run from its first digit and returns the offset after it.
fn fill(text: &[u8], start: usize, end: usize, run: &mut DigitRun) -> usize {
    run.groups.clear();
    run.total = 0;
    let mut at = start;
    loop {
        let rest = text.get(at..end).unwrap_or_default();
        let length = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        run.groups.push(at..at + length);
        run.total += length;
        at += length;
        let goes_on = text.get(at).is_some_and(|byte| is_separator(*byte))
            && text.get(at + 1).is_some_and(u8::is_ascii_digit)
            && run.groups.len() < MAX_GROUPS;
        if !goes_on || at + 1 >= end {
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

    fn runs(text: &str) -> Vec<Vec<String>> {
        let mut found = Vec::new();
        each_run(text.as_bytes(), 0..text.len(), |run| {
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
