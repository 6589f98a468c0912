//! Detectors: data, and a check.

use std::{cell::Cell, ops::Range, sync::Arc};

use serde::Deserialize;

use crate::{
    catalogue::{
        checks::{conditions::Conditions, digits::DigitRule},
        pattern::Pattern,
    },
    text::{
        digits::DigitRun,
        groups::Grouping,
        layouts::Layout,
        window::Window,
        words::{self, is_word},
    },
    vocabulary::Category,
};

/// One kind of sensitive text: how it is recognised and what makes it certain.
#[derive(Debug)]
pub struct Detector {
    pub(crate) name: Arc<str>,
    /// Name and place of its entry, for messages.
    pub(crate) label: String,
    pub(crate) category: Category,
    pub(crate) description: String,
    pub(crate) shape: Shape,
    /// Texts that wake it, as they are written; found in any case.
    pub(crate) literals: Vec<String>,
    /// Pattern of the text to find where the detector wakes; of a pattern with a group, the group is found.
    pub(crate) pattern: Option<Pattern>,
    /// Characters that must not touch a match on either side.
    pub(crate) edges: Edges,
    /// Evidence, in bits, that the shape alone gives.
    pub(crate) bits: i32,
    /// Looks closer: more bits, or none when it is something else.
    pub(crate) check: Check,
    /// Words that support a match when they stand near it or in a key above it, lower case.
    pub(crate) context: Vec<String>,
    /// Evidence, in bits, that context gives.
    pub(crate) context_bits: i32,
    /// Words in the key that speak against a match, lower case.
    pub(crate) against: Vec<String>,
    /// Makes equal values equal before they are fingerprinted.
    pub(crate) normal_form: NormalForm,
    /// Texts, or JSON objects, in which it must fire; run as tests.
    pub(crate) positives: Vec<String>,
    /// Texts, or JSON objects, in which it must not.
    pub(crate) negatives: Vec<String>,
}

