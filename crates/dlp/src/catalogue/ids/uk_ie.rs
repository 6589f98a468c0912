//! Numbers of persons in the United Kingdom and Ireland.

use crate::catalogue::{
    builders::{any, national},
    checks::{at, is_short_date, one_digit, part, varied, weighted},
    detector::{Candidate, Detector},
};

pub(super) const ALL: &[Detector] = &[
    national("uk_nino", "UK national insurance number", nino)
        .alone(&["AA999999A", "AA 99 99 99 A", "AA 999999 A", "AA-99-99-99-A", "AA 999999A"])
        .named(&["aa999999a", "aa 99 99 99 a"])
        .beside(&["nino", "national insurance", "ni number", "ni no", "insurance number"])
        .fires(&["nino: PR 123612C", "AA 12 34 56 B", r#"{"niNumber": "ab123456c"}"#])
        .passes(&["PR 123612E", "GB123456A", "QQ123456C", "AO123456A", "XAB123456C"]),
    national("uk_utr", "UK unique taxpayer reference, beside words that name it", utr)
        .named(&["9999999999", "99999 99999"])
        .beside(&["utr", "unique taxpayer", "tax reference", "self assessment", "hmrc"])
        .fires(&["UTR 4137484777", r#"{"utr": "41374 84777"}"#])
        .passes(&["4137484777", "UTR 4137484778"]),
    national("uk_trn", "UK temporary or teacher reference number, beside words that name it", any)
        .named(&["99A99999", "99/99999", "99a99999", "9999999"])
        .beside(&["trn", "teacher reference", "temporary reference number"])
        .fires(&["TRN 63T12345", "teacher reference 82/40917", r#"{"trn": "8240917"}"#])
        .passes(&["63T12345", "TRN unknown"]),
    national("uk_passport", "UK passport number, beside words that name it", any)
        .named(&["999999999", "AA9999999"])
        .beside(&["uk passport", "british passport", "hmpo", "gbr passport"])
        .fires(&["UK passport 925076473", r#"{"ukPassport": "AB1234567"}"#])
        .passes(&["AB1234567", "UK passport expired"]),
    national(
        "uk_driving_licence",
        "UK driving licence number: name, date of birth, initials",
        licence,
    )
    .alone(&[
        "AAAAA999999AA9AA",
        "AAAA9999999AA9AA",
        "AAA99999999AA9AA",
        "AAAAA999999A99AA",
        "AAAA9999999A99AA",
    ])
    .named(&["AAAAA999999XXXXX", "aaaaa999999xxxxx"])
    .beside(&["driving licence", "driver licence", "driving license", "dvla", "licence number"])
    .fires(&["MORGA607054SM9IJ", r#"{"drivingLicence": "MORGA607054SM9IJ"}"#])
    .passes(&["MORGA601004SM9IJ", "MORGA650054SM9IJ", "MORGA607054SM9I"]),
    national(
        "uk_vehicle_registration",
        "UK vehicle registration mark, beside words that name it",
        any,
    )
    .named(&["AA99 AAA", "AA99AAA", "A999 AAA", "A999AAA", "AAA 999A"])
    .beside(&[
        "vehicle registration",
        "number plate",
        "registration plate",
        "licence plate",
        "license plate",
        "vrm",
        "vehicle reg",
        "numberplate",
    ])
    .fires(&["number plate AB51 ABC", r#"{"vrm": "AB51ABC"}"#])
    .passes(&["AB51 ABC", "number plate AB-51"]),
    national("ie_pps", "Irish personal public service number, beside words that name it", pps)
        .named(&["9999999A", "9999999AA", "9999999a", "9999999aa"])
        .beside(&["pps", "ppsn", "personal public service", "pps number"])
        .fires(&["PPS 2699740M", r#"{"ppsn": "6483938P"}"#])
        .passes(&["2699740M", "PPS 2699740N"]),
];

fn nino(candidate: &Candidate<'_>) -> Option<i32> {
    const UNUSED: [&[u8; 2]; 7] = [b"BG", b"GB", b"NK", b"KN", b"TN", b"NT", b"ZZ"];
    let [first, second, ..] = candidate.matched() else { return None };
    let first = first.to_ascii_uppercase();
    let second = second.to_ascii_uppercase();
    let last = candidate.matched().last()?.to_ascii_uppercase();
    let is_unused = UNUSED.contains(&&[first, second]);
    let is_letter = |byte: u8| !matches!(byte, b'D' | b'F' | b'I' | b'Q' | b'U' | b'V');
    let fits =
        is_letter(first) && is_letter(second) && second != b'O' && matches!(last, b'A'..=b'D');
    (fits && !is_unused && varied(&candidate.digits())).then_some(2)
}

/// The first digit checks the others.
fn utr(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let sum = weighted(digits.get(1..)?, &[6, 7, 8, 9, 10, 5, 4, 3, 2]);
    let check = match 11 - sum % 11 {
        10 => 1,
        11 => 2,
        check => check,
    };
    one_digit(at(&digits, 0) == check)
}

/// The month is five higher for women: `607054` is July 5th, 1964.
fn licence(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let name = candidate.matched().iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
    // A short name is filled up with nines.
    let from = 5_usize.checked_sub(name)?;
    if digits.iter().take(from).any(|digit| *digit != 9) {
        return None;
    }
    let year = at(&digits, from) * 10 + at(&digits, from + 5);
    let month = part(&digits, from + 1, from + 3);
    let month = if month > 50 { month - 50 } else { month };
    is_short_date(year, month, part(&digits, from + 3, from + 5)).then_some(12)
}

/// The letter after the digits checks them and a second letter.
fn pps(candidate: &Candidate<'_>) -> Option<i32> {
    let matched = candidate.matched().to_ascii_uppercase();
    let second = match matched.get(8) {
        None | Some(b'W' | b'T' | b'X') => 0,
        Some(letter @ b'A'..=b'I') => u32::from(letter - b'A' + 1),
        Some(_) => return None,
    };
    let sum = weighted(&candidate.digits(), &[8, 7, 6, 5, 4, 3, 2]) + 9 * second;
    let expected = b"WABCDEFGHIJKLMNOPQRSTUV".get(usize::try_from(sum % 23).ok()?);
    one_digit(matched.get(7) == expected)
}
