//! Builder of detectors of instructions.

use super::passage::Finder;
use crate::{
    catalogue::detector::{Candidate, Detector, Edges, NormalForm, Shape},
    vocabulary::Category,
};

/// A detector of instructions; `check` weighs the passage that `find` cut out.
pub(super) const fn instruction(
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
