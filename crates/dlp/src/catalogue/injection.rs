//! Instructions to a model that stand in data: what speaks is their structure, and what stands side by side.

use crate::{
    catalogue::{
        detector::{Candidate, Detector, Edges, NormalForm, Shape},
        injection::passage::Finder,
    },
    vocabulary::Category,
};

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

/// A detector of instructions; `check` weighs the passage that `find` cut out.
const fn instruction(
    name: &'static str,
    description: &'static str,
    literals: &'static [&'static str],
    find: Finder,
    check: fn(&Candidate<'_>) -> Option<i32>,
) -> Detector {
    Detector {
        name,
        category: Category::Injection,
        description,
        shape: Shape::Around { literals, find },
        edges: Edges::Any,
        bits: 0,
        check,
        context: &[],
        context_bits: 0,
        against: &[],
        normal_form: NormalForm::LowerCase,
        positives: &[],
        negatives: &[],
    }
}
