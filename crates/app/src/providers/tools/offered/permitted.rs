//! Capabilities of a list that the policies of a session let its principal use, remembered while list and policies are
//! the same: of a thousand resources each may be judged by its URI.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use portcullis_core::policy::{Access, PolicySet, Principal};

use super::{Offer, Offered, view::Places};

/// Most lists of a session.
const MOST_LISTS: usize = 32;

/// The lists of a session, the one that was asked for last at the end.
#[derive(Debug, Default)]
pub(crate) struct PermittedLists(Mutex<VecDeque<PermittedList>>);

/// Places of a list by a set of policies. Holds neither, but their addresses, so that no others get these.
#[derive(Debug)]
struct PermittedList {
    offer: Weak<Offer>,
    policies: Weak<PolicySet>,
    places: Arc<Places>,
}

impl PermittedLists {
    /// The places that were judged of this list by these policies.
    pub(super) fn find(
        &self,
        offer: &Arc<Offer>,
        policies: &Arc<PolicySet>,
    ) -> Option<Arc<Places>> {
        let is_same = |it: &&PermittedList| {
            it.offer.as_ptr() == Arc::as_ptr(offer) && it.policies.as_ptr() == Arc::as_ptr(policies)
        };
        let lists = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lists.iter().find(is_same).map(|it| Arc::clone(&it.places))
    }

    /// The places of what policies do not deny the principal whatever else they look at.
    pub(super) fn judge(
        &self,
        offer: &Arc<Offer>,
        policies: &Arc<PolicySet>,
        principal: &Principal,
    ) -> Arc<Places> {
        let accesses = policies.accesses(principal);
        let permitted = |_, it: &Offered| accesses.of(&it.tool) != Access::Deny;
        let places = Arc::new(Places::of(&offer.tools, permitted));
        let list = PermittedList {
            offer: Arc::downgrade(offer),
            policies: Arc::downgrade(policies),
            places: Arc::clone(&places),
        };
        let mut lists = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lists.retain(|it| it.offer.strong_count() > 0 && it.policies.strong_count() > 0);
        if lists.len() >= MOST_LISTS {
            lists.pop_front();
        }
        lists.push_back(list);
        places
    }
}
