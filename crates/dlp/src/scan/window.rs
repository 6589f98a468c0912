//! Stretches of text that detectors look at.

use std::ops::Range;

use crate::body::segment::small;

/// A stretch of a segment that a detector shall look at.
#[derive(Clone, PartialEq)]
pub(super) struct Stretch {
    pub(super) active: u16,
    pub(super) segment: u32,
    pub(super) range: Range<usize>,
    /// The key of the member whose value it is, when the detector wants to read both as one.
    pub(super) key: Option<Range<usize>>,
}

pub(super) fn clip(wanted: &Range<usize>, home: &Range<usize>) -> Range<usize> {
    wanted.start.clamp(home.start, home.end)..wanted.end.clamp(home.start, home.end)
}

/// Stretches in the making; each detector's last one grows while new ones touch it.
#[derive(Default)]
pub(super) struct Stretches {
    list: Vec<Stretch>,
    /// One more than the place of each detector's last window; 0 while it has none.
    last: Vec<u32>,
}

impl Stretches {
    pub(super) fn list(&self) -> &[Stretch] {
        &self.list
    }

    pub(super) fn clear(&mut self) {
        for window in self.list.drain(..) {
            if let Some(last) = self.last.get_mut(usize::from(window.active)) {
                *last = 0;
            }
        }
    }

    pub(super) fn push(&mut self, window: Stretch) {
        let detector = usize::from(window.active);
        if self.last.len() <= detector {
            self.last.resize(detector + 1, 0);
        }
        let Some(last) = self.last.get_mut(detector) else { return };
        let known = last.checked_sub(1).and_then(|place| self.list.get_mut(place as usize));
        match known {
            Some(known) if known.touches(&window) => {
                known.range.start = known.range.start.min(window.range.start);
                known.range.end = known.range.end.max(window.range.end);
            }
            Some(_) | None => {
                self.list.push(window);
                *last = small(self.list.len());
            }
        }
    }
}

impl Stretch {
    fn touches(&self, next: &Stretch) -> bool {
        self.segment == next.segment
            && self.key == next.key
            && next.range.start <= self.range.end
            && self.range.start <= next.range.end
    }
}
