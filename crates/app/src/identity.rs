//! Identity, or who may come in: tokens and trust, people in browsers, clients that act for them, and the
//! directories that keep people and groups.

pub(crate) mod access;
pub(crate) mod authorization;
pub(crate) mod directory;
pub(crate) mod login;
pub(crate) mod scim;
