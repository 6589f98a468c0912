//! Numbers and dates of persons that look the same in many countries.

use crate::catalogue::{
    builders::{any, national},
    checks::{is_date, part, value},
    detector::{Candidate, Detector, Shape},
};

pub(super) const ALL: &[Detector] = &[
    national("passport_number", "Passport number of another country, beside words that name it", any)
        .named(&["AA999999", "A999999", "AA99999", "A9999999999", "99999999", "aa9999999", "aaa999999", "a-9999999", "aa-999999", "aa-9999999", "aa999999"])
        .beside(&["passport number", "passport no", "passport", "passeport", "reisepass", "pasaporte", "passaporto", "paspoort"])
        .fires(&["passport no. AB123456"])
        .passes(&["AB123456", "passport control"]),
    Detector {
        shape: Shape::Pattern {
            literals: &["p<"],
            pattern: r"P[A-Z<][A-Z<]{3}[A-Z<]{39}\s{0,2}[A-Z0-9<]{9}[0-9][A-Z<]{3}[0-9]{7}[MFX<][0-9]{7}[A-Z0-9<]{14}[0-9<][0-9]",
            before: 0,
            after: 100,
        },
        ..national("passport_mrz", "Machine-readable lines of a passport (ICAO 9303)", mrz)
    }
    .fires(&["P<UTOERIKSSON<<ANNA<MARIA<<<<<<<<<<<<<<<<<<<\nL898902C36UTO7408122F1204159ZE184226B<<<<<10"])
    .passes(&["P<UTOERIKSSON<<ANNA<MARIA<<<<<<<<<<<<<<<<<<<\nL898902C37UTO7408122F1204159ZE184226B<<<<<10", "P<T>"]),
    national("date_of_birth", "Date of birth, beside words that name it", birth)
        .named(&["9999-99-99", "99/99/9999", "99.99.9999", "99-99-9999", "9999/99/99", "9/9/9999", "99/9/9999", "9/99/9999"])
        .beside(&["date of birth", "dob", "birth date", "birthday", "born", "geburtsdatum", "date de naissance", "fecha de nacimiento", "geboortedatum", "data di nascita", "geboren am", "né le", "née le"])
        .fires(&["DOB: 1984-03-15", r#"{"birthDate": "15.03.1984"}"#, "date of birth 03/15/1984"])
        .passes(&["1984-03-15", "DOB: 1784-03-15", "DOB: 1984-13-45"]),
];

/// Number, date of birth and date of expiry have a check digit each.
fn mrz(candidate: &Candidate<'_>) -> Option<i32> {
    let matched = candidate.matched();
    let second = matched.get(matched.len().checked_sub(44)?..)?;
    let is_right = |from: usize, to: usize| -> Option<bool> {
        let field = second.get(from..to)?;
        let sum: u32 = field.iter().zip([7, 3, 1].iter().cycle()).map(|(b, w)| value(*b) * w).sum();
        Some(sum % 10 == value(*second.get(to)?))
    };
    (is_right(0, 9)? && is_right(13, 19)? && is_right(21, 27)?).then_some(28)
}

/// A day between 1850 and today's children, in any usual order.
fn birth(candidate: &Candidate<'_>) -> Option<i32> {
    let numbers: Vec<u32> = candidate
        .matched()
        .split(|byte| !byte.is_ascii_digit())
        .map(|group| group.iter().map(|b| b.wrapping_sub(b'0')).collect::<Vec<u8>>())
        .map(|digits| part(&digits, 0, digits.len()))
        .collect();
    let [first, second, third] = numbers.as_slice() else { return None };
    let is_day = is_date(*first, *second, *third)
        || is_date(*third, *second, *first)
        || is_date(*third, *first, *second);
    is_day.then_some(0)
}
