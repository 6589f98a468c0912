//! Results about the context of one detector in one segment, kept between matches.

/// Knowledge about the context of a detector in a segment. Matches come in rows, and most of what
/// stands near one stands near the next.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::dlp) struct ContextMemo {
    /// The detector's address and the segment; 0 is none.
    pub(in crate::dlp) who: usize,
    pub(in crate::dlp) segment: u32,
    /// The place whose keys were looked at.
    pub(in crate::dlp) place: Option<u32>,
    /// True if a key above names it, or speaks against it.
    pub(in crate::dlp) above: bool,
    pub(in crate::dlp) against: bool,
    /// The part of the segment in which no context word begins.
    pub(in crate::dlp) clear: (usize, usize),
}
