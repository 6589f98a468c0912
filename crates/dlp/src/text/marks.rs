//! Kinds of bytes by offset: sets of bits, computed in one pass for all readers.
//!
//! Sixty-four bytes make a block. Whether a byte is of a kind is looked up for as many of them at
//! once as the processor can: by its lower half in a table that says with which upper halves it is.

use std::ops::{Range, RangeInclusive};

use fearless_simd::{Level, Simd, SimdBase as _, SimdMask as _, dispatch, u8x16, u8x64};

/// Bytes of a block.
pub(crate) const BLOCK: usize = 64;

/// With fewer colons in two blocks side by side there is no address.
const COLONS: u32 = 5;

/// Digits are counted in stretches of this many bytes.
pub(crate) const STRETCH: usize = 16;

/// Two stretches side by side with fewer digits than this are skipped, but for four with a byte between
/// each two, as in `8.8.8.8`. The shortest other number of interest has five digits within the length of
/// one.
const DIGITS_DENSE: u32 = 5;

/// Words that begin at one distance from each other, at least.
const REGULAR: u32 = 4;

/// Distances of single characters, and of longer words.
const SINGLE: RangeInclusive<usize> = 2..=5;
const LONGER: RangeInclusive<usize> = 3..=9;

/// Kinds of bytes in a block: a bit for each byte, the first as the lowest.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Block {
    /// Places to look for literals at: the beginnings of words, and rare bytes.
    pub(crate) anchors: u64,
    /// Digits in the first group of a word: `12` and `34` in `a12b3-34c5`.
    digits: u64,
    /// Letters and digits.
    words: u64,
    /// These, and what else belongs to either alphabet of base64.
    base64: u64,
}

/// The marks of a part of a text.
#[derive(Debug, Default)]
pub(crate) struct Marks {
    /// Start of the part. It goes to the end of the text.
    start: usize,
    blocks: Vec<Block>,
    /// The second of two blocks side by side in which there may be an address with colons.
    colons: Vec<usize>,
    /// The second of two stretches side by side in which digits are dense.
    digits: Vec<usize>,
    /// Digits in the last stretch.
    digits_before: u32,
    /// Bits that the last block leaves to the next one.
    carried: Carried,
    /// Control characters but for tabs and the ends of lines.
    controls: usize,
    has_beyond: bool,
}

/// State of the word that a block ends in.
#[derive(Debug, Default, Clone, Copy)]
struct Carried {
    /// A digit stood in it.
    digit: bool,
    /// A letter stood behind a digit.
    buried: bool,
}

/// A set of ASCII characters: for each lower half of a byte, the upper halves with which it is one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Set(pub(super) [u8; 16]);

impl Set {
    pub(crate) const NONE: Set = Set([0; 16]);

    pub(crate) fn of(holds: impl Fn(u8) -> bool) -> Set {
        let mut set = Set::NONE;
        for byte in (0..=0x7f).filter(|byte| holds(*byte)) {
            if let Some(uppers) = set.0.get_mut(usize::from(byte & 15)) {
                *uppers |= 1 << (byte >> 4);
            }
        }
        set
    }

    pub(super) const fn of_ranges(ranges: &[(u8, u8)]) -> Set {
        let mut set = Set::NONE;
        let mut index = 0;
        while index < ranges.len() {
            #[expect(clippy::indexing_slicing, reason = "checked when compiled")]
            {
                let (mut byte, last) = ranges[index];
                while byte <= last {
                    set.0[(byte & 15) as usize] |= 1 << (byte >> 4);
                    byte += 1;
                }
            }
            index += 1;
        }
        set
    }
}

const LETTERS: Set = Set::of_ranges(&[(b'A', b'Z'), (b'a', b'z')]);
const CAPITALS: Set = Set::of_ranges(&[(b'A', b'Z')]);
const DIGITS: Set = Set::of_ranges(&[(b'0', b'9')]);
const OTHER_BASE64: Set = Set::of_ranges(&[(b'+', b'+'), (b'-', b'-'), (b'/', b'/'), (b'_', b'_')]);
const CONTROLS: Set = Set::of_ranges(&[(0, 8), (11, 12), (14, 31), (127, 127)]);
/// A bit for each upper half of a character of ASCII.
pub(super) const UPPERS: [u8; 16] = [1, 2, 4, 8, 16, 32, 64, 128, 0, 0, 0, 0, 0, 0, 0, 0];

