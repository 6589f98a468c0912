//! Placeholders of masked values, as they stand in a text.

/// The most characters of a value that a placeholder keeps.
pub(crate) const MAX_KEPT: u8 = 4;

/// Letters of pseudonyms, one for each half of a byte.
pub(crate) const LETTERS: [char; 16] =
    ['b', 'c', 'd', 'f', 'g', 'h', 'j', 'k', 'm', 'n', 'p', 'q', 'r', 's', 't', 'v'];

/// Sign in place of what stands in a placeholder, for a scan.
pub(crate) const BLANK: u8 = b'*';

/// Returns true if what stands between two brackets makes them a placeholder, which may be blank.
pub(crate) fn is_one(inside: &str) -> bool {
    let is_blank = !inside.is_empty() && inside.bytes().all(|byte| byte == BLANK);
    is_blank || name_of(inside).is_some()
}

/// Length of what stands between the brackets of a placeholder, if a text goes on with one behind the first bracket. What
/// has digits or letters enough to be a value is none.
pub(crate) fn length_inside(text: &[u8]) -> Option<usize> {
    const LONGEST: usize = 80;
    const MOST_DIGITS: usize = 3;
    const LONGEST_WORD: usize = 16;
    let length = memchr::memchr(b']', text.get(..text.len().min(LONGEST))?)?;
    let name = name_of(std::str::from_utf8(text.get(..length)?).ok()?)?;
    let digits = name.bytes().filter(u8::is_ascii_digit).count();
    let is_plain = digits <= MOST_DIGITS && name.split('_').all(|word| word.len() <= LONGEST_WORD);
    is_plain.then_some(length)
}

/// The detector that `REDACTED:name` names, with what was kept or without, or `name:` and a pseudonym.
fn name_of(inside: &str) -> Option<&str> {
    let is_name = |name: &&str| {
        !name.is_empty()
            && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
    };
    let (name, is_kept) = match inside.split_once(':')? {
        ("REDACTED", named) => match named.split_once(':') {
            Some((name, kept)) => (name, kept.len() <= usize::from(MAX_KEPT)),
            None => (named, true),
        },
        ("WITHHELD", name) => (name, true),
        (name, pseudonym) => (name, is_pseudonym(pseudonym)),
    };
    Some(name).filter(is_name).filter(|_| is_kept)
}

fn is_pseudonym(text: &str) -> bool {
    text.len() == LETTERS.len() && text.chars().all(|letter| LETTERS.contains(&letter))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_a_value_is_no_placeholder() {
        let length = |text: &str| length_inside(text.as_bytes());

        assert_eq!(length("REDACTED:us_ssn] x"), Some(15));
        assert_eq!(length("REDACTED:iban:3000]"), Some(18));
        assert_eq!(length("email:bcdfghjkmnpqrstv]"), Some(22));
        for other in [
            "REDACTED:4111111111111111]",
            "REDACTED:ghp_a1b2c3d4e5f6]",
            "REDACTED:qwzrtlkxvncpdhbmyjgfst]",
            "REDACTED:us_ssn",
            "REDACTED]",
            "ssn:536228726]",
        ] {
            assert_eq!(length(other), None, "{other}");
        }
    }
}
