//! Instructions to a model that stand in data: what speaks is their structure, and what stands side by side.

use super::detector::Detector;

mod classes;
mod instruction;
mod links;
mod overrides;
mod passage;
mod poison;
#[rustfmt::skip]
mod poison_words;
mod request_words;
mod requests;
mod roles;
mod steering;
mod veiled;

pub(super) const ALL: &[Detector] = &[
    overrides::DETECTOR,
    roles::DETECTOR,
    veiled::DETECTOR,
    steering::DETECTOR,
    poison::DETECTOR,
    requests::DETECTOR,
    links::DETECTOR,
];
