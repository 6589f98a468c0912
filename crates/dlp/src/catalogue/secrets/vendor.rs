//! Builders of detectors of secrets that a vendor gives.

use super::{
    assigned::assigned,
    randomness::{
        clear, random, random_behind_row, random_letters, random_with_digits, random_with_letters,
    },
};
use crate::{
    catalogue::detector::{Detector, Edges, NormalForm, Shape},
    vocabulary::Category,
};

/// Words that make what stands beside a vendor's name a secret.
const WORDS: &[&str] = &[
    "token",
    "key",
    "secret",
    "api",
    "apikey",
    "auth",
    "authorization",
    "password",
    "pass",
    "pwd",
    "credential",
    "access",
    "client",
    "client id",
    "app id",
    "application id",
    "bearer",
    "pat",
    "signing",
    "private",
    "encryption",
    "authtoken",
    "login",
];

/// Bytes from the start of a mark that most secrets need.
const USUAL_REACH: u16 = 420;

/// A secret that its vendor marks with a prefix of its own. What follows must look random, so
/// that documentation may speak of the prefix.
pub(super) const fn vendor(
    name: &'static str,
    description: &'static str,
    literals: &'static [&'static str],
    pattern: &'static str,
) -> Detector {
    Detector {
        name,
        category: Category::Secret,
        description,
        shape: Shape::Pattern { literals, pattern, before: 0, after: USUAL_REACH },
        edges: Edges::Mark,
        bits: 32,
        check: random,
        context: &[],
        context_bits: 0,
        against: &[],
        normal_form: NormalForm::Verbatim,
        positives: &[],
        negatives: &[],
    }
}

/// A secret without a mark of its own. Its vendor's name must stand before it, and a word that
/// says that it is a secret.
pub(super) const fn named(
    name: &'static str,
    description: &'static str,
    literals: &'static [&'static str],
    pattern: &'static str,
) -> Detector {
    Detector {
        shape: Shape::Beside { literals, pattern, after: 160 },
        edges: Edges::Word,
        bits: 8,
        check: assigned,
        context: WORDS,
        context_bits: 14,
        ..vendor(name, description, literals, pattern)
    }
}

impl Detector {
    /// For patterns that begin before their literal.
    pub(super) const fn reaching_back(self, bytes: u16) -> Detector {
        self.reaching(bytes, USUAL_REACH)
    }

    /// For patterns longer than usual.
    pub(super) const fn reaching(mut self, bytes: u16, far: u16) -> Detector {
        if let Shape::Pattern { literals, pattern, .. } = self.shape {
            self.shape = Shape::Pattern { literals, pattern, before: bytes, after: far };
        }
        // What does not begin with its mark needs a free beginning.
        if bytes > 0 && matches!(self.edges, Edges::Mark) {
            self.edges = Edges::Word;
        }
        self
    }

    /// For secrets that may touch letters and digits.
    pub(super) const fn at_any_edge(mut self) -> Detector {
        self.edges = Edges::Any;
        self
    }

    /// For forms that hardly anything else has: the vendor's name is enough.
    pub(super) const fn telling(mut self) -> Detector {
        self.bits = 16;
        self
    }

    /// For prefixes that ordinary words may follow.
    pub(super) const fn needing_digits(mut self) -> Detector {
        self.check = random_with_digits;
        self
    }

    /// For prefixes that hex digits may follow.
    pub(super) const fn needing_letters(mut self) -> Detector {
        self.check = random_with_letters;
        self
    }

    /// For prefixes that names in programs have, too.
    pub(super) const fn mixed_case(mut self) -> Detector {
        self.check = random_letters;
        self
    }

    /// For marks so clear that what follows need not look random.
    pub(super) const fn even_if_dull(mut self) -> Detector {
        self.check = clear;
        self
    }

    /// For marks that are a row of one character.
    pub(super) const fn behind_row(mut self) -> Detector {
        self.check = random_behind_row;
        self
    }
}
