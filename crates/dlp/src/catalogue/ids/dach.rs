//! Numbers of persons in Germany, Austria and Switzerland.

use crate::catalogue::{
    builders::{any, national},
    checks::{at, is_short_date, mod_11_10, one_digit, part, value, varied, weighted},
    detector::{Candidate, Detector},
};

pub(super) const ALL: &[Detector] = &[
    national("de_tax_id", "German tax identification number, beside words that name it", tax_id)
        .named(&["99999999999", "99 999 999 999"])
        .beside(&[
            "steuer id",
            "steueridentifikationsnummer",
            "steuer identifikationsnummer",
            "identifikationsnummer",
            "idnr",
            "steuerid",
            "tin",
            "tax id",
            "tax identification",
        ])
        .fires(&["Steuer-ID: 86 241 209 577", r#"{"idnr": "86241209577"}"#])
        .passes(&["86241209577", "Steuer-ID: 86241209578", "Steuer-ID: 11112345678"]),
    national("de_tax_number", "German tax number of a tax office, beside words that name it", any)
        .named(&[
            "99/999/99999",
            "999/999/99999",
            "999/9999/9999",
            "99/999/9999",
            "9999999999999",
            "99 999 99999",
            "999 999 99999",
            "99999999999",
            "9999999999",
        ])
        .beside(&[
            "steuernummer",
            "st.-nr",
            "stnr",
            "st nr",
            "steuer nr",
            "finanzamt",
            "tax number",
        ])
        .fires(&["Steuernummer 123/456/78901", "St.-Nr. 12/345/67890 bitte angeben"])
        .passes(&["123/456/78901", "Steuernummer folgt"]),
    national(
        "de_id_card_line",
        "Number and dates of a German identity card with their check digits, beside words that name it",
        card_line,
    )
    .named(&["XXXXXXXXX9D<<9999999<9999999<9"])
    .beside(&["personalausweis", "ausweis", "identity card", "id card"])
    .fires(&[r#"{"personalausweis": "L21K04T539D<<7908220<3104150<8"}"#])
    .passes(&["L21K04T539D<<7908220<3104150<8", "Personalausweis L21K04T539D<<7908220<3104150<9"]),
    national("de_id_card", "German identity card number, beside words that name it", document)
        .named(&["X99999999", "xxxxxxxxx", "xxxxxxxxx9"])
        .beside(&[
            "personalausweis",
            "ausweisnummer",
            "personalausweisnummer",
            "ausweis",
            "id card",
            "identity card",
        ])
        .fires(&[
            "Personalausweis T220001293",
            "Ausweisnummer: L01X00T471",
            r#"{"personalausweis": "t220001293"}"#,
        ])
        .passes(&["T220001293", "Personalausweis T220001294", "Ausweisnummer beantragt"]),
    national("de_passport", "German passport number, beside words that name it", document)
        .named(&["xxxxxxxxx", "xxxxxxxxx9"])
        .beside(&["reisepass", "passnummer", "reisepassnummer", "pass nr", "passport"])
        .fires(&["Reisepass C01X00T478"])
        .passes(&["C01X00T478", "Reisepass C01X00T479"]),
    national("de_social_security", "German pension insurance number", pension)
        .alone(&["99999999A999", "99 999999 A 999", "99 999999 A999"])
        .named(&["99999999a999"])
        .beside(&[
            "rvnr",
            "rentenversicherung",
            "rentenversicherungsnummer",
            "sozialversicherung",
            "sozialversicherungsnummer",
            "versicherungsnummer",
            "svnr",
            "sozialversicherungsausweis",
        ])
        .fires(&["RVNR: 15070649C103", "Sozialversicherungsnummer 65 170839 J 003"])
        .passes(&["15070649C104", "15079949C103", "RVNR: 15070649C1"]),
    national(
        "de_driving_licence",
        "German driving licence number, beside words that name it",
        any_varied,
    )
    .named(&["X99XXXXXX9X", "XXXXXXXXX9X", "xxxxxxxxxxx"])
    .beside(&[
        "führerschein",
        "fuehrerschein",
        "führerscheinnummer",
        "fuehrerscheinnummer",
        "fahrerlaubnis",
    ])
    .fires(&["Führerscheinnummer: B072RRE2I55"])
    .passes(&["B072RRE2I55", "Führerschein Klasse B vorhanden"]),
    national(
        "de_vehicle_registration",
        "German vehicle registration, beside words that name it",
        any,
    )
    .named(&[
        "A-AA 9999",
        "AA-AA 999",
        "AA-AA 9999",
        "AA AA 9999",
        "AAA-AA 999",
        "A-A 9999",
        "AA-A 9999",
        "AA AA 999",
        "A AA 9999",
    ])
    .beside(&["kennzeichen", "kfz", "nummernschild", "license plate"])
    .fires(&["Kennzeichen HH-AB 1234"])
    .passes(&["HH-AB 1234", "Kennzeichen fehlt"]),
    national(
        "at_social_security",
        "Austrian social insurance number, beside words that name it",
        austria,
    )
    .named(&["9999999999", "9999 999999", "9999-999999"])
    .beside(&["svnr", "sozialversicherungsnummer", "versicherungsnummer", "sv nummer", "sv nr"])
    .fires(&["SVNR 9087 010180", r#"{"svnr": "3945010180"}"#])
    .passes(&["9087 010180", "SVNR 9087 010181x", "SVNR 9187 010180"]),
    national("ch_ahv", "Swiss social security number (AHV, AVS)", ahv)
        .alone(&["756.9999.9999.99", "756 9999 9999 99"])
        .named(&["7569999999999"])
        .beside(&["ahv", "avs", "ahv nummer", "sozialversicherungsnummer", "numéro avs"])
        .fires(&["756.7635.1478.81", r#"{"ahv": "7567635147881"}"#])
        .passes(&["756.7635.1478.82", "7567635147881"]),
];

/// Number, date of birth and date of expiry have a check digit each, and one for all.
fn card_line(candidate: &Candidate<'_>) -> Option<i32> {
    let matched = candidate.matched();
    let mut all = Vec::new();
    for range in [0..10, 13..20, 21..28] {
        let field = matched.get(range)?;
        let (check, rest) = field.split_last()?;
        all.extend_from_slice(field);
        (icao(rest) == value(*check)).then_some(())?;
    }
    (icao(&all) == value(*matched.last()?)).then_some(14)
}

/// Check digit of ICAO 9303.
fn icao(text: &[u8]) -> u32 {
    let weights = [7, 3, 1].iter().cycle();
    text.iter().zip(weights).map(|(byte, weight)| value(*byte) * weight).sum::<u32>() % 10
}

/// In the first ten digits one digit comes two or three times, in samples none does; ISO 7064
/// checks the whole.
fn tax_id(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let head = digits.get(..10)?;
    let most = (0..10).map(|digit| head.iter().map(|d| u8::from(*d == digit)).sum::<u8>()).max()?;
    let fits = at(&digits, 0) != 0 && most <= 3 && mod_11_10(&digits);
    fits.then_some(if most == 1 { 2 } else { 7 })
}

/// Nine letters and digits, checked with weights 7, 3, 1 by a tenth if it is there.
fn document(candidate: &Candidate<'_>) -> Option<i32> {
    let matched = candidate.matched().to_ascii_uppercase();
    let (serial, check) = matched.split_at_checked(9)?;
    let letters = serial.iter().filter(|byte| byte.is_ascii_alphabetic());
    let is_letter =
        |byte: &u8| !matches!(byte, b'A' | b'B' | b'D' | b'E' | b'I' | b'O' | b'Q' | b'S' | b'U');
    let starts = matches!(serial.first()?, b'L'..=b'P' | b'R' | b'T' | b'V'..=b'Y' | b'C' | b'F'..=b'H' | b'J' | b'K');
    let sum: u32 = serial.iter().zip([7, 3, 1].iter().cycle()).map(|(b, w)| value(*b) * w).sum();
    let is_checked = check.first().is_none_or(|check| value(*check) == sum % 10);
    let fits = starts && letters.clone().all(is_letter) && serial.iter().any(u8::is_ascii_digit);
    (fits && is_checked).then_some(if check.is_empty() { 0 } else { 4 })
}

/// Area, date of birth, initial, serial; the digits are cross-summed times 2, 1, 2, 5, 7, 1, 2, 1, …
fn pension(candidate: &Candidate<'_>) -> Option<i32> {
    let letter = candidate.matched().iter().find(|byte| byte.is_ascii_alphabetic())?;
    let mut digits = candidate.digits();
    let place = u8::try_from(value(letter.to_ascii_uppercase()) - 9).ok()?;
    digits.splice(8..8, [place / 10, place % 10]);
    let (check, rest) = digits.split_last()?;
    let crosses = rest.iter().zip([2, 1, 2, 5, 7, 1, 2, 1, 2, 1, 2, 1]);
    let sum: u32 = crosses.map(|(d, weight)| u32::from(*d) * weight).map(|p| p / 10 + p % 10).sum();
    let day = part(&digits, 2, 4);
    let day = if day > 50 { day - 50 } else { day };
    let is_born = is_short_date(part(&digits, 6, 8), part(&digits, 4, 6), day);
    (is_born && sum % 10 == u32::from(*check)).then_some(10)
}

fn any_varied(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    (digits.len() >= 4 && varied(&digits)).then_some(0)
}

/// The fourth digit checks the others: serial and date of birth.
fn austria(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let sum = weighted(&digits, &[3, 7, 9, 0, 5, 8, 4, 2, 1, 6]);
    one_digit(sum % 11 == at(&digits, 3) && at(&digits, 0) != 0 && part(&digits, 4, 6) <= 31)
}

/// An EAN-13 check digit.
fn ahv(candidate: &Candidate<'_>) -> Option<i32> {
    let sum = weighted(&candidate.digits(), &[1, 3, 1, 3, 1, 3, 1, 3, 1, 3, 1, 3, 1]);
    sum.is_multiple_of(10).then_some(10)
}
