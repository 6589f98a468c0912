//! Builders of detectors of numbers.

use crate::{
    catalogue::detector::{Candidate, Detector, Edges, NormalForm, Shape},
    text::groups::Grouping,
    vocabulary::Category,
};

/// A number that a state, a bank or a clinic gives. Layouts that could be anything need one of
/// its words beside them.
pub(super) const fn number(
    name: &'static str,
    category: Category,
    description: &'static str,
    check: fn(&Candidate<'_>) -> Option<i32>,
) -> Detector {
    Detector {
        name,
        category,
        description,
        shape: Shape::Number { alone: &[], named: &[], grouped: None },
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
pub(super) const fn national(
    name: &'static str,
    description: &'static str,
    check: fn(&Candidate<'_>) -> Option<i32>,
) -> Detector {
    number(name, Category::NationalId, description, check)
}

/// Keys of numbers that look like those of persons.
pub(super) const SERIALS: &[&str] = &[
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
#[expect(clippy::unnecessary_wraps, reason = "other checks can say no")]
pub(super) fn any(_: &Candidate<'_>) -> Option<i32> {
    Some(0)
}

impl Detector {
    /// Layouts that are telling by themselves.
    pub(super) const fn alone(mut self, layouts: &'static [&'static str]) -> Detector {
        if let Shape::Number { named, grouped, .. } = self.shape {
            self.shape = Shape::Number { alone: layouts, named, grouped };
        }
        self
    }

    /// Layouts that are looked for beside the words only.
    pub(super) const fn named(mut self, layouts: &'static [&'static str]) -> Detector {
        if let Shape::Number { alone, grouped, .. } = self.shape {
            self.shape = Shape::Number { alone, named: layouts, grouped };
        }
        self
    }

    /// Digits that are looked for in any grouping, beside the words only.
    pub(super) const fn grouped(mut self, digits: Grouping) -> Detector {
        if let Shape::Number { alone, named, .. } = self.shape {
            self.shape = Shape::Number { alone, named, grouped: Some(digits) };
        }
        self
    }

    /// Words that speak for it.
    pub(super) const fn beside(mut self, words: &'static [&'static str]) -> Detector {
        self.context = words;
        self
    }

    /// Keys that speak against it.
    pub(super) const fn not_below(mut self, words: &'static [&'static str]) -> Detector {
        self.against = words;
        self
    }

    /// Examples in which it fires.
    pub(super) const fn fires(mut self, examples: &'static [&'static str]) -> Detector {
        self.positives = examples;
        self
    }

    /// Examples in which it does not.
    pub(super) const fn passes(mut self, examples: &'static [&'static str]) -> Detector {
        self.negatives = examples;
        self
    }
}
