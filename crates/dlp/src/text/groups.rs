//! Numbers whose digits people group as they like: `4111 1111 1111 1111`, `41-11.11`, `(030) 12 34`.

use std::ops::{Range, RangeInclusive};

use serde::Deserialize;

use crate::text::words::is_word;

/// Digits that make a number beside a word that names it, in any grouping.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Grouping {
    least: usize,
    most: usize,
    joints: Joints,
}

/// Signs between the groups of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Joints {
    /// The same one everywhere: a space, dash, dot, slash or line end.
    Same,
    /// Any of them, and brackets.
    Mixed,
}

impl Grouping {
    /// The number in a run of groups, or the numbers if it is as long as two.
    fn numbers(&self, text: &[u8], groups: &[Group], take: &mut impl FnMut(Range<usize>)) {
        let mut rest = groups;
        while let Some(first) = rest.first() {
            let count = match self.joints {
                Joints::Same => alike(rest),
                Joints::Mixed => self.fitting(rest),
            };
            let (number, after) = rest.split_at(count.clamp(1, rest.len()));
            rest = after;
            let digits: usize = number.iter().map(|group| group.digits.len()).sum();
            let end = number.last().map_or(first.digits.end, |last| last.digits.end);
            if (self.least..=self.most).contains(&digits) && !is_other(text, number) {
                take(first.digits.start..end);
            }
        }
    }

    /// The end of a number of known length in three groups or more, with the same other signs between each two:
    /// `536|22|8726`, `536, 22, 8726`.
    fn end_of_odd(&self, text: &[u8], start: usize) -> Option<usize> {
        const SIGNS: usize = 5;
        const GROUP: RangeInclusive<usize> = 2..=4;
        (self.joints == Joints::Same && self.least == self.most).then_some(())?;
        let first = start + digits_from(text, start);
        let rest = text.get(first..)?.iter().take(SIGNS + 1);
        let length = rest.take_while(|byte| !byte.is_ascii_alphanumeric()).count();
        let signs = text.get(first..first + length).filter(|_| (1..=SIGNS).contains(&length))?;
        let goes_on = |end: usize| {
            let behind = text.get(end..).and_then(|rest| rest.strip_prefix(signs));
            behind.and_then(<[u8]>::first).is_some_and(u8::is_ascii_digit)
        };
        let mut end = start;
        let mut digits = 0;
        let mut groups = 0;
        loop {
            let group = digits_from(text, end);
            GROUP.contains(&group).then_some(())?;
            end += group;
            digits += group;
            groups += 1;
            if digits >= self.least || !goes_on(end) {
                break;
            }
            end += length;
        }
        let is_whole = digits == self.least && groups > 2 && !goes_on(end);
        (is_whole && stands_free(text, start, end)).then_some(end)
    }

    /// Groups from the first one on that hold no more digits than the longest number.
    fn fitting(&self, groups: &[Group]) -> usize {
        let mut digits = 0;
        let fits = groups.iter().take_while(|group| {
            digits += group.digits.len();
            digits <= self.most
        });
        fits.count()
    }
}

/// A group of more digits than any number has goes on as another one.
const LONGEST_GROUP: usize = 64;

/// Groups beyond this are a list of numbers.
const MOST_GROUPS: usize = 32;

/// Group of digits, with the sign before it.
struct Group {
    digits: Range<usize>,
    joint: Joint,
}

/// The sign between two groups; a line may end at any.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Joint {
    None,
    Space,
    Line,
    Sign(u8),
    Bracket,
}

/// Calls `take` with the numbers that begin in a part of a text, from left to right.
pub(crate) fn find_in(
    grouping: &Grouping,
    text: &[u8],
    part: Range<usize>,
    mut take: impl FnMut(Range<usize>),
) {
    let mut groups = Vec::new();
    let mut at = part.start;
    while let Some(start) = next_digit(text, at..part.end) {
        at = read(text, start, grouping.joints, &mut groups);
        if let Some(end) = grouping.end_of_odd(text, start).filter(|end| *end > at) {
            at = end;
            take(start..end);
        } else if stands_free(text, start, at) {
            drop_time(text, &mut groups);
            grouping.numbers(text, &groups, &mut take);
        }
    }
}