impl Marks {
    /// Looks at a text from an offset on. Literals are looked for also where `rare` characters stand.
    pub(crate) fn set(&mut self, text: &[u8], start: usize, rare: &Set) {
        self.clear();
        self.start = start;
        let part = text.get(start..).unwrap_or_default();
        self.blocks.reserve(part.len().div_ceil(BLOCK));
        let level = Level::new();
        dispatch!(level, simd => self.look(simd, part, rare));
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "or it is not compiled for the processor's vectors")]
    fn look<S: Simd>(&mut self, simd: S, part: &[u8], rare: &Set) {
        let tables = MarkTables::new(simd, rare);
        let (whole, rest) = part.as_chunks::<BLOCK>();
        let mut last = Kinds::default();
        for block in whole {
            let kinds = tables.kinds(simd, block);
            self.push(kinds, last);
            last = kinds;
        }
        if !rest.is_empty() {
            // White space is of no kind.
            let mut block = [b' '; BLOCK];
            if let Some(into) = block.get_mut(..rest.len()) {
                into.copy_from_slice(rest);
            }
            let mut kinds = tables.kinds(simd, &block);
            kinds.rare &= !(u64::MAX << rest.len());
            self.push(kinds, last);
        }
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "or it is not compiled for the processor's vectors")]
    fn push(&mut self, kinds: Kinds, last: Kinds) {
        if kinds.colons != 0 && (kinds.colons.count_ones() + last.colons.count_ones()) >= COLONS {
            self.colons.push(self.blocks.len());
        }
        let words = kinds.letters | kinds.digits;
        let digits = self.first_groups(kinds, words);
        if kinds.digits == 0 {
            self.digits_before = 0;
        } else {
            self.count_digits(kinds.digits, alternating(kinds.digits, last.digits));
        }
        if kinds.controls != 0 {
            self.controls += kinds.controls.count_ones() as usize;
        }
        self.has_beyond |= kinds.beyond != 0;
        self.blocks.push(Block {
            anchors: kinds.anchors(last),
            digits,
            words,
            base64: words | kinds.other_base64,
        });
    }

    /// The digits that no letter behind a digit stands before in their word. No number begins with
    /// the others, of which hashes and ids are full.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "as the rest of the pass")]
    fn first_groups(&mut self, kinds: Kinds, words: u64) -> u64 {
        let Carried { digit, buried } = self.carried;
        if kinds.digits == 0 && !digit && !buried {
            return 0;
        }
        let goes_on = words & 1;
        let after_digit = flood(kinds.digits | goes_on & u64::from(digit), words);
        let letters = kinds.letters & after_digit;
        let after_letter = flood(letters | goes_on & u64::from(buried), words);
        self.carried = Carried { digit: after_digit >> 63 == 1, buried: after_letter >> 63 == 1 };
        kinds.digits & !after_letter
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "or it is not compiled for the processor's counter")]
    fn count_digits(&mut self, digits: u64, alternating: u64) {
        let stretches = digits.to_le_bytes();
        let counts = stretches.as_chunks::<2>().0.iter();
        let mut counts = counts.map(|part| u16::from_le_bytes(*part).count_ones());
        if alternating == 0 && self.digits_before + digits.count_ones() < DIGITS_DENSE {
            self.digits_before = counts.next_back().unwrap_or(0);
            return;
        }
        let first = self.blocks.len() * (BLOCK / STRETCH);
        let ends = alternating.to_le_bytes();
        for ((index, count), end) in (first..).zip(counts).zip(ends.as_chunks::<2>().0) {
            if count > 0 && (self.digits_before + count >= DIGITS_DENSE || *end != [0; 2]) {
                self.digits.push(index);
            }
            self.digits_before = count;
        }
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.start = 0;
        self.blocks.clear();
        self.colons.clear();
        self.digits.clear();
        self.digits_before = 0;
        self.carried = Carried::default();
        self.controls = 0;
        self.has_beyond = false;
    }

    /// Start of the marked part.
    pub(crate) fn start(&self) -> usize {
        self.start
    }

    /// Memory that is allocated, in bytes.
    pub(crate) fn room(&self) -> usize {
        let places = self.colons.capacity() + self.digits.capacity();
        self.blocks.capacity() * size_of::<Block>() + places * size_of::<usize>()
    }

    /// Returns true if there are characters beyond ASCII.
    pub(crate) fn has_beyond(&self) -> bool {
        self.has_beyond
    }

    /// Number of control characters other than tabs and line ends.
    pub(crate) fn controls(&self) -> usize {
        self.controls
    }

    /// Some blocks at a time, and where they begin.
    pub(crate) fn batches(&self, blocks: usize) -> impl Iterator<Item = (usize, &[Block])> {
        (self.start..).step_by(BLOCK * blocks).zip(self.blocks.chunks(blocks))
    }

    /// Starts of two blocks side by side that may hold an address with colons.
    pub(crate) fn colons(&self) -> impl Iterator<Item = usize> {
        self.colons.iter().map(|second| self.start + second.saturating_sub(1) * BLOCK)
    }

    /// Starts of two stretches side by side in which digits are dense.
    pub(crate) fn dense_digits(&self) -> impl Iterator<Item = usize> {
        self.digits.iter().map(|second| self.start + second.saturating_sub(1) * STRETCH)
    }

    /// The first digit in a range that a number may begin with.
    pub(crate) fn first_digit(&self, range: Range<usize>) -> Option<usize> {
        let mut at = range.start;
        while at < range.end {
            let ahead = self.ahead(at, |block| block.digits);
            if ahead != 0 {
                return Some(at + ahead.trailing_zeros() as usize).filter(|at| *at < range.end);
            }
            at += BLOCK;
        }
        None
    }

    /// Number of digits from an offset on.
    pub(crate) fn digits_from(&self, at: usize) -> usize {
        self.length(at, |block| block.digits)
    }

    /// Number of letters and digits from an offset on.
    pub(crate) fn word_from(&self, at: usize) -> usize {
        self.length(at, |block| block.words)
    }

    /// Number of characters of base64 from an offset on.
    pub(crate) fn base64_from(&self, at: usize) -> usize {
        self.length(at, |block| block.base64)
    }

    /// Start of each block, and the places in it at which runs of sixteen characters of base64 or
    /// more begin or go on, as bits.
    pub(crate) fn long_base64(&self) -> impl Iterator<Item = (usize, u64)> {
        let all = self.blocks.iter().map(|block| block.base64);
        let nexts = all.clone().skip(1).chain([0]);
        (self.start..).step_by(BLOCK).zip(all.zip(nexts).map(|(mut here, mut next)| {
            // Most blocks hold none, which the widest step tells.
            for step in [8, 4, 2, 1] {
                if here == 0 {
                    break;
                }
                here &= here >> step | next << (u64::BITS - step);
                next &= next >> step;
            }
            here
        }))
    }

    /// Calls `each` with places from which on four words begin at one distance from each other, and that
    /// distance: single characters, or longer ones where digits are.
    pub(crate) fn each_regular(&self, mut each: impl FnMut(usize, usize)) {
        let mut before = 0;
        for (index, block) in self.blocks.iter().enumerate() {
            let start = self.start + index * BLOCK;
            let next = self.blocks.get(index + 1).copied().unwrap_or_default();
            let words = block.words;
            let begins = words & !(words << 1 | before);
            let single = begins & !(words >> 1 | next.words << (BLOCK - 1));
            if single.count_ones() >= REGULAR {
                regular(u128::from(single), SINGLE, |at, distance| each(start + at, distance));
            }
            if block.digits | next.digits != 0 {
                let ahead = next.words & !(next.words << 1 | words >> (BLOCK - 1));
                let begins = u128::from(begins) | u128::from(ahead) << BLOCK;
                regular(begins, LONGER, |at, distance| each(start + at, distance));
            }
            before = words >> (BLOCK - 1);
        }
    }

    fn length(&self, from: usize, of: impl Fn(&Block) -> u64) -> usize {
        let mut at = from;
        loop {
            let ones = self.ahead(at, &of).trailing_ones();
            at += ones as usize;
            if ones < u64::BITS {
                return at - from;
            }
        }
    }

    /// The bits of the next bytes from an offset on.
    #[inline]
    fn ahead(&self, at: usize, of: impl Fn(&Block) -> u64) -> u64 {
        let at = at.wrapping_sub(self.start);
        let index = at / BLOCK;
        let shift = at % BLOCK;
        let bits = |index: usize| self.blocks.get(index).map_or(0, &of);
        // Shifted twice, for a shift by all of them is none.
        bits(index) >> shift | bits(index + 1) << 1 << (BLOCK - 1 - shift)
    }
}

