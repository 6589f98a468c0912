//! What a detector is: data, and a check.

use std::ops::Range;

use super::{context, kinds::Category};

/// One kind of sensitive text: how it is recognised and what makes it certain.
#[derive(Debug)]
pub struct Detector {
    pub(super) name: &'static str,
    pub(super) category: Category,
    pub(super) description: &'static str,
    pub(super) shape: Shape,
    /// Characters that must not touch a match on either side.
    pub(super) edges: Edges,
    /// Evidence, in bits, that the shape alone gives.
    pub(super) bits: i32,
    /// Looks closer: more bits, or none when it is something else.
    pub(super) check: fn(&Candidate<'_>) -> Option<i32>,
    /// Words that support a match when they stand near it or in a key above it, lower case.
    pub(super) context: &'static [&'static str],
    /// Evidence, in bits, that context gives.
    pub(super) context_bits: i32,
    /// Words in the key that speak against a match, lower case.
    pub(super) against: &'static [&'static str],
    /// Makes equal values equal before they are fingerprinted.
    pub(super) normal_form: NormalForm,
    /// Texts, or JSON objects, in which it must fire; run as tests and shown in the docs.
    pub(super) positives: &'static [&'static str],
    /// Texts, or JSON objects, in which it must not.
    pub(super) negatives: &'static [&'static str],
}

/// What wakes a detector, and what it then looks at.
#[derive(Debug)]
pub(super) enum Shape {
    /// A pattern that cannot match without one of the literals.
    Pattern {
        /// Literals, found in any case; the pattern decides. One that begins with a capital
        /// always does where the pattern matches, which makes it cheaper to find inside a word.
        literals: &'static [&'static str],
        /// The pattern. When it has a group, the group is what is found.
        pattern: &'static str,
        /// Bytes before a literal that the pattern may need.
        before: u16,
        /// Bytes from the literal's start that the pattern may need.
        after: u16,
    },
    /// As `Pattern`, and a literal in a key also wakes it for that member's value.
    Beside {
        /// Lower-case literals; found in any case.
        literals: &'static [&'static str],
        /// The pattern. When it has a group, the group is what is found.
        pattern: &'static str,
        /// Bytes from the literal's end, or from the value's start, that are looked at.
        after: u16,
    },
    /// Wakes at every `@`: given the text and the offset of the `@`, what is found.
    At(fn(&[u8], usize) -> Option<Range<usize>>),
    /// Wakes at every run of digit groups that is long enough.
    Digits {
        /// How many digits it needs.
        least: usize,
        /// What has to stand before the first of them.
        before: Before,
        /// What is found in the run.
        find: fn(&[u8], &DigitRun) -> Vec<Range<usize>>,
    },
    /// Layouts of characters, as [`layouts`](super::layouts) reads them.
    Number {
        /// Layouts that are telling by themselves: they wake at their first digits.
        alone: &'static [&'static str],
        /// Layouts that could be anything: only looked for beside the context words.
        named: &'static [&'static str],
    },
    /// Wakes at every literal: given the text and where the literal stands, what is found.
    Around {
        /// Lower-case literals; found in any case.
        literals: &'static [&'static str],
        /// What is found.
        find: fn(&[u8], Range<usize>) -> Option<Range<usize>>,
    },
    /// Wakes at every long run of letters and digits that may be an address of a coin or the
    /// beginning of a token: given the text and the run, what is found.
    Run(fn(&[u8], Range<usize>) -> Option<Range<usize>>),
    /// Wakes at every run of hex digits with at least five colons, and takes all of it.
    Colons,
}

/// Evidence, in bits, that a layout is worth which is telling by itself.
pub(super) const ALONE_BITS: i32 = 10;

/// Which characters may not touch a match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Edges {
    /// The shape sees to it itself.
    Any,
    /// No letter, digit or underscore.
    Word,
    /// No letter, digit, `_`, `-`, `+`, `/` or `=`.
    Token,
    /// As `Word`, but before the mark of a vendor they may stand where it is
    /// [clear](super::prefixes::is_clear) that it is one: `MY_ghp_…`, `tokenghp_…`.
    Mark,
}

/// How a value is written before it is fingerprinted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NormalForm {
    /// As it is.
    Verbatim,
    /// Letters and digits only, in lower case.
    Alphanumeric,
    /// In lower case.
    LowerCase,
}

/// What a check looks at.
#[derive(Debug)]
pub(super) struct Candidate<'a> {
    /// The whole key, string or number literal.
    pub(super) text: &'a [u8],
    /// Where in it the match is.
    pub(super) range: Range<usize>,
    /// The nearest key above the text.
    pub(super) key: Option<&'a [u8]>,
}

impl Candidate<'_> {
    /// The matched bytes.
    pub(super) fn matched(&self) -> &[u8] {
        self.text.get(self.range.clone()).unwrap_or_default()
    }

    /// The digits among the matched bytes, as numbers.
    pub(super) fn digits(&self) -> Vec<u8> {
        self.matched().iter().filter(|b| b.is_ascii_digit()).map(|b| b - b'0').collect()
    }
}

/// What stands before a run of digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Before {
    Anything,
    Letter,
    Plus,
}

impl Before {
    #[inline]
    pub(super) fn admits(self, byte: Option<&u8>) -> bool {
        match self {
            Before::Anything => true,
            Before::Letter => byte.is_some_and(u8::is_ascii_alphabetic),
            Before::Plus => byte == Some(&b'+'),
        }
    }
}

/// Groups of digits with single separators between them, as long as they go.
#[derive(Debug, Default)]
pub(super) struct DigitRun {
    /// Each group's offsets.
    pub(super) groups: Vec<Range<usize>>,
    /// How many digits they have together.
    pub(super) total: usize,
}

impl Detector {
    /// The name policies and settings use.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// What kind of harm it stands for.
    #[must_use]
    pub fn category(&self) -> Category {
        self.category
    }

    /// What it finds, in one line.
    #[must_use]
    pub fn description(&self) -> &'static str {
        self.description
    }

    /// Texts, or JSON objects, in which it fires.
    #[must_use]
    pub fn positives(&self) -> &'static [&'static str] {
        self.positives
    }

    /// Look-alikes that it leaves alone.
    #[must_use]
    pub fn negatives(&self) -> &'static [&'static str] {
        self.negatives
    }
}

impl Detector {
    /// The literals that wake it: lower-case, but for those that begin with a capital.
    pub(super) fn literals(&self) -> Vec<String> {
        match self.shape {
            Shape::Pattern { literals, .. }
            | Shape::Beside { literals, .. }
            | Shape::Around { literals, .. } => literals.iter().map(|l| (*l).to_owned()).collect(),
            Shape::Number { named: [], .. }
            | Shape::At(_)
            | Shape::Digits { .. }
            | Shape::Run(_)
            | Shape::Colons => Vec::new(),
            Shape::Number { .. } => {
                self.context.iter().flat_map(|word| context::spellings(word)).collect()
            }
        }
    }
}

impl Edges {
    /// Whether a byte may stand next to a match.
    pub(super) fn allow(self, byte: u8) -> bool {
        match self {
            Edges::Any => true,
            Edges::Word | Edges::Mark => !is_word(byte),
            Edges::Token => !is_word(byte) && !matches!(byte, b'-' | b'+' | b'/' | b'='),
        }
    }
}

impl NormalForm {
    /// The bytes that are fingerprinted.
    pub(super) fn apply(self, matched: &[u8]) -> Vec<u8> {
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

/// A letter, a digit or an underscore.
pub(super) fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}
