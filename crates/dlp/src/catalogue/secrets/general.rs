//! Secrets of no vendor, which only their names give away.

use crate::catalogue::secrets::{pairs, randomness::random};
use crate::{
    catalogue::{
        checks,
        detector::Candidate,
        lists::{NAMING_KEY, NAMING_SECRET, NOT_SECRET},
        naming::name,
    },
    text::words,
};

/// Returns true if a name says that its value is something else than a secret.
pub(super) fn is_other(called: &[u8]) -> bool {
    words::names(called, &NOT_SECRET)
}

/// Names that programs join of words: `options.hash_function2`.
pub(super) fn is_identifier(text: &[u8]) -> bool {
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.');
    text.iter().all(is_part)
        && (text.contains(&b'_') || text.contains(&b'.') || is_camel_case(text))
}

/// More odd characters, and more kinds of them, than any program or template has in a row.
pub(crate) fn odd(candidate: &Candidate<'_>) -> Option<i32> {
    is_odd(candidate.matched()).then_some(6)
}

/// Returns true if a text has so many odd characters of so many kinds, and is no program: programs
/// have words, and brackets that close what was opened.
pub(super) fn is_odd(matched: &[u8]) -> bool {
    let is_odd = |byte: &&u8| byte.is_ascii_punctuation();
    let kinds =
        (0x21..0x7F_u8).filter(|byte| byte.is_ascii_punctuation() && matched.contains(byte));
    // Classes of characters in a regular expression.
    let has_class = matched.array_windows().any(|class| matches!(class, b"A-Z" | b"a-z" | b"0-9"));
    let fits = !has_class
        && matched.len() >= 16
        && kinds.count() >= 8
        && matched.iter().filter(is_odd).count() >= 10;
    let longest = matched.split(|byte| !byte.is_ascii_alphabetic()).map(<[u8]>::len).max();
    let is_wordless = longest.unwrap_or(0) < 4;
    fits && (is_wordless || has_crossed_brackets(matched)) && checks::entropy(matched) >= 4.0
}

/// Returns true if a bracket closes another than the one that was opened last.
fn has_crossed_brackets(text: &[u8]) -> bool {
    let mut open = Vec::new();
    text.iter().any(|byte| match byte {
        b'(' => {
            open.push(b')');
            false
        }
        b'[' | b'{' => {
            open.push(byte + 2);
            false
        }
        b')' | b']' | b'}' => open.pop().is_some_and(|expected| expected != *byte),
        _ => false,
    })
}

/// Number of kinds of characters: lower case, upper case, digits, others.
pub(super) fn classes(text: &[u8]) -> usize {
    let has = |test: fn(&u8) -> bool| usize::from(text.iter().any(test));
    has(u8::is_ascii_lowercase)
        + has(u8::is_ascii_uppercase)
        + has(u8::is_ascii_digit)
        + has(|byte| !byte.is_ascii_alphanumeric())
}

/// A placeholder says what it stands for.
fn speaks_of_secrets(text: &[u8]) -> bool {
    const WORDS: &[&[u8]] =
        &[b"password", b"passwd", b"passphrase", b"secret", b"example", b"placeholder", b"your"];
    let lower = text.to_ascii_lowercase();
    WORDS.iter().any(|word| memchr::memmem::find(&lower, word).is_some())
}

/// The name says secret and nothing else, and the value is random; a UUID needs a name that says key of
/// an interface or secret of a client.
pub(crate) fn secret(candidate: &Candidate<'_>) -> Option<i32> {
    let called = name(candidate)?;
    let is_uuid = is_uuid_of_hex(candidate.matched());
    if is_of_type(candidate) {
        return None;
    }
    // Of a role in Vault the secret is an id.
    let is_of_role = is_uuid && words::names(called, &["secret id"]);
    if is_other(called) && !is_of_role {
        return None;
    }
    let is_secret = if is_uuid {
        words::names(called, &NAMING_KEY) && random(candidate).is_some()
    } else {
        words::names(called, &NAMING_SECRET) && is_key_text(candidate)
    };
    is_secret.then_some(6)
}

