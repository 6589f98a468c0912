//! Numbers of persons in China, Taiwan, Hong Kong, Japan and Korea.

use crate::catalogue::{
    builders::{SERIALS, any, national},
    checks::{at, is_date, is_short_date, one_digit, part, value, varied, weighted},
    detector::{Candidate, Detector},
};

pub(super) const ALL: &[Detector] = &[
    national("cn_resident_id", "Chinese resident identity number", resident)
        .alone(&["999999999999999999", "99999999999999999X"])
        .named(&["99999999999999999x"])
        .beside(&[
            "身份证",
            "居民身份证",
            "id card",
            "resident id",
            "shenfenzheng",
            "identity card",
        ])
        .not_below(SERIALS)
        .fires(&["110101198403153508", r#"{"身份证": "110101198403153508"}"#])
        .passes(&["110101198403153509", "110101198413153508", "990101198403153508"]),
    national("cn_passport", "Chinese passport number, beside words that name it", any)
        .named(&["A99999999", "AA9999999"])
        .beside(&["护照", "chinese passport", "huzhao"])
        .fires(&["护照 E12345678"])
        .passes(&["E12345678"]),
    national("tw_national_id", "Taiwanese identity number, beside words that name it", taiwan)
        .named(&["A999999999", "a999999999"])
        .beside(&["身分證", "身份證", "統一編號", "national id", "arc", "resident certificate"])
        .fires(&["身分證 A123456789"])
        .passes(&["A123456789", "身分證 A123456788"]),
    national("hk_hkid", "Hong Kong identity card number", hkid)
        .alone(&["A999999(X)", "AA999999(X)"])
        .named(&["A999999X", "AA999999X", "a999999(x)"])
        .beside(&["hkid", "hong kong identity", "hong kong id", "香港身份證", "身份證"])
        .fires(&["A123456(3)", "HKID A1234563"])
        .passes(&["A123456(4)", "A1234563"]),
    national("jp_my_number", "Japanese individual number, beside words that name it", my_number)
        .named(&["999999999999", "9999 9999 9999", "9999-9999-9999"])
        .beside(&[
            "my number",
            "mynumber",
            "マイナンバー",
            "個人番号",
            "kojin bango",
            "individual number",
        ])
        .fires(&["マイナンバー: 439450938680", r#"{"myNumber": "1346 5659 2261"}"#])
        .passes(&["439450938680", "マイナンバー: 439450938681"]),
    national("jp_passport", "Japanese passport number, beside words that name it", any)
        .named(&["AA9999999"])
        .beside(&["旅券番号", "パスポート", "japanese passport", "japan passport"])
        .fires(&["旅券番号 TK1234567"])
        .passes(&["TK1234567"]),
    national(
        "jp_driving_licence",
        "Japanese driving licence number, beside words that name it",
        japanese_licence,
    )
    .named(&["999999999999"])
    .beside(&["運転免許", "免許証番号", "menkyo"])
    .fires(&["免許証番号 305012345630"])
    .passes(&["305012345630", "免許証番号 305012345650"]),
    national("kr_rrn", "Korean resident or foreigner registration number", rrn)
        .alone(&["999999-9999999"])
        .named(&["9999999999999"])
        .beside(&[
            "rrn",
            "주민등록번호",
            "주민번호",
            "외국인등록번호",
            "resident registration",
            "frn",
            "foreigner registration",
        ])
        .not_below(SERIALS)
        .fires(&["960121-1234567", "주민등록번호 9601211234567"])
        .passes(&["961321-1234567", "960121-0234567", "9601211234567"]),
    national("kr_business_number", "Korean business registration number", brn)
        .alone(&["999-99-99999"])
        .named(&["9999999999"])
        .beside(&["사업자등록번호", "brn", "business registration"])
        .not_below(SERIALS)
        .fires(&["323-73-52123", "사업자등록번호 7671214221"])
        .passes(&["323-73-52121", "3237352120"]),
    national("kr_driver_license", "Korean driving licence number", korean_licence)
        .alone(&["99-99-999999-99"])
        .named(&["999999999999"])
        .beside(&["운전면허", "면허번호", "driver license", "driving licence"])
        .fires(&["13-22-123456-12", "운전면허 132212345612"])
        .passes(&["10-22-123456-12", "132212345612"]),
    national("kr_passport", "Korean passport number, beside words that name it", any)
        .named(&["A99999999", "A999A9999", "a999a9999", "a99999999"])
        .beside(&["여권", "여권번호", "korean passport", "passport"])
        .fires(&["여권번호 M12345678", "passport M123A4567"])
        .passes(&["M12345678", "M123A4567"]),
];

/// Region, date of birth, serial, and a remainder by eleven in which `X` is ten.
fn resident(candidate: &Candidate<'_>) -> Option<i32> {
    let (last, rest) = candidate.matched().split_last()?;
    let digits: Vec<u8> = rest.iter().map(|byte| byte.wrapping_sub(b'0')).collect();
    let weights = [7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2];
    let place = usize::try_from(weighted(&digits, &weights) % 11).ok()?;
    let is_right = b"10X98765432".get(place) == Some(&last.to_ascii_uppercase());
    let year = part(&digits, 6, 10);
    let is_born =
        matches!(year, 1900..=2035) && is_date(year, part(&digits, 10, 12), part(&digits, 12, 14));
    let is_district = matches!((part(&digits, 2, 4), part(&digits, 4, 6)), (1..=90, 0..=99));
    let is_place = is_district
        && matches!(part(&digits, 0, 2), 11..=15 | 21..=23 | 31..=37 | 41..=46 | 50..=54 | 61..=65 | 71 | 81..=83);
    (is_right && is_born && is_place).then_some(8)
}

/// The letter stands for two digits.
fn taiwan(candidate: &Candidate<'_>) -> Option<i32> {
    const ORDER: &[u8; 26] = b"ABCDEFGHJKLMNPQRSTUVXYWZIO";
    let first = candidate.matched().first()?.to_ascii_uppercase();
    let place = ORDER.iter().position(|letter| *letter == first)?;
    let number = u32::try_from(place).ok()? + 10;
    let digits = candidate.digits();
    let sum = number / 10 + number % 10 * 9 + weighted(&digits, &[8, 7, 6, 5, 4, 3, 2, 1, 1]);
    one_digit(matches!(at(&digits, 0), 1 | 2 | 8 | 9) && sum.is_multiple_of(10))
}

/// Letters count from ten; a missing first letter counts 36.
fn hkid(candidate: &Candidate<'_>) -> Option<i32> {
    let matched = candidate.matched().to_ascii_uppercase();
    let alnum: Vec<u8> = matched.into_iter().filter(u8::is_ascii_alphanumeric).collect();
    let (check, rest) = alnum.split_last()?;
    let padding = 8_usize.checked_sub(rest.len())?;
    let values = std::iter::repeat_n(36, padding).chain(rest.iter().map(|byte| value(*byte)));
    let sum: u32 = values.zip((2..=9).rev()).map(|(value, weight)| value * weight).sum();
    let expected = match (11 - sum % 11) % 11 {
        10 => b'A',
        digit => b'0' + u8::try_from(digit).ok()?,
    };
    (*check == expected).then_some(6)
}

fn my_number(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let rest = weighted(&digits, &[6, 5, 4, 3, 2, 7, 6, 5, 4, 3, 2]) % 11;
    let check = if rest <= 1 { 0 } else { 11 - rest };
    one_digit(varied(&digits) && check == at(&digits, 11))
}

/// Commission, year, serial, check digit, times reissued.
fn japanese_licence(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let sum = weighted(&digits, &[5, 4, 3, 2, 7, 6, 5, 4, 3, 2]);
    let check = match 11 - sum % 11 {
        10 | 11 => 0,
        check => check,
    };
    one_digit(check == at(&digits, 10))
}

/// Date of birth, then century and sex. Numbers given since 2020 have no check digit.
fn rrn(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let is_born = is_short_date(part(&digits, 0, 2), part(&digits, 2, 4), part(&digits, 4, 6));
    (is_born && matches!(at(&digits, 6), 1..=8)).then_some(6)
}

fn brn(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let sum = weighted(&digits, &[1, 3, 7, 1, 3, 7, 1, 3, 5]) + at(&digits, 8) * 5 / 10;
    one_digit(varied(&digits) && (10 - sum % 10) % 10 == at(&digits, 9))
}

/// Regions have the codes 11 to 28.
fn korean_licence(candidate: &Candidate<'_>) -> Option<i32> {
    matches!(part(&candidate.digits(), 0, 2), 11..=28).then_some(4)
}
