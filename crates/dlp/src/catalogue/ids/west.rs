//! Numbers of persons in France, Belgium and the Netherlands.

use crate::catalogue::{
    builders::{any, national},
    checks::{at, luhn, one_digit, part, remainder, two_digits, varied, weighted},
    detector::{Candidate, Detector},
};

pub(super) const ALL: &[Detector] = &[
    national("fr_nir", "French social security number (NIR)", nir)
        .alone(&[
            "9 99 99 99 999 999 99",
            "9 99 99 9A 999 999 99",
            "9.99.99.99.999.999.99",
            "9 99 99 99 999 999 | 99",
        ])
        .named(&["999999999999999", "9999999999999 99", "999999A99999999"])
        .beside(&[
            "nir",
            "sécurité sociale",
            "securite sociale",
            "numéro de sécu",
            "num secu",
            "insee",
            "carte vitale",
            "social security",
        ])
        .fires(&[
            "2 84 03 75 692 971 12",
            r#"{"nir": "284037569297112"}"#,
            "sécurité sociale 284037500367031",
        ])
        .passes(&["2 84 03 75 692 971 13", "284037569297112", "NIR 284137569297112"]),
    national("fr_tax_id", "French tax number (SPI), beside words that name it", french_tax)
        .named(&["9999999999999", "99 99 999 999 999"])
        .beside(&[
            "numéro fiscal",
            "numero fiscal",
            "spi",
            "identifiant fiscal",
            "impôts",
            "numfiscal",
        ])
        .fires(&["numéro fiscal 0275263494058"])
        .passes(&["0275263494058", "numéro fiscal 9275263494058"]),
    national("fr_id_card", "French identity card number, beside words that name it", any)
        .named(&["999999999999", "XXXXXXXX9", "XXXXXX999"])
        .beside(&[
            "carte d'identité",
            "carte nationale d'identité",
            "carte identite",
            "cni",
            "carte nationale",
        ])
        .fires(&["carte d'identité 880692310285"])
        .passes(&["880692310285", "carte d'identité perdue"]),
    national("fr_passport", "French passport number, beside words that name it", any)
        .named(&["99AA99999"])
        .beside(&["passeport", "passport"])
        .fires(&["passeport 10AA12345"])
        .passes(&["10AA12345"]),
    national(
        "fr_siret",
        "French establishment or enterprise number, beside words that name it",
        siret,
    )
    .named(&["99999999999999", "999 999 999 99999", "999999999", "999 999 999"])
    .beside(&["siret", "siren"])
    .fires(&["SIRET 732 829 320 00074", r#"{"siren": "732829320"}"#])
    .passes(&["73282932000074", "SIREN 732829321"]),
    national("be_national_number", "Belgian national register number", belgium)
        .alone(&["99.99.99-999.99", "99.99.99-999-99"])
        .named(&["99999999999", "999999-999-99", "999999 999 99"])
        .beside(&[
            "rijksregister",
            "rijksregisternummer",
            "registre national",
            "national number",
            "nrn",
            "niss",
            "insz",
            "numéro national",
        ])
        .fires(&["84.03.15-340.25", r#"{"niss": "84031597470"}"#])
        .passes(&["84.03.15-340.26", "84031597470"]),
    national("nl_bsn", "Dutch citizen service number, beside words that name it", bsn)
        .named(&["999999999", "9999.99.999", "9999 99 999", "99999999"])
        .beside(&["bsn", "burgerservicenummer", "sofinummer", "sofi nummer", "citizen service"])
        .fires(&["BSN 407939763", r#"{"bsn": 388684227}"#])
        .passes(&["407939763", "BSN 407939764"]),
    national(
        "lu_national_number",
        "Luxembourg national number, beside words that name it",
        luxembourg,
    )
    .named(&["9999999999999"])
    .beside(&["matricule", "numéro d'identification", "identification nationale", "cns"])
    .fires(&["matricule 1984031512380"])
    .passes(&["1984031512380", "matricule 1984131512380"]),
];

/// Sex, year, month, place, serial; the last two digits make it divisible with 97.
fn nir(candidate: &Candidate<'_>) -> Option<i32> {
    // Corsica's departments `2A` and `2B` count as 19 and 18.
    let mut digits = candidate.digits();
    match candidate.matched().iter().find(|byte| byte.is_ascii_alphabetic()) {
        Some(b'A') => digits.splice(6..6, [9]).for_each(drop),
        Some(b'B') => digits.splice(6..6, [8]).for_each(drop),
        Some(_) => return None,
        None => {}
    }
    if digits.len() == 15 && candidate.matched().iter().any(u8::is_ascii_alphabetic) {
        digits.splice(5..6, [1]).for_each(drop);
    }
    let is_person = matches!(at(&digits, 0), 1..=4 | 7 | 8);
    let is_month = matches!(part(&digits, 3, 5), 1..=12 | 20..=42 | 50..=99);
    let rest = remainder(digits.get(..13)?, 97);
    two_digits(is_person && is_month && 97 - rest == part(&digits, 13, 15))
}

/// The last three digits are the remainder of the first ten.
fn french_tax(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let is_right = remainder(digits.get(..10)?, 511) == part(&digits, 10, 13);
    two_digits(at(&digits, 0) <= 3 && is_right)
}

fn siret(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let enterprise = digits.get(..9)?;
    // Establishments of the post have a sum of their own.
    let is_of_post = part(&digits, 0, 9) == 356_000_000 && digits.len() == 14;
    if is_of_post && digits.iter().map(|digit| u32::from(*digit)).sum::<u32>().is_multiple_of(5) {
        return one_digit(true);
    }
    one_digit(varied(&digits) && luhn(enterprise) && (digits.len() == 9 || luhn(&digits)))
}

/// Born in this century, a 2 is put before the nine digits.
fn belgium(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let nine = part(&digits, 0, 9);
    let check = part(&digits, 9, 11);
    let is_right = [0, 2_000_000_000].iter().any(|before| 97 - (before + nine) % 97 == check);
    let is_born =
        matches!(part(&digits, 2, 4), 0..=12 | 20..=32 | 40..=52) && part(&digits, 4, 6) <= 31;
    (is_right && is_born).then_some(8)
}

/// Weights 9 to 2 and -1: the sum is divisible by eleven.
fn bsn(candidate: &Candidate<'_>) -> Option<i32> {
    let mut digits = candidate.digits();
    if digits.len() == 8 {
        digits.insert(0, 0);
    }
    let sum = weighted(&digits, &[9, 8, 7, 6, 5, 4, 3, 2, 10]);
    one_digit(varied(&digits) && sum.is_multiple_of(11))
}

/// Date of birth, then a Luhn digit over the first eleven.
fn luxembourg(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let is_born = crate::catalogue::checks::is_date(
        part(&digits, 0, 4),
        part(&digits, 4, 6),
        part(&digits, 6, 8),
    );
    two_digits(is_born && luhn(digits.get(..12)?))
}