/// Returns true if the member is named after a type: of `"AWS::ApiGateway::ApiKey": "48205d4ffd7feba3"` the value is
/// no key.
fn is_of_type(candidate: &Candidate<'_>) -> bool {
    const NEAR: usize = 64;
    let before = candidate.text.get(..candidate.range.start).unwrap_or_default();
    let near = before.get(before.len().saturating_sub(NEAR)..).unwrap_or_default();
    let is_joint = |byte: &u8| matches!(byte, b'"' | b'\'' | b' ');
    let mut parts = near.rsplit(is_joint).filter(|part| !part.is_empty());
    let named = if before.is_empty() { candidate.key } else { parts.by_ref().nth(1) };
    let is_named = before.is_empty() || near.trim_ascii_end().ends_with(b"\"");
    is_named && named.is_some_and(|name| name.windows(2).any(|pair| pair == b"::"))
}

/// Long, mixed, of high entropy, and neither a name, an address nor a hash in a path.
pub(super) fn is_key_text(candidate: &Candidate<'_>) -> bool {
    let matched = candidate.matched();
    let letters = matched.iter().filter(|byte| byte.is_ascii_alphabetic()).count();
    let digits = candidate.digits().len();
    let least = if matched.iter().all(u8::is_ascii_hexdigit) { 3.0 } else { 3.5 };
    digits >= 2
        && letters >= 4
        && digits * 24 > matched.len()
        && !is_uuid(matched)
        && !is_worded(matched)
        && !is_camel_case(matched)
        && !speaks_of_secrets(matched)
        && !words::ends_name(matched, &NAMING_SECRET)
        && checks::entropy(matched) >= least
        && random(candidate).is_some()
}

/// Returns true if a text has the length and the joints of a UUID.
pub(super) fn is_uuid(text: &[u8]) -> bool {
    text.len() == 36 && joints(text) == 4
}

/// Returns true if a text is a UUID.
pub(super) fn is_uuid_of_hex(text: &[u8]) -> bool {
    is_uuid(text) && text.iter().all(|byte| byte.is_ascii_hexdigit() || *byte == b'-')
}

/// Returns true if a text is short words with joints between them.
pub(super) fn is_worded(text: &[u8]) -> bool {
    let joints = joints(text);
    joints > 0 && longest_word(text) < 12 && joints * 16 > text.len()
}

fn joints(text: &[u8]) -> usize {
    text.iter().filter(|byte| matches!(byte, b'.' | b'_' | b'-' | b'/')).count()
}

/// Returns true if about half of a text is words that begin with capitals, as in
/// `Tls12CipherSuite`, and these look like words: the pairs of their letters are those of words, and they
/// are not all short.
pub(super) fn is_camel_case(text: &[u8]) -> bool {
    const SHORTEST: usize = 3;
    // Letters of both cases by chance make words of three letters, and few longer ones.
    const USUAL: usize = 4;
    const LONG: usize = 12;
    let mut words = 0;
    let mut covered = 0;
    let mut odd = 0;
    for part in text.chunk_by(|_, next| next.is_ascii_lowercase()) {
        let is_word = part.first().is_some_and(u8::is_ascii_uppercase);
        if is_word && part.len() >= SHORTEST {
            words += 1;
            covered += part.len();
            odd += pairs::odd(part);
        }
    }
    let are_usual = text.len() < LONG || covered >= USUAL * words;
    words >= 2 && odd < pairs::MANY && are_usual && covered * 20 >= text.len() * 9
}

/// The longest stretch of letters and digits.
fn longest_word(text: &[u8]) -> usize {
    text.split(|byte| !byte.is_ascii_alphanumeric()).map(<[u8]>::len).max().unwrap_or(0)
}
