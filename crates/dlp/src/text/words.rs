//! Words that stand near a match, or in the keys above it.

use std::ops::Range;

/// Bytes before and after a match in which a word still counts.
pub(crate) const BEFORE: usize = 64;
pub(crate) const AFTER: usize = 32;

/// Number of keys above a value that count as its context.
pub(crate) const KEYS: usize = 2;

/// Returns true if one of the words stands near the range in the text.
pub(crate) fn stands_near<W: AsRef<str>>(text: &[u8], range: &Range<usize>, words: &[W]) -> bool {
    let before = text.get(range.start.saturating_sub(BEFORE)..range.start).unwrap_or_default();
    let after = text.get(range.end..text.len().min(range.end + AFTER)).unwrap_or_default();
    names(before, words) || names(after, words)
}

/// The ways a word is written in text, code and keys: `tax id`, `tax_id`, `tax-id`, `taxid`.
pub(crate) fn spellings(word: &str) -> Vec<String> {
    let joined = if word.contains(' ') {
        [" ", "_", "-", ""].iter().map(|joint| word.replace(' ', joint)).collect()
    } else {
        vec![word.to_owned()]
    };
    if word.is_ascii() {
        return joined;
    }
    // The prefilter knows upper and lower case of ASCII only.
    let cased = joined.iter().flat_map(|word| [word.clone(), word.to_uppercase(), titled(word)]);
    let mut cased: Vec<String> = cased.map(|word| word.to_ascii_lowercase()).collect();
    cased.sort_unstable();
    cased.dedup();
    cased
}

fn titled(word: &str) -> String {
    let mut chars = word.chars();
    chars.next().into_iter().flat_map(char::to_uppercase).chain(chars).collect()
}

/// Returns true if a word may begin at an offset.
pub(crate) fn begins_at(text: &[u8], at: usize) -> bool {
    let before = at.checked_sub(1).and_then(|before| text.get(before));
    text.get(at..).is_some_and(|rest| starts_word(before, rest))
}

/// Returns true if a word may end before an offset.
pub(crate) fn ends_at(text: &[u8], end: usize) -> bool {
    let last = end.checked_sub(1).and_then(|last| text.get(last));
    last.is_some_and(|last| !last.is_ascii()) || ends_word(text, end)
}

/// Returns true if a text holds one of the words, as a word: `ssn` in `customerSsn` and `ssn_1`,
/// but not in `classname`.
pub(crate) fn names<W: AsRef<str>>(text: &[u8], words: &[W]) -> bool {
    ends(text, words).next().is_some()
}

/// End of the last of the words that a text holds.
pub(crate) fn last_end<W: AsRef<str>>(text: &[u8], words: &[W]) -> Option<usize> {
    ends(text, words).max()
}

/// Returns true if one of the words is the last of a name that says something: `ssn` in `customerSsn`, `ssn_2`
/// and `ssn_number`.
pub(crate) fn ends_name<W: AsRef<str>>(name: &[u8], words: &[W]) -> bool {
    const SAY_NOTHING: [&[u8]; 6] = [b"", b"s", b"no", b"nr", b"num", b"number"];
    if words.iter().any(|word| name.eq_ignore_ascii_case(word.as_ref().as_bytes())) {
        return true;
    }
    let rest = last_end(name, words).and_then(|end| name.get(end..));
    let says_nothing = |word: &[u8]| SAY_NOTHING.iter().any(|it| word.eq_ignore_ascii_case(it));
    let is_joint = |byte: &u8| byte.is_ascii() && !byte.is_ascii_alphabetic();
    rest.is_some_and(|rest| rest.split(is_joint).all(says_nothing))
}

/// Ends of the words that a text holds, for one word at each place.
fn ends<W: AsRef<str>>(text: &[u8], words: &[W]) -> impl Iterator<Item = usize> {
    let initials = Initials::of(words);
    let may_begin = text.iter().enumerate().filter(move |(_, byte)| initials.hold(**byte));
    may_begin.filter_map(move |(at, _)| {
        let rest = text.get(at..).filter(|_| begins_at(text, at))?;
        let mut ends = words
            .iter()
            .map(AsRef::as_ref)
            .filter_map(|word| names_at(rest, word).filter(|_| !is_noise(text, at, word)));
        ends.next().map(|length| at + length)
    })
}

/// Returns true if a short word stands in something too long to be made of words, such as base64,
/// or after a digit, as letters do in codes.
fn is_noise(text: &[u8], at: usize, word: &str) -> bool {
    const SHORT: usize = 4;
    const LONGEST: usize = 20;
    let is_part = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(**byte, b'+' | b'/');
    let length =
        |bytes: &mut dyn Iterator<Item = &u8>| bytes.take(LONGEST + 1).take_while(is_part).count();
    word.len() <= SHORT && {
        let (before, after) = text.split_at_checked(at).unwrap_or_default();
        before.last().is_some_and(u8::is_ascii_digit)
            || length(&mut before.iter().rev()) + length(&mut after.iter()) > LONGEST
    }
}

/// Returns true if one of the words might begin in a part of a text: no if none does, yes if only
/// their first letters do.
pub(crate) fn might_begin<W: AsRef<str>>(text: &[u8], part: Range<usize>, words: &[W]) -> bool {
    const FIRST: usize = 3;
    let initials = Initials::of(words);
    let bytes = text.get(part.clone()).unwrap_or_default();
    let may_begin = (part.start..).zip(bytes).filter(|(_, byte)| initials.hold(**byte));
    may_begin.map(|(at, _)| at).any(|at| {
        words.iter().map(|word| word.as_ref().as_bytes()).any(|word| {
            let is_plain = |byte: &&u8| byte.is_ascii() && **byte != b' ';
            let length = word.iter().take(FIRST).take_while(is_plain).count();
            let first = text.get(at..at + length);
            let wanted = word.get(..length);
            first.zip(wanted).is_some_and(|(first, wanted)| first.eq_ignore_ascii_case(wanted))
        })
    })
}

