//! The built-in detectors. Each is data with its own examples; the examples are its tests.

use super::{
    checks,
    detector::{Candidate, Detector, Edges, NormalForm, Shape},
    kinds::Category,
};

mod cloud;
mod code;
mod financial;
mod keys;
mod people;
mod vendors;

/// Every built-in detector, in the order of the documentation.
pub(super) fn all() -> impl Iterator<Item = &'static Detector> {
    [keys::ALL, cloud::ALL, code::ALL, vendors::ALL, financial::ALL, people::ALL]
        .into_iter()
        .flatten()
}

/// What two examples say: one that fires, one that does not.
struct Examples {
    fires: &'static [&'static str],
    passes: &'static [&'static str],
}

/// A secret that its vendor marks with a prefix of its own. What follows must look random, so
/// that documentation may speak of the prefix.
const fn vendor(
    name: &'static str,
    description: &'static str,
    literals: &'static [&'static str],
    pattern: &'static str,
    examples: &Examples,
) -> Detector {
    Detector {
        name,
        category: Category::Secret,
        description,
        shape: Shape::Pattern { literals, pattern, before: 0, after: 320 },
        edges: Edges::Word,
        bits: 32,
        check: random,
        context: &[],
        context_bits: 0,
        against: &[],
        normal_form: NormalForm::Verbatim,
        positives: examples.fires,
        negatives: examples.passes,
    }
}

impl Detector {
    /// For patterns that begin before their literal.
    const fn reaching_back(mut self, bytes: u16) -> Detector {
        if let Shape::Pattern { literals, pattern, after, .. } = self.shape {
            self.shape = Shape::Pattern { literals, pattern, before: bytes, after };
        }
        self
    }

    /// For patterns longer than usual.
    const fn reaching(mut self, bytes: u16, far: u16) -> Detector {
        if let Shape::Pattern { literals, pattern, .. } = self.shape {
            self.shape = Shape::Pattern { literals, pattern, before: bytes, after: far };
        }
        self
    }

    /// For prefixes that ordinary words may follow.
    const fn needing_digits(mut self) -> Detector {
        self.check = random_with_digits;
        self
    }
}

fn random_with_digits(candidate: &Candidate<'_>) -> Option<i32> {
    if candidate.digits().len() < 4 { None } else { random(candidate) }
}

/// Nothing more, if the match is no mere placeholder.
fn random(candidate: &Candidate<'_>) -> Option<i32> {
    checks::looks_random(candidate.matched(), 3.0).then_some(0)
}
