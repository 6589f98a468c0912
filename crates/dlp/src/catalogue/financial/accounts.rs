//! Bank accounts, and the numbers of banks.

use crate::{
    catalogue::{
        checks::{at, cross_sum, mod_11_10, one_digit, part, varied, weighted},
        detector::Candidate,
        financial::iban::iban_length,
        naming::name,
    },
    text::words,
};

/// Digits that differ, below no key that names the bank.
pub(crate) fn us_account(candidate: &Candidate<'_>) -> Option<i32> {
    let names_bank = |key: &[u8]| words::names(key, &["routing", "routing number", "aba", "rtn"]);
    (varied(&candidate.digits()) && !candidate.key.is_some_and(names_bank)).then_some(0)
}

/// Weights 3, 7 and 1; the first two digits are a district of the Federal Reserve.
pub(crate) fn aba(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let sum = weighted(&digits, &[3, 7, 1, 3, 7, 1, 3, 7, 1]);
    let is_district = matches!(part(&digits, 0, 2), 0..=12 | 21..=32 | 61..=72 | 80);
    let different = (0..10).filter(|digit| digits.contains(digit)).count();
    one_digit(different > 2 && is_district && sum.is_multiple_of(10))
}

/// Four letters for the bank, then a country.
pub(crate) fn bic(candidate: &Candidate<'_>) -> Option<i32> {
    let country = candidate.matched().get(4..6)?;
    let is_known = iban_length(country).is_some() || OTHERS.chunks(2).any(|other| other == country);
    is_known.then_some(2)
}

/// Countries with banks and without IBANs.
const OTHERS: &[u8] =
    b"USCAAUNZJPCNHKSGINKRTWTHMYIDPHVNZANGKEMXARCLCOPEUYMAPABOVEECPYBDLKNPTZUGGHRU";

/// The country's own check where it is simple, its length elsewhere.
pub(crate) fn vat(candidate: &Candidate<'_>) -> Option<i32> {
    let text: Vec<u8> =
        candidate.matched().iter().filter(|b| b.is_ascii_alphanumeric()).copied().collect();
    let (country, rest) = text.split_at_checked(2)?;
    let digits = candidate.digits();
    if country.iter().all(u8::is_ascii_digit) {
        return vat_without_country(candidate, &digits);
    }
    match country {
        b"DE" => one_digit(rest.len() == 9 && at(&digits, 0) != 0 && mod_11_10(&digits)),
        b"AT" => one_digit(rest.len() == 9 && rest.first() == Some(&b'U') && austria(&digits)),
        b"BE" => one_digit(97 - part(&digits, 0, 8) % 97 == part(&digits, 8, 10)),
        b"NL" => (rest.len() == 12).then_some(6),
        b"CH" => one_digit(rest.first() == Some(&b'E') && switzerland(&digits)),
        b"PT" | b"EL" | b"EE" => (rest.len() == 9).then_some(2),
        b"GB" | b"XI" => (matches!(rest.len(), 9 | 12) && britain(&digits)).then_some(4),
        b"FR" | b"IT" | b"LV" | b"HR" => (rest.len() == 11).then_some(2),
        b"ES" | b"IE" | b"CY" => (rest.len() == 9 || rest.len() == 8).then_some(2),
        b"DK" | b"FI" | b"HU" | b"LU" | b"MT" | b"SI" => (rest.len() == 8).then_some(2),
        b"PL" | b"SK" => (rest.len() == 10).then_some(2),
        b"CZ" | b"BG" | b"RO" => matches!(rest.len(), 8..=10).then_some(2),
        b"SE" | b"LT" => matches!(rest.len(), 9 | 12).then_some(2),
        _ => None,
    }
}

/// A number of Luxembourg, Germany, the United Kingdom or Belgium, and of no user.
fn vat_without_country(candidate: &Candidate<'_>, digits: &[u8]) -> Option<i32> {
    let is_user = |name: &[u8]| words::names(name, &["uid"]);
    let is_right = match digits.len() {
        8 => part(digits, 0, 6) % 89 == part(digits, 6, 8),
        9 => at(digits, 0) != 0 && mod_11_10(digits) || britain(digits),
        10 => at(digits, 0) < 2 && 97 - part(digits, 0, 8) % 97 == part(digits, 8, 10),
        _ => false,
    };
    let is_other = candidate.key.is_some_and(is_user) || name(candidate).is_some_and(is_user);
    one_digit(is_right && varied(digits) && !is_other)
}

fn austria(digits: &[u8]) -> bool {
    let sum: u32 = (0..7)
        .map(|place| match (place % 2, at(digits, place)) {
            (0, digit) => digit,
            (_, digit) => cross_sum(digit * 2),
        })
        .sum();
    (96 - sum) % 10 == at(digits, 7)
}

fn switzerland(digits: &[u8]) -> bool {
    (11 - weighted(digits, &[5, 4, 3, 2, 7, 6, 5, 4]) % 11) % 11 == at(digits, 8)
}

fn britain(digits: &[u8]) -> bool {
    let rest = (weighted(digits, &[8, 7, 6, 5, 4, 3, 2]) + part(digits, 7, 9)) % 97;
    rest == 0 || rest == 42
}
