//! Numbers of persons in Australia, New Zealand, Africa and the Middle East.

use crate::catalogue::{
    builders::{any, national},
    checks::{at, is_date, is_short_date, luhn, one_digit, part, two_digits, varied, weighted},
    detector::{Candidate, Detector},
};

pub(super) const ALL: &[Detector] = &[
    national("au_tfn", "Australian tax file number, beside words that name it", tfn)
        .named(&["999 999 999", "999-999-999", "999999999", "99999999"])
        .beside(&["tfn", "tax file number", "tax file"])
        .fires(&["TFN 647 143 282", r#"{"taxFileNumber": "281517253"}"#])
        .passes(&["647 143 282", "TFN 824 753 557"]),
    national("au_abn", "Australian business number", abn)
        .alone(&["99 999 999 999"])
        .named(&["99999999999", "99-999-999-999"])
        .beside(&["abn", "australian business"])
        .fires(&["92 149 047 198", r#"{"abn": "65300588076"}"#])
        .passes(&["92 149 047 199", "92149047198", "10 92 149 047 198"]),
    national("au_acn", "Australian company number, beside words that name it", acn)
        .named(&["999 999 999", "999999999", "999-999-999"])
        .beside(&["acn", "australian company"])
        .fires(&["ACN 472 674 669"])
        .passes(&["472 674 669", "ACN 472 674 668"]),
    national(
        "au_driver_license",
        "Australian driver licence number, beside words that name it",
        varied_digits,
    )
    .named(&["99999999", "999999999", "9999999", "A99999", "9999AA", "A999999"])
    .beside(&[
        "driver licence",
        "drivers licence",
        "driver's licence",
        "licence no",
        "licence number",
    ])
    .fires(&["driver's licence 12345678"])
    .passes(&["12345678"]),
    national("nz_ird", "New Zealand tax number, beside words that name it", ird)
        .named(&["99-999-999", "999-999-999", "99999999", "999999999", "99 999 999", "999 999 999"])
        .beside(&["ird", "inland revenue", "ird number"])
        .fires(&["IRD 56-269-622", r#"{"ird": "60735003"}"#])
        .passes(&["56-269-622", "IRD 56-269-623"]),
    national(
        "za_id_number",
        "South African identity number, beside words that name it",
        south_africa,
    )
    .named(&["9999999999999", "999999 9999 999", "999999 9999 99 9"])
    .beside(&[
        "south african id",
        "sa id",
        "rsa id",
        "id number",
        "identity number",
        "said",
        "south african",
        "za id",
    ])
    .fires(&["SA ID 8403155047085", r#"{"idNumber": "8403155077082"}"#])
    .passes(&["8403155047085", "SA ID 8403155047086"]),
    national(
        "ng_nin",
        "Nigerian national identity number, beside words that name it",
        varied_digits,
    )
    .named(&["99999999999", "9999 999 9999"])
    .beside(&["nin", "nimc", "national identification number", "national identity"])
    .fires(&["NIN: 98765432102"])
    .passes(&["98765432102", "NIN: 11111111111"]),
    national(
        "ng_bvn",
        "Nigerian bank verification number, beside words that name it",
        varied_digits,
    )
    .named(&["99999999999"])
    .beside(&["bvn", "bank verification"])
    .fires(&["BVN 22123456789"])
    .passes(&["22123456789"]),
    national("ke_id", "Kenyan identity number or tax PIN, beside words that name it", any)
        .named(&["A999999999A", "99999999"])
        .beside(&["kra pin", "kra", "kenyan id", "huduma", "kitambulisho"])
        .fires(&["KRA PIN A275217306W"])
        .passes(&["A275217306W"]),
    national("gh_card", "Ghana card number", |_| Some(6))
        .alone(&["GHA-999999999-9"])
        .beside(&["ghana card", "nia"])
        .fires(&["GHA-123456789-0"])
        .passes(&["GHA-12345678-0"]),
    national("eg_national_id", "Egyptian national number, beside words that name it", egypt)
        .named(&["99999999999999"])
        .beside(&["الرقم القومي", "national id", "raqam qawmi", "egyptian id"])
        .fires(&["national id 28403150101234"])
        .passes(&["28403150101234", "national id 28413150101234"]),
    national("tr_national_id", "Turkish identity number, beside words that name it", turkey)
        .named(&["99999999999"])
        .beside(&[
            "tckn",
            "tc kimlik",
            "t.c. kimlik",
            "kimlik",
            "kimlik no",
            "türk kimlik",
            "tc no",
            "turkish id",
            "national id",
        ])
        .fires(&["TC kimlik no 32077532986", r#"{"tckn": "95117653850"}"#])
        .passes(&["32077532986", "TC kimlik no 32077532987", "kimlik 10000000145"]),
    national("tr_tax_number", "Turkish tax number, beside words that name it", any)
        .named(&["9999999999"])
        .beside(&["vkn", "vergi no", "vergi kimlik", "vergi numarası"])
        .fires(&["VKN 1234567890"])
        .passes(&["1234567890"]),
    national("il_teudat_zehut", "Israeli identity number, beside words that name it", israel)
        .named(&["999999999", "99999999-9", "99999999", "9999999-9"])
        .beside(&["teudat zehut", "תעודת זהות", "ת.ז", "israeli id", "mispar zehut", "zehut"])
        .fires(&["teudat zehut 094426962"])
        .passes(&["094426962", "teudat zehut 094426963"]),
    national("ae_emirates_id", "Emirates identity number", emirates)
        .alone(&["784-9999-9999999-9"])
        .named(&["784999999999999"])
        .beside(&["emirates id", "هوية", "emirates"])
        .fires(&["784-1984-1234567-4"])
        .passes(&["784-1984-1234567-8", "784-1684-1234567-4"]),
    national(
        "sa_national_id",
        "Saudi identity or residence number, beside words that name it",
        saudi,
    )
    .named(&["9999999999"])
    .beside(&["iqama", "saudi id", "الهوية الوطنية", "إقامة", "absher"])
    .fires(&["iqama 2123456788"])
    .passes(&["2123456788", "iqama 2123456782"]),
];

fn varied_digits(candidate: &Candidate<'_>) -> Option<i32> {
    varied(&candidate.digits()).then_some(0)
}

fn tfn(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let sum = match digits.len() {
        8 => weighted(&digits, &[10, 7, 8, 4, 6, 3, 5, 1]),
        _ => weighted(&digits, &[1, 4, 3, 7, 5, 8, 6, 9, 10]),
    };
    one_digit(varied(&digits) && sum.is_multiple_of(11))
}

/// One is taken from the first digit, and the weighted sum is divisible by 89.
fn abn(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let sum = weighted(&digits, &[10, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19]);
    two_digits(at(&digits, 0) > 0 && sum % 89 == 10)
}

fn acn(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let sum = weighted(&digits, &[8, 7, 6, 5, 4, 3, 2, 1]);
    one_digit(varied(&digits) && (10 - sum % 10) % 10 == at(&digits, 8))
}

/// When the first weights give ten, others decide.
fn ird(candidate: &Candidate<'_>) -> Option<i32> {
    let mut digits = candidate.digits();
    if digits.len() == 8 {
        digits.insert(0, 0);
    }
    let check = |weights: &[u32]| (11 - weighted(&digits, weights) % 11) % 11;
    let first = check(&[3, 2, 7, 6, 5, 4, 3, 2]);
    let check = if first == 10 { check(&[7, 4, 3, 2, 5, 2, 7, 6]) } else { first };
    one_digit(varied(&digits) && check == at(&digits, 8))
}

/// Date of birth, serial, citizenship, a digit once used, Luhn.
fn south_africa(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let is_born = is_short_date(part(&digits, 0, 2), part(&digits, 2, 4), part(&digits, 4, 6));
    two_digits(is_born && at(&digits, 10) <= 2 && luhn(&digits))
}

/// Century, date of birth, governorate.
fn egypt(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let century = at(&digits, 0) + 17;
    let year = century * 100 + part(&digits, 1, 3);
    let is_born = is_date(year, part(&digits, 3, 5), part(&digits, 5, 7));
    let is_place = matches!(part(&digits, 7, 9), 1..=4 | 11..=19 | 21..=29 | 31..=35 | 88);
    (matches!(century, 19 | 20) && is_born && is_place).then_some(7)
}

/// The last two digits check the others; no number ends in an odd digit.
fn turkey(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let odd: u32 = [0, 2, 4, 6, 8].iter().map(|place| at(&digits, *place)).sum();
    let even: u32 = [1, 3, 5, 7].iter().map(|place| at(&digits, *place)).sum();
    let tenth = (odd * 7 + 10 * 9 - even) % 10;
    let last = (odd + even + at(&digits, 9)) % 10;
    let is_right = tenth == at(&digits, 9) && last == at(&digits, 10);
    two_digits(at(&digits, 0) != 0 && is_right)
}

fn israel(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    one_digit(varied(&digits) && luhn(&digits))
}

/// Country, year of birth, serial, Luhn.
fn emirates(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let is_year = matches!(part(&digits, 3, 7), 1900..=2035);
    two_digits(is_year && luhn(&digits))
}

/// Citizens' numbers begin with one, residents' with two.
fn saudi(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    one_digit(matches!(at(&digits, 0), 1 | 2) && luhn(&digits))
}
