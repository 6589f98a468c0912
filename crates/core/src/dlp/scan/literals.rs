//! The prefilter: finds hundreds of literals in one pass, in any case.
//!
//! Four bytes at a time are folded to lower case and hashed into a bitmap that fits the first
//! cache; only where that says yes are literals compared. Unlike an automaton, no step has to wait
//! for the one before. Literals of two or three bytes have a bitmap of their own.

use std::ops::Range;

/// Literals by the hash of how they begin.
pub(super) struct Literals {
    long: Table<17>,
    short: Table<14>,
    /// The places of those shorter than four bytes.
    shorts: Vec<u32>,
    texts: Vec<Vec<u8>>,
}

/// Literals by a hash of so many bits.
struct Table<const BITS: u32> {
    bitmap: Vec<u64>,
    /// For each hash where its literals begin in `order`; one more entry than there are hashes.
    starts: Vec<u32>,
    order: Vec<u32>,
}

/// The first bytes of a text, folded.
const LONG: u32 = 0xffff_ffff;
const SHORT: u32 = 0x00ff_ffff;

impl Literals {
    /// Prepares lower-case literals of at least two bytes. Their places in the list are what
    /// [`each`](Self::each) tells.
    pub(super) fn new(texts: Vec<Vec<u8>>) -> Literals {
        let mut long = Vec::new();
        let mut short = Vec::new();
        for (index, text) in (0..).zip(&texts) {
            match *text.as_slice() {
                [first, second, third, fourth, ..] => {
                    long.push((folded([first, second, third, fourth]), index));
                }
                [first, second, third] => short.push((folded([first, second, third, 0]), index)),
                // Whatever may follow it.
                [first, second] => short
                    .extend((0..=u8::MAX).map(|third| (folded([first, second, third, 0]), index))),
                [_] | [] => {}
            }
        }
        let mut shorts: Vec<u32> = short.iter().map(|(_, index)| *index).collect();
        shorts.dedup();
        let (long, short) = (Table::new(&long, LONG), Table::new(&short, SHORT));
        Literals { long, short, shorts, texts }
    }

    /// Calls `each` with every literal that stands in the text and where, in the order in which
    /// they begin.
    pub(super) fn each(&self, text: &[u8], mut each: impl FnMut(usize, Range<usize>)) {
        for (at, window) in text.windows(4).enumerate() {
            let Some(four) = window.first_chunk() else { continue };
            let four = folded(*four);
            if self.long.may_hold(four, LONG) {
                self.compare(self.long.at(four, LONG), text, at, &mut each);
            }
            if self.short.may_hold(four, SHORT) {
                self.compare(self.short.at(four, SHORT), text, at, &mut each);
            }
        }
        // Only short ones fit into the rest.
        for at in text.len().saturating_sub(3)..text.len() {
            self.compare(&self.shorts, text, at, &mut each);
        }
    }

    fn compare(
        &self,
        candidates: &[u32],
        text: &[u8],
        at: usize,
        each: &mut impl FnMut(usize, Range<usize>),
    ) {
        for index in candidates {
            let index = *index as usize;
            if let Some(literal) = self.texts.get(index) {
                tell(text, at, index, literal, each);
            }
        }
    }
}

/// Tells if the literal stands there.
fn tell(
    text: &[u8],
    at: usize,
    index: usize,
    literal: &[u8],
    each: &mut impl FnMut(usize, Range<usize>),
) {
    let end = at + literal.len();
    if text.get(at..end).is_some_and(|found| found.eq_ignore_ascii_case(literal)) {
        each(index, at..end);
    }
}

impl<const BITS: u32> Table<BITS> {
    fn new(literals: &[(u32, u32)], mask: u32) -> Self {
        let hashed = literals.iter().map(|(four, index)| (Self::hash(*four, mask), *index));
        let mut hashed: Vec<(usize, u32)> = hashed.collect();
        hashed.sort_unstable();
        hashed.dedup();
        let mut bitmap = vec![0; 1 << (BITS - 6)];
        let mut starts = vec![0; (1 << BITS) + 1];
        for (hash, _) in &hashed {
            if let (Some(word), Some(next)) = (bitmap.get_mut(hash >> 6), starts.get_mut(hash + 1))
            {
                *word |= 1_u64 << (hash & 63);
                *next += 1;
            }
        }
        let mut sum = 0;
        for start in &mut starts {
            sum += *start;
            *start = sum;
        }
        let order = hashed.into_iter().map(|(_, index)| index).collect();
        Self { bitmap, starts, order }
    }

    #[inline]
    fn may_hold(&self, four: u32, mask: u32) -> bool {
        let hash = Self::hash(four, mask);
        self.bitmap.get(hash >> 6).is_some_and(|word| word >> (hash & 63) & 1 == 1)
    }

    fn at(&self, four: u32, mask: u32) -> &[u32] {
        let hash = Self::hash(four, mask);
        let Some([start, end]) = self.starts.get(hash..hash + 2) else { return &[] };
        self.order.get(*start as usize..*end as usize).unwrap_or_default()
    }

    #[inline]
    fn hash(four: u32, mask: u32) -> usize {
        const SPREAD: u32 = 0x9e37_79b1;
        ((four & mask).wrapping_mul(SPREAD) >> (u32::BITS - BITS)) as usize
    }
}

/// Letters are the same in both cases.
#[inline]
fn folded(four: [u8; 4]) -> u32 {
    u32::from_le_bytes(four) | 0x2020_2020
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn found(literals: &[&str], text: &str) -> Vec<(usize, usize)> {
        let texts = literals.iter().map(|literal| literal.as_bytes().to_vec()).collect();
        let mut found = Vec::new();
        let ended = format!("{text}\0");
        Literals::new(texts)
            .each(ended.as_bytes(), |index, range| found.push((range.start, index)));
        found
    }

    #[test]
    fn literals_are_found_in_any_case_also_where_they_overlap() {
        let literals = ["ghp_", "token", "ken", "id"];

        assert_eq!(found(&literals, "GHp_ Token id"), [(0, 0), (5, 1), (7, 2), (11, 3)]);
        assert!(found(&literals, "gh p_ to ken_").iter().all(|(_, index)| *index == 2));
        assert!(found(&literals, "").is_empty());
    }

    proptest! {
        #[test]
        fn the_same_is_found_as_by_looking_everywhere(
            literals in prop::collection::vec("[a-c_@]{2,5}", 1..8),
            text in "[a-cA-C_@`]{0,60}",
        ) {
            let literals: Vec<&str> = literals.iter().map(String::as_str).collect();
            let mut expected = Vec::new();
            for at in 0..text.len() {
                for (index, literal) in literals.iter().enumerate() {
                    let there = text.get(at..at + literal.len());
                    if there.is_some_and(|there| there.eq_ignore_ascii_case(literal)) {
                        expected.push((at, index));
                    }
                }
            }

            let mut found = found(&literals, &text);

            found.sort_unstable();
            prop_assert_eq!(found, expected);
        }
    }
}
