//! Triggers of detectors without a literal: `@`, runs of digits, long runs, colons.

use std::ops::Range;

use crate::{
    catalogue::detector::{Before, Detector, Edges, FindAt, FindDigits, FindPart, Shape},
    text::{
        layouts::{Layout, Next},
        words::is_word,
    },
};

/// A detector that runs of digits wake, and which of them.
pub(super) struct DigitTrigger {
    pub(super) index: u16,
    pub(super) least: usize,
    pub(super) before: Before,
    pub(super) find: FindDigits,
}

/// A letter, a plus and nothing, before a run of digits.
const PLACES: [Option<u8>; 3] = [Some(b'a'), Some(b'+'), None];

/// Layouts that may begin inside a word, and those that may where none goes on.
type ByPlace = [Vec<(u16, Layout)>; 2];

/// Detectors by what wakes them.
#[derive(Default)]
pub(super) struct Triggers {
    pub(super) at: Vec<(u16, FindAt)>,
    pub(super) digits: Vec<DigitTrigger>,
    /// A run with fewer digits wakes none of those, behind a letter, a plus and anything else.
    least_digits: [usize; 3],
    pub(super) runs: Vec<(u16, FindPart)>,
    pub(super) starts: Vec<(u16, FindPart)>,
    pub(super) colons: Vec<u16>,
    /// Layouts that are telling by themselves, by the length of their first group of digits, by
    /// what follows it, and by whether a number may begin there.
    layouts: Vec<[ByPlace; Next::ALL.len()]>,
}

impl Triggers {
    /// Notes what wakes a detector.
    pub(super) fn add(&mut self, index: u16, detector: &Detector) {
        match &detector.shape {
            Shape::At(find) => self.at.push((index, *find)),
            Shape::Digits { least, before, find } => {
                let least = *least;
                let before = *before;
                let find = *find;
                if self.digits.is_empty() {
                    self.least_digits = [usize::MAX; 3];
                }
                for (known, place) in self.least_digits.iter_mut().zip(PLACES) {
                    if before.admits(place.as_ref()) {
                        *known = least.min(*known);
                    }
                }
                self.digits.push(DigitTrigger { index, least, before, find });
            }
            Shape::Run(find) => self.runs.push((index, *find)),
            Shape::Colons => self.colons.push(index),
            Shape::Number { alone, .. } => {
                for layout in alone {
                    self.add_layout(index, *layout, detector.edges);
                }
            }
            Shape::Start(find) => self.starts.push((index, *find)),
            Shape::Pattern { .. }
            | Shape::Beside { .. }
            | Shape::Configured { .. }
            | Shape::Around(_)
            | Shape::Value(_)
            | Shape::Hidden => {}
        }
    }
}

impl Triggers {
    fn add_layout(&mut self, index: u16, layout: Layout, edges: Edges) {
        let groups = layout.first_group();
        let length = self.layouts.len().max(groups.end() + 1);
        self.layouts.resize_with(length, Default::default);
        for by_next in self.layouts.get_mut(groups).into_iter().flatten() {
            let fitting = Next::ALL.iter().zip(by_next);
            for (_, [inside, free]) in fitting.filter(|(next, _)| layout.may_go_on(**next)) {
                free.push((index, layout));
                if !layout.begins_with_digits() || edges == Edges::Any {
                    inside.push((index, layout));
                }
            }
        }
    }

    /// The detectors that a run of so many digits wakes behind a byte.
    pub(super) fn woken_by(
        &self,
        total: usize,
        before: Option<&u8>,
    ) -> impl Iterator<Item = &DigitTrigger> {
        let [letter, plus, other] = self.least_digits;
        let least = match before {
            Some(b'+') => plus,
            Some(byte) if byte.is_ascii_alphabetic() => letter,
            Some(_) | None => other,
        };
        let all: &[DigitTrigger] = if total < least { &[] } else { &self.digits };
        all.iter().filter(move |it| total >= it.least && it.before.admits(before))
    }

    /// The layouts that may begin at a group of digits.
    pub(super) fn layouts_at(&self, text: &[u8], group: &Range<usize>) -> &[(u16, Layout)] {
        let Some(by_next) = self.layouts.get(group.len()) else { return &[] };
        let Some([inside, free]) = by_next.get(Next::of(text.get(group.end)) as usize) else {
            return &[];
        };
        let is_free = match text.get(..group.start) {
            Some([.., b'\\', b'n' | b'r' | b't'] | []) | None => true,
            Some([.., before]) => !is_word(*before),
        };
        if is_free { free } else { inside }
    }
}
