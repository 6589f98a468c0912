//! Numbers and dates of persons that look the same in many countries.

use crate::catalogue::{
    builders::{any, national},
    checks::{is_date, part, value},
    detector::{Candidate, Detector, Shape},
};

pub(super) const ALL: &[Detector] = &[
    national("passport_number", "Passport number of another country, beside words that name it", any)
        .named(&["AA999999", "A999999", "AA99999", "A9999999999", "99999999", "aa9999999", "aaa999999", "99 9999999", "a-9999999", "aa-999999", "aa-9999999", "aa999999"])
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
    Detector {
        shape: Shape::Beside {
            literals: BIRTH,
            pattern: r"(?i)\b(?:[0-9]{1,2}(?:st|nd|rd|th|er|\.)?[ -](?:de |of )?(?:jan|feb|f(?:e|\xc3\xa9)v|mar|m(?:\xc3\xa4)r|apr|avr|abr|may|mai|mei|maj|mag|jun|juin|giu|jul|juil|lug|aug|ao(?:u|\xc3\xbb)|ago|sep|set|oct|okt|out|ott|nov|dec|dez|d(?:e|\xc3\xa9)c|dic|ene|gen)[a-z\xc3\xa9\xa7]{0,8}\.?(?: |, ?|-)(?:de |del )?(?:(?:19|20)[0-9]{2}|[0-9]{2})|(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6}\.? [0-9]{1,2}(?:st|nd|rd|th)?,? (?:19|20)[0-9]{2})\b",
            after: 48,
        },
        bits: 26,
        ..national("date_of_birth_in_words", "Date of birth with the name of its month, behind words that name it", any)
    }
    .fires(&["date of birth 3rd May 1984", r#"{"dob": "17-Oct-1990"}"#, "geboren am 4. Juni 1976", r#"{"fecha_de_nacimiento": "12 de marzo de 1988"}"#, "born Nov 9, 1971"])
    .passes(&["3rd May 1984", "date of birth unknown", "born in May 1984"]),
    national("date_of_birth", "Date of birth, beside words that name it", birth)
        .named(&["9999-99-99", "99/99/9999", "99.99.9999", "99-99-9999", "9999/99/99", "9999.99.99", "99999999", "9/9/9999", "99/9/9999", "9/99/9999"])
        .beside(&["date of birth", "dob", "birth date", "birthday", "born", "geburtsdatum", "date de naissance", "fecha de nacimiento", "geboortedatum", "data di nascita", "geboren am", "né le", "née le", "birth dt", "geburtstag", "date naissance", "fecha nacimiento", "data nascimento", "data de nascimento", "födelsedatum", "fødselsdato", "data urodzenia", "datum narození", "дата рождения", "дата народження", "生年月日", "出生日期", "생년월일", "syntymäaika", "doğum tarihi", "születési dátum", "data nașterii", "تاريخ الميلاد", "תאריך לידה", "ngày sinh"])
        .fires(&["DOB: 1984-03-15", r#"{"birthDate": "15.03.1984"}"#, "date of birth 03/15/1984", r#"{"dob": 19840315}"#])
        .passes(&["1984-03-15", "DOB: 1784-03-15", "DOB: 1984-13-45"]),
];

/// Words before a date of birth.
const BIRTH: &[&str] = &[
    "date of birth",
    "date_of_birth",
    "dateofbirth",
    "dob",
    "birth date",
    "birthdate",
    "birth_date",
    "birthday",
    "born",
    "geburtsdatum",
    "geboren",
    "date de naissance",
    "date_de_naissance",
    "fecha de nacimiento",
    "fecha_de_nacimiento",
    "geboortedatum",
    "data di nascita",
    "birth dt",
    "birth_dt",
    "birthdt",
    "geburtstag",
    "date naissance",
    "date_naissance",
    "datenaissance",
    "fecha nacimiento",
    "fecha_nacimiento",
    "fechanacimiento",
    "data nascimento",
    "data_nascimento",
    "datanascimento",
    "data de nascimento",
    "data_de_nascimento",
    "datadenascimento",
    "födelsedatum",
    "fødselsdato",
    "data urodzenia",
    "data_urodzenia",
    "dataurodzenia",
    "datum narození",
    "datum_narození",
    "datumnarození",
    "дата рождения",
    "дата_рождения",
    "датарождения",
    "дата народження",
    "дата_народження",
    "датанародження",
    "生年月日",
    "出生日期",
    "생년월일",
    "syntymäaika",
    "doğum tarihi",
    "doğum_tarihi",
    "doğumtarihi",
    "születési dátum",
    "születési_dátum",
    "születésidátum",
    "data nașterii",
    "data_nașterii",
    "datanașterii",
    "تاريخ الميلاد",
    "تاريخ_الميلاد",
    "تاريخالميلاد",
    "תאריך לידה",
    "תאריך_לידה",
    "תאריךלידה",
    "ngày sinh",
    "ngày_sinh",
    "ngàysinh",
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
    // Behind another number it is one of several fields.
    if matches!(candidate.text.get(..candidate.range.start), Some([.., b'0'..=b'9', b' '])) {
        return None;
    }
    let numbers: Vec<u32> = candidate
        .matched()
        .split(|byte| !byte.is_ascii_digit())
        .map(|group| group.iter().map(|b| b.wrapping_sub(b'0')).collect::<Vec<u8>>())
        .map(|digits| part(&digits, 0, digits.len()))
        .collect();
    let [first, second, third] = match (numbers.as_slice(), candidate.matched().len()) {
        ([first, second, third], _) => [first, second, third].map(|number| *number),
        ([number], 8) => [*number / 10_000, *number / 100 % 100, *number % 100],
        _ => return None,
    };
    let is_day = is_date(first, second, third)
        || is_date(third, second, first)
        || is_date(third, first, second);
    is_day.then_some(0)
}
