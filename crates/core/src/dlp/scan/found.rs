//! Matches before they are gathered into findings.

use std::ops::Range;

use crate::dlp::vocabulary::Likelihood;

/// One match, before matches are gathered into findings.
pub(in crate::dlp) struct Match {
    pub(in crate::dlp) active: u16,
    pub(in crate::dlp) segment: u32,
    /// Bytes of the buffer.
    pub(in crate::dlp) range: Range<usize>,
    pub(in crate::dlp) likelihood: Likelihood,
}
