//! The built-in detectors. Each is data with its own examples; the examples are its tests.

pub(super) mod checks;
pub(super) mod detector;

mod builders;
mod naming;

mod contact;
mod financial;
mod health;
mod ids;
mod injection;
mod network;
mod secrets;

pub(super) mod list;

pub(super) mod page;
