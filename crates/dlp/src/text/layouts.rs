//! Fixed layouts of characters, such as `999-99-9999`: what most numbers of persons look like.
//!
//! In a layout `9` stands for a digit, `A` for an upper-case letter, `a` for any letter, `X` for
//! an upper-case letter or digit, `x` for any letter or digit, `h` for a hex digit. Every other
//! character stands for itself.

use std::ops::{Range, RangeInclusive};

use crate::text::words::is_word;

/// One layout.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layout {
    classes: &'static [u8],
    /// Characters before the first digit.
    lead: usize,
    /// Digits in the first group of digits.
    group: usize,
    /// Characters after that group that may also be digits.
    open: usize,
    /// Number of characters that have to be digits.
    digits: usize,
}

/// Character after the first group of digits; most layouts are told apart by it alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    Space,
    Dash,
    Dot,
    Slash,
    Letter,
    Other,
}

impl Next {
    pub(crate) const ALL: [Next; 6] =
        [Next::Space, Next::Dash, Next::Dot, Next::Slash, Next::Letter, Next::Other];

    /// Of a byte, or of the end of the text.
    pub(crate) fn of(byte: Option<&u8>) -> Next {
        match byte {
            Some(b' ') => Next::Space,
            Some(b'-') => Next::Dash,
            Some(b'.') => Next::Dot,
            Some(b'/') => Next::Slash,
            Some(letter) if letter.is_ascii_alphabetic() => Next::Letter,
            Some(_) | None => Next::Other,
        }
    }
}

/// Characters that may stand around a match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LayoutEdges {
    /// Not part of anything longer that is joined by dots or dashes.
    Apart,
    /// Not part of a longer number.
    Named,
}

impl Layout {
    pub(crate) fn new(source: &'static str) -> Layout {
        let classes = source.as_bytes();
        let lead = classes.iter().take_while(|class| **class != b'9').count();
        let group = classes.iter().skip(lead).take_while(|class| **class == b'9').count();
        let rest = classes.iter().skip(lead + group);
        let open = rest.take_while(|class| matches!(class, b'X' | b'x' | b'h')).count();
        let digits = memchr::memchr_iter(b'9', classes).count();
        Layout { classes, lead, group, open, digits }
    }

    /// Number of digits of the first group of digits.
    pub(crate) fn first_group(&self) -> RangeInclusive<usize> {
        self.group..=self.group + self.open
    }

    /// Returns true if nothing stands before its first digits.
    pub(crate) fn begins_with_digits(&self) -> bool {
        self.lead == 0
    }

    /// Returns true if something may follow the first group of digits.
    pub(crate) fn may_go_on(&self, next: Next) -> bool {
        match self.classes.get(self.lead + self.group) {
            None => next != Next::Letter,
            Some(_) if self.open > 0 => true,
            class => Next::of(class) == next,
        }
    }

    /// Match when a group of digits begins at an offset.
    pub(crate) fn around(&self, text: &[u8], digits: usize) -> Option<Range<usize>> {
        self.at(text, digits.checked_sub(self.lead)?, LayoutEdges::Apart)
    }

    /// Match from an offset on in which other signs, or none, part the characters.
    fn loosely_at(&self, text: &[u8], start: usize) -> Option<Range<usize>> {
        let mut end = start;
        for class in self.classes.iter().filter(|class| class.is_ascii_alphanumeric()) {
            if end > start {
                end += signs_at(text, end).filter(|signs| *signs <= MOST_SIGNS)?;
            }
            fits(*class, *text.get(end)?).then_some(())?;
            end += 1;
        }
        let before = text.get(..start).unwrap_or_default();
        let goes_on = |length: usize| text.get(end + length).is_some_and(u8::is_ascii_digit);
        let is_apart = !matches!(before, [.., b'0'..=b'9', sign] if is_sign(*sign))
            && !text.get(end).is_some_and(|next| is_word(*next))
            && !(1..=2).any(|length| signs_at(text, end) == Some(length) && goes_on(length));
        let is_own = text.get(start..end).is_some_and(|found| self.is_layout_of(found));
        (is_apart && !is_own).then_some(start..end)
    }

    /// Returns true if a text has this layout.
    fn is_layout_of(&self, text: &[u8]) -> bool {
        text.len() == self.classes.len()
            && self.classes.iter().zip(text).all(|(class, byte)| fits(*class, *byte))
    }

