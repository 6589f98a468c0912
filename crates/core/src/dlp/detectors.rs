//! The built-in detectors. Each is data with its own examples; the examples are its tests.

use super::{detector::Detector, kinds::Action};

mod contact;
mod financial;
mod health;
mod ids;
mod making;
mod naming;
mod network;
mod secrets;

use making::{SERIALS, any, national, number};

/// Default action for the findings of a detector, where it differs from its category's; policies
/// and settings override it.
pub(super) fn usual_action(name: &str) -> Option<Action> {
    (name == financial::CARD_NUMBER_ALONE).then_some(Action::Flag)
}

/// Every built-in detector, in the order of the documentation.
pub(super) fn all() -> impl Iterator<Item = &'static Detector> {
    let others: [&[Detector]; 3] = [contact::ALL, network::ALL, health::ALL];
    let groups = secrets::ALL.iter().chain(financial::ALL).chain(ids::ALL).copied();
    groups.chain(others).flatten()
}
