//! Checks of numbers of persons and companies in Asia and Africa.

use crate::catalogue::{
    checks::{at, check_character, is_date, one_digit, part, value, varied, weighted},
    detector::Candidate,
};

/// The fourth letter tells the kind of holder.
pub(crate) fn pan(candidate: &Candidate<'_>) -> Option<i32> {
    let kind = candidate.matched().get(3)?.to_ascii_uppercase();
    b"PCHABGJLFTE".contains(&kind).then_some(4)
}

/// State, PAN, entity, and a check character by a Luhn scheme with base 36.
pub(crate) fn gstin(candidate: &Candidate<'_>) -> Option<i32> {
    let (last, rest) = candidate.matched().split_last()?;
    let state = part(&candidate.digits(), 0, 2);
    let products = rest.iter().enumerate().map(|(at, byte)| {
        let product = value(*byte) * if at % 2 == 0 { 1 } else { 2 };
        product / 36 + product % 36
    });
    let check = (36 - products.sum::<u32>() % 36) % 36;
    // The last but one is `Z`, or tells who deducts or collects taxes.
    let is_state = matches!(state, 1..=38 | 97)
        && matches!(candidate.matched().get(13), Some(b'Z' | b'C' | b'D'));
    is_state.then_some(if check == value(*last) { 12 } else { -4 })
}

/// The letters after the digits depend on the first one, and so does where counting begins.
pub(crate) fn nric(candidate: &Candidate<'_>) -> Option<i32> {
    let matched = candidate.matched().to_ascii_uppercase();
    let (offset, letters): (u32, &[u8]) = match matched.first()? {
        b'S' => (0, b"JZIHGFEDCBA"),
        b'T' => (4, b"JZIHGFEDCBA"),
        b'F' => (0, b"XWUTRQPNMLK"),
        b'G' => (4, b"XWUTRQPNMLK"),
        b'M' => (3, b"KLJNPQRTUWX"),
        _ => return None,
    };
    let sum = weighted(&candidate.digits(), &[2, 7, 6, 5, 4, 3, 2]) + offset;
    let place = if matched.first() == Some(&b'M') { 10 - sum % 11 } else { sum % 11 };
    (letters.get(usize::try_from(place).ok()?) == matched.last()).then_some(6)
}

/// A company's number begins with its year and ends with a check letter.
pub(crate) fn uen(candidate: &Candidate<'_>) -> Option<i32> {
    let matched = candidate.matched();
    if !matched.get(..9)?.iter().all(u8::is_ascii_digit) {
        return Some(0);
    }
    let digits = candidate.digits();
    let sum = weighted(&digits, &[10, 8, 6, 4, 9, 7, 5, 3, 1]);
    let letter = check_character(sum, b"ZKCMDNERGWH");
    (matches!(part(&digits, 0, 4), 1900..=2099) && letter == matched.last().copied()).then_some(6)
}

/// Each digit and its place from the right make a remainder by nine; the last digit makes their sum a multiple of ten.
pub(crate) fn vkn(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let (last, rest) = digits.split_last()?;
    let parts = rest.iter().rev().zip(1_u32..).map(|(digit, place)| {
        let shifted = (u32::from(*digit) + place) % 10;
        match (shifted << place) % 9 {
            0 if shifted > 0 => 9,
            part => part,
        }
    });
    (rest.len() == 9 && (parts.sum::<u32>() + u32::from(*last)).is_multiple_of(10)).then_some(4)
}

/// Region, date of birth, serial, and a remainder by eleven in which `X` is ten.
pub(crate) fn resident(candidate: &Candidate<'_>) -> Option<i32> {
    let (last, rest) = candidate.matched().split_last()?;
    let digits: Vec<u8> = rest.iter().map(|byte| byte.wrapping_sub(b'0')).collect();
    let weights = [7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2];
    let check = check_character(weighted(&digits, &weights), b"10X98765432");
    let is_right = check == Some(last.to_ascii_uppercase());
    let year = part(&digits, 6, 10);
    let is_born =
        matches!(year, 1900..=2035) && is_date(year, part(&digits, 10, 12), part(&digits, 12, 14));
    let is_district = matches!((part(&digits, 2, 4), part(&digits, 4, 6)), (1..=90, 0..=99));
    let is_place = is_district
        && matches!(part(&digits, 0, 2), 11..=15 | 21..=23 | 31..=37 | 41..=46 | 50..=54 | 61..=65 | 71 | 81..=83);
    (is_right && is_born && is_place).then_some(8)
}

/// The letter stands for two digits.
pub(crate) fn taiwan(candidate: &Candidate<'_>) -> Option<i32> {
    const ORDER: &[u8; 26] = b"ABCDEFGHJKLMNPQRSTUVXYWZIO";
    let first = candidate.matched().first()?.to_ascii_uppercase();
    let place = ORDER.iter().position(|letter| *letter == first)?;
    let number = u32::try_from(place).ok()? + 10;
    let digits = candidate.digits();
    let sum = number / 10 + number % 10 * 9 + weighted(&digits, &[8, 7, 6, 5, 4, 3, 2, 1, 1]);
    one_digit(matches!(at(&digits, 0), 1 | 2 | 8 | 9) && sum.is_multiple_of(10))
}

/// Letters count from ten; a missing first letter counts 36.
pub(crate) fn hkid(candidate: &Candidate<'_>) -> Option<i32> {
    let matched = candidate.matched().to_ascii_uppercase();
    let alnum: Vec<u8> = matched.into_iter().filter(u8::is_ascii_alphanumeric).collect();
    let (check, rest) = alnum.split_last()?;
    let padding = 8_usize.checked_sub(rest.len())?;
    let values = std::iter::repeat_n(36, padding).chain(rest.iter().map(|byte| value(*byte)));
    let sum: u32 = values.zip((2..=9).rev()).map(|(value, weight)| value * weight).sum();
    (check_character(sum, b"0A987654321") == Some(*check)).then_some(6)
}

pub(crate) fn brn(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let sum = weighted(&digits, &[1, 3, 7, 1, 3, 7, 1, 3, 5]) + at(&digits, 8) * 5 / 10;
    one_digit(varied(&digits) && (10 - sum % 10) % 10 == at(&digits, 9))
}

/// Century, date of birth, governorate.
pub(crate) fn egypt(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let century = at(&digits, 0) + 17;
    let year = century * 100 + part(&digits, 1, 3);
    let is_born = is_date(year, part(&digits, 3, 5), part(&digits, 5, 7));
    let is_place = matches!(part(&digits, 7, 9), 1..=4 | 11..=19 | 21..=29 | 31..=35 | 88);
    (matches!(century, 19 | 20) && is_born && is_place).then_some(7)
}