    /// Returns true if digits enough make it telling in any grouping.
    pub(crate) fn may_be_loose(&self) -> bool {
        let count = |is: fn(&u8) -> bool| self.classes.iter().filter(|class| is(class)).count();
        count(u8::is_ascii_alphanumeric) >= 8 && self.digits >= 5
    }

    /// Match from an offset on.
    fn at(&self, text: &[u8], start: usize, surroundings: LayoutEdges) -> Option<Range<usize>> {
        let range = start..start + self.classes.len();
        let found = text.get(range.clone())?;
        // The last character tells more than the first, which was looked at already.
        let mut pairs = self.classes.iter().zip(found).rev();
        let fits = pairs.all(|(class, byte)| fits(*class, *byte));
        (fits && stands_free(text, &range, surroundings)).then_some(range)
    }
}

/// Signs between two characters of a layout that is looked for loosely, at most.
const MOST_SIGNS: usize = 3;

/// Returns true if there are digits enough from a part of a text on for one of the layouts to begin in
/// that part, if need be with signs between its characters.
pub(crate) fn may_begin_in(layouts: &[Layout], text: &[u8], part: &Range<usize>) -> bool {
    let length = layouts.iter().map(|layout| layout.classes.len()).max().unwrap_or(0);
    let end = text.len().min(part.end + length * (1 + MOST_SIGNS));
    let known = number_of_digits(text.get(part.start..end).unwrap_or_default());
    layouts.iter().any(|layout| layout.digits <= known)
}

/// Number of digits. Written so that a whole block is counted at once.
fn number_of_digits(text: &[u8]) -> usize {
    const BLOCK: usize = 128;
    let count = |block: &[u8]| {
        block.iter().fold(0_u8, |sum, byte| sum.wrapping_add(u8::from(byte.is_ascii_digit())))
    };
    text.chunks(BLOCK).map(|block| usize::from(count(block))).sum()
}

/// Matches of the layouts in a part of a text, from left to right.
pub(crate) fn find_in<'a>(
    layouts: &'a [Layout],
    text: &'a [u8],
    part: Range<usize>,
) -> impl Iterator<Item = Range<usize>> + 'a {
    let mut free = part.start;
    part.filter_map(move |start| {
        let before = start.checked_sub(1).and_then(|at| text.get(at));
        let begins = start >= free
            && before.is_none_or(|before| !is_word(*before) || is_escape(text, start));
        let found = begins
            .then(|| layouts.iter().find_map(|l| l.at(text, start, LayoutEdges::Named)))??;
        free = found.end;
        Some(found)
    })
}

/// Matches of the layouts in a part of a text in other groups than theirs, from left to right; they
/// may overlap.
pub(crate) fn find_loosely_in<'a>(
    layouts: &'a [Layout],
    text: &'a [u8],
    part: Range<usize>,
) -> impl Iterator<Item = Range<usize>> + 'a {
    let begins = move |start: &usize| {
        let before = start.checked_sub(1).and_then(|at| text.get(at));
        text.get(*start).is_some_and(u8::is_ascii_alphanumeric)
            && before.is_none_or(|before| !is_word(*before) || is_escape(text, *start))
    };
    let starts = part.filter(begins);
    starts.flat_map(move |start| layouts.iter().filter_map(move |it| it.loosely_at(text, start)))
}

/// Number of signs that part groups at an offset.
fn signs_at(text: &[u8], at: usize) -> Option<usize> {
    Some(text.get(at..)?.iter().take(4).take_while(|byte| is_sign(**byte)).count())
}

const fn is_sign(byte: u8) -> bool {
    matches!(byte, b' ' | b'-' | b'.' | b'/' | b'\n' | b'\r')
}

/// Returns true if the letter before an offset ends an escape, such as a literal `\n`.
fn is_escape(text: &[u8], start: usize) -> bool {
    matches!(text.get(..start), Some([.., b'\\', b'n' | b'r' | b't']))
}

/// Returns true if a byte is of a class.
#[inline]
#[expect(clippy::needless_bitwise_bool, reason = "a branch could not be foretold")]
fn fits(class: u8, byte: u8) -> bool {
    let kinds = |table: &[u8; 256], byte: u8| table.get(usize::from(byte)).copied();
    let wanted = kinds(&WANTED, class).unwrap_or_default();
    let known = kinds(&KINDS, byte).unwrap_or_default();
    // A character that stands for itself wants no kind.
    (wanted & known != 0) | ((wanted == 0) & (byte == class))
}

const DIGIT: u8 = 1;
const UPPER: u8 = 2;
const LOWER: u8 = 4;
const HEX: u8 = 8;

