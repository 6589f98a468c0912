//! Passwords in sentences, on command lines and beside the name of an account: `with password Tor9!blau`,
//! `use Tor9!blau as the password`, `login: ada, pass: Tor_Blau19`.
//!
//! No word of a sentence and no name of a program has capitals, small letters, digits and signs, so a word
//! near the name is enough.

use std::ops::Range;

use super::{names::SecretKind, strength::is_random_key};
use crate::text::window::Window;

/// Bytes of a line before and behind a name that are looked at.
const NEAR: usize = 64;

/// Words behind a name that are looked at.
const WORDS: usize = 6;

/// Signs that passwords hold and names do not.
const SIGNS: &[u8] = b"!#$%&*+=?^~@";

/// Words that name an account beside its password.
const ACCOUNTS: &[&[u8]] =
    &[b"user", b"login", b"id", b"account", b"username", b"wifi", b"ssid", b"benutzer", b"usuario"];

/// The password that stands near a name in its line.
pub(super) fn near(
    text: &Window<'_>,
    name: &Range<usize>,
    kind: SecretKind,
) -> Option<Range<usize>> {
    if kind == SecretKind::Key {
        return None;
    }
    behind(text, name).or_else(|| before(text, name))
}

fn behind(text: &Window<'_>, name: &Range<usize>) -> Option<Range<usize>> {
    let rest = text.get(name.end..text.len().min(name.end + NEAR))?;
    let line = rest.split(|byte| *byte == b'\n').next()?;
    // Most lines hold no capital and no digit behind a name.
    if !line.iter().any(u8::is_ascii_digit) || !line.iter().any(u8::is_ascii_uppercase) {
        return None;
    }
    let mut is_told = false;
    for (at, word) in words(line).take(WORDS) {
        let is_named = || is_told || is_beside_account(text, name);
        let is_given = || is_named() && (is_capitalised(word) || at < 2 && is_random_key(word));
        if is_loud(word) || is_given() {
            return Some(name.end + at..name.end + at + word.len());
        }
        if word.windows(3).any(|part| part == b"://") {
            return None;
        }
        is_told = word == b"use";
    }
    None
}

/// `use … as the password`.
fn before(text: &Window<'_>, name: &Range<usize>) -> Option<Range<usize>> {
    const LEADS: [&[u8]; 5] = [b" as ", b" as the ", b" as your ", b" as my ", b" as a "];
    let ahead = text.get(..name.start)?;
    LEADS.iter().any(|lead| ahead.ends_with(lead)).then_some(())?;
    let start = name.start.saturating_sub(NEAR);
    let line = text.get(start..name.start)?.rsplit(|byte| *byte == b'\n').next()?;
    let start = name.start - line.len();
    let mut words: Vec<(usize, &[u8])> = words(line).collect();
    let is_article = |word: &[u8]| [b"the".as_slice(), b"your", b"my", b"a"].contains(&word);
    words.pop_if(|(_, word)| is_article(word));
    words.pop_if(|(_, word)| *word == b"as")?;
    let (at, word) = words.pop()?;
    (is_loud(word) || is_capitalised(word)).then_some(start + at..start + at + word.len())
}

/// The words of a line without the signs around them, each with its offset.
fn words(line: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let is_frame = |byte: &u8| b"\"'`()[]<>,.:;|".contains(byte);
    let mut from = 0;
    line.split(u8::is_ascii_whitespace).filter_map(move |word| {
        let at = from;
        from += word.len() + 1;
        let lead = word.iter().take_while(|byte| is_frame(byte) || **byte == b'=').count();
        let inside = word.get(lead..)?;
        let tail = inside.iter().rev().take_while(|byte| is_frame(byte)).count();
        let inside = inside.get(..inside.len() - tail)?;
        (!inside.is_empty()).then_some((at + lead, inside))
    })
}

/// Returns true if the name of an account stands before a name in its line.
fn is_beside_account(text: &Window<'_>, name: &Range<usize>) -> bool {
    let before = text.get(name.start.saturating_sub(NEAR)..name.start).unwrap_or_default();
    let line = before.rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
    words(line).any(|(_, word)| ACCOUNTS.iter().any(|known| word.eq_ignore_ascii_case(known)))
        || [b"--".as_slice(), b"--set "].iter().any(|option| line.ends_with(option))
}

/// Returns true for small letters, capitals, digits and signs in one word that is no address, and no call.
fn is_loud(word: &[u8]) -> bool {
    const SHORTEST: usize = 8;
    const LONGEST: usize = 40;
    if !(SHORTEST..=LONGEST).contains(&word.len()) || !is_cased(word) {
        return false;
    }
    let dashes = memchr::memchr_iter(b'-', word).count();
    let is_signed = word.iter().any(|byte| SIGNS.contains(byte)) || dashes > 1;
    let is_part = |byte: &u8| {
        byte.is_ascii_alphanumeric() || SIGNS.contains(byte) || matches!(byte, b'-' | b'_' | b'.')
    };
    let host = word.split(|byte| *byte == b'@').nth(1);
    let is_address = host.is_some_and(|host| host.contains(&b'.'));
    let is_reference = word.starts_with(b"$") || word.starts_with(b"%") || word.starts_with(b"--");
    is_signed && word.iter().all(is_part) && !is_address && !is_reference
}

/// Returns true for two words with capitals that a joint parts, and a number behind them: `Tor_Blau19`.
fn is_capitalised(word: &[u8]) -> bool {
    let letters = word.iter().rev().skip_while(|byte| byte.is_ascii_digit()).count();
    let is_joint = |byte: &u8| matches!(byte, b'_' | b'.' | b'-');
    let parts = || word.get(..letters).unwrap_or_default().split(is_joint);
    let is_word = |part: &[u8]| part.len() > 2 && part.iter().all(u8::is_ascii_alphabetic);
    (1..=4).contains(&(word.len() - letters))
        && is_cased(word)
        && parts().count() == 2
        && parts().all(is_word)
}

fn is_cased(word: &[u8]) -> bool {
    let has = |is: fn(&u8) -> bool| word.iter().any(is);
    has(u8::is_ascii_lowercase) && has(u8::is_ascii_uppercase) && has(u8::is_ascii_digit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Option<&str> {
        let start = text.find("password").unwrap();
        let name = start..start + "password".len();
        let window = Window::around(text.as_bytes(), &name);
        near(&window, &name, SecretKind::Password).map(|range| &text[range])
    }

    #[test]
    fn loud_words_near_a_name_are_passwords() {
        for (text, expected) in [
            ("sign in with password Tor9!blau and go", "Tor9!blau"),
            ("the password for ada: please use Tor9!blau.", "Tor9!blau"),
            ("use Tor9!blau as the password", "Tor9!blau"),
            ("temp password → Tor9#blau", "Tor9#blau"),
            ("login ada, password Tor_Blau19", "Tor_Blau19"),
            ("password: blau-Tor-19", "blau-Tor-19"),
        ] {
            assert_eq!(found(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn other_words_are_none() {
        for text in [
            "password reset and login",
            "the password must contain a digit and a sign",
            "password hashed by PBKDF2 with SHA-256",
            "password of Ada1@Example.org",
            "password see https://x.example/A1?b=c+d",
            "password = Config.Value1",
            "password = ${Db_1+x}",
            "password\nTor9!blau",
        ] {
            assert_eq!(found(text), None, "{text}");
        }
    }
}
