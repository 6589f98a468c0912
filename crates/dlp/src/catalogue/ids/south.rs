//! Numbers of persons in Spain, Portugal, Italy and Greece.

use crate::catalogue::{
    builders::{any, national},
    checks::{at, is_short_date, luhn, one_digit, part, two_digits, value, varied, weighted},
    detector::{Candidate, Detector},
};

pub(super) const ALL: &[Detector] = &[
    national("es_dni", "Spanish identity number (DNI, NIF)", dni)
        .alone(&["99999999A", "99999999-A", "99.999.999-A", "99.999.999A"])
        .named(&["99999999a", "99999999-a", "9999999A", "99999999 A", "9999999-A"])
        .beside(&["dni", "nif", "documento nacional", "identidad"])
        .not_below(crate::catalogue::builders::SERIALS)
        .fires(&["55402474M", "DNI 00547102-R", r#"{"nif": "50533449b"}"#])
        .passes(&["55402474N", "x55402474M", "5540247M", "55402474m"]),
    national("es_nie", "Spanish identity number of foreigners (NIE)", nie)
        .alone(&["A9999999A", "A9999999-A", "A-9999999-A", "A-9999999A"])
        .named(&["a9999999a", "A 9999999 A", "a-9999999-a", "a 9999999 a"])
        .beside(&["nie", "nif", "extranjero", "extranjería", "tie"])
        .not_below(crate::catalogue::builders::SERIALS)
        .fires(&["X9856025L", "Y8063915-Z", r#"{"nie": "x5104755c"}"#])
        .passes(&["X9856025M", "A9856025L", "Y8063915Q"]),
    national("es_cif", "Spanish company tax number, beside words that name it", cif)
        .named(&["A99999999", "A-99999999", "A9999999A", "A9999999-9", "A-9999999A", "A-9999999-A"])
        .beside(&["cif", "nif", "identificación fiscal", "razón social"])
        .fires(&["CIF B00404301", r#"{"cif": "B-83534271"}"#])
        .passes(&["B00404301", "CIF B00404302"]),
    national("es_passport", "Spanish passport number, beside words that name it", any)
        .named(&["AAA999999", "aaa999999", "aaa999999a"])
        .beside(&["pasaporte", "spanish passport"])
        .fires(&["pasaporte XYZ987654"])
        .passes(&["XYZ987654"]),
    national(
        "es_social_security",
        "Spanish social security number, beside words that name it",
        affiliation,
    )
    .named(&["999999999999", "99/99999999/99", "99 99999999 99", "99-99999999-99"])
    .beside(&["seguridad social", "nuss", "naf", "afiliación"])
    .fires(&["NUSS 28/12345678/40"])
    .passes(&["28/12345678/40", "NUSS 28/12345678/41"]),
    national("pt_nif", "Portuguese tax number, beside words that name it", portugal)
        .named(&["999999999", "999 999 999", "PT999999999"])
        .beside(&[
            "nif",
            "contribuinte",
            "número fiscal",
            "numero fiscal",
            "nipc",
            "identificação fiscal",
        ])
        .fires(&["NIF 215952138", r#"{"contribuinte": "289 287 456"}"#])
        .passes(&["215952138", "NIF 215952139"]),
    national("it_codice_fiscale", "Italian tax code of a person", codice_fiscale)
        .alone(&["AAAAAA99A99A999A"])
        .named(&["aaaaaaxxaxxaxxxa"])
        .beside(&["codice fiscale", "cod fisc", "tax code"])
        .fires(&["RSSMRK85T10J562L", "codice fiscale rssmrj85t10j562k"])
        .passes(&["RSSMRK85T10J562M", "RSSMRK85Z10J562L", "RSSMRK85T10J562"]),
    national("it_partita_iva", "Italian VAT number, beside words that name it", piva)
        .named(&["99999999999", "IT99999999999", "IT 99999999999"])
        .beside(&["partita iva", "p.iva", "p iva", "piva", "iva", "vat", "codice fiscale"])
        .fires(&["P.IVA 33457360429", r#"{"partitaIva": "60803310659"}"#])
        .passes(&["33457360429", "P.IVA 33457360428"]),
    national(
        "it_id_card",
        "Italian identity card or passport number, beside words that name it",
        any,
    )
    .named(&["AA99999AA", "AA9999999", "9999999AA"])
    .beside(&[
        "carta d'identità",
        "carta d'identita",
        "carta identità",
        "carta identita",
        "passaporto",
    ])
    .fires(&["carta d'identità CA12345AB"])
    .passes(&["CA12345AB"]),
    national("it_driver_license", "Italian driving licence number, beside words that name it", any)
        .named(&["AA9999999A", "AAXXXXXX9A", "A9A999A99A"])
        .beside(&["patente", "patente di guida", "driver license", "driving licence"])
        .fires(&["patente AB1234567C"])
        .passes(&["AB1234567C"]),
    national("gr_afm", "Greek tax number, beside words that name it", afm)
        .named(&["999999999", "EL999999999"])
        .beside(&["αφμ", "afm", "vat", "tin"])
        .fires(&["ΑΦΜ / AFM 943575114"])
        .passes(&["943575114", "AFM 943575115"]),
    national("gr_amka", "Greek social security number, beside words that name it", amka)
        .named(&["99999999999"])
        .beside(&["αμκα", "amka"])
        .fires(&["AMKA 15038436760"])
        .passes(&["15038436760", "AMKA 15138436760"]),
];

const LETTERS: &[u8; 23] = b"TRWAGMYFPDXBNJZSQVHLCKE";

fn letter(number: u32) -> Option<u8> {
    LETTERS.get(usize::try_from(number % 23).ok()?).copied()
}

/// The letter is the number's remainder by 23.
fn dni(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let last = candidate.matched().last()?.to_ascii_uppercase();
    let is_right = letter(part(&digits, 0, 8)) == Some(last);
    (varied(&digits) && is_right).then_some(4)
}

/// `X`, `Y` and `Z` count as 0, 1 and 2 before the digits.
fn nie(candidate: &Candidate<'_>) -> Option<i32> {
    let first = candidate.matched().first()?.to_ascii_uppercase();
    let last = candidate.matched().last()?.to_ascii_uppercase();
    let before = u32::from(first.checked_sub(b'X').filter(|place| *place < 3)?);
    let digits = candidate.digits();
    let is_right = letter(before * 10_000_000 + part(&digits, 0, 7)) == Some(last);
    (varied(&digits) && is_right).then_some(6)
}

/// A Luhn sum over the seven digits, shown as a digit or a letter.
fn cif(candidate: &Candidate<'_>) -> Option<i32> {
    let first = candidate.matched().first()?;
    let last = candidate.matched().last()?;
    let digits = candidate.digits();
    let sum: u32 = (0..7)
        .map(|place| match (place % 2, at(&digits, place)) {
            (0, digit) => digit * 2 / 10 + digit * 2 % 10,
            (_, digit) => digit,
        })
        .sum();
    let check = (10 - sum % 10) % 10;
    let is_letter = b"JABCDEFGHI".get(usize::try_from(check).ok()?) == Some(last);
    let is_kind = b"ABCDEFGHJNPQRSUVW".contains(first);
    one_digit(is_kind && varied(&digits) && (is_letter || value(*last) == check))
}

/// Province and number, then their remainder by 97.
fn affiliation(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let rest = crate::catalogue::checks::remainder(digits.get(..10)?, 97);
    two_digits(rest == part(&digits, 10, 12))
}

fn portugal(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let check = match 11 - weighted(&digits, &[9, 8, 7, 6, 5, 4, 3, 2]) % 11 {
        10 | 11 => 0,
        check => check,
    };
    let starts = matches!(at(&digits, 0), 1..=3 | 5 | 6 | 8 | 9) || part(&digits, 0, 2) == 45;
    one_digit(starts && check == at(&digits, 8))
}

/// The last letter checks the others: those at odd places by a table of their own.
fn codice_fiscale(candidate: &Candidate<'_>) -> Option<i32> {
    const ODD: &[u32; 26] = &[
        1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24,
        23,
    ];
    let matched = candidate.matched().to_ascii_uppercase();
    let (last, rest) = matched.split_last()?;
    let place = |byte: u8| if byte.is_ascii_digit() { value(byte) } else { value(byte) - 10 };
    let sum: u32 = rest
        .iter()
        .enumerate()
        .map(|(at, byte)| match at % 2 {
            0 => usize::try_from(place(*byte)).ok().and_then(|p| ODD.get(p)).copied().unwrap_or(0),
            _ => place(*byte),
        })
        .sum();
    let is_month = b"ABCDEHLMPRST".contains(matched.get(8)?);
    (is_month && sum % 26 + 10 == value(*last)).then_some(10)
}

fn piva(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    one_digit(varied(&digits) && luhn(&digits))
}

/// Powers of two as weights.
fn afm(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let sum = weighted(&digits, &[256, 128, 64, 32, 16, 8, 4, 2]);
    one_digit(varied(&digits) && sum % 11 % 10 == at(&digits, 8))
}

/// Date of birth, serial, Luhn digit.
fn amka(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let is_born = is_short_date(part(&digits, 4, 6), part(&digits, 2, 4), part(&digits, 0, 2));
    two_digits(is_born && luhn(&digits))
}
