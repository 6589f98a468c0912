//! Pace of a scan: how much of it is done at once.
//!
//! A scan counts steps: one is what a byte of clean text takes. Between windows it tells how many there
//! were, so that its thread can let others have their turn, or end it here and run it elsewhere.

use std::cell::Cell;

/// Told the steps of a scan so far, returns false if the scan shall end.
pub type Pace = fn(steps: usize) -> bool;

/// Steps between two looks at the pace, a fifth of a millisecond.
const INTERVAL: usize = 64 << 10;

/// Steps that a detector takes which looks around a literal or a sign by itself.
pub(crate) const LOOK: usize = 1 << 10;

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
}

impl Default for Meter {
    fn default() -> Self {
        Self::new(without_rest)
    }
}

impl Meter {
    pub(crate) const fn new(pace: Pace) -> Self {
        let steps = Cell::new(0);
        let next = Cell::new(INTERVAL);
        let is_over = Cell::new(false);
        Self { pace, steps, next, is_over }
    }

    /// Counts steps. Returns false if the scan shall end.
    #[inline]
    pub(crate) fn spend(&self, steps: usize) -> bool {
        let steps = self.steps.get().saturating_add(steps);
        self.steps.set(steps);
        if steps >= self.next.get() && !self.is_over() {
            self.next.set(steps.saturating_add(INTERVAL));
            self.is_over.set(!(self.pace)(steps));
        }
        !self.is_over()
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
        let meter = Meter::new(|steps| steps < 3 * INTERVAL);

        assert!(meter.spend(3 * INTERVAL - 1));
        assert!(meter.spend(LOOK), "nobody looks again so soon");
        assert!(!meter.spend(INTERVAL) && meter.is_over());
        assert!(!meter.spend(0));
    }
}
