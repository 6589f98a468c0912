//! Results about the context of one detector in one segment, kept between matches.

/// Knowledge about the context of a detector in a segment. Matches come in rows, and most of what
/// stands near one stands near the next.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ContextMemo {
    /// The detector's address and the segment; 0 is none.
    pub(crate) who: usize,
    pub(crate) segment: u32,
    /// The place whose keys were looked at.
    pub(crate) place: Option<u32>,
    /// True if a key above names it, or speaks against it.
    pub(crate) above: bool,
    pub(crate) against: bool,
    /// The part of the segment in which no context word begins.
    pub(crate) clear: (usize, usize),
}
