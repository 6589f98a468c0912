//! Passwords of letters alone: letters as no language has them in a row, and words that are joined.

use super::values;
use crate::catalogue::secrets::pairs;

/// Shorter rows of letters tell nothing.
const SHORTEST_ROW: usize = 8;

/// Words of a phrase, at least, and letters of each.
const PHRASE: usize = 3;
const SHORTEST_PART: usize = 4;

/// The shortest word that may be a password where nothing else than one can stand.
const SHORTEST_WORD: usize = 6;

/// Returns true if a text is a row of letters as no word and no name has them: `ugjwqfgpjj`, `qXwzKtRvbGhs`.
pub(super) fn is_random(value: &[u8]) -> bool {
    const RISES: usize = 2;
    let rises = value
        .array_windows()
        .filter(|[one, other]| one.is_ascii_lowercase() && other.is_ascii_uppercase());
    let is_cased = || value.iter().all(u8::is_ascii_alphabetic) && rises.count() >= RISES;
    let is_row = value.iter().all(u8::is_ascii_lowercase) || is_cased();
    value.len() >= SHORTEST_ROW && is_row && pairs::is_odd(value)
}

/// Returns true if a text is three words and more that dashes join, and does not stand in place of a
/// password: `garden-kaiser-dragon`.
pub(super) fn is_phrase(value: &[u8]) -> bool {
    let is_part =
        |part: &[u8]| part.len() >= SHORTEST_PART && part.iter().all(u8::is_ascii_alphabetic);
    value.split(|byte| *byte == b'-').count() >= PHRASE
        && value.split(|byte| *byte == b'-').all(is_part)
        && stands_for_itself(value)
}

/// Returns true if a text may be a password where nothing else than one can stand, and does not stand in
/// place of one: small letters, which dashes may join, or letters with signs that no name has
/// (`london-winter`, `super$ecret`).
pub(super) fn is_word(value: &[u8]) -> bool {
    let is_plain = |byte: &u8| byte.is_ascii_lowercase() || *byte == b'-';
    let is_sign = |byte: &u8| b"!$@#%^&*+~".contains(byte);
    let is_signed = value.iter().any(is_sign)
        && value.iter().all(|byte| byte.is_ascii_alphabetic() || *byte == b'-' || is_sign(byte));
    value.len() >= SHORTEST_WORD
        && (value.iter().all(is_plain) || is_signed)
        && value.first().is_some_and(u8::is_ascii_alphabetic)
        && value.last().is_some_and(|last| *last != b'-')
        && stands_for_itself(value)
}

/// Returns true if a text is a word that begins with a capital, a sign and a number, as people choose
/// passwords: `Summer.24`.
pub(super) fn is_word_and_number(value: &[u8]) -> bool {
    const DIGITS: usize = 4;
    let word = value.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
    let (Some((first, small)), Some([sign, number @ ..])) =
        (value.get(..word).and_then(<[u8]>::split_first), value.get(word..))
    else {
        return false;
    };
    first.is_ascii_uppercase()
        && word >= SHORTEST_PART
        && small.iter().all(u8::is_ascii_lowercase)
        && b".-_!".contains(sign)
        && (1..=DIGITS).contains(&number.len())
        && number.iter().all(u8::is_ascii_digit)
        && stands_for_itself(value.get(..word).unwrap_or_default())
}

/// Returns true if a text is words of small letters and a number of three digits and more that dashes
/// join: `garden-kaiser-4711`.
pub(super) fn is_phrase_and_number(value: &[u8]) -> bool {
    let Some(last) = value.iter().rposition(|byte| *byte == b'-') else { return false };
    let (words, number) = value.split_at_checked(last).unwrap_or_default();
    let is_part =
        |part: &[u8]| part.len() >= SHORTEST_PART && part.iter().all(u8::is_ascii_lowercase);
    let mut parts = words.split(|byte| *byte == b'-');
    words.contains(&b'-')
        && parts.all(is_part)
        && matches!(number.len(), 4..=6)
        && number.iter().skip(1).all(u8::is_ascii_digit)
        && words.split(|byte| *byte == b'-').all(stands_for_itself)
}

/// Returns true if a text is no dummy and no name of a password.
fn stands_for_itself(value: &[u8]) -> bool {
    std::str::from_utf8(value).is_ok_and(|text| !values::is_dummy(text))
        && super::names::kind(value).is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_in_a_row_are_told_from_words() {
        for row in ["ugjwqfgpjj", "hklktaobbe", "khiqszgods", "rdmbxcperl"] {
            assert!(is_random(row.as_bytes()), "{row}");
        }
        for word in ["authentication", "required", "londonwinter", "abgelaufen", "obligatoire"] {
            assert!(!is_random(word.as_bytes()), "{word}");
        }
    }

    #[test]
    fn phrases_are_told_from_names() {
        assert!(is_phrase(b"garden-kaiser-dragon") && is_word(b"london-winter"));
        assert!(is_word(b"super$ecret") && is_word_and_number(b"Summer.24"));
        assert!(!is_word_and_number(b"Password.1") && !is_word_and_number(b"config.24"));
        for name in ["your-secret-password", "up-to-date", "london-winter", "prod-user-password"] {
            assert!(!is_phrase(name.as_bytes()), "{name}");
        }
        for name in ["required", "changeme", "string", "user-password", "real_key", "-a-b-c"] {
            assert!(!is_word(name.as_bytes()), "{name}");
        }
    }
}
