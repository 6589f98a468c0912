//! A list of tools as a caller sees it.

use std::{
    hash::{Hash, Hasher},
    sync::Arc,
};

use super::{Offer, Offered};

/// A list and those of its tools that may be used. Two are equal if list and tools are the same.
#[derive(Debug, Clone)]
pub(super) struct View {
    pub(super) offer: Arc<Offer>,
    /// A bit for each place in the list.
    usable: Box<[u64]>,
}

impl View {
    /// The view of a list in which the tools are that `usable` tells.
    pub(super) fn new(offer: Arc<Offer>, usable: impl Fn(&Offered) -> bool) -> Self {
        let word = |tools: &[Offered]| {
            let bits = (0_u32..).zip(tools).filter(|(_, tool)| usable(tool));
            bits.fold(0, |word, (bit, _)| word | 1 << bit)
        };
        let usable = offer.tools.chunks(64).map(word).collect();
        Self { offer, usable }
    }

    /// Number of tools that may be used.
    pub(super) fn count(&self) -> usize {
        self.usable.iter().map(|word| usize::try_from(word.count_ones()).unwrap_or(0)).sum()
    }

    /// True if the tool at this place may be used.
    pub(super) fn holds(&self, place: usize) -> bool {
        self.usable.get(place / 64).is_some_and(|word| word >> (place % 64) & 1 == 1)
    }

    /// The tools that may be used.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Offered> {
        let tools = self.offer.tools.iter().enumerate();
        tools.filter(|(place, _)| self.holds(*place)).map(|(_, tool)| tool)
    }

    /// Bytes that it takes without the list.
    pub(super) fn bytes(&self) -> usize {
        size_of::<Self>() + size_of_val(&*self.usable)
    }
}

impl PartialEq for View {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.offer, &other.offer) && self.usable == other.usable
    }
}

impl Eq for View {}

impl Hash for View {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.offer).hash(state);
        self.usable.hash(state);
    }
}
