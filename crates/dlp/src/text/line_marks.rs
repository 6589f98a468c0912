//! Ends of lines in a text, and the signs by which tables and tags are told, as bits: computed in one pass, so that a line
//! without such signs costs little more than to find its end.

use std::ops::Range;

use fearless_simd::{Level, Simd, SimdBase as _, SimdMask as _, dispatch, u8x64};

use crate::text::marks::{BLOCK, Set, UPPERS, among, spread};

/// Delimiters of cells, and quotes.
const SIGNS: Set =
    Set::of_ranges(&[(b'\t', b'\t'), (b'"', b'"'), (b',', b','), (b';', b';'), (b'|', b'|')]);

/// Bits for the bytes of a block, the first as the lowest.
#[derive(Debug, Clone, Copy)]
struct LineBlock {
    /// Line feeds.
    ends: u64,
    signs: u64,
    /// Signs that tags begin with.
    tags: u64,
}

/// The marks of a text.
pub(crate) struct LineMarks {
    blocks: Vec<LineBlock>,
    length: usize,
}

impl LineMarks {
    pub(crate) fn of(text: &[u8]) -> Self {
        let mut blocks = Vec::with_capacity(text.len().div_ceil(BLOCK));
        let level = Level::new();
        dispatch!(level, simd => look(simd, text, &mut blocks));
        Self { blocks, length: text.len() }
    }

    /// Bytes of the text.
    pub(crate) fn length(&self) -> usize {
        self.length
    }

    /// End of the line that an offset stands in.
    #[inline]
    pub(crate) fn end_of_line(&self, at: usize) -> usize {
        self.ends(at).next().unwrap_or(self.length)
    }

    /// The line behind another.
    #[inline]
    pub(crate) fn next_line(&self, line: &Range<usize>) -> Option<Range<usize>> {
        let start = line.end + 1;
        (start < self.length).then(|| start..self.end_of_line(start))
    }

    /// The ends of lines from an offset on.
    pub(crate) fn ends(&self, from: usize) -> impl Iterator<Item = usize> {
        self.places(from..self.length, |block| block.ends)
    }

    /// The delimiters and quotes in a range.
    pub(crate) fn signs(&self, range: Range<usize>) -> impl Iterator<Item = usize> {
        self.places(range, |block| block.signs)
    }

    /// The signs that tags may begin with.
    pub(crate) fn tags(&self) -> impl Iterator<Item = usize> {
        self.places(0..self.length, |block| block.tags)
    }

    #[inline]
    fn places<F: Fn(&LineBlock) -> u64>(&self, range: Range<usize>, of: F) -> Places<'_, F> {
        let (start, shift) = (range.start / BLOCK, range.start % BLOCK);
        let mut blocks = self.blocks.get(start..).unwrap_or_default().iter();
        let bits = blocks.next().map_or(0, |block| of(block) >> shift << shift);
        Places { blocks, of, bits, at: start * BLOCK, end: range.end }
    }
}

/// Places of a kind, in order.
struct Places<'m, F> {
    blocks: std::slice::Iter<'m, LineBlock>,
    of: F,
    bits: u64,
    /// Start of the block.
    at: usize,
    end: usize,
}

impl<F: Fn(&LineBlock) -> u64> Iterator for Places<'_, F> {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        while self.bits == 0 {
            self.at += BLOCK;
            if self.at >= self.end {
                return None;
            }
            self.bits = (self.of)(self.blocks.next()?);
        }
        let found = self.at + self.bits.trailing_zeros() as usize;
        self.bits &= self.bits - 1;
        (found < self.end).then_some(found)
    }
}

/// The tables of the kinds, as vectors.
struct LineTables<S: Simd> {
    uppers: u8x64<S>,
    signs: u8x64<S>,
}

#[inline(always)]
#[expect(clippy::inline_always, reason = "or it is not compiled for the processor's vectors")]
fn look<S: Simd>(simd: S, text: &[u8], blocks: &mut Vec<LineBlock>) {
    let tables = LineTables { uppers: spread(simd, &UPPERS), signs: spread(simd, &SIGNS.0) };
    let (whole, rest) = text.as_chunks::<BLOCK>();
    for block in whole {
        blocks.push(tables.block(simd, block));
    }
    if !rest.is_empty() {
        let mut block = [b' '; BLOCK];
        if let Some(into) = block.get_mut(..rest.len()) {
            into.copy_from_slice(rest);
        }
        blocks.push(tables.block(simd, &block));
    }
}

impl<S: Simd> LineTables<S> {
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "or it is not compiled for the processor's vectors")]
    fn block(&self, simd: S, block: &[u8; BLOCK]) -> LineBlock {
        let bytes = u8x64::from_slice(simd, block);
        let upper = self.uppers.swizzle_dyn_within_blocks(bytes >> 4);
        LineBlock {
            ends: bytes.simd_eq(b'\n').to_bitmask(),
            signs: among(self.signs, bytes & 15, upper),
            tags: bytes.simd_eq(b'<').to_bitmask(),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn signs_are_told_where_they_stand(
            text in "[a\n,;|\t\"<é]{0,200}",
            bounds in (0..220_usize, 0..220_usize),
        ) {
            let text = text.as_bytes();
            let marks = LineMarks::of(text);
            let (start, end) = (bounds.0.min(text.len()), bounds.1.min(text.len()));
            let places = |of: &str, range: Range<usize>| -> Vec<usize> {
                range.filter(|at| of.as_bytes().contains(&text[*at])).collect()
            };

            prop_assert_eq!(marks.signs(start..end).collect::<Vec<_>>(), places("\t|;,\"", start..end));
            prop_assert_eq!(marks.tags().collect::<Vec<_>>(), places("<", 0..text.len()));
            let ends = places("\n", start..text.len());
            prop_assert_eq!(marks.end_of_line(start), ends.first().copied().unwrap_or(text.len()));
            prop_assert_eq!(marks.ends(start).collect::<Vec<_>>(), ends);
        }
    }
}
