//! The built-in detectors. Each is an entry of a TOML file with its own examples; the examples are its
//! tests.

pub(super) mod checks;
pub(super) mod detector;

mod functions;
mod lists;
pub(super) mod load;
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
