//! The prefilter: finds hundreds of literals in one pass, in any case.
//!
//! Hardly a literal begins in the middle of a word. So places are noted where a word begins, and
//! where one of a few rare bytes stands: a literal that may stand in the middle of a word is looked
//! for at the rarest of its bytes. Both are told for many bytes at once and without a branch. Three
//! bytes from there are folded to lower case and hashed into a bitmap that fits the first cache, then
//! as many as six, and of what that lets through the first eight bytes are compared. Unlike an
//! automaton, no step has to wait for the one before.

use std::ops::Range;

use super::anchors::{Anchors, BLOCKS, BYTES, Hits};
use crate::{
    body::segment::small,
    text::marks::{Marks, Set},
};

/// Literals by the hash of what is looked for.
pub(super) struct Literals {
    /// Places to look at.
    anchors: Anchors,
    /// Hashes of three bytes with which what is looked for of a literal begins.
    all: Box<Bitmap>,
    /// By how many of its first bytes a literal is looked for.
    sieves: [Sieve; 3],
    texts: Vec<Vec<u8>>,
}

/// Literals of which at least as many bytes are looked for, and not as many as for the next sieve.
struct Sieve {
    /// Hashes of so many of their first bytes.
    bitmap: Box<Bitmap>,
    buckets: Buckets,
}

/// The first three, four and six bytes of eight.
const FIRST: [u64; 3] = [0x00ff_ffff, 0xffff_ffff, 0xffff_ffff_ffff];

/// Parts of literals by hash.
struct Buckets {
    /// For each hash where its literals begin in `order`; one more entry than there are hashes.
    starts: Vec<u32>,
    order: Vec<LiteralEntry>,
}

/// A literal to look for, and where it may stand.
#[derive(Debug)]
pub(super) struct Literal {
    /// At least two bytes, in lower case.
    pub(super) text: Vec<u8>,
    /// True if it counts also where a letter stands before it. It always does when it begins with
    /// neither a letter nor a digit.
    pub(super) anywhere: bool,
}

/// Part of a literal that is compared.
#[derive(Clone, Copy)]
struct LiteralEntry {
    /// Its first eight bytes, folded, as far as it has them.
    first: u64,
    mask: u64,
    index: u32,
    /// Bytes of the literal before that part.
    before: u32,
    /// Bytes with which the literal begins and of which that part leaves no doubt: letters, which folding
    /// does not confuse with others.
    sure: u32,
}

/// As many hashes as there are.
const BITS: u32 = 16;
type Bitmap = [u64; 1 << (BITS - 6)];

/// Bytes that are looked at together: those of some blocks and a few more.
const WINDOW: usize = BYTES + 8;

impl Literals {
    /// Prepares literals. Their places in the list are what [`each`](Self::each) tells.
    pub(super) fn new(literals: Vec<Literal>) -> Literals {
        let mut all = empty();
        let mut hashed = [const { Vec::new() }; FIRST.len()];
        let anchors = Anchors::of(literals.iter().map(|it| (it.text.as_slice(), it.anywhere)));
        for (index, literal) in (0..).zip(&literals) {
            let before = anchors.of_literal(&literal.text, literal.anywhere);
            let wanted = literal.text.get(before..).unwrap_or_default();
            let entry = LiteralEntry::of(wanted, index, before);
            let [three, four, six] = &mut hashed;
            let beginnings: Vec<usize> = threes(wanted).into_iter().map(hash).collect();
            for beginning in &beginnings {
                add(&mut all, *beginning);
            }
            match (wanted.len(), FIRST) {
                (..4, _) => three.extend(beginnings.into_iter().map(|it| (it, entry))),
                (4..6, [_, first, _]) => four.push((hash(entry.first & first), entry)),
                (_, [_, _, first]) => six.push((hash(entry.first & first), entry)),
            }
        }
        let texts = literals.into_iter().map(|literal| literal.text).collect();
        Literals { anchors, all, sieves: hashed.map(Sieve::of), texts }
    }

    /// The bytes besides words that have to be marked in a text.
    pub(super) fn rare(&self) -> &Set {
        self.anchors.rare()
    }

    /// Calls `each` with every literal that stands in the marked part of the text and where,
    /// roughly in the order in which they begin. One that needs the beginning of a word may be told
    /// elsewhere, too.
    pub(super) fn each(
        &self,
        text: &[u8],
        marks: &Marks,
        Looked { hits, end }: &mut Looked,
        mut each: impl FnMut(usize, Range<usize>),
    ) {
        for (start, blocks) in marks.batches(BLOCKS) {
            let rest = text.get(start..).unwrap_or_default();
            let window = rest.first_chunk().unwrap_or_else(|| ended(rest, end));
            let [first, ..] = FIRST;
            let [of_three, of_four, of_six] = &self.sieves;
            hits.fill(blocks, |at| holds(&self.all, hash(eight_of(window, at) & first)));
            hits.sift(|at| {
                let [three, four, six] = hashes(eight_of(window, at));
                holds(&of_three.bitmap, three)
                    | holds(&of_four.bitmap, four)
                    | holds(&of_six.bitmap, six)
            });
            for at in hits.list() {
                self.compare(text, start + usize::from(*at), &mut each);
            }
        }
    }

