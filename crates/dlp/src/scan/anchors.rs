//! Places in a text to look for literals at: the beginnings of words, and a few rare bytes for
//! those that may stand in the middle of one.

use crate::text::marks::{BLOCK, Block, Set};

/// Blocks that are gone through at once.
pub(super) const BLOCKS: usize = 16;

/// Their bytes.
pub(super) const BYTES: usize = BLOCKS * BLOCK;

/// The bytes of prose, code, addresses and numbers, the rarest first; others are rarer still.
const RARE: &[u8] = b"~^`;%{}[]<>|#q@zj&*!?=$+xkv:bpygwfmcudlh_'\"()sn,/-irtaoe.9876543210 ";

/// The bytes that are looked at.
pub(super) struct Anchors {
    /// Folded.
    known: Vec<u8>,
    rare: Set,
}

/// Places in some blocks.
pub(super) struct Hits {
    places: [u16; BYTES],
    count: usize,
}

impl Anchors {
    /// Anchors that miss none of the literals; each literal comes with a flag that allows it in the
    /// middle of a word.
    pub(super) fn of<'a>(literals: impl Iterator<Item = (&'a [u8], bool)>) -> Self {
        let mut known: Vec<u8> = Vec::new();
        for (literal, anywhere) in literals {
            if at_word(literal, anywhere).is_some() || at_one_of(literal, &known).is_some() {
                continue;
            }
            let candidates = literal.iter().take(literal.len().saturating_sub(1));
            known.extend(candidates.min_by_key(|byte| rank(**byte)).map(|byte| fold(*byte)));
        }
        let rare = Set::of(|byte| known.contains(&fold(byte)));
        Self { known, rare }
    }

    /// The rare bytes, in either case.
    pub(super) fn rare(&self) -> &Set {
        &self.rare
    }

    /// From which of its bytes on a literal is looked for.
    pub(super) fn of_literal(&self, literal: &[u8], anywhere: bool) -> usize {
        at_word(literal, anywhere).or_else(|| at_one_of(literal, &self.known)).unwrap_or(0)
    }
}

impl Default for Hits {
    fn default() -> Self {
        Self { places: [0; BYTES], count: 0 }
    }
}

impl Hits {
    pub(super) fn list(&self) -> &[u16] {
        self.places.get(..self.count).unwrap_or_default()
    }

    /// Takes the places that are marked in up to [`BLOCKS`] blocks and for which that holds, with a
    /// branch for each block alone.
    #[inline]
    pub(super) fn fill(&mut self, blocks: &[Block], holds: impl Fn(usize) -> bool) {
        let mut count = 0;
        for (first, block) in (0_u16..).step_by(BLOCK).zip(blocks) {
            let mut rest = block.anchors;
            while rest != 0 {
                let at = first + u16::try_from(rest.trailing_zeros()).unwrap_or_default();
                rest &= rest - 1;
                #[expect(clippy::indexing_slicing, reason = "never out of bounds, and not checked")]
                {
                    self.places[count % BYTES] = at;
                }
                count += usize::from(holds(usize::from(at)));
            }
        }
        self.count = count;
    }

    /// Keeps the places for which that holds, without a branch.
    #[inline]
    pub(super) fn sift(&mut self, holds: impl Fn(usize) -> bool) {
        let mut kept = 0;
        for index in 0..self.count {
            #[expect(clippy::indexing_slicing, reason = "never out of bounds, and not checked")]
            {
                let at = self.places[index % BYTES];
                self.places[kept % BYTES] = at;
                kept += usize::from(holds(usize::from(at)));
            }
        }
        self.count = kept;
    }
}

/// Returns true if a word may begin with a byte, given the one before and the one before that: a
/// letter where none stands before, or a capital; a digit where neither a letter nor a digit does;
/// any byte of a character beyond ASCII. A letter that ends an escape, such as a literal `\n`, is
/// none.
#[inline]
#[expect(clippy::needless_bitwise_bool, reason = "a branch could not be foretold")]
const fn begins_word(byte: u8, first: u8, second: u8) -> bool {
    let is_escape = second == b'\\';
    let letter = is_letter(byte) & (!is_letter(first) | byte.is_ascii_uppercase() | is_escape);
    let after_none = !is_letter(first) & !first.is_ascii_digit();
    let digit = byte.is_ascii_digit() & (after_none | is_escape);
    letter | digit | (byte >= 0x80)
}

#[inline]
const fn is_letter(byte: u8) -> bool {
    fold(byte).wrapping_sub(b'a') < 26
}

/// A letter in lower case.
#[inline]
const fn fold(byte: u8) -> u8 {
    byte | 0x20
}

/// The offset in a literal at which a word begins wherever the literal may stand, and from which on
/// there is enough of it.
fn at_word(literal: &[u8], anywhere: bool) -> Option<usize> {
    let begins = |byte: u8, before: u8| begins_word(byte, before, before);
    let first = literal.first().is_some_and(|first| !anywhere && begins(*first, b' '));
    let inside = || {
        literal.array_windows::<3>().position(|[before, byte, _]| {
            before.is_ascii() && *before != b'\\' && begins(*byte, *before)
        })
    };
    if first { Some(0) } else { inside().map(|before| before + 1) }
}

/// The offset of one of those bytes from which on there is enough of the literal.
fn at_one_of(literal: &[u8], bytes: &[u8]) -> Option<usize> {
    let enough = literal.get(..literal.len().saturating_sub(1)).unwrap_or_default();
    enough.iter().position(|byte| bytes.contains(&fold(*byte)))
}

/// Rank of a byte by frequency.
fn rank(byte: u8) -> usize {
    RARE.iter().position(|known| *known == byte).unwrap_or(0)
}