pub(crate) type CheckFunction = fn(&Candidate<'_>) -> Option<i32>;
pub(crate) type FindAt = fn(&Window<'_>, usize) -> Option<Range<usize>>;
pub(crate) type FindDigits = fn(&Window<'_>, &DigitRun) -> Vec<Range<usize>>;
pub(crate) type FindPart = fn(&Window<'_>, Range<usize>) -> Option<Range<usize>>;

/// The check that looks closer at a match.
#[derive(Debug)]
pub(crate) enum Check {
    Function(CheckFunction),
    Digits(DigitRule),
    Conditions(Conditions),
}

/// Triggers of a detector, and the text that it then looks at.
#[derive(Debug)]
pub(crate) enum Shape {
    /// A pattern that cannot match without one of the literals. One that begins with a letter or a digit
    /// has to begin where a word does, or with a capital.
    Pattern {
        /// Bytes before a literal that the pattern may need.
        before: u16,
        /// Bytes from the literal's start that the pattern may need.
        after: u16,
    },
    /// As `Pattern`, and a literal in a key also wakes it for that member's value.
    Beside {
        /// Bytes from the literal's end, or from the value's start, that are looked at.
        after: u16,
    },
    /// The pattern of a configured detector: its literals wake it anywhere, or every text does where it has none.
    Configured {
        /// True if a match counts only where one of the words stands.
        needs_context: bool,
    },
    /// The value that a name is given. In a text it wakes at every literal: given the text and
    /// where the literal stands, what is found. Below a key and in a column that hold a literal,
    /// all of the value is a candidate.
    Value(FindPart),
    /// Wakes at every `@`: given the text and the offset of the `@`, what is found.
    At(FindAt),
    /// Wakes at every run of digit groups that is long enough.
    Digits {
        /// Least number of digits.
        least: usize,
        /// Character that has to stand before the first of them.
        before: Before,
        find: FindDigits,
    },
    /// Layouts of characters, as [`layouts`](crate::text::layouts) reads them.
    Number {
        /// Layouts that are telling by themselves: they wake at their first digits.
        alone: Vec<Layout>,
        /// Layouts that could be anything: only looked for beside the context words.
        named: Vec<Layout>,
        /// Those that are looked for there also with other signs between their characters, which is worth less.
        loose: Vec<Layout>,
        /// Digits in any grouping: only looked for beside the context words.
        grouped: Option<Grouping>,
    },
    /// Wakes at every literal: given the text and where the literal stands, what is found.
    Around(FindPart),
    /// As `Around`, and wakes at the beginning of every text, which then is an empty literal.
    Start(FindPart),
    /// Wakes at every long run of letters and digits that may be an address of a coin or the
    /// beginning of a token: given the text and the run, what is found.
    Run(FindPart),
    /// Wakes at every run of hex digits with at least five colons, and takes all of it.
    Colons,
    /// Characters that cannot be seen: the scan looks for them itself.
    Hidden,
}

/// Evidence, in bits, that a layout is worth which is telling by itself.
pub(crate) const ALONE_BITS: i32 = 10;

/// Evidence, in bits, that speaks against a number in other groups than those of its kind: what
/// has no check digit is left alone.
pub(crate) const LOOSE_BITS: i32 = -7;

/// Characters that may not touch a match.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Edges {
    /// The shape sees to it itself.
    Any,
    /// No letter, digit or underscore.
    Word,
    /// No letter, digit, `_`, `-`, `+`, `/` or `=`.
    Token,
    /// As `Word`, but before the mark of a vendor they may stand where it is
    /// [clear](crate::text::prefixes::is_clear) that it is one: `MY_ghp_…`, `tokenghp_…`.
    Mark,
}

/// Normal form of a value before it is fingerprinted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum NormalForm {
    /// As it is.
    Verbatim,
    /// Letters and digits only, in lower case.
    Alphanumeric,
    LowerCase,
}

/// Input of a check: a match in its text.
#[derive(Debug)]
pub(crate) struct Candidate<'a> {
    /// Neighbourhood of it in its key, string or number literal.
    pub(crate) text: Window<'a>,
    /// Position of the match in the window.
    pub(crate) range: Range<usize>,
    /// The nearest key above the text that says what it is, or the label beside it.
    pub(crate) key: Option<&'a [u8]>,
    /// The head of the column that the match stands in, if a label names it, too.
    pub(crate) head: Option<&'a [u8]>,
    /// Steps that checks took.
    pub(crate) steps: &'a Cell<usize>,
}

impl Check {
    /// More bits, or none when it is something else.
    pub(crate) fn bits(&self, candidate: &Candidate<'_>) -> Option<i32> {
        match self {
            Check::Function(check) => check(candidate),
            Check::Digits(rule) => rule.bits(candidate.digits()),
            Check::Conditions(conditions) => {
                let matched = candidate.matched();
                candidate.spend(matched.len() * conditions.steps());
                conditions.hold(matched).then_some(0)
            }
        }
    }
}

impl Candidate<'_> {
    /// The matched bytes.
    pub(crate) fn matched(&self) -> &[u8] {
        self.text.get(self.range.clone()).unwrap_or_default()
    }

    /// Returns true if it holds a placeholder and hardly more, such as a password that was masked before.
    pub(crate) fn is_masked(&self) -> bool {
        const LEAST: usize = 6;
        let letters = || self.matched().iter().filter(|byte| byte.is_ascii_alphanumeric()).count();
        self.text.holds_placeholder(&self.range) && letters() < LEAST
    }

    /// Counts steps of a check that reads more than a few words.
    pub(crate) fn spend(&self, steps: usize) {
        self.steps.set(self.steps.get() + steps);
    }

    /// The digits among the matched bytes, as numbers.
    pub(crate) fn digits(&self) -> Vec<u8> {
        self.matched().iter().filter(|b| b.is_ascii_digit()).map(|b| b - b'0').collect()
    }
}

/// Character before a run of digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Before {
    Anything,
    Letter,
    Plus,
}

impl Before {
    #[inline]
    pub(crate) fn admits(self, byte: Option<&u8>) -> bool {
        match self {
            Before::Anything => true,
            Before::Letter => byte.is_some_and(u8::is_ascii_alphabetic),
            Before::Plus => byte == Some(&b'+'),
        }
    }
}

