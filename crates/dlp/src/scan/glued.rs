//! Marks of vendors that stand behind a letter, where the prefilter does not look.
//!
//! No word begins there, so they are looked for from their first joint on (`ghp_`, `xoxb-`, `hvs.`),
//! and only in long runs of letters and digits: what a mark marks makes one.

use std::ops::Range;

/// Marks by the two characters before their first joint.
pub(super) struct Glued {
    /// For each pair one more than the place of its first mark; 0 where it has none.
    firsts: Box<[u16; PAIRS]>,
    /// By pair.
    marks: Vec<VendorMark>,
}

/// As many pairs as there are.
const PAIRS: usize = 1 << 10;

struct VendorMark {
    pair: usize,
    /// In lower case.
    text: Vec<u8>,
    /// Offset of its first joint.
    joint: usize,
    /// Index of the literal.
    literal: usize,
}

impl Glued {
    /// Takes those of the prefilter's literals, each with whether it is a mark, that begin with a
    /// letter and have a joint behind their second one.
    pub(super) fn new<'a>(literals: impl Iterator<Item = (&'a [u8], bool)>) -> Self {
        let mut marks = Vec::new();
        for (literal, (text, _)) in literals.enumerate().filter(|(_, (_, is_mark))| *is_mark) {
            let joint = text.iter().position(|byte| is_joint(*byte));
            let Some(joint) = joint.filter(|joint| *joint >= 2) else { continue };
            let Some(pair) = pair_before(text, joint) else { continue };
            if !text.first().is_some_and(u8::is_ascii_alphabetic) {
                continue;
            }
            marks.push(VendorMark { pair, text: text.to_vec(), joint, literal });
        }
        marks.sort_by_key(|mark| mark.pair);
        let mut firsts = Box::new([0; PAIRS]);
        for (place, mark) in (1..).zip(&marks) {
            if let Some(first) = firsts.get_mut(mark.pair).filter(|first| **first == 0) {
                *first = place;
            }
        }
        Self { firsts, marks }
    }

    /// Calls `each` with every mark behind a letter in a run, or before one, and its literal.
    pub(super) fn each(
        &self,
        text: &[u8],
        run: &Range<usize>,
        mut each: impl FnMut(usize, Range<usize>),
    ) {
        let inside = text.get(run.clone()).unwrap_or_default();
        let dot = run.start.checked_sub(1).filter(|at| text.get(*at) == Some(&b'.'));
        let joints = memchr::memchr2_iter(b'_', b'-', inside).map(|at| run.start + at);
        for joint in dot.into_iter().chain(joints) {
            let Some(pair) = pair_before(text, joint) else { continue };
            let first = self.firsts.get(pair).copied().unwrap_or_default();
            if let Some(first) = first.checked_sub(1) {
                let marks = self.marks.iter().skip(usize::from(first));
                tell(marks.take_while(|mark| mark.pair == pair), text, joint, &mut each);
            }
        }
    }
}

fn tell<'a>(
    marks: impl Iterator<Item = &'a VendorMark>,
    text: &[u8],
    joint: usize,
    each: &mut impl FnMut(usize, Range<usize>),
) {
    for mark in marks {
        let Some(start) = joint.checked_sub(mark.joint) else { continue };
        let range = start..start + mark.text.len();
        let before = start.checked_sub(1).and_then(|at| text.get(at));
        let stands =
            text.get(range.clone()).is_some_and(|found| found.eq_ignore_ascii_case(&mark.text));
        if stands && before.is_some_and(u8::is_ascii_alphabetic) {
            each(mark.literal, range);
        }
    }
}

/// The two characters before an offset, as far as they tell letters apart.
fn pair_before(text: &[u8], at: usize) -> Option<usize> {
    match text.get(at.checked_sub(2)?..at)? {
        [first, second] => Some(usize::from(first & 31) << 5 | usize::from(second & 31)),
        _ => None,
    }
}

const fn is_joint(byte: u8) -> bool {
    matches!(byte, b'_' | b'-' | b'.')
}
