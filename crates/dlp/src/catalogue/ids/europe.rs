//! Checks of numbers of persons and companies in Europe.

use crate::catalogue::{
    checks::{
        at, check_character, cross_sum, is_date, is_short_date, luhn, mod_11_10, one_digit, part,
        remainder, two_digits, value, varied, weighted, weighted_values,
    },
    detector::Candidate,
};

pub(crate) fn nino(candidate: &Candidate<'_>) -> Option<i32> {
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

/// The month is five higher for women: `607054` is July 5th, 1964.
pub(crate) fn licence(candidate: &Candidate<'_>) -> Option<i32> {
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
pub(crate) fn pps(candidate: &Candidate<'_>) -> Option<i32> {
    let matched = candidate.matched().to_ascii_uppercase();
    let second = match matched.get(8) {
        None | Some(b'W' | b'T' | b'X') => 0,
        Some(letter @ b'A'..=b'I') => u32::from(letter - b'A' + 1),
        Some(_) => return None,
    };
    let sum = weighted(&candidate.digits(), &[8, 7, 6, 5, 4, 3, 2]) + 9 * second;
    let expected = check_character(sum, b"WABCDEFGHIJKLMNOPQRSTUV");
    one_digit(matched.get(7).copied() == expected)
}

/// Number, date of birth and date of expiry have a check digit each, and one for all.
pub(crate) fn card_line(candidate: &Candidate<'_>) -> Option<i32> {
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
    weighted_values(text, &[7, 3, 1]) % 10
}

/// In the first ten digits one digit comes two or three times, in samples none does; ISO 7064
/// checks the whole.
pub(crate) fn tax_id(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let head = digits.get(..10)?;
    let most = (0..10).map(|digit| head.iter().map(|d| u8::from(*d == digit)).sum::<u8>()).max()?;
    let fits = at(&digits, 0) != 0 && most <= 3 && mod_11_10(&digits);
    fits.then_some(if most == 1 { 2 } else { 7 })
}

/// Nine letters and digits, checked with weights 7, 3, 1 by a tenth if it is there.
pub(crate) fn document(candidate: &Candidate<'_>) -> Option<i32> {
    let matched = candidate.matched().to_ascii_uppercase();
    let (serial, check) = matched.split_at_checked(9)?;
    let letters = serial.iter().filter(|byte| byte.is_ascii_alphabetic());
    let is_letter =
        |byte: &u8| !matches!(byte, b'A' | b'B' | b'D' | b'E' | b'I' | b'O' | b'Q' | b'S' | b'U');
    let starts = matches!(serial.first()?, b'L'..=b'P' | b'R' | b'T' | b'V'..=b'Y' | b'C' | b'F'..=b'H' | b'J' | b'K');
    let is_checked = check.first().is_none_or(|check| value(*check) == icao(serial));
    let fits = starts && letters.clone().all(is_letter) && serial.iter().any(u8::is_ascii_digit);
    (fits && is_checked).then_some(if check.is_empty() { 0 } else { 4 })
}

/// Area, date of birth, initial, serial; the digits are cross-summed times 2, 1, 2, 5, 7, 1, 2, 1, …
pub(crate) fn pension(candidate: &Candidate<'_>) -> Option<i32> {
    let letter = candidate.matched().iter().find(|byte| byte.is_ascii_alphabetic())?;
    let mut digits = candidate.digits();
    let place = u8::try_from(value(letter.to_ascii_uppercase()) - 9).ok()?;
    digits.splice(8..8, [place / 10, place % 10]);
    let (check, rest) = digits.split_last()?;
    let crosses = rest.iter().zip([2, 1, 2, 5, 7, 1, 2, 1, 2, 1, 2, 1]);
    let sum: u32 = crosses.map(|(d, weight)| cross_sum(u32::from(*d) * weight)).sum();
    let day = part(&digits, 2, 4);
    let day = if day > 50 { day - 50 } else { day };
    let is_born = is_short_date(part(&digits, 6, 8), part(&digits, 4, 6), day);
    (is_born && sum % 10 == u32::from(*check)).then_some(10)
}

pub(crate) fn any_varied(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    (digits.len() >= 4 && varied(&digits)).then_some(0)
}

/// Sex, year, month, place, serial; the last two digits make it divisible with 97.
pub(crate) fn nir(candidate: &Candidate<'_>) -> Option<i32> {
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
pub(crate) fn french_tax(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let is_right = remainder(digits.get(..10)?, 511) == part(&digits, 10, 13);
    two_digits(at(&digits, 0) <= 3 && is_right)
}

pub(crate) fn siret(candidate: &Candidate<'_>) -> Option<i32> {
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
pub(crate) fn belgium(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let nine = part(&digits, 0, 9);
    let check = part(&digits, 9, 11);
    let is_right = [0, 2_000_000_000].iter().any(|before| 97 - (before + nine) % 97 == check);
    let is_born =
        matches!(part(&digits, 2, 4), 0..=12 | 20..=32 | 40..=52) && part(&digits, 4, 6) <= 31;
    (is_right && is_born).then_some(8)
}

/// Date of birth, then a Luhn digit over the first eleven.
pub(crate) fn luxembourg(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let is_born = is_date(part(&digits, 0, 4), part(&digits, 4, 6), part(&digits, 6, 8));
    two_digits(is_born && luhn(digits.get(..12)?))
}

const LETTERS: &[u8; 23] = b"TRWAGMYFPDXBNJZSQVHLCKE";

/// The letter is the number's remainder by 23.
pub(crate) fn dni(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let last = candidate.matched().last()?.to_ascii_uppercase();
    let is_right = check_character(part(&digits, 0, 8), LETTERS) == Some(last);
    (varied(&digits) && is_right).then_some(4)
}

/// `X`, `Y` and `Z` count as 0, 1 and 2 before the digits.
pub(crate) fn nie(candidate: &Candidate<'_>) -> Option<i32> {
    let first = candidate.matched().first()?.to_ascii_uppercase();
    let last = candidate.matched().last()?.to_ascii_uppercase();
    let before = u32::from(first.checked_sub(b'X').filter(|place| *place < 3)?);
    let digits = candidate.digits();
    let number = before * 10_000_000 + part(&digits, 0, 7);
    let is_right = check_character(number, LETTERS) == Some(last);
    (varied(&digits) && is_right).then_some(6)
}

/// A Luhn sum over the seven digits, shown as a digit or a letter.
pub(crate) fn cif(candidate: &Candidate<'_>) -> Option<i32> {
    let first = candidate.matched().first()?;
    let last = candidate.matched().last()?;
    let digits = candidate.digits();
    let sum: u32 = (0..7)
        .map(|place| match (place % 2, at(&digits, place)) {
            (0, digit) => cross_sum(digit * 2),
            (_, digit) => digit,
        })
        .sum();
    let check = (10 - sum % 10) % 10;
    let is_letter = b"JABCDEFGHI".get(usize::try_from(check).ok()?) == Some(last);
    let is_kind = b"ABCDEFGHJNPQRSUVW".contains(first);
    one_digit(is_kind && varied(&digits) && (is_letter || value(*last) == check))
}

/// Province and number, then their remainder by 97.
pub(crate) fn affiliation(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let rest = remainder(digits.get(..10)?, 97);
    two_digits(rest == part(&digits, 10, 12))
}

/// The last letter checks the others: those at odd places by a table of their own.
pub(crate) fn codice_fiscale(candidate: &Candidate<'_>) -> Option<i32> {
    const ODD: &[u32; 26] = &[
        1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24,
        23,
    ];
    let matched = candidate.matched().to_ascii_uppercase();
    let (last, rest) = matched.split_last()?;
    let place = |byte: u8| if byte.is_ascii_digit() { value(byte) } else { value(byte) - 10 };
    let sum: u32 = rest
        .iter()
        .enumerate()
        .map(|(at, byte)| match at % 2 {
            0 => usize::try_from(place(*byte)).ok().and_then(|p| ODD.get(p)).copied().unwrap_or(0),
            _ => place(*byte),
        })
        .sum();
    let is_month = b"ABCDEHLMPRST".contains(matched.get(8)?);
    (is_month && sum % 26 + 10 == value(*last)).then_some(10)
}

/// Weights 7, 3, 1, 9, 7, 3, 1, 7, 3 over letters and digits.
pub(crate) fn polish_card(candidate: &Candidate<'_>) -> Option<i32> {
    let alnum = candidate.matched().iter().filter(|byte| byte.is_ascii_alphanumeric());
    let sum = weighted_values(alnum.take(9), &[7, 3, 1, 9, 7, 3, 1, 7, 3]);
    one_digit(sum.is_multiple_of(10))
}

/// Women's months are 50 higher; since 1954 the whole is divisible by eleven.
pub(crate) fn birth_number(candidate: &Candidate<'_>) -> Option<i32> {
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

pub(crate) fn hungary_person(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let is_born = is_short_date(part(&digits, 1, 3), part(&digits, 3, 5), part(&digits, 5, 7));
    let up = weighted(&digits, &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]) % 11;
    let down = weighted(&digits, &[10, 9, 8, 7, 6, 5, 4, 3, 2, 1]) % 11;
    two_digits(is_born && [up, down].contains(&at(&digits, 10)))
}

/// Codes given since 2017 begin with 32 and hold no date.
pub(crate) fn latvia(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let is_born = is_short_date(part(&digits, 4, 6), part(&digits, 2, 4), part(&digits, 0, 2));
    (is_born || part(&digits, 0, 2) == 32).then_some(4)
}

pub(crate) fn snils(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let sum = weighted(&digits, &[9, 8, 7, 6, 5, 4, 3, 2, 1]);
    two_digits(sum % 101 % 100 == part(&digits, 9, 11))
}

/// Born as written, with a Luhn digit over the last ten; coordination numbers add 60 to the day.
pub(crate) fn personnummer(candidate: &Candidate<'_>) -> Option<i32> {
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
pub(crate) fn orgnr(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    let digits = digits.get(..10)?;
    one_digit(at(digits, 2) >= 2 && luhn(digits))
}

/// The sign between date and serial tells the century; the last one is a remainder by 31.
pub(crate) fn hetu(candidate: &Candidate<'_>) -> Option<i32> {
    let matched = candidate.matched().to_ascii_uppercase();
    let sign = matched.get(6)?;
    let digits = candidate.digits();
    let is_born = is_short_date(part(&digits, 4, 6), part(&digits, 2, 4), part(&digits, 0, 2));
    let check = check_character(part(&digits, 0, 9), b"0123456789ABCDEFHJKLMNPRSTUVWXY");
    let is_sign = b"+-YXWVUABCDEF".contains(sign);
    (is_born && is_sign && matched.last().copied() == check).then_some(10)
}