fn next_digit(text: &[u8], part: Range<usize>) -> Option<usize> {
    let start = part.start;
    text.get(part)?.iter().position(u8::is_ascii_digit).map(|at| start + at)
}

/// Reads the groups from the first digit on. Returns the offset after them.
fn read(text: &[u8], start: usize, joints: Joints, groups: &mut Vec<Group>) -> usize {
    groups.clear();
    let mut at = start;
    let mut joint = Joint::None;
    loop {
        let digits = at..at + digits_from(text, at);
        at = digits.end;
        groups.push(Group { digits, joint });
        match joint_after(text, at, joints) {
            Some((next, length)) if groups.len() < MOST_GROUPS => {
                joint = next;
                at += length;
            }
            Some(_) | None => return at,
        }
    }
}

/// Number of digits from an offset on.
fn digits_from(text: &[u8], at: usize) -> usize {
    let rest = text.get(at..).unwrap_or_default().iter();
    rest.take(LONGEST_GROUP).take_while(|byte| byte.is_ascii_digit()).count()
}

/// The sign between the digits before an offset and those after it, with its length.
fn joint_after(text: &[u8], at: usize, joints: Joints) -> Option<(Joint, usize)> {
    const LONGEST: usize = 6;
    let rest = text.get(at..text.len().min(at + LONGEST + 1))?;
    let length = rest.iter().position(u8::is_ascii_digit).filter(|length| *length > 0)?;
    let mut joint = Joint::None;
    let mut signs = rest.get(..length)?;
    while let [first, after @ ..] = signs {
        let (sign, after) = match (*first, after) {
            (b' ' | b'\t', _) => (Joint::Space, after),
            (b'\n' | b'\r', _) => (Joint::Line, after),
            (b'-' | b'.' | b'/', _) => (Joint::Sign(*first), after),
            (b'(' | b')', _) if joints == Joints::Mixed => (Joint::Bracket, after),
            // A space that does not break, and dashes.
            (0xC2, [0xA0, after @ ..]) | (0xE2, [0x80, 0xAF, after @ ..]) => (Joint::Space, after),
            (0xE2, [0x80, 0x90..=0x94, after @ ..]) => (Joint::Sign(b'-'), after),
            _ => return None,
        };
        joint = match (joint, sign) {
            (Joint::None | Joint::Space | Joint::Line, sign) if sign != Joint::Space => sign,
            (Joint::None, sign) => sign,
            (known, Joint::Space | Joint::Line | Joint::Bracket) | (Joint::Bracket, known) => known,
            (_, _) => return None,
        };
        signs = after;
    }
    Some((joint, length))
}

/// Returns true if a number may begin and end there.
fn stands_free(text: &[u8], start: usize, end: usize) -> bool {
    let before = match text.get(..start) {
        Some([.., b'\\', b'n' | b'r' | b't'] | []) | None => true,
        Some([.., other, b'-' | b'.' | b'/']) => !other.is_ascii_digit(),
        Some([.., last]) => !is_word(*last) && !matches!(last, b'$' | b'%'),
    };
    before && !text.get(end).is_some_and(|next| is_word(*next) || *next == b'%')
}

/// Drops the last group if it is the hour of a time: `2024-11-05 10:22`.
fn drop_time(text: &[u8], groups: &mut Vec<Group>) {
    let Some(Group { digits, joint: Joint::Space }) = groups.last() else { return };
    let is_time = matches!(text.get(digits.end..), Some([b':', b'0'..=b'9', ..]));
    if digits.len() <= 2 && is_time {
        groups.pop();
    }
}