    fn compare(&self, text: &[u8], at: usize, each: &mut impl FnMut(usize, Range<usize>)) {
        let eight = folded(eight_at(text, at));
        let [three, four, six] = hashes(eight);
        let [of_three, of_four, of_six] = &self.sieves;
        let mut look = |sieve: &Sieve, hash: usize| {
            if !holds(&sieve.bitmap, hash) {
                return;
            }
            for entry in sieve.buckets.of_hash(hash) {
                if eight & entry.mask == entry.first {
                    self.tell(text, at, entry, each);
                }
            }
        };
        look(of_six, six);
        look(of_four, four);
        look(of_three, three);
    }

    /// Tells if the literal stands there.
    fn tell(
        &self,
        text: &[u8],
        at: usize,
        entry: &LiteralEntry,
        each: &mut impl FnMut(usize, Range<usize>),
    ) {
        let Some(literal) = self.texts.get(entry.index as usize) else { return };
        let Some(start) = at.checked_sub(entry.before as usize) else { return };
        let end = start + literal.len();
        let sure = entry.sure as usize;
        let found = text.get(start + sure..end);
        let wanted = literal.get(sure..);
        if found.zip(wanted).is_some_and(|(found, wanted)| found.eq_ignore_ascii_case(wanted)) {
            each(entry.index as usize, start..end);
        }
    }
}

impl Sieve {
    fn of(hashed: Vec<(usize, LiteralEntry)>) -> Self {
        let mut bitmap = empty();
        for (hash, _) in &hashed {
            add(&mut bitmap, *hash);
        }
        Self { bitmap, buckets: Buckets::of(hashed) }
    }
}

impl Buckets {
    fn of(mut hashed: Vec<(usize, LiteralEntry)>) -> Self {
        hashed.sort_by_key(|(hash, entry)| (*hash, entry.index));
        hashed.dedup_by_key(|(hash, entry)| (*hash, entry.index));
        let mut starts = vec![0; (1 << BITS) + 1];
        for (hash, _) in &hashed {
            if let Some(next) = starts.get_mut(hash + 1) {
                *next += 1;
            }
        }
        let mut sum = 0;
        for start in &mut starts {
            sum += *start;
            *start = sum;
        }
        Self { starts, order: hashed.into_iter().map(|(_, entry)| entry).collect() }
    }

    fn of_hash(&self, hash: usize) -> &[LiteralEntry] {
        let Some([start, end]) = self.starts.get(hash..hash + 2) else { return &[] };
        self.order.get(*start as usize..*end as usize).unwrap_or_default()
    }
}

impl LiteralEntry {
    fn of(text: &[u8], index: u32, before: usize) -> LiteralEntry {
        let mut first = [0; 8];
        let mut mask = [0; 8];
        for ((first, mask), byte) in first.iter_mut().zip(&mut mask).zip(text) {
            (*first, *mask) = (*byte, 0xff);
        }
        let mask = u64::from_le_bytes(mask);
        let first = folded(u64::from_le_bytes(first)) & mask;
        let letters = text.iter().take(8).take_while(|byte| byte.is_ascii_alphabetic()).count();
        let sure = if before == 0 { small(letters) } else { 0 };
        LiteralEntry { first, mask, index, before: small(before), sure }
    }
}

/// Memory in which places are looked at.
pub(super) struct Looked {
    hits: Hits,
    /// The last bytes of a text.
    end: [u8; WINDOW],
}

impl Default for Looked {
    fn default() -> Self {
        Self { hits: Hits::default(), end: [0; WINDOW] }
    }
}

/// A window of the last bytes of a text, with zeros behind them as far as is looked.
fn ended<'a>(rest: &[u8], end: &'a mut [u8; WINDOW]) -> &'a [u8; WINDOW] {
    if let Some((into, after)) = end.split_at_mut_checked(rest.len()) {
        into.copy_from_slice(rest);
        after.iter_mut().take(8).for_each(|byte| *byte = 0);
    }
    end
}

/// Possible first three bytes, folded.
fn threes(text: &[u8]) -> Vec<u64> {
    let of = |[first, second, third]: [u8; 3]| {
        let [three, ..] = FIRST;
        folded(u64::from_le_bytes([first, second, third, 0, 0, 0, 0, 0])) & three
    };
    match *text {
        [first, second, third, ..] => vec![of([first, second, third])],
        // Whatever may follow it.
        [first, second] => (0..=u8::MAX).map(|third| of([first, second, third])).collect(),
        [_] | [] => Vec::new(),
    }
}

fn add(bitmap: &mut Bitmap, hash: usize) {
    if let Some(word) = bitmap.get_mut(hash >> 6) {
        *word |= 1 << (hash & 63);
    }
}

fn empty() -> Box<Bitmap> {
    Box::new([0; 1 << (BITS - 6)])
}

#[inline]
fn holds(bitmap: &Bitmap, hash: usize) -> bool {
    bitmap.get(hash >> 6).is_some_and(|word| word >> (hash & 63) & 1 == 1)
}