/// The bits of a mask from each of the given ones on as far as the mask goes without a gap.
#[inline(always)]
#[expect(clippy::inline_always, reason = "as the rest of the pass")]
fn flood(bits: u64, mask: u64) -> u64 {
    let mut bits = bits & mask;
    let mut mask = mask;
    for step in [1, 2, 4, 8, 16, 32] {
        bits |= mask & (bits << step);
        mask &= mask << step;
    }
    bits
}

/// The last of every four digits with one byte between each two.
#[inline(always)]
#[expect(clippy::inline_always, reason = "as the rest of the pass")]
const fn alternating(digits: u64, before: u64) -> u64 {
    let second = digits << 2 | before >> 62;
    let third = digits << 4 | before >> 60;
    let fourth = digits << 6 | before >> 58;
    digits & second & third & fourth
}

/// Calls `each` with every first of four places at one of those distances that begins in the first block.
fn regular(places: u128, distances: RangeInclusive<usize>, mut each: impl FnMut(usize, usize)) {
    for distance in distances {
        let seconds = places & places >> distance;
        let mut firsts = seconds & seconds >> (2 * distance) & u128::from(u64::MAX);
        while firsts != 0 {
            each(firsts.trailing_zeros() as usize, distance);
            firsts &= firsts - 1;
        }
    }
}

