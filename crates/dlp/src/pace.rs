//! Pace of a scan: how much of it is done at once.
//!
//! A scan counts steps: one is what a byte of clean text takes. Between windows it tells how many there
//! were, so that its thread can let others have their turn, or end it here and run it elsewhere. A text may take
//! so many steps for each of its bytes; one that takes more counts as not scanned.

use std::cell::Cell;

/// Told the steps of a scan so far, returns false if the scan shall end.
pub type Pace = fn(steps: usize) -> bool;

/// Steps between two looks at the pace, a fifth of a millisecond.
const INTERVAL: usize = 64 << 10;

/// Steps that a detector takes which looks around a literal or a sign by itself.
pub(crate) const LOOK: usize = 1 << 8;

/// Steps that it takes to weigh a passage, and each byte of it; letters beyond ASCII take longer.
pub(crate) const READ: usize = 1 << 8;
pub(crate) const READ_A_BYTE: usize = 3;
pub(crate) const READ_BEYOND_ASCII: usize = 10;

/// Steps for each byte of a body, and those that any body may take. What people and programs write takes a
/// small part of them; texts of nothing but signs and names take half.
pub(crate) const STEPS_A_BYTE: u32 = 1 << 10;
const STEPS_AT_LEAST: usize = 16 << 20;

/// Steps for each byte that a configured pattern is searched in.
pub(crate) const STEPS_TO_SEARCH_A_BYTE: usize = 2;

/// The most steps of a scan of so many bytes.
pub(crate) const fn budget(bytes: usize) -> usize {
    bytes.saturating_mul(STEPS_A_BYTE as usize).saturating_add(STEPS_AT_LEAST)
}

/// Steps that it takes to look into a stretch, however short.
pub(crate) const PEEK: usize = 1 << 6;

/// Detectors that the literals and signs in one KiB may wake. The densest words that people write wake a
/// few hundred; a text with more is made to cost.
pub(crate) const ANCHORS_A_KIB: usize = 2 << 10;

/// The pace of a scan that nothing holds up.
pub(crate) const fn without_rest(_: usize) -> bool {
    true
}

/// Counts the steps of one scan.
pub(crate) struct Meter {
    pace: Pace,
    steps: Cell<usize>,
    /// Steps at which the pace is looked at next.
    next: Cell<usize>,
    is_over: Cell<bool>,
    budget: usize,
    /// The KiB that anchors were counted in last, and how many it had.
    anchors: Cell<(usize, usize)>,
}

impl Default for Meter {
    fn default() -> Self {
        Self::new(without_rest, usize::MAX)
    }
}

impl Meter {
    pub(crate) const fn new(pace: Pace, budget: usize) -> Self {
        let steps = Cell::new(0);
        let next = Cell::new(INTERVAL);
        let is_over = Cell::new(false);
        let anchors = Cell::new((0, 0));
        Self { pace, steps, next, is_over, budget, anchors }
    }

    /// Counts a detector that wakes at an offset. Those beyond what a KiB may have take all of the budget.
    #[inline]
    pub(crate) fn wake(&self, at: usize) -> bool {
        let kib = at >> 10;
        let (last, count) = self.anchors.get();
        let count = if last == kib { count + 1 } else { 1 };
        self.anchors.set((kib, count));
        count <= ANCHORS_A_KIB || self.budget == usize::MAX || self.spend(self.budget)
    }

    /// Counts steps. Returns false if the scan shall end.
    #[inline]
    pub(crate) fn spend(&self, steps: usize) -> bool {
        let steps = self.steps.get().saturating_add(steps);
        self.steps.set(steps);
        if steps >= self.next.get() && !self.is_over() {
            self.next.set(steps.saturating_add(INTERVAL));
            self.is_over.set(!(self.pace)(steps) || steps > self.budget);
        }
        !self.is_over()
    }

    /// The budget, if the scan has gone beyond it.
    pub(crate) fn exceeded(&self) -> Option<usize> {
        (self.steps.get() > self.budget).then_some(self.budget)
    }

    /// Steps so far.
    #[cfg(test)]
    pub(crate) fn steps(&self) -> usize {
        self.steps.get()
    }

    /// Returns true if the scan shall end.
    #[inline]
    pub(crate) fn is_over(&self) -> bool {
        self.is_over.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scan_ends_at_the_first_look_that_says_so() {
        let meter = Meter::new(|steps| steps < 3 * INTERVAL, usize::MAX);

        assert!(meter.spend(3 * INTERVAL - 1));
        assert!(meter.spend(LOOK), "nobody looks again so soon");
        assert!(!meter.spend(INTERVAL) && meter.is_over());
        assert!(!meter.spend(0));
    }

    #[test]
    fn a_scan_ends_where_one_kib_wakes_too_many_detectors() {
        let meter = Meter::new(without_rest, 3 * INTERVAL);
        let fill = |kib: usize| (0..ANCHORS_A_KIB).all(|_| meter.wake(kib << 10));

        assert!(fill(0) && fill(1) && meter.exceeded().is_none());
        assert!(meter.spend(1) && !meter.wake(1 << 10) && meter.exceeded().is_some());
    }

    #[test]
    fn a_scan_ends_beyond_its_budget() {
        let meter = Meter::new(without_rest, 3 * INTERVAL);

        assert!(meter.spend(2 * INTERVAL) && meter.exceeded().is_none());
        assert!(!meter.spend(2 * INTERVAL) && meter.exceeded() == Some(3 * INTERVAL));
    }
}