/// First letters of some words, in either case: most bytes are told apart by this alone.
struct Initials([u64; 4]);

impl Initials {
    fn of<W: AsRef<str>>(words: &[W]) -> Self {
        let mut initials = Self([0; 4]);
        for first in words.iter().filter_map(|word| word.as_ref().bytes().next()) {
            let [low, letters, high @ ..] = &mut initials.0;
            if !first.is_ascii() {
                // Upper and lower case may begin with different bytes.
                *high = [u64::MAX; 2];
            } else if first < 64 {
                *low |= 1 << first;
            } else {
                *letters |= 1 << (first.to_ascii_lowercase() & 63);
                *letters |= 1 << (first.to_ascii_uppercase() & 63);
            }
        }
        initials
    }

    fn hold(&self, byte: u8) -> bool {
        self.0.get(usize::from(byte >> 6)).is_some_and(|part| part >> (byte & 63) & 1 == 1)
    }
}

/// Length of a word that a text begins with. A space in the word stands for any joint, or for none.
fn names_at(rest: &[u8], word: &str) -> Option<usize> {
    // Most differ in their first letter.
    let first = word.as_bytes().first()?;
    if first.is_ascii() && !rest.first()?.eq_ignore_ascii_case(first) {
        return None;
    }
    let mut at = 0;
    for expected in word.chars() {
        match rest.get(at) {
            Some(b' ' | b'_' | b'-' | b'.' | b'/') if expected == ' ' => at += 1,
            Some(_) if expected == ' ' => {}
            Some(_) => at += letter_length(rest.get(at..).unwrap_or_default(), expected)?,
            None => return None,
        }
    }
    (word.ends_with(|last: char| !last.is_ascii()) || ends_word(rest, at)).then_some(at)
}

/// Length of a letter that a text begins with, in any case.
fn letter_length(text: &[u8], letter: char) -> Option<usize> {
    if letter.is_ascii() {
        return text.first()?.eq_ignore_ascii_case(&u8::try_from(letter).ok()?).then_some(1);
    }
    let mut utf8 = [0; 4];
    letter.to_lowercase().chain(letter.to_uppercase()).find_map(|letter| {
        let bytes = letter.encode_utf8(&mut utf8).as_bytes();
        text.starts_with(bytes).then_some(bytes.len())
    })
}

fn starts_word(before: Option<&u8>, rest: &[u8]) -> bool {
    let (Some(first), second) = (rest.first(), rest.get(1)) else { return false };
    if *first >= 0x80 {
        return true;
    }
    let Some(before) = before else { return first.is_ascii_alphanumeric() };
    let begins_hump = first.is_ascii_uppercase()
        && (before.is_ascii_lowercase() || second.is_some_and(u8::is_ascii_lowercase));
    first.is_ascii_alphabetic() && (!before.is_ascii_alphabetic() || begins_hump)
        || first.is_ascii_digit() && !before.is_ascii_alphanumeric()
}

fn ends_word(text: &[u8], end: usize) -> bool {
    let last = end.checked_sub(1).and_then(|last| text.get(last));
    let after = text.get(end);
    let second = text.get(end + 1);
    after.is_none_or(|after| {
        !after.is_ascii_alphabetic()
            || *after == b's'
            || after.is_ascii_uppercase()
                && (last.is_some_and(u8::is_ascii_lowercase)
                    || second.is_some_and(u8::is_ascii_lowercase))
    })
}

/// A letter, a digit or an underscore.
pub(crate) fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_found_by_its_edges() {
        for text in ["ssn", "customerSsn", "ssn_1", "the SSN is", "ssns", "ssnNumber", "SSNNumber"]
        {
            assert!(names(text.as_bytes(), &["ssn"]), "{text}");
        }
        for text in [
            "1ZQX5SSN0O9VI",
            "Zq8vT3nKf0Lw+SSN/Rj5mXyB7cHdPs2GuEa9Ni",
            "classname",
            "ssname",
            "passnumber",
            "",
        ] {
            assert!(!names(text.as_bytes(), &["ssn"]), "{text}");
        }
    }

    #[test]
    fn the_last_word_of_a_name_is_known() {
        for name in ["ssn", "customerSsn", "ssn_2", "ssns", "ssnNumber", "the ssn no."] {
            assert!(ends_name(name.as_bytes(), &["ssn"]), "{name}");
        }
        for name in ["ssn_hash", "ssnId", "ssn number of", "", "names"] {
            assert!(!ends_name(name.as_bytes(), &["ssn"]), "{name}");
        }
    }

    #[test]
    fn words_are_joined_in_many_ways() {
        for text in ["tax id", "taxId", "TAX_ID", "my-tax-id", "TaxIDs"] {
            assert!(names(text.as_bytes(), &["tax id"]), "{text}");
        }
        assert!(names("EMŠO: 1".as_bytes(), &["emšo"]));
        assert!(spellings("emšo").contains(&"emŠo".to_owned()));
        assert!(names("СНИЛС 1".as_bytes(), &["снилс"]));
        assert!(names("ЄДРПОУ, ІПН".as_bytes(), &["іпн"]));
        assert!(names("身份证号码".as_bytes(), &["身份证"]));
        assert_eq!(spellings("tax id"), ["tax id", "tax_id", "tax-id", "taxid"]);
    }
}