/// Number of groups from the first one on that the same sign joins.
fn alike(groups: &[Group]) -> usize {
    let mut known = Joint::None;
    let rest = groups.iter().skip(1).take_while(|group| match (known, group.joint) {
        (_, Joint::Line) => true,
        (Joint::None, joint) => {
            known = joint;
            true
        }
        (known, joint) => known == joint,
    });
    1 + rest.count()
}

/// Returns true if the groups are a day, years, a decimal fraction, or four numbers as versions and
/// addresses have them.
fn is_other(text: &[u8], groups: &[Group]) -> bool {
    let value = |range: Range<usize>| {
        let digits = text.get(range).unwrap_or_default();
        digits.iter().take(9).fold(0_u32, |sum, digit| sum * 10 + u32::from(digit & 15))
    };
    let of = |group: &Group| value(group.digits.clone());
    let is_year = |group: &Group| group.digits.len() == 4 && matches!(of(group), 1900..=2099);
    let is_short = |group: &Group| group.digits.len() <= 2 && matches!(of(group), 1..=31);
    let is_dotted = groups.iter().skip(1).all(|group| group.joint == Joint::Sign(b'.'));
    match groups {
        [Group { digits, .. }] => {
            let year = value(digits.start..digits.start + 4);
            let rest = digits.start + 4;
            let month = value(rest..rest + 2);
            let day = value(rest + 2..rest + 4);
            let is_stamp = matches!(digits.len(), 8 | 12 | 14);
            is_stamp && matches!((year, month, day), (1900..=2099, 1..=12, 1..=31))
        }
        [first, second] => is_dotted || is_year(first) && is_year(second),
        [first, second, third] => {
            is_year(first) && is_short(second) && is_short(third)
                || is_short(first) && is_short(second) && is_year(third)
        }
        [_, _, _, _] => is_dotted && groups.iter().all(|group| of(group) < 256),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(grouping: Grouping, text: &str) -> Vec<String> {
        let mut found = Vec::new();
        find_in(&grouping, text.as_bytes(), 0..text.len(), |range| {
            found.push(text[range].to_owned());
        });
        found
    }

    #[test]
    fn digits_are_read_in_any_grouping_with_one_sign() {
        let ids = Grouping { least: 9, most: 9, joints: Joints::Same };
        for text in ["536228726", "536-228-726", "5 3 6 2 2 8 7 2 6", "53.622.8726", "536–22–8726"]
        {
            assert_eq!(found(ids, &format!("ssn {text}, x")), [text]);
        }
        assert_eq!(found(ids, "536-22\n8726 536-22\n8726"), ["536-22\n8726"; 2]);
        assert_eq!(found(ids, "536-22-\n8726"), ["536-22-\n8726"]);
        for text in ["536|22|8726", "536, 22, 8726", "536 • 22 • 8726", "53_62_28_726"] {
            assert_eq!(found(ids, &format!("ssn {text}; x")), [text]);
        }
        for text in ["536|22|87265", "536|22|8726|1", "536|22;8726", "5362|28726", "5|36|22|87|26"]
        {
            assert_eq!(found(ids, text), Vec::<String>::new(), "{text}");
        }
        for text in ["536-228 726", "a536228726", "536228726b", "12.536228726", "5362.28726"] {
            assert_eq!(found(ids, text), Vec::<String>::new(), "{text}");
        }
    }

    #[test]
    fn telephone_numbers_may_have_brackets_and_mixed_signs() {
        let phones = Grouping { least: 7, most: 15, joints: Joints::Mixed };
        for text in ["(0)20 7946 0958", "0171 / 1234567", "555-0142", "02 99-12-34-56"] {
            let bare = text.trim_start_matches('(');
            assert_eq!(found(phones, &format!("tel {text}.")), [bare]);
        }
        for text in ["2024-11-05 10:22", "05.11.2024", "2019-2024", "20241105", "192.168.100.100"] {
            assert_eq!(found(phones, text), Vec::<String>::new(), "{text}");
        }
    }
}
