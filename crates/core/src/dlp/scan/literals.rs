//! The prefilter: finds hundreds of literals in one pass, in any case.
//!
//! Three bytes at a time are folded to lower case and hashed into a bitmap that fits the first
//! cache; only where that says yes are literals compared. Unlike an automaton, no step has to wait
//! for the one before.

use std::ops::Range;

/// Bits of a hash.
const BITS: u32 = 15;

/// Literals by the hash of their first three bytes.
pub(super) struct Literals {
    bitmap: Vec<u64>,
    /// For each hash where its literals begin in `order`; one more entry than there are hashes.
    starts: Vec<u32>,
    order: Vec<u32>,
    texts: Vec<Vec<u8>>,
}

impl Literals {
    /// Prepares lower-case literals of at least two bytes. Their places in the list are what
    /// [`each`](Self::each) tells.
    pub(super) fn new(texts: Vec<Vec<u8>>) -> Literals {
        let mut hashed: Vec<(usize, u32)> = Vec::new();
        for (index, text) in (0..).zip(&texts) {
            match text.as_slice() {
                [first, second, third, ..] => hashed.push((hash(*first, *second, *third), index)),
                // Whatever may follow it.
                [first, second] => {
                    hashed.extend((0..=u8::MAX).map(|third| (hash(*first, *second, third), index)))
                }
                [_] | [] => {}
            }
        }
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
        Literals { bitmap, starts, order, texts }
    }

    /// Calls `each` with every literal that stands in the text and where, in the order in which
    /// they begin. A literal in the last two bytes of the text is not seen; a scan buffer ends
    /// with a separator.
    pub(super) fn each(&self, text: &[u8], mut each: impl FnMut(usize, Range<usize>)) {
        let Ok(bitmap) = <&[u64; 1 << (BITS - 6)]>::try_from(self.bitmap.as_slice()) else {
            return;
        };
        for (at, window) in text.windows(3).enumerate() {
            let [first, second, third] = window else { continue };
            let hash = hash(*first, *second, *third);
            let word = bitmap.get(hash >> 6).copied().unwrap_or_default();
            if word >> (hash & 63) & 1 == 1 {
                self.compare(hash, text, at, &mut each);
            }
        }
    }

    fn compare(
        &self,
        hash: usize,
        text: &[u8],
        at: usize,
        each: &mut impl FnMut(usize, Range<usize>),
    ) {
        let Some([start, end]) = self.starts.get(hash..hash + 2) else { return };
        let literals = self.order.get(*start as usize..*end as usize).unwrap_or_default();
        for index in literals {
            let index = *index as usize;
            let Some(literal) = self.texts.get(index) else { continue };
            let end = at + literal.len();
            if text.get(at..end).is_some_and(|found| found.eq_ignore_ascii_case(literal)) {
                each(index, at..end);
            }
        }
    }
}

/// Below 2 to the power of [`BITS`]. Letters hash alike in both cases.
#[inline]
fn hash(first: u8, second: u8, third: u8) -> usize {
    const FOLD: u32 = 0x0020_2020;
    const SPREAD: u32 = 0x9e37_79b1;
    let three = u32::from(first) | u32::from(second) << 8 | u32::from(third) << 16;
    ((three | FOLD).wrapping_mul(SPREAD) >> (u32::BITS - BITS)) as usize
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