/// The tables of all kinds, as vectors.
struct MarkTables<S: Simd> {
    uppers: u8x64<S>,
    letters: u8x64<S>,
    capitals: u8x64<S>,
    digits: u8x64<S>,
    other_base64: u8x64<S>,
    controls: u8x64<S>,
    rare: u8x64<S>,
}

/// A bit for each byte of a block that is of a kind.
#[derive(Debug, Default, Clone, Copy)]
struct Kinds {
    letters: u64,
    capitals: u64,
    digits: u64,
    other_base64: u64,
    controls: u64,
    rare: u64,
    colons: u64,
    backslashes: u64,
    beyond: u64,
}

impl<S: Simd> MarkTables<S> {
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "or it is not compiled for the processor's vectors")]
    fn new(simd: S, rare: &Set) -> Self {
        Self {
            uppers: spread(simd, &UPPERS),
            letters: spread(simd, &LETTERS.0),
            capitals: spread(simd, &CAPITALS.0),
            digits: spread(simd, &DIGITS.0),
            other_base64: spread(simd, &OTHER_BASE64.0),
            controls: spread(simd, &CONTROLS.0),
            rare: spread(simd, &rare.0),
        }
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "or it is not compiled for the processor's vectors")]
    fn kinds(&self, simd: S, block: &[u8; BLOCK]) -> Kinds {
        let bytes = u8x64::from_slice(simd, block);
        let lower = bytes & 15;
        let upper = self.uppers.swizzle_dyn_within_blocks(bytes >> 4);
        Kinds {
            letters: among(self.letters, lower, upper),
            capitals: among(self.capitals, lower, upper),
            digits: among(self.digits, lower, upper),
            other_base64: among(self.other_base64, lower, upper),
            controls: among(self.controls, lower, upper),
            rare: among(self.rare, lower, upper),
            colons: bytes.simd_eq(b':').to_bitmask(),
            backslashes: bytes.simd_eq(b'\\').to_bitmask(),
            // These have no upper half that the tables know.
            beyond: upper.simd_eq(0).to_bitmask(),
        }
    }
}

#[inline(always)]
#[expect(clippy::inline_always, reason = "or it is not compiled for the processor's vectors")]
pub(super) fn spread<S: Simd>(simd: S, table: &[u8; 16]) -> u8x64<S> {
    u8x64::block_splat(u8x16::from_slice(simd, table))
}

/// Returns a mask of the bytes that are in a set, given their halves.
#[inline(always)]
#[expect(clippy::inline_always, reason = "or it is not compiled for the processor's vectors")]
pub(super) fn among<S: Simd>(set: u8x64<S>, lower: u8x64<S>, upper: u8x64<S>) -> u64 {
    !(set.swizzle_dyn_within_blocks(lower) & upper).simd_eq(0).to_bitmask()
}

