//! Lists of resources of which it is known what the policies of a session let its principal read, while list and policies
//! are the same.

use std::{
    any::Any,
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use portcullis_core::policy::PolicySet;

/// Most lists of a session.
const MOST_LISTS: usize = 256;

/// Some of the places of a list: a bit for each.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Places(Box<[u64]>);

impl Places {
    /// The places in `all` that are wanted.
    pub(crate) fn of<T>(all: &[T], wanted: impl Fn(usize, &T) -> bool) -> Self {
        let word = |number: usize, part: &[T]| {
            let bits = (0_usize..).zip(part);
            let bits = bits.filter(|(bit, it)| wanted(number * 64 + bit, it));
            bits.fold(0, |word, (bit, _)| word | 1 << bit)
        };
        Self(all.chunks(64).enumerate().map(|(number, part)| word(number, part)).collect())
    }

    /// Number of the places.
    pub(crate) fn count(&self) -> usize {
        self.0.iter().map(|word| usize::try_from(word.count_ones()).unwrap_or(0)).sum()
    }

    /// True if this place is among them.
    pub(crate) fn holds(&self, place: usize) -> bool {
        self.0.get(place / 64).is_some_and(|word| word >> (place % 64) & 1 == 1)
    }

    /// Bytes that they take.
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&*self.0)
    }
}

/// Lists with their permitted places, the one that was judged last at the end.
#[derive(Debug, Default)]
pub(crate) struct PermittedLists(Mutex<VecDeque<PermittedList>>);

/// Holds neither list nor policies, but their addresses, so that no others get these.
#[derive(Debug)]
struct PermittedList {
    list: Weak<dyn Any + Send + Sync>,
    policies: Weak<PolicySet>,
    places: Arc<Places>,
}

impl PermittedLists {
    /// The places that these policies permit of this list, if they were judged.
    pub(crate) fn find<T>(&self, list: &Arc<T>, policies: &Arc<PolicySet>) -> Option<Arc<Places>> {
        let is_same = |it: &&PermittedList| {
            it.list.as_ptr().cast::<T>() == Arc::as_ptr(list)
                && it.policies.as_ptr() == Arc::as_ptr(policies)
        };
        let lists = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lists.iter().find(is_same).map(|it| Arc::clone(&it.places))
    }

    /// Remembers what these policies permit of this list.
    pub(crate) fn keep<T: Send + Sync + 'static>(
        &self,
        list: &Arc<T>,
        policies: &Arc<PolicySet>,
        places: &Arc<Places>,
    ) {
        let list: Arc<dyn Any + Send + Sync> = Arc::<T>::clone(list);
        let kept = PermittedList {
            list: Arc::downgrade(&list),
            policies: Arc::downgrade(policies),
            places: Arc::clone(places),
        };
        let mut lists = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lists.retain(|it| {
            let is_same = it.list.as_ptr().cast::<T>() == kept.list.as_ptr().cast::<T>();
            !is_same && it.list.strong_count() > 0 && it.policies.strong_count() > 0
        });
        if lists.len() >= MOST_LISTS {
            lists.pop_front();
        }
        lists.push_back(kept);
    }
}
