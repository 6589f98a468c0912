//! Matches before they are gathered into findings.

use std::ops::Range;

use crate::vocabulary::Likelihood;

/// One match, before matches are gathered into findings.
pub(crate) struct Match {
    pub(crate) active: u16,
    pub(crate) segment: u32,
    /// Bytes of the buffer.
    pub(crate) range: Range<usize>,
    pub(crate) likelihood: Likelihood,
}
