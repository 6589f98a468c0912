//! Reach of detectors around the literals that wake them.

use std::ops::Range;

use crate::{
    catalogue::detector::{Edges, Shape},
    text::words::{self, is_word},
};

/// Reach of a detector around a literal.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Reach {
    /// Bytes before the literal's start, and from there on.
    Across { before: usize, after: usize },
    /// The same for a rule from elsewhere, which reads a member's key and value as one line.
    Own { before: usize, after: usize },
    /// Bytes from the literal's start, where a word begins.
    From { after: usize },
    /// Bytes from the literal's start, wherever it stands: the detector tells marks from words.
    Mark { after: usize },
    /// Bytes from the literal's end, or from the start of what is below it when it is a key.
    Beyond { after: usize },
    /// As far as context counts, and all that is below when it is a key.
    Near,
    /// The detector sees for itself.
    Here,
    /// The same, also in the middle of a word: it looks for names.
    Within,
    /// The same, and all of the value when it is a key.
    Value,
}

/// The longest number, with its separators.
const LONGEST: usize = 40;

/// Names up to this length must be whole words: too many words begin with them.
const SHORT: usize = 4;

/// Bytes around a literal that a configured detector looks at.
const OWN_BEFORE: usize = 256;
const OWN_AFTER: usize = 1024;

/// Bytes of a value that are looked at below a key that names it.
const BELOW: usize = 1024;

impl Reach {
    pub(crate) fn of(shape: &Shape, edges: Edges) -> Reach {
        match shape {
            Shape::Pattern { before: 0, after } if edges == Edges::Mark => {
                Reach::Mark { after: usize::from(*after) }
            }
            Shape::Pattern { before: 0, after } if edges != Edges::Any => {
                Reach::From { after: usize::from(*after) }
            }
            Shape::Pattern { before, after } => {
                Reach::Across { before: usize::from(*before), after: usize::from(*after) }
            }
            Shape::Beside { after } => Reach::Beyond { after: usize::from(*after) },
            Shape::Configured { .. } => Reach::Own { before: OWN_BEFORE, after: OWN_AFTER },
            Shape::Number { .. } => Reach::Near,
            Shape::Value(_) => Reach::Value,
            Shape::Around(_) => Reach::Within,
            Shape::At(_)
            | Shape::Digits { .. }
            | Shape::Start(_)
            | Shape::Run(_)
            | Shape::Colons
            | Shape::Hidden => Reach::Here,
        }
    }

    /// The part of the literal's own text.
    pub(super) fn around(self, literal: &Range<usize>) -> Range<usize> {
        match self {
            Reach::Across { before, after } | Reach::Own { before, after } => {
                literal.start.saturating_sub(before)..literal.start + after
            }
            Reach::From { after } | Reach::Mark { after } => literal.start..literal.start + after,
            Reach::Beyond { after } => literal.end..literal.end + after,
            Reach::Near => {
                literal.start.saturating_sub(words::AFTER + LONGEST)
                    ..literal.start + words::BEFORE + 1
            }
            Reach::Here | Reach::Within | Reach::Value => literal.clone(),
        }
    }

    /// Returns true if a literal that begins with a letter or a digit may wake in the middle of a word. Of
    /// built-in detectors few do: to look for all of them, every third letter would have to be looked at.
    pub(crate) fn begins_anywhere(self) -> bool {
        match self {
            Reach::Own { .. } | Reach::Within => true,
            Reach::Across { .. }
            | Reach::From { .. }
            | Reach::Mark { .. }
            | Reach::Beyond { .. }
            | Reach::Near
            | Reach::Here
            | Reach::Value => false,
        }
    }

    /// Returns true if a literal wakes where it stands: words do when they are whole, names of
    /// vendors when a word begins with them.
    pub(super) fn admits(self, text: &[u8], literal: &Range<usize>) -> bool {
        match self {
            Reach::Across { .. }
            | Reach::Own { .. }
            | Reach::Mark { .. }
            | Reach::Here
            | Reach::Within => true,
            Reach::From { .. } => match text.get(..literal.start) {
                Some([.., b'\\', b'n' | b'r' | b't'] | []) | None => true,
                Some([.., before]) => !is_word(*before),
            },
            Reach::Value => {
                literal.len() > SHORT
                    || words::begins_at(text, literal.start) && words::ends_at(text, literal.end)
            }
            Reach::Beyond { .. } => {
                words::begins_at(text, literal.start)
                    && (literal.len() > SHORT || words::ends_at(text, literal.end))
            }
            Reach::Near => {
                words::begins_at(text, literal.start) && words::ends_at(text, literal.end)
            }
        }
    }

    /// Bytes of each value below a key that are looked at, if a key can wake the detector.
    pub(super) fn below(self) -> Option<usize> {
        match self {
            Reach::Beyond { after } => Some(after),
            Reach::Near | Reach::Own { .. } | Reach::Value => Some(BELOW),
            Reach::Across { .. }
            | Reach::From { .. }
            | Reach::Mark { .. }
            | Reach::Here
            | Reach::Within => None,
        }
    }
}