/// The kinds that each class wants, one of them.
#[expect(clippy::indexing_slicing, reason = "checked when compiled")]
static WANTED: [u8; 256] = {
    let mut wanted = [0; 256];
    wanted[b'9' as usize] = DIGIT;
    wanted[b'A' as usize] = UPPER;
    wanted[b'a' as usize] = UPPER | LOWER;
    wanted[b'X' as usize] = UPPER | DIGIT;
    wanted[b'x' as usize] = UPPER | LOWER | DIGIT;
    wanted[b'h' as usize] = HEX;
    wanted
};

/// The kinds that a byte is of.
static KINDS: [u8; 256] = {
    let mut kinds = [0; 256];
    let mut byte = 0_u8;
    while byte < 128 {
        let digit = if byte.is_ascii_digit() { DIGIT } else { 0 };
        let upper = if byte.is_ascii_uppercase() { UPPER } else { 0 };
        let lower = if byte.is_ascii_lowercase() { LOWER } else { 0 };
        let hex = if byte.is_ascii_hexdigit() { HEX } else { 0 };
        #[expect(clippy::indexing_slicing, reason = "checked when compiled")]
        {
            kinds[byte as usize] = digit | upper | lower | hex;
        }
        byte += 1;
    }
    kinds
};

fn stands_free(text: &[u8], range: &Range<usize>, surroundings: LayoutEdges) -> bool {
    let before = text.get(..range.start).unwrap_or_default();
    let after = text.get(range.end..).unwrap_or_default();
    let free_before = match (before, surroundings) {
        ([.., other, b'-' | b'.'], LayoutEdges::Apart) => !other.is_ascii_alphanumeric(),
        ([.., other, b'-' | b'.' | b'/' | b'+'], _) => !other.is_ascii_digit(),
        _ => true,
    };
    let free_after = match (after, surroundings) {
        ([other, ..], _) if is_word(*other) => false,
        ([b'-', other, ..], LayoutEdges::Apart) => !other.is_ascii_alphanumeric(),
        ([b'-' | b'.' | b'/', other, ..], _) => !other.is_ascii_digit(),
        _ => true,
    };
    free_before && free_after && !(surroundings == LayoutEdges::Apart && is_in_table(text, range))
}

/// Returns true if numbers on the same line go on, in groups that spaces part.
fn is_in_table(text: &[u8], range: &Range<usize>) -> bool {
    let is_spaced = text.get(range.clone()).is_some_and(|found| found.contains(&b' '));
    let before = matches!(text.get(..range.start), Some([.., b'0'..=b'9', b' ']));
    let after = matches!(text.get(range.end..), Some([b' ', b'0'..=b'9', ..]));
    is_spaced && (before || after)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(layout: &'static str, text: &str) -> Vec<String> {
        let layouts = [Layout::new(layout)];
        let ranges = find_in(&layouts, text.as_bytes(), 0..text.len());
        ranges.map(|range| text[range].to_owned()).collect()
    }

    #[test]
    fn a_layout_is_found_where_it_stands_free() {
        assert_eq!(found("AA 99", "x AB 12, AB 34"), ["AB 12", "AB 34"]);
        assert_eq!(found("999-99", "id 123-45-6, 123-456, 1234-56"), Vec::<String>::new());
        assert_eq!(found("xx9", "ab1 A12 1234"), ["ab1", "A12"]);
    }

    #[test]
    fn a_layout_is_found_in_other_groups_than_its_own() {
        let loosely = |layout: &'static str, text: &str| {
            let layouts = [Layout::new(layout)];
            let ranges = find_loosely_in(&layouts, text.as_bytes(), 0..text.len());
            ranges.map(|range| text[range].to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(loosely("99999999A", "id 12.345.678-Z and 12345678Z"), ["12.345.678-Z"]);
        assert_eq!(loosely("99.99.99-999.99", "nr 85 07 30\n033/28"), ["85 07 30\n033/28"]);
        for text in ["1 12 345 678Z", "12345678-Z 9", "12 345 678Zz", "12    345678Z"] {
            assert_eq!(loosely("99999999A", text), Vec::<String>::new(), "{text}");
        }
    }

    #[test]
    fn the_first_digits_lead_to_the_layout() {
        let layout = Layout::new("AA-99 9");

        assert_eq!(layout.first_group(), 2..=2);
        assert_eq!(Layout::new("A9XX-9").first_group(), 1..=3);
        assert_eq!(layout.around(b"x AB-12 3", 5), Some(2..9));
        assert_eq!(layout.around(b"12 3", 0), None);
    }
}
