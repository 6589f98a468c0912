//! Keys, tokens and passwords: what opens doors.

mod ai;
mod assigned;
mod aws;
mod chat;
mod cloud;
mod code;
mod compared;
mod data;
mod general;
mod insight;
mod keys;
mod mail;
mod money;
mod office;
mod own;
mod pairs;
mod passwords;
mod published;
mod randomness;
mod services;
mod statements;
mod summed;
mod vendor;

use super::detector::Detector;

/// By what they open.
pub(super) const ALL: &[&[Detector]] = &[
    keys::ALL,
    own::ALL,
    aws::ALL,
    cloud::ALL,
    data::ALL,
    code::ALL,
    ai::ALL,
    chat::ALL,
    money::ALL,
    mail::ALL,
    insight::ALL,
    office::ALL,
    passwords::ALL,
    services::ALL,
    statements::ALL,
    general::ALL,
    compared::ALL,
];
