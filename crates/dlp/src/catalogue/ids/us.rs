//! Numbers of persons and employers in the United States.

use crate::catalogue::{
    builders::{any, national},
    checks::{is_date, part, varied},
    detector::{Candidate, Detector},
};
use crate::text::groups::Grouping;

pub(super) const ALL: &[Detector] = &[
    national("us_ssn", "US social security number", ssn)
        .alone(&["999-99-9999", "999 99 9999", "999.99.9999", "999_99_9999", "999/99/9999"])
        .grouped(Grouping::usual(9, 9))
        .beside(&[
            "ssn",
            "social security",
            "social sec",
            "soc sec",
            "tax id",
            "taxpayer id",
            "taxpayer",
        ])
        .not_below(&[
            "order",
            "tracking",
            "timestamp",
            "serial",
            "phone",
            "fax",
            "version",
            "build",
        ])
        .fires(&[
            "his number is 536-22-8726.",
            "SSN: 536 22 8726",
            r#"{"ssn": 536228726}"#,
            r#"{"socialSecurityNumber": "536228726"}"#,
            r#"{"ssns": [536228726]}"#,
            "SSN 536.22.8726",
            "SSN 536-228-726",
            "ssn: 5 3 6 2 2 8 7 2 6",
            "SSN 536-22-\n8726",
        ])
        .passes(&[
            "536228726",
            "000-22-8726",
            "666-22-8726",
            "900-22-8726",
            "536-00-8726",
            "536-22-0000",
            "111-22-3333",
            "1-536-22-8726-4",
            "536-22-87261",
            "2024-11-05",
            "100 20 3000 17",
            r#"{"order": "536-22-8726"}"#,
        ]),
    national("us_itin", "US individual taxpayer identification number", itin)
        .alone(&["999-99-9999"])
        .named(&["999999999", "999 99 9999"])
        .beside(&[
            "itin",
            "individual taxpayer",
            "taxpayer identification",
            "tax id",
            "taxpayer id",
        ])
        .fires(&["911-70-1234", r#"{"itin": "911701234"}"#])
        .passes(&["911-40-1234", "911701234", "811-70-1234"]),
    national("us_ein", "US employer identification number, beside words that name it", ein)
        .named(&["99-9999999", "999999999"])
        .beside(&["ein", "fein", "employer identification", "employer id", "federal tax id"])
        .fires(&["EIN 12-9510478", r#"{"employerId": "129510478"}"#])
        .passes(&["12-9510478", "EIN 07-9510478"]),
    national("us_ptin", "US tax preparer number, beside words that name it", any)
        .named(&["P99999999", "P-99999999"])
        .beside(&["ptin", "preparer tax", "tax preparer", "preparer"])
        .fires(&["PTIN P01234567"])
        .passes(&["P01234567", "PTIN 01234567"]),
    national("us_passport", "US passport number, beside words that name it", any_varied)
        .named(&["999999999", "A99999999"])
        .beside(&["passport", "travel document", "passport number", "passport no"])
        .fires(&["my passport number is 912803456", r#"{"passport": "A12803456"}"#])
        .passes(&["912803456", "passport 1234", "my passport was issued in 2019"]),
    national("us_driver_license", "US driver licence number, beside words that name it", license)
        .named(&[
            "A999999999999",
            "A99999999999999",
            "AA999999A",
            "A9999999",
            "A99999999",
            "A999999",
            "A999-9999-9999",
            "A999-999-99-999-9",
            "99999999",
            "999999999",
            "9999999",
            "9999999999",
            "999999999999",
            "9999999999999",
            "99AAA99999",
            "A9999A",
            "AAAAAAA999AA",
            "999AA9999",
            "999999999A",
            "A9999999999",
            "A999999999",
            "AA999999",
            "A99999999999",
        ])
        .beside(&[
            "driver license",
            "drivers license",
            "driver's license",
            "driver licence",
            "driving license",
            "driver lic",
            "license number",
            "dl number",
            "dmv",
        ])
        .fires(&["my driver license is: A1234567", r#"{"drivers_license": "12345678"}"#])
        .passes(&["A1234567", "12345678", "driver license"]),
];

fn ssn(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let area = part(&digits, 0, 3);
    let group = part(&digits, 3, 5);
    let serial = part(&digits, 5, 9);
    let is_valid = !matches!(area, 0 | 666 | 900..) && group != 0 && serial != 0;
    // Two numbers that were printed on sample cards and in advertisements.
    let is_sample = matches!((area, group, serial), (78, 5, 1120) | (219, 9, 9999));
    // As in `111-22-3333`, which only stands for the form.
    let is_form = candidate.matched().contains(&b'-')
        && [0..3, 3..5, 5..9].into_iter().all(|it| is_row(digits.get(it)));
    let bits = if candidate.matched().contains(&b'-') { 4 } else { 0 };
    (is_valid && varied(&digits) && !is_sample && !is_form).then_some(bits)
}

/// Returns true if all digits are the same.
fn is_row(digits: Option<&[u8]>) -> bool {
    digits.is_some_and(|digits| digits.iter().all(|digit| digits.first() == Some(digit)))
}

fn itin(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let group = matches!(part(&digits, 3, 5), 50..=65 | 70..=88 | 90..=92 | 94..=99);
    (part(&digits, 0, 1) == 9 && group).then_some(4)
}

/// The prefixes that campuses of the IRS do not use.
fn ein(candidate: &Candidate<'_>) -> Option<i32> {
    let prefix = part(&candidate.digits(), 0, 2);
    let unused =
        matches!(prefix, 0 | 7..=9 | 17..=19 | 28 | 29 | 49 | 69 | 70 | 78 | 79 | 89 | 96 | 97);
    (!unused).then_some(2)
}

fn any_varied(candidate: &Candidate<'_>) -> Option<i32> {
    varied(&candidate.digits()).then_some(0)
}

/// A date of issue is no licence.
fn license(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let is_day = candidate.matched().len() == 8
        && digits.len() == 8
        && is_date(part(&digits, 0, 4), part(&digits, 4, 6), part(&digits, 6, 8));
    (varied(&digits) && !is_day).then_some(0)
}