impl Detector {
    /// One whose matches are certain, without anything to look closer at.
    pub(crate) fn new(name: &str, category: Category, shape: Shape) -> Self {
        Self {
            name: Arc::from(name),
            label: String::new(),
            category,
            description: String::new(),
            shape,
            literals: Vec::new(),
            pattern: None,
            edges: Edges::Any,
            bits: 0,
            check: Check::Function(|_| Some(0)),
            context: Vec::new(),
            context_bits: 0,
            against: Vec::new(),
            normal_form: NormalForm::Verbatim,
            positives: Vec::new(),
            negatives: Vec::new(),
        }
    }

    /// The name policies and settings use.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Kind of harm that its findings stand for.
    #[must_use]
    pub fn category(&self) -> Category {
        self.category
    }

    /// Description of its matches, in one line.
    #[must_use]
    pub fn description(&self) -> &str {
        &self.description
    }

    /// Texts, or JSON objects, in which it fires.
    #[must_use]
    pub fn positives(&self) -> &[String] {
        &self.positives
    }

    /// Look-alikes that it leaves alone.
    #[must_use]
    pub fn negatives(&self) -> &[String] {
        &self.negatives
    }

    /// Returns true if it is an entry of the catalogue.
    pub(crate) const fn is_built_in(&self) -> bool {
        !matches!(self.shape, Shape::Configured { .. } | Shape::Hidden)
    }

    /// The fault of its pattern, which is compiled for that.
    pub(crate) fn pattern_problem(&self) -> Option<String> {
        self.pattern.as_ref()?.problem()
    }

    /// Bytes that its compiled pattern takes.
    pub(crate) fn compiled_bytes(&self) -> usize {
        self.pattern.as_ref().map_or(0, Pattern::compiled_bytes)
    }

    /// True if it is configured and looks at every text.
    pub(crate) fn is_restless(&self) -> bool {
        matches!(self.shape, Shape::Configured { .. }) && self.literals.is_empty()
    }

    /// Returns true if what is found has a name.
    pub(crate) const fn is_named(&self) -> bool {
        matches!(self.shape, Shape::Beside { .. } | Shape::Value(_))
    }

    /// The literals that wake it, in all their spellings.
    pub(crate) fn wakes_at(&self) -> Vec<String> {
        let is_named_number = matches!(
            &self.shape,
            Shape::Number { named, grouped, .. } if !named.is_empty() || grouped.is_some()
        );
        if is_named_number {
            self.context.iter().flat_map(|word| words::spellings(word)).collect()
        } else if matches!(self.shape, Shape::Value(_)) {
            self.literals.iter().flat_map(|word| words::spellings(word)).collect()
        } else {
            self.literals.clone()
        }
    }
}

impl Edges {
    /// Returns true if a byte may stand next to a match.
    pub(crate) fn allow(self, byte: u8) -> bool {
        match self {
            Edges::Any => true,
            Edges::Word | Edges::Mark => !is_word(byte),
            Edges::Token => !is_word(byte) && !matches!(byte, b'-' | b'+' | b'/' | b'='),
        }
    }
}

impl NormalForm {
    /// The bytes that are fingerprinted.
    pub(crate) fn apply(self, matched: &[u8]) -> Vec<u8> {
        match self {
            NormalForm::Verbatim => matched.to_vec(),
            NormalForm::LowerCase => matched.to_ascii_lowercase(),
            NormalForm::Alphanumeric => {
                let kept = matched.iter().filter(|byte| byte.is_ascii_alphanumeric());
                kept.map(u8::to_ascii_lowercase).collect()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::{
        placeholders::Placeholder,
        window::{Notes, Place},
    };

    #[test]
    fn what_is_masked_is_no_match_and_what_stands_beside_it_is() {
        let (notes, steps) = (Notes::default(), Cell::new(0));
        let placeholders = [Placeholder { at: 3, written: Box::from(*b"**********") }];
        let place = Place { at: 0, notes: &notes, placeholders: &placeholders };
        let is_masked = |range: Range<usize>| {
            let text = Window::around(b"x=[**********]hunter2hunter2", &range).placed(place);
            Candidate { text, range, key: None, head: None, steps: &steps }.is_masked()
        };

        for masked in [2..14, 0..14, 2..19] {
            assert!(is_masked(masked.clone()), "{masked:?}");
        }
        for open in [2..28, 14..28, 0..2] {
            assert!(!is_masked(open.clone()), "{open:?}");
        }
    }
}
