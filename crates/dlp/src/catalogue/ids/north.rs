//! Numbers of persons in Sweden, Finland, Norway, Denmark and Iceland.

use crate::catalogue::{
    builders::{SERIALS, national},
    checks::{
        at, is_date, is_short_date, luhn, one_digit, part, two_digits, value, varied, weighted,
    },
    detector::{Candidate, Detector},
};

pub(super) const ALL: &[Detector] = &[
    national("se_personnummer", "Swedish personal or coordination number", personnummer)
        .alone(&["999999-9999", "999999+9999", "99999999-9999"])
        .named(&["9999999999", "999999999999", "999999-A999", "99999999-A999"])
        .beside(&[
            "personnummer",
            "pnr",
            "personal identity",
            "personal number",
            "samordningsnummer",
            "personnr",
        ])
        .not_below(SERIALS)
        .fires(&["840315-3136", "19840315-9471", r#"{"personnummer": "8403154589"}"#])
        .passes(&["840315-3137", "8403153136", "19000309-3393", r#"{"order": "840315-3136"}"#]),
    national("se_organisationsnummer", "Swedish company number, beside words that name it", orgnr)
        .named(&["999999-9999", "9999999999", "SE999999999901"])
        .beside(&[
            "organisationsnummer",
            "orgnummer",
            "org nr",
            "orgnr",
            "org.nr",
            "organisationsnr",
        ])
        .fires(&["orgnummer 556595-9987", "556250-3127 är vårt orgnummer."])
        .passes(&["556595-9987", "orgnummer 556595-9988"]),
    national("fi_personal_code", "Finnish personal identity code", hetu)
        .alone(&["999999-999X", "999999+999X", "999999A999X"])
        .named(&["999999a999x", "999999-999x"])
        .beside(&[
            "hetu",
            "henkilötunnus",
            "henkilotunnus",
            "personal identity code",
            "personbeteckning",
        ])
        .fires(&[
            "150384-058M",
            "010594Y9021",
            r#"{"hetu": "150384-117j"}"#,
            // Temporary codes, with each sign of a century.
            "010194-900R",
            "010194X900R",
            "010194W900R",
            "010194V900R",
            "010194U900R",
            "010106A9001",
            "010106B9001",
            "010106C9001",
            "010106D9001",
            "010106E9001",
            "010106F9001",
        ])
        .passes(&["150384-058N", "151384-058M", "010324A110G"]),
    national("no_fodselsnummer", "Norwegian birth or D number, beside words that name it", norway)
        .named(&["99999999999", "999999 99999"])
        .beside(&["fødselsnummer", "fodselsnummer", "personnummer", "fnr", "d nummer", "fødselsnr"])
        .fires(&["fødselsnummer 15038417077", r#"{"fnr": "150384 35253"}"#])
        .passes(&["15038417077", "fnr 15038417078"]),
    national("dk_cpr", "Danish personal number, beside words that name it", cpr)
        .named(&["999999-9999", "9999999999", "999999 9999"])
        .beside(&["cpr", "cpr nummer", "cpr nr", "personnummer", "cprnr"])
        .fires(&["CPR 150384-7358", r#"{"cpr": "1503841887"}"#])
        .passes(&["150384-7358", "CPR 153384-7358"]),
    national(
        "is_kennitala",
        "Icelandic identification number, beside words that name it",
        kennitala,
    )
    .named(&["999999-9999", "9999999999"])
    .beside(&["kennitala", "kt"])
    .fires(&["kennitala 150384-8429"])
    .passes(&["150384-8429", "kennitala 150384-8439"]),
    national("no_orgnr", "Norwegian organisation number, beside words that name it", norway_org)
        .named(&["999999999", "999 999 999", "NO999999999MVA"])
        .beside(&["organisasjonsnummer", "orgnr", "org nr", "orgnummer"])
        .fires(&["organisasjonsnummer 974 760 673"])
        .passes(&["974760673", "organisasjonsnummer 974 760 674"]),
    national("fi_business_id", "Finnish business number, beside words that name it", y_tunnus)
        .named(&["9999999-9", "99999999"])
        .beside(&["y tunnus", "ytunnus", "business id", "fo nummer"])
        .fires(&["Y-tunnus 2077474-0"])
        .passes(&["2077474-0", "Y-tunnus 2077474-1"]),
];

/// Weights 7, 9, 10, 5, 8, 4 and 2; the check digit makes the sum divisible by eleven.
fn y_tunnus(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let rest = weighted(&digits, &[7, 9, 10, 5, 8, 4, 2]) % 11;
    one_digit(rest != 1 && (11 - rest) % 11 == at(&digits, 7))
}

/// Born as written, with a Luhn digit over the last ten; coordination numbers add 60 to the day.
fn personnummer(candidate: &Candidate<'_>) -> Option<i32> {
    // The letter of a number that is given for some time counts as 1.
    let digit = |byte: &u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'T' | b'R' | b'S' | b'U' | b'W' | b'X' | b'J'..=b'N' => Some(1),
        _ => None,
    };
    let digits: Vec<u8> = candidate.matched().iter().filter_map(digit).collect();
    let short = digits.get(digits.len().checked_sub(10)?..)?;
    let day = part(short, 4, 6);
    let day = if day > 60 { day - 60 } else { day };
    let month = part(short, 2, 4);
    let is_born = if digits.len() == 12 {
        is_date(part(&digits, 0, 4), month, day)
    } else {
        is_short_date(part(short, 0, 2), month, day)
    };
    two_digits(is_born && luhn(short))
}

/// The third digit is at least two, so that it is no month.
fn orgnr(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let digits = digits.get(..10)?;
    one_digit(at(digits, 2) >= 2 && luhn(digits))
}

/// The sign between date and serial tells the century; the last one is a remainder by 31.
fn hetu(candidate: &Candidate<'_>) -> Option<i32> {
    let matched = candidate.matched().to_ascii_uppercase();
    let sign = matched.get(6)?;
    let digits = candidate.digits();
    let is_born = is_short_date(part(&digits, 4, 6), part(&digits, 2, 4), part(&digits, 0, 2));
    let number = part(&digits, 0, 9);
    let check = b"0123456789ABCDEFHJKLMNPRSTUVWXY".get(usize::try_from(number % 31).ok()?);
    let is_sign = b"+-YXWVUABCDEF".contains(sign);
    (is_born && is_sign && matched.last() == check).then_some(10)
}

/// Two check digits; D numbers add 40 to the day, synthetic ones 40 or 80 to the month.
fn norway(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let first = (11 - weighted(&digits, &[3, 7, 6, 1, 8, 9, 4, 5, 2]) % 11) % 11;
    let second = (11 - weighted(&digits, &[5, 4, 3, 2, 7, 6, 5, 4, 3, 2]) % 11) % 11;
    let day = part(&digits, 0, 2) % 40;
    let month = part(&digits, 2, 4) % 40;
    let is_born = is_short_date(part(&digits, 4, 6), month, day);
    two_digits(is_born && first == at(&digits, 9) && second == at(&digits, 10))
}

/// Numbers given since 2007 have no check digit.
fn cpr(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let day = part(&digits, 0, 2);
    let day = if day > 60 { day - 60 } else { day };
    is_short_date(part(&digits, 4, 6), part(&digits, 2, 4), day).then_some(3)
}

fn kennitala(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let sum = weighted(&digits, &[3, 2, 7, 6, 5, 4, 3, 2, 1]);
    let is_born = is_short_date(part(&digits, 4, 6), part(&digits, 2, 4), part(&digits, 0, 2) % 40);
    two_digits(is_born && sum.is_multiple_of(11))
}

fn norway_org(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let check = (11 - weighted(&digits, &[3, 2, 7, 6, 5, 4, 3, 2]) % 11) % 11;
    one_digit(varied(&digits) && check == value(*candidate.digits().last()? + b'0'))
}
