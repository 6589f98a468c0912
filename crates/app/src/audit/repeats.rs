//! Things that happen again and again: the first of a run is told at once, the others together when
//! its time is over.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Mutex, PoisonError},
};

use portcullis_core::clock::Timestamp;

/// The most runs that are told apart.
const MOST: usize = 10_000;

/// Result of noting one repeat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Noted {
    /// The first of its run: to be told now.
    First,
    /// One more of a run: it is counted.
    Again,
    /// There are too many runs to remember another one.
    TooMany,
}

/// Since when, what is known of it, and how often since it was last told.
#[derive(Debug, Clone)]
struct RepeatedRun<V> {
    until: Timestamp,
    about: V,
    count: u64,
}

/// The runs of this node.
#[derive(Debug)]
pub(crate) struct Runs<K, V> {
    span: i64,
    known: Mutex<HashMap<K, RepeatedRun<V>>>,
}

impl<K: Clone + Eq + Hash, V: Clone> Runs<K, V> {
    /// Runs that last so many seconds.
    pub(crate) fn lasting(span: i64) -> Self {
        Self { span, known: Mutex::default() }
    }

    /// Counts one.
    pub(crate) fn note(&self, key: K, about: &V, now: Timestamp) -> Noted {
        let mut runs = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(run) = runs.get_mut(&key) {
            run.count = run.count.saturating_add(1);
            return Noted::Again;
        }
        if runs.len() >= MOST {
            return Noted::TooMany;
        }
        let until = now.plus_seconds(self.span);
        runs.insert(key, RepeatedRun { until, about: about.clone(), count: 0 });
        Noted::First
    }

    /// True if the key is known, or fewer than so many others like it are.
    pub(crate) fn has_room(&self, key: &K, most: usize, is_alike: impl Fn(&K) -> bool) -> bool {
        let runs = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        runs.contains_key(key) || runs.keys().filter(|it| is_alike(it)).take(most).count() < most
    }

    /// The next one is the first again: this one could not be told.
    pub(crate) fn forget(&self, key: &K) {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
    }

    /// The runs whose time is over and that have something to tell, each with its count; those
    /// that have nothing end.
    pub(crate) fn due(&self, now: Timestamp) -> Vec<(K, V, u64)> {
        let mut runs = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        runs.retain(|_, run| run.count > 0 || run.until > now);
        let mut due = Vec::new();
        for (key, run) in runs.iter_mut().filter(|(_, run)| run.until <= now) {
            due.push((key.clone(), run.about.clone(), run.count));
            (run.until, run.count) = (now.plus_seconds(self.span), 0);
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(runs: &Runs<&'static str, ()>, key: &'static str, second: i64) -> Noted {
        runs.note(key, &(), Timestamp::default().plus_seconds(second))
    }

    fn due(runs: &Runs<&'static str, ()>, second: i64) -> Vec<u64> {
        let now = Timestamp::default().plus_seconds(second);
        runs.due(now).into_iter().map(|(_, (), count)| count).collect()
    }

    #[test]
    fn the_first_is_told_at_once_and_the_others_once_a_span_with_their_count() {
        let runs = Runs::lasting(60);

        assert_eq!(note(&runs, "a", 0), Noted::First);
        assert!((1..50).all(|second| note(&runs, "a", second) == Noted::Again));
        assert!(due(&runs, 59).is_empty());
        assert_eq!(due(&runs, 60), [49]);
        assert_eq!(note(&runs, "a", 61), Noted::Again);
        assert_eq!(due(&runs, 120), [1]);
        assert!(due(&runs, 180).is_empty());
        assert_eq!(note(&runs, "a", 181), Noted::First, "after a silent span it is news again");
    }

    #[test]
    fn so_many_runs_that_are_alike_have_room() {
        let runs = Runs::lasting(60);
        for key in ["a1", "a2", "b1"] {
            note(&runs, key, 0);
        }
        let has_room = |key, most| runs.has_room(&key, most, |it| it.starts_with('a'));

        assert!(has_room("a1", 2), "it is known");
        assert!(!has_room("a3", 2));
        assert!(has_room("a3", 3));
    }

    #[test]
    fn another_key_is_another_run_and_what_was_not_told_is_news_again() {
        let runs = Runs::lasting(60);

        assert_eq!(note(&runs, "a", 0), Noted::First);
        assert_eq!(note(&runs, "b", 0), Noted::First);
        runs.forget(&"a");

        assert_eq!(note(&runs, "a", 1), Noted::First);
        assert_eq!(note(&runs, "b", 1), Noted::Again);
    }
}
