//! The built-in detectors. Each is data with its own examples; the examples are its tests.

use super::{
    checks,
    detector::{Candidate, Detector, Edges, NormalForm, Shape},
    kinds::Category,
};

mod cloud;
mod code;
mod contact;
mod financial;
mod health;
mod ids;
mod keys;
mod network;
mod vendors;

/// Every built-in detector, in the order of the documentation.
pub(super) fn all() -> impl Iterator<Item = &'static Detector> {
    let secrets: [&[Detector]; 4] = [keys::ALL, cloud::ALL, code::ALL, vendors::ALL];
    let others: [&[Detector]; 3] = [contact::ALL, network::ALL, health::ALL];
    let groups = secrets.into_iter().chain(financial::ALL.iter().copied());
    groups.chain(ids::ALL.iter().copied()).chain(others).flatten()
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

/// A number that a state, a bank or a clinic gives. Layouts that could be anything need one of
/// its words beside them.
const fn number(
    name: &'static str,
    category: Category,
    description: &'static str,
    check: fn(&Candidate<'_>) -> Option<i32>,
) -> Detector {
    Detector {
        name,
        category,
        description,
        shape: Shape::Number { alone: &[], named: &[] },
        edges: Edges::Word,
        bits: 6,
        check,
        context: &[],
        context_bits: 14,
        against: &[],
        normal_form: NormalForm::Alphanumeric,
        positives: &[],
        negatives: &[],
    }
}

/// A number that a state gave to a person.
const fn national(
    name: &'static str,
    description: &'static str,
    check: fn(&Candidate<'_>) -> Option<i32>,
) -> Detector {
    number(name, Category::NationalId, description, check)
}

/// Keys of numbers that look like those of persons.
const SERIALS: &[&str] = &[
    "order",
    "ticket",
    "case",
    "invoice",
    "tracking",
    "timestamp",
    "serial",
    "build",
    "version",
    "sku",
    "uuid",
    "hash",
    "isbn",
];

/// Nothing but the layout speaks for it.
fn any(_: &Candidate<'_>) -> Option<i32> {
    Some(0)
}

impl Detector {
    /// Layouts that are telling by themselves.
    const fn alone(mut self, layouts: &'static [&'static str]) -> Detector {
        if let Shape::Number { named, .. } = self.shape {
            self.shape = Shape::Number { alone: layouts, named };
        }
        self
    }

    /// Layouts that are looked for beside the words only.
    const fn named(mut self, layouts: &'static [&'static str]) -> Detector {
        if let Shape::Number { alone, .. } = self.shape {
            self.shape = Shape::Number { alone, named: layouts };
        }
        self
    }

    /// Words that speak for it.
    const fn beside(mut self, words: &'static [&'static str]) -> Detector {
        self.context = words;
        self
    }

    /// Keys that speak against it.
    const fn not_below(mut self, words: &'static [&'static str]) -> Detector {
        self.against = words;
        self
    }

    /// Examples in which it fires.
    const fn fires(mut self, examples: &'static [&'static str]) -> Detector {
        self.positives = examples;
        self
    }

    /// Examples in which it does not.
    const fn passes(mut self, examples: &'static [&'static str]) -> Detector {
        self.negatives = examples;
        self
    }

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
