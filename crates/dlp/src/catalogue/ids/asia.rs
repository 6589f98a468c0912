//! Numbers of persons in India, Pakistan and South-East Asia.

use crate::catalogue::{
    checks::{at, is_short_date, one_digit, part, value, varied, verhoeff, weighted},
    detector::Candidate,
};

pub(crate) fn aadhaar(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    one_digit(at(&digits, 0) >= 2 && varied(&digits) && verhoeff(&digits))
}

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

/// Province and division, family, sex.
pub(crate) fn cnic(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    (matches!(at(&digits, 0), 1..=7) && at(&digits, 12) > 0 && varied(&digits)).then_some(4)
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
    let letter = b"ZKCMDNERGWH".get(usize::try_from(sum % 11).ok()?);
    (matches!(part(&digits, 0, 4), 1900..=2099) && letter == matched.last()).then_some(6)
}

/// Born, and in a state or country that has a code.
pub(crate) fn mykad(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let is_born = is_short_date(part(&digits, 0, 2), part(&digits, 2, 4), part(&digits, 4, 6));
    let is_place = !matches!(part(&digits, 6, 8), 0 | 17..=20 | 69 | 70 | 73 | 80 | 81 | 94..=97);
    (is_born && is_place).then_some(6)
}

pub(crate) fn thai(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let sum = weighted(&digits, &[13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2]);
    one_digit(at(&digits, 0) != 0 && (11 - sum % 11) % 10 == at(&digits, 12))
}

/// Region, date of birth with 40 added to women's days, serial.
pub(crate) fn nik(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let is_born =
        is_short_date(part(&digits, 10, 12), part(&digits, 8, 10), part(&digits, 6, 8) % 40);
    (is_born && matches!(part(&digits, 0, 2), 11..=94)).then_some(4)
}