impl Kinds {
    /// Places at which a word may begin, or a rare byte stands: a letter where none stands before,
    /// or a capital; a digit where neither a letter nor a digit does; any byte of a character
    /// beyond ASCII. A letter that ends an escape, such as a literal `\n`, is none.
    #[inline]
    fn anchors(self, last: Kinds) -> u64 {
        let after_letter = self.letters << 1 | last.letters >> 63;
        let after_digit = self.digits << 1 | last.digits >> 63;
        let after_escape = self.backslashes << 2 | last.backslashes >> 62;
        let letters = self.letters & (!after_letter | self.capitals | after_escape);
        let digits = self.digits & (!(after_letter | after_digit) | after_escape);
        letters | digits | self.beyond | self.rare
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn marks(text: &[u8], start: usize) -> Marks {
        let mut marks = Marks::default();
        marks.set(text, start, &Set::of(|byte| matches!(byte, b'$' | b'@')));
        marks
    }

    proptest! {
        #[test]
        fn every_byte_is_of_the_kind_it_is(
            text in prop::collection::vec(any::<u8>(), 0..300),
            start in 0..70_usize,
        ) {
            let start = start.min(text.len());
            let marks = marks(&text, start);
            let bit = |at: usize, of: fn(&Block) -> u64| marks.ahead(at, of) & 1 == 1;
            let mut word = Vec::new();

            for (at, byte) in text.iter().enumerate().skip(start) {
                let is_other = matches!(byte, b'+' | b'-' | b'/' | b'_');
                if byte.is_ascii_alphanumeric() { word.push(*byte) } else { word.clear() }
                let letters = word.iter().skip_while(|byte| !byte.is_ascii_digit());
                let is_first = !letters.clone().any(u8::is_ascii_alphabetic);
                prop_assert_eq!(
                    bit(at, |block| block.digits), byte.is_ascii_digit() && is_first);
                prop_assert_eq!(
                    bit(at, |block| block.base64), byte.is_ascii_alphanumeric() || is_other);
                let before = |back: usize| {
                    at.checked_sub(back).filter(|at| *at >= start).map_or(0, |at| text[at])
                };
                let first = before(1);
                let is_escape = before(2) == b'\\';
                let begins = match byte {
                    b'A'..=b'Z' | 0x80.. | b'$' | b'@' => true,
                    b'a'..=b'z' => is_escape || !first.is_ascii_alphabetic(),
                    b'0'..=b'9' => is_escape || !first.is_ascii_alphanumeric(),
                    _ => false,
                };
                prop_assert_eq!(bit(at, |block| block.anchors), begins, "{} in {:?}", at, text);
            }
            let part = &text[start..];
            let is_control =
                |byte: &&u8| byte.is_ascii_control() && !matches!(byte, b'\t' | b'\n' | b'\r');
            prop_assert_eq!(marks.controls(), part.iter().filter(is_control).count());
            prop_assert_eq!(marks.has_beyond(), !part.is_ascii());
            prop_assert!(!bit(text.len(), |block| block.anchors | block.digits | block.base64));
        }

        #[test]
        fn stretches_are_measured_across_blocks(lead in 0..140_usize, length in 0..200_usize) {
            let text = format!("{}{} ", " ".repeat(lead), "7".repeat(length));
            let marks = marks(text.as_bytes(), 0);

            prop_assert_eq!(marks.digits_from(lead), length);
            prop_assert_eq!(marks.base64_from(lead), length);
            prop_assert_eq!(marks.first_digit(0..text.len()), (length > 0).then_some(lead));
            let long: Vec<usize> = marks
                .long_base64()
                .flat_map(|(start, bits)| {
                    (0..64).filter(move |bit| bits >> bit & 1 == 1).map(move |bit| start + bit)
                })
                .collect();
            prop_assert_eq!(long, (lead..lead + length.saturating_sub(15)).collect::<Vec<_>>());
        }
    }

    #[test]
    fn digits_are_dense_where_five_stand_near_each_other() {
        for lead in 0..130 {
            for dense in ["1-2 3 4 5 a", "8.8.8.8 a"] {
                let text = format!("{}{dense}", " ".repeat(lead));
                let dense: Vec<usize> = marks(text.as_bytes(), 0).dense_digits().collect();
                let covers = |start: &usize| (*start..start + 2 * STRETCH).contains(&lead);
                assert!(dense.iter().any(covers), "{text}");
            }
            for few in ["1-2 3  4 a", "8.8.8 a", "2024 a"] {
                let few = format!("{}{few}", " ".repeat(lead));
                assert_eq!(marks(few.as_bytes(), 0).dense_digits().count(), 0, "{few}");
            }
        }
    }

    #[test]
    fn colons_are_told_where_they_are_dense() {
        let text = format!("{}fe80::1:2:3:4{}", "a:b ".repeat(20), " ".repeat(300));
        let found: Vec<usize> = marks(text.as_bytes(), 0).colons().collect();

        assert!(found.contains(&0), "{found:?}");
        assert!(found.iter().all(|at| *at <= 64), "{found:?}");
        assert_eq!(marks(b"a: b, c: d, e: f, g: h", 0).colons().count(), 0);
    }
}
