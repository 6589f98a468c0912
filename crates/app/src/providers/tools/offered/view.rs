//! A list of tools as a caller sees it.

use std::{
    hash::{Hash, Hasher},
    sync::Arc,
};

use super::{Offer, Offered};
use crate::request::permitted::Places;

/// A list and those of its tools that may be used. Two are equal if list and tools are the same.
#[derive(Debug, Clone)]
pub(super) struct View {
    pub(super) offer: Arc<Offer>,
    usable: Places,
}

impl View {
    /// The view of a list in which the tools are that `usable` tells.
    pub(super) fn new(offer: Arc<Offer>, usable: impl Fn(usize, &Offered) -> bool) -> Self {
        let usable = Places::of(&offer.tools, usable);
        Self { offer, usable }
    }

    /// Number of tools that may be used.
    pub(super) fn count(&self) -> usize {
        self.usable.count()
    }

    /// True if the tool at this place may be used.
    pub(super) fn holds(&self, place: usize) -> bool {
        self.usable.holds(place)
    }

    /// The tools that may be used.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Offered> {
        let tools = self.offer.tools.iter().enumerate();
        tools.filter(|(place, _)| self.holds(*place)).map(|(_, tool)| tool)
    }

    /// Bytes that it takes without the list.
    pub(super) fn bytes(&self) -> usize {
        size_of::<Self>() + self.usable.bytes()
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
