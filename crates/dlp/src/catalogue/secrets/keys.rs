//! Key blocks, JWTs, and passwords where programs keep them.

use base64::{Engine as _, engine::general_purpose::STANDARD};

use crate::catalogue::secrets::randomness::random;
use crate::catalogue::{checks, detector::Candidate, naming::name};
use crate::text::window::Window;

/// All of the member that `kty` names, in base64url: 128 bits or more.
pub(crate) fn private_member(candidate: &Candidate<'_>) -> Option<i32> {
    const SHORTEST: usize = 22;
    let value = candidate.matched();
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    let is_mixed =
        value.iter().any(u8::is_ascii_digit) && value.iter().any(u8::is_ascii_alphabetic);
    (candidate.key == Some(b"kty")
        && value.len() >= SHORTEST
        && is_mixed
        && value.iter().all(is_part))
    .then_some(0)
}

/// A key block has key text after its first line, not prose.
pub(crate) fn private_key(candidate: &Candidate<'_>) -> Option<i32> {
    let is_key_text =
        |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
    candidate.matched().split(|byte| !is_key_text(byte)).any(|run| run.len() >= 24).then_some(0)
}

/// The first part is a JSON object that names an algorithm (RFC 7515, RFC 7516).
pub(crate) fn jwt(candidate: &Candidate<'_>) -> Option<i32> {
    let header = candidate.matched().split(|byte| *byte == b'.').next()?;
    checks::is_json_object(header, &["alg", "enc"]).then_some(8)
}

/// A password, unless it is a placeholder for one.
pub(crate) fn password(candidate: &Candidate<'_>) -> Option<i32> {
    const USUAL: &[&[u8]] =
        &[b"password", b"passwd", b"pass", b"pwd", b"secret", b"changeme", b"example", b"token"];
    let matched = candidate.matched();
    let is_variable =
        matches!(matched.first(), Some(b'$' | b'{' | b'[' | b'<' | b'%' | b'*' | b'\\' | b'('));
    let is_usual = USUAL.iter().any(|usual| matched.eq_ignore_ascii_case(usual));
    let is_masked = matched.iter().all(|byte| matches!(byte, b'x' | b'X' | b'*' | b'.'));
    (!is_variable && !is_usual && !is_masked).then_some(if random(candidate).is_some() {
        6
    } else {
        0
    })
}

/// In `scheme://user:password@host`, the password.
pub(crate) fn url_password(text: &Window<'_>, at: usize) -> Option<std::ops::Range<usize>> {
    let before = text.get(at.saturating_sub(160)..at)?;
    let ends_user_info =
        |byte: &u8| matches!(byte, b'/' | b'@' | b'"' | b'\'' | b'<') || byte.is_ascii_whitespace();
    let length = before.iter().rev().take_while(|byte| !ends_user_info(byte)).count();
    let user_info = at - length;
    let is_web = [b"http://".as_slice(), b"https://"]
        .iter()
        .any(|scheme| text.get(..user_info).is_some_and(|head| head.ends_with(scheme)));
    let colon = text.get(user_info..at)?.iter().position(|byte| *byte == b':')?;
    let password = user_info + colon + 1..at;
    let has_host = text.get(at + 1).is_some_and(u8::is_ascii_alphanumeric);
    (is_web && has_host && password.len() >= 3).then_some(password)
}

/// All that there is to find stands below a key.
pub(crate) fn nothing(_: &Window<'_>, _: std::ops::Range<usize>) -> Option<std::ops::Range<usize>> {
    None
}

/// Decodes base64 of a user, a colon and a password.
fn pair(encoded: &[u8]) -> Option<Vec<u8>> {
    let decoded = STANDARD.decode(encoded).ok()?;
    let is_text = decoded.iter().all(|byte| (0x20..0x7F).contains(byte));
    let colon = decoded.iter().position(|byte| *byte == b':')?;
    (is_text && colon > 0 && decoded.len() > colon + 3).then_some(decoded)
}

pub(crate) fn basic(candidate: &Candidate<'_>) -> Option<i32> {
    pair(candidate.matched()).map(|_| 0)
}

/// Only below a key that is called so, also in a text, and in a line of `.npmrc`.
pub(crate) fn docker_auth(candidate: &Candidate<'_>) -> Option<i32> {
    let next = candidate.text.get(candidate.range.end);
    let is_alone = candidate.range == (0..candidate.text.len()) || next == Some(&b'"');
    let is_line = matches!(next, None | Some(b'\n' | b'\r'));
    let is_auth = name(candidate).is_some_and(|name| {
        is_alone && name.eq_ignore_ascii_case(b"auth")
            || (is_alone || is_line) && name.eq_ignore_ascii_case(b"_auth")
    });
    is_auth.then(|| pair(candidate.matched()))?.map(|_| 0)
}

/// Random enough, with digits, and no dashed phrase.
pub(crate) fn bearer(candidate: &Candidate<'_>) -> Option<i32> {
    (candidate.digits().len() >= 3).then(|| random(candidate))?.map(|_| 4)
}

pub(crate) fn user_password(candidate: &Candidate<'_>) -> Option<i32> {
    let matched = candidate.matched();
    let colon = matched.iter().position(|byte| *byte == b':')?;
    let start = candidate.range.start + colon + 1;
    let range = start..candidate.range.end;
    password(&Candidate { range, key: None, head: None, ..*candidate })
}
