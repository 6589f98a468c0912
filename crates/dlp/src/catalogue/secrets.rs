//! Keys, tokens and passwords: what opens doors.

pub(super) mod ai;
pub(super) mod assigned;
pub(super) mod aws;
pub(super) mod chat;
pub(super) mod compared;
pub(super) mod general;
pub(super) mod keys;
pub(super) mod pairs;
pub(super) mod passwords;
pub(super) mod published;
pub(super) mod randomness;
pub(super) mod services;
pub(super) mod statements;
pub(super) mod summed;
