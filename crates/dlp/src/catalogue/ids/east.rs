//! Numbers of persons in Poland, Czechia, Slovakia, Hungary, Romania and Bulgaria.

use crate::catalogue::{
    builders::{SERIALS, national},
    checks::{at, is_short_date, one_digit, part, remainder, two_digits, value, varied, weighted},
    detector::{Candidate, Detector},
};

pub(super) const ALL: &[Detector] = &[
    national("pl_pesel", "Polish PESEL, beside words that name it", pesel)
        .named(&["99999999999"])
        .beside(&["pesel", "numer ewidencyjny"])
        .fires(&["PESEL 84031585297", r#"{"pesel": 84031544966}"#])
        .passes(&["84031585297", "PESEL 84031585298", "PESEL 85040812345"]),
    national("pl_nip", "Polish tax number", nip)
        .alone(&["999-999-99-99", "999-99-99-999"])
        .named(&["9999999999", "PL9999999999"])
        .beside(&["nip", "numer identyfikacji podatkowej", "vat"])
        .fires(&["726-744-74-20", r#"{"nip": "0485204887"}"#])
        .passes(&["726-744-74-21", "7267447420"]),
    national("pl_regon", "Polish business number, beside words that name it", regon)
        .named(&["999999999", "99999999999999"])
        .beside(&["regon"])
        .fires(&["REGON 813015179"])
        .passes(&["813015179", "REGON 813015178"]),
    national("pl_id_card", "Polish identity card number, beside words that name it", polish_card)
        .named(&["AAA999999", "AAA 999999", "aaa999999"])
        .beside(&[
            "dowód osobisty",
            "dowodu osobistego",
            "dowod osobisty",
            "numer dowodu",
            "nr dowodu",
        ])
        .fires(&["dowód osobisty ABA300000"])
        .passes(&["ABA300000", "dowód osobisty ABA400000"]),
    national("cz_sk_birth_number", "Czech or Slovak birth number", birth_number)
        .alone(&["999999/9999"])
        .named(&["9999999999", "999999/999", "999999999"])
        .beside(&["rodné číslo", "rodne cislo", "rodné čísla", "rč", "birth number"])
        .not_below(SERIALS)
        .fires(&["840315/9644", r#"{"rodneCislo": "8403154958"}"#])
        .passes(&["840315/9645", "8403159644", "841415/9644"]),
    national(
        "hu_tax_id",
        "Hungarian tax number of a person, beside words that name it",
        hungary_tax,
    )
    .named(&["9999999999"])
    .beside(&["adóazonosító", "adoazonosito", "adóazonosító jel", "tax id"])
    .fires(&["adóazonosító jel 8012345676"])
    .passes(&["8012345676", "adóazonosító jel 8012345677"]),
    national(
        "hu_personal_id",
        "Hungarian personal number, beside words that name it",
        hungary_person,
    )
    .named(&["99999999999", "9-999999-9999", "9 999999 9999"])
    .beside(&["személyi szám", "személyi azonosító", "szemelyi szam", "szemelyi azonosito"])
    .fires(&["személyi szám 1-840315-1232"])
    .passes(&["1-840315-1232", "személyi szám 1-840315-1230"]),
    national("ro_cnp", "Romanian personal number, beside words that name it", cnp)
        .named(&["9999999999999"])
        .beside(&["cnp", "cod numeric personal"])
        .fires(&["CNP 1840315418006", r#"{"cnp": "1840315279071"}"#])
        .passes(&["1840315418006", "CNP 1840315418007"]),
    national("bg_egn", "Bulgarian civil number, beside words that name it", egn)
        .named(&["9999999999"])
        .beside(&["егн", "egn", "единен граждански"])
        .fires(&["EGN 8403153830"])
        .passes(&["8403153830", "EGN 8403153831"]),
];

/// The month tells the century: 81 to 92, 1 to 12, 21 to 32, …
fn pesel(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let sum = weighted(&digits, &[1, 3, 7, 9, 1, 3, 7, 9, 1, 3, 1]);
    let is_born = is_short_date(part(&digits, 0, 2), part(&digits, 2, 4) % 20, part(&digits, 4, 6));
    two_digits(is_born && sum.is_multiple_of(10))
}

fn nip(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let sum = weighted(&digits, &[6, 5, 7, 2, 3, 4, 5, 6, 7]);
    one_digit(varied(&digits) && sum % 11 == at(&digits, 9))
}

fn regon(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let is_right = if digits.len() == 9 {
        weighted(&digits, &[8, 9, 2, 3, 4, 5, 6, 7]) % 11 % 10 == at(&digits, 8)
    } else {
        weighted(&digits, &[2, 4, 8, 5, 0, 9, 7, 3, 6, 1, 2, 4, 8]) % 11 % 10 == at(&digits, 13)
    };
    one_digit(varied(&digits) && is_right)
}

/// Weights 7, 3, 1, 9, 7, 3, 1, 7, 3 over letters and digits.
fn polish_card(candidate: &Candidate<'_>) -> Option<i32> {
    let alnum = candidate.matched().iter().filter(|byte| byte.is_ascii_alphanumeric());
    let sum: u32 = alnum.zip([7, 3, 1, 9, 7, 3, 1, 7, 3]).map(|(b, w)| value(*b) * w).sum();
    one_digit(sum.is_multiple_of(10))
}

/// Women's months are 50 higher; since 1954 the whole is divisible by eleven.
fn birth_number(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let month = part(&digits, 2, 4) % 50;
    let month = if month > 20 { month - 20 } else { month };
    let is_born = is_short_date(part(&digits, 0, 2), month, part(&digits, 4, 6));
    // Until 1985 a remainder of ten was written as zero.
    let is_right = match digits.split_last() {
        Some((0, nine @ [_, _, _, _, _, _, _, _, _])) if remainder(nine, 11) == 10 => true,
        _ => digits.len() == 9 || remainder(&digits, 11) == 0,
    };
    two_digits(is_born && is_right)
}

fn hungary_tax(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let sum = weighted(&digits, &[1, 2, 3, 4, 5, 6, 7, 8, 9]);
    one_digit(at(&digits, 0) == 8 && sum % 11 == at(&digits, 9))
}

fn hungary_person(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let is_born = is_short_date(part(&digits, 1, 3), part(&digits, 3, 5), part(&digits, 5, 7));
    let up = weighted(&digits, &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]) % 11;
    let down = weighted(&digits, &[10, 9, 8, 7, 6, 5, 4, 3, 2, 1]) % 11;
    two_digits(is_born && [up, down].contains(&at(&digits, 10)))
}

/// Sex and century, date of birth, county, serial.
fn cnp(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let check = match weighted(&digits, &[2, 7, 9, 1, 4, 6, 3, 5, 8, 2, 7, 9]) % 11 {
        10 => 1,
        check => check,
    };
    let is_born = is_short_date(part(&digits, 1, 3), part(&digits, 3, 5), part(&digits, 5, 7));
    two_digits(is_born && at(&digits, 0) > 0 && check == at(&digits, 12))
}

/// Months are 20 higher before 1900 and 40 higher from 2000.
fn egn(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let sum = weighted(&digits, &[2, 4, 8, 5, 10, 9, 7, 3, 6]);
    let is_born = is_short_date(part(&digits, 0, 2), part(&digits, 2, 4) % 20, part(&digits, 4, 6));
    two_digits(is_born && sum % 11 % 10 == at(&digits, 9))
}
