//! Every built-in detector.

use super::{contact, detector::Detector, financial, health, ids, network, secrets};
use crate::vocabulary::Action;

/// Default action for the findings of a detector, where it differs from its category's; policies
/// and settings override it.
pub(crate) fn usual_action(name: &str) -> Option<Action> {
    (name == financial::CARD_NUMBER_ALONE).then_some(Action::Flag)
}

/// Every built-in detector, in the order of the documentation.
pub(crate) fn all() -> impl Iterator<Item = &'static Detector> {
    let others: [&[Detector]; 3] = [contact::ALL, network::ALL, health::ALL];
    let groups = secrets::ALL.iter().chain(financial::ALL).chain(ids::ALL).copied();
    groups.chain(others).flatten()
}