#[inline]
fn hash(first: u64) -> usize {
    const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
    (first.wrapping_mul(SPREAD) >> (u64::BITS - BITS)) as usize
}

/// Hashes of the first three, four and six of eight bytes.
#[inline]
fn hashes(eight: u64) -> [usize; FIRST.len()] {
    let [three, four, six] = FIRST;
    [hash(eight & three), hash(eight & four), hash(eight & six)]
}

/// Letters are the same in both cases.
#[inline]
fn folded(eight: u64) -> u64 {
    eight | 0x2020_2020_2020_2020
}

/// Eight bytes of a window, folded.
#[inline]
fn eight_of(window: &[u8; WINDOW], at: usize) -> u64 {
    let at = at % BYTES;
    #[expect(clippy::indexing_slicing, reason = "never out of bounds, and not checked")]
    let eight = [
        window[at],
        window[at + 1],
        window[at + 2],
        window[at + 3],
        window[at + 4],
        window[at + 5],
        window[at + 6],
        window[at + 7],
    ];
    folded(u64::from_le_bytes(eight))
}

/// Eight bytes; zeros stand for those beyond the end.
#[inline]
fn eight_at(text: &[u8], at: usize) -> u64 {
    let rest = text.get(at..).unwrap_or_default();
    if let Some(eight) = rest.first_chunk() {
        return u64::from_le_bytes(*eight);
    }
    let mut eight = [0; 8];
    for (into, byte) in eight.iter_mut().zip(rest) {
        *into = *byte;
    }
    u64::from_le_bytes(eight)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn found(literals: &[&str], text: &str) -> Vec<(usize, usize)> {
        let all = literals
            .iter()
            .map(|literal| Literal { text: literal.as_bytes().to_vec(), anywhere: true });
        found_in(&Literals::new(all.collect()), &format!("{text}\0"))
    }

    fn found_in(literals: &Literals, text: &str) -> Vec<(usize, usize)> {
        let mut marks = Marks::default();
        let mut found = Vec::new();
        marks.set(text.as_bytes(), 0, literals.rare());
        let mut looked = Looked::default();
        literals.each(text.as_bytes(), &marks, &mut looked, |index, range| {
            found.push((range.start, index));
        });
        found
    }

    #[test]
    fn literals_are_found_in_any_case_also_where_they_overlap() {
        let literals = ["ghp_", "token", "ken", "id"];

        assert_eq!(found(&literals, "GHp_ Token id"), [(0, 0), (5, 1), (7, 2), (11, 3)]);
        assert!(found(&literals, "gh p_ to ken_").iter().all(|(_, index)| *index == 2));
        assert!(found(&literals, "").is_empty());
    }

    #[test]
    fn a_literal_that_needs_a_word_is_told_where_one_begins() {
        let literals = Literals::new(vec![
            Literal { text: b"token".to_vec(), anywhere: false },
            Literal { text: b"=ap".to_vec(), anywhere: false },
        ]);
        let text = "token aToken xtoken 1token \\ntoken x=ap ".repeat(100) + "\0";

        let found: Vec<usize> =
            found_in(&literals, &text).into_iter().map(|(start, _)| start).collect();

        assert_eq!(found.get(..6), Some([0, 7, 21, 29, 36, 40].as_slice()));
        assert_eq!(found.len(), 500);
    }

    /// Returns true if a literal that needs the beginning of a word may count where it stands.
    fn begins(text: &[u8], at: usize) -> bool {
        let byte = |back: usize| at.checked_sub(back).map_or(b' ', |at| text[at]);
        let this = text[at];
        let first = byte(1);
        let second = byte(2);
        let is_escape = second == b'\\' && matches!(first, b'n' | b'r' | b't');
        let is_hump = this.is_ascii_uppercase() || this >= 0x80;
        is_escape
            || is_hump
            || if this.is_ascii_digit() {
                !first.is_ascii_alphanumeric()
            } else {
                !first.is_ascii_alphabetic()
            }
    }

    proptest! {
        #[test]
        fn no_literal_is_missed_where_it_may_count(
            literals in prop::collection::btree_map(
                "[ak1é_$][ak1é_$/ :]{1,4}", any::<bool>(), 1..8),
            text in r"([ak1é_$/: ]|A|\\n|\\){0,60}",
        ) {
            let texts: Vec<&String> = literals.keys().collect();
            let all = literals.iter().map(|(text, anywhere)| Literal {
                text: text.as_bytes().to_vec(),
                anywhere: *anywhere,
            });
            let found = found_in(&Literals::new(all.collect()), &text);

            for at in 0..text.len() {
                for (index, literal) in texts.iter().enumerate() {
                    let there = text.as_bytes().get(at..at + literal.len());
                    let stands =
                        there.is_some_and(|there| there.eq_ignore_ascii_case(literal.as_bytes()));
                    if stands && (literals[*literal] || begins(text.as_bytes(), at)) {
                        prop_assert!(found.contains(&(at, index)), "{literal:?} at {at}");
                    }
                }
            }
        }

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
