//! The built-in detectors. Each is an entry of a TOML file with its own examples; the examples are its
//! tests.

mod bounded;
pub(super) mod checks;
pub(super) mod detector;

pub(super) mod entry;
mod functions;
mod lists;
pub(super) mod load;
mod naming;
pub(super) mod pattern;

mod contact;
mod financial;
mod health;
mod ids;
mod injection;
mod network;
mod secrets;

pub(super) mod page;
