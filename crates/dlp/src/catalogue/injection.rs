//! Instructions to a model that stand in data: what speaks is their structure, and what stands side by side.

use super::detector::Detector;

mod instruction;
mod links;
mod overrides;
mod passage;
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
    requests::DETECTOR,
    links::DETECTOR,
];
