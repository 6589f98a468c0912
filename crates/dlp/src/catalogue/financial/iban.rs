//! International Bank Account Numbers.

use std::ops::Range;

use crate::{
    catalogue::{
        checks,
        detector::{Candidate, NormalForm},
    },
    text::{digits::DigitRun, window::Window, words::is_word},
};

/// A run whose first group follows two letters may be the check digits of an IBAN.
pub(crate) fn ibans(text: &Window<'_>, run: &DigitRun) -> Vec<Range<usize>> {
    match iban_at(text, run) {
        Some(found) => vec![found],
        None => Vec::new(),
    }
}

fn iban_at(text: &[u8], run: &DigitRun) -> Option<Range<usize>> {
    let start = run.groups.first().filter(|group| group.len() >= 2)?.start.checked_sub(2)?;
    let country = text.get(start..start + 2)?;
    if !country.iter().all(u8::is_ascii_alphabetic) {
        return None;
    }
    if start.checked_sub(1).and_then(|at| text.get(at)).is_some_and(|byte| is_word(*byte)) {
        return None;
    }
    let length = iban_length(country)?;
    let goes_on = |found: &Range<usize>| {
        let after = text.get(found.end..).unwrap_or_default();
        matches!(after, [b'-' | b'.' | b'/', next, ..] if next.is_ascii_alphanumeric())
    };
    let loose = || iban_with(text, start, length, Signs::Any).filter(|found| !goes_on(found));
    iban_with(text, start, length, Signs::Fours).or_else(loose)
}

/// Signs between the groups of an IBAN.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Signs {
    /// None, or one sign or the end of a line after every four characters.
    Fours,
    /// Signs and ends of lines wherever they stand; the letters are capitals then, since words of a
    /// sentence are not.
    Any,
}

/// The characters of an IBAN from its country on, as far as its length goes.
fn iban_with(text: &[u8], start: usize, length: usize, signs: Signs) -> Option<Range<usize>> {
    let mut at = start;
    let mut taken = 0;
    let mut joint = 0;
    loop {
        let byte = text.get(at)?;
        let fits = signs == Signs::Fours || !byte.is_ascii_lowercase();
        (byte.is_ascii_alphanumeric() && fits).then_some(())?;
        (at, taken) = (at + 1, taken + 1);
        if taken == length {
            return Some(start..at);
        }
        let (sign, between) = sign_at(text, at);
        if taken == 4 && sign != LINE {
            joint = sign;
        }
        let expected = if taken % 4 == 0 { joint } else { 0 };
        if signs == Signs::Fours && sign != expected && sign != LINE {
            return None;
        }
        at += between;
    }
}

/// Stands for the end of a line, with the white space around it.
const LINE: u8 = b'\n';

/// The sign that stands at an offset, 0 where none does, and how long it is.
fn sign_at(text: &[u8], at: usize) -> (u8, usize) {
    const LONGEST: usize = 6;
    let rest = text.get(at..text.len().min(at + LONGEST)).unwrap_or_default();
    let is_sign = |byte: &&u8| matches!(byte, b' ' | b'-' | b'.' | b'/' | b'\t' | b'\n' | b'\r');
    let length = rest.iter().take_while(is_sign).count();
    let signs = rest.get(..length).unwrap_or_default();
    match signs {
        [] => (0, 0),
        [one] if *one != b'\r' => (*one, 1),
        _ if signs.contains(&LINE) || signs.contains(&b'\r') => (LINE, length),
        _ => (1, length),
    }
}

pub(crate) fn iban(candidate: &Candidate<'_>) -> Option<i32> {
    let text = NormalForm::Alphanumeric.apply(candidate.matched());
    (is_plausible(&text) && checks::mod_97(&text)).then_some(14)
}

/// Returns true if an account has the form that its country gives it, as far as that is told apart: in
/// countries outside the registry digits, which the letters of the country may stand before once more.
fn is_plausible(text: &[u8]) -> bool {
    let Some((country, [_, _, account @ ..])) = text.split_at_checked(2) else { return false };
    length_in(REGISTERED, country).is_some()
        || account.strip_prefix(country).unwrap_or(account).iter().all(u8::is_ascii_digit)
}

/// Length of an account, by country.
pub(super) fn iban_length(country: &[u8]) -> Option<usize> {
    length_in(REGISTERED, country).or_else(|| length_in(UNREGISTERED, country))
}

fn length_in(lengths: &[(usize, &[u8])], country: &[u8]) -> Option<usize> {
    let upper = country.to_ascii_uppercase();
    let is_known = |countries: &[u8]| countries.chunks(2).any(|known| known == upper);
    lengths.iter().find(|(_, countries)| is_known(countries)).map(|(length, _)| *length)
}

/// Lengths in the IBAN registry, with the countries.
const REGISTERED: &[(usize, &[u8])] = &[
    (15, b"NO"),
    (16, b"BE"),
    (18, b"DKFIFKFONLGLSD"),
    (19, b"MKSI"),
    (20, b"ATBAEEKZLTLUXKMN"),
    (21, b"CHHRLILV"),
    (22, b"BGBHCRDEGBGEIEMERSVA"),
    (23, b"AEGIILIQOMSOTL"),
    (24, b"ADCZESMDPKROSASKSETNVG"),
    (25, b"PTSTLY"),
    (26, b"ISTR"),
    (27, b"BIDJFRGRITMCMRSM"),
    (28, b"ALAZBYCYDOGTHNHULBNIPLSV"),
    (29, b"BRPSQAUAEG"),
    (30, b"JOKWMUYE"),
    (31, b"MTSC"),
    (32, b"LC"),
    (33, b"RU"),
];

/// Lengths in countries whose banks give IBANs although the registry has none of them, and in territories of
/// France, whose numbers are those of France.
const UNREGISTERED: &[(usize, &[u8])] = &[
    (25, b"AOCVGWMZ"),
    (26, b"DZIR"),
    (27, b"CFCGCMGAGQKMMGTDBLGFGPMFMQNCPFPMREWFYT"),
    (28, b"BFBJCIMAMLNESNTG"),
];
