//! Steps of one check, counted on the thread that makes it.
//!
//! The validator decides by itself in which order and how often it looks at a value, so the values
//! count the looks ([`super::instance`]). When none are left the value appears to be empty, and the
//! validator is done within what it has on its stack. Its answer then means nothing.

use std::cell::Cell;

thread_local! {
    /// Steps that are left; [`EXHAUSTED`] once more were asked for.
    static LEFT: Cell<u64> = const { Cell::new(0) };
    static PRICES: Cell<Prices> = const { Cell::new(Prices::NONE) };
}

/// More steps than there ever are.
const EXHAUSTED: u64 = u64::MAX;

/// Steps that a schema takes for each member or item, beside what is counted where it happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Prices {
    /// For each member and item: loops over many schemas that ask nothing of the value.
    pub(super) visit: u64,
    /// For four bytes of a member's name: the patterns that it is held against.
    pub(super) name: u64,
}

impl Prices {
    const NONE: Self = Self { visit: 0, name: 0 };
}

/// Runs a check of at most `steps` steps; `None` if it needs more.
pub(super) fn within<T>(steps: u64, prices: Prices, check: impl FnOnce() -> T) -> Option<T> {
    LEFT.set(steps.min(EXHAUSTED - 1));
    PRICES.set(prices);
    let answer = check();
    (LEFT.replace(0) != EXHAUSTED).then_some(answer)
}

/// Takes steps. `false` when there are not as many left; from then on there are none.
pub(super) fn spend(steps: u64) -> bool {
    let left = match LEFT.get() {
        EXHAUSTED => return false,
        left => left.checked_sub(steps).unwrap_or(EXHAUSTED),
    };
    LEFT.set(left);
    left != EXHAUSTED
}

/// Takes the steps for going to the next item.
pub(super) fn spend_visit() -> bool {
    spend(1 + PRICES.get().visit)
}

/// Takes the steps for going to the next member.
pub(super) fn spend_name(name: &str) -> bool {
    let prices = PRICES.get();
    let length = super::length(name);
    spend(1 + prices.visit + length / 8 + prices.name.saturating_mul(1 + length / 4))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_that_asks_for_more_than_there_is_has_no_answer() {
        let prices = Prices { visit: 2, name: 0 };

        assert_eq!(within(6, prices, || spend_visit() && spend_visit()), Some(true));
        assert_eq!(within(5, prices, || spend_visit() && spend_visit()), None);
        assert_eq!(within(5, prices, || (spend(6), spend(1))), None, "nothing after the end");
        assert!(!spend(1), "outside of a check there are no steps");
        assert_eq!(within(1, prices, || spend(1)), Some(true), "the next check begins anew");
    }
}
