//! Values that a text gives to a name: a line of a configuration or a program, JSON or XML inside a
//! text, a command line, a sentence.

use std::ops::Range;

use super::{
    given::{Form, LONGEST, SPACE, Value, is_query, space, value_at},
    letters, loud, members,
    names::{self, SecretKind},
    places,
    strength::{is_mixed, is_random_key, is_strong, may_be},
    values,
};
use crate::{
    catalogue::secrets::general::{classes, is_identifier},
    text::{
        labels::{self, Names},
        window::Window,
        words::is_word,
    },
};

/// Values of this length need less of a name.
const LONG: usize = 8;
const VERY_LONG: usize = 12;
/// Bytes of a sentence between a name and its value.
const SENTENCE: usize = 48;

/// Words that stand between a name and its value in a sentence.
const COPULAS: Names<21> = Names::new([
    "is", "was", "to", "is:", "ist", "lautet", "est", "es", "è", "é", "jest", "to:", "adalah",
    "là", "är", "er", "je", "este", "becomes", "будет", "это",
]);

/// Words with digits that sentences about passwords hold.
const TECHNICAL: &[&str] = &[
    "sha1", "sha256", "sha512", "sha-256", "sha-512", "md5", "base64", "pbkdf2", "argon2",
    "argon2id", "utf8", "utf-8", "oauth2", "x509", "latin1", "ascii85", "bcrypt2", "rot13",
];

/// Types that stand between a name and its value.
const TYPES: &[&[u8]] =
    &[b"string", b"String", b"str", b"char", b"&str", b"string?", b"std::string"];

/// The value that a text gives to the name that a literal is part of.
pub(crate) fn find(text: &Window<'_>, literal: Range<usize>) -> Option<Range<usize>> {
    let name = name_around(text, &literal);
    let kind = names::kind(text.get(name.clone())?)?;
    given(text, &name, kind).or_else(|| loud::near(text, &name, kind))
}

/// The value that is given to a name.
fn given(text: &Window<'_>, name: &Range<usize>, kind: SecretKind) -> Option<Range<usize>> {
    let (form, Value { range, .. }) = assigned(text, name)?;
    let called = text.get(name.clone())?;
    let value = text.get(range.clone())?;
    if !may_be(kind, value) {
        return None;
    }
    let is_telling = match kind {
        SecretKind::Password => true,
        SecretKind::ShortPassword => !is_bare(called),
        SecretKind::Key => false,
    };
    let is_secret = accepts(form, kind, called, value)
        || is_telling && is_letters(form, value, || places::is_setting(text, name, &range));
    is_secret.then_some(range)
}

/// Returns true if words or letters are a password: they make no words, are a phrase, a word and a number,
/// or stand where nothing else can.
fn is_letters(form: Form, value: &[u8], is_setting: impl Fn() -> bool) -> bool {
    let is_clear = letters::is_random(value)
        || letters::is_phrase(value)
        || letters::is_phrase_and_number(value)
        || letters::is_word_and_number(value);
    match form {
        Form::Plain => false,
        Form::Quoted | Form::Line => is_clear || letters::is_word(value) && is_setting(),
        Form::Word => is_clear,
    }
}

/// Returns true if a name is one word.
fn is_bare(name: &[u8]) -> bool {
    !name.iter().any(|byte| matches!(byte, b'_' | b'.' | b'-'))
}

fn accepts(form: Form, kind: SecretKind, name: &[u8], value: &[u8]) -> bool {
    let is_bare = is_bare(name);
    let is_allowed = match (form, kind) {
        (Form::Plain, _) | (_, SecretKind::Password) => true,
        (Form::Line | Form::Quoted, SecretKind::ShortPassword) => {
            !is_bare || value.len() >= LONG && is_mixed(value) && !value.contains(&b'/')
        }
        (Form::Word, SecretKind::ShortPassword) => {
            !is_bare || value.len() >= VERY_LONG && is_mixed(value)
        }
        (_, SecretKind::Key) => is_random_key(value),
    };
    if !is_allowed {
        return false;
    }
    match form {
        Form::Plain => !(is_bare && matches!(name, b"PWD" | b"OLDPWD")),
        Form::Quoted => {
            let letters = value.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
            let is_named = value.get(..letters).is_some_and(is_dummy)
                && value.iter().skip(letters).all(u8::is_ascii_digit);
            is_mixed(value)
                && !is_named
                && !value.contains(&b' ')
                && !is_joined(value)
                && !is_name(value)
        }
        Form::Line => is_strong(value, 5) && !is_code(value),
        Form::Word => is_strong(value, 6) && !is_code(value) && !is_technical(value),
    }
}

fn is_dummy(word: &[u8]) -> bool {
    std::str::from_utf8(word).is_ok_and(values::is_dummy)
}

/// Returns true if a text is a name of a password itself, in lower case: `sha256_password`.
fn is_name(value: &[u8]) -> bool {
    !value.iter().any(u8::is_ascii_uppercase) && names::kind(value).is_some()
}

/// Returns true if a text is words of lower case and numbers with joints, as names are.
fn is_joined(value: &[u8]) -> bool {
    let is_part = |part: &[u8]| {
        part.iter().all(u8::is_ascii_lowercase) || part.iter().all(u8::is_ascii_digit)
    };
    let mut parts = value.split(|byte| b"_-./:|,=".contains(byte));
    value.iter().any(|byte| !byte.is_ascii_alphanumeric()) && parts.all(is_part)
}

/// Returns true if a text without quotes is part of a program, a path or an address.
fn is_code(value: &[u8]) -> bool {
    let begins = value.first().is_some_and(|first| b"/%.$*#&@\\-|<({[=+~".contains(first));
    let is_field = value.contains(&b':') && !value.iter().any(u8::is_ascii_digit);
    begins
        || is_field
        || is_identifier(value)
        || is_joined(value)
        || value.iter().any(|byte| b"(){}[]".contains(byte))
        || value.windows(2).any(|part| matches!(part, b"::" | b"->" | b"//"))
}

fn is_technical(value: &[u8]) -> bool {
    let known = |word: &&str| value.eq_ignore_ascii_case(word.as_bytes());
    let is_cased = value.len() >= LONG && classes(value) > 2;
    TECHNICAL.iter().any(known)
        || value.first().is_some_and(u8::is_ascii_digit)
            && value.iter().filter(|it| it.is_ascii_digit()).count() < 4
            && !is_cased
        || value
            .windows(2)
            .any(|part| matches!(part, [b'.' | b'/', next] if next.is_ascii_alphabetic()))
}

/// The name that a literal is part of. Names of letters beyond ASCII end with the literal.
fn name_around(text: &[u8], literal: &Range<usize>) -> Range<usize> {
    let is_part = |byte: &&u8| is_word(**byte) || matches!(**byte, b'-' | b'.') || !byte.is_ascii();
    let before = text.get(..literal.start).unwrap_or_default();
    let ahead = before.iter().rev().take(names::LONGEST).take_while(is_part).count();
    let after = text.get(literal.end..).unwrap_or_default();
    let is_foreign =
        literal.end.checked_sub(1).and_then(|at| text.get(at)).is_some_and(|it| !it.is_ascii());
    let rest =
        if is_foreign { 0 } else { after.iter().take(names::LONGEST).take_while(is_part).count() };
    let start = (literal.start - ahead..literal.start)
        .find(|at| !matches!(text.get(*at), Some(b'-' | b'.')))
        .unwrap_or(literal.start);
    start..literal.end + rest
}

/// The value given to a name, and its form.
fn assigned(text: &Window<'_>, name: &Range<usize>) -> Option<(Form, Value)> {
    let is_sign = |byte: &&u8| b"\"'`\\])*".contains(byte);
    let rest = text.get(name.end..)?;
    let closers = rest.iter().take(4).take_while(is_sign).count();
    let is_closed = rest.iter().take(closers).any(|byte| matches!(byte, b'"' | b'\'' | b'`'));
    let at = name.end + closers;
    let sign = at + space(text, at);
    let is_near = sign == name.end;
    match text.get(sign..)? {
        [b'=', b'=' | b'~', ..] | [b':', b':', ..] => None,
        [b'=' | b'-', b'>', ..] | [b':', b'=', ..] => by_sign(text, name, sign + 2),
        [b'=', ..] if is_near => by_equals(text, name, sign + 1),
        [b':', ..] if is_closed => members::by_key(text, name.start, sign + 1),
        [b'=' | b':', ..] => by_sign(text, name, sign + 1),
        [0xEF, 0xBC, 0x9A, ..] => by_sign(text, name, sign + 3),
        [b',' | b'}', ..] if is_closed => members::by_label(text, name, sign),
        [b'\n', ..] => by_next_line(text, name, sign + 1)
            .or_else(|| members::by_label(text, name, sign).filter(|_| is_closed)),
        [b'<', b'/', ..] => by_cell(text, sign),
        [b'>', ..]
            if is_near && name.start.checked_sub(1).and_then(|at| text.get(at)) == Some(&b'<') =>
        {
            by_tag(text, sign + 1)
        }
        [first, ..] if closers == 0 && (sign > name.end || !first.is_ascii()) => {
            by_words(text, name, sign)
        }
        _ => None,
    }
}

/// `PASSWORD=value` without space.
fn by_equals(text: &[u8], name: &Range<usize>, at: usize) -> Option<(Form, Value)> {
    let value = value_at(text, at, name)?;
    let called = text.get(name.clone())?;
    if is_query(text, name) && !value.is_quoted && names::kind(called) == Some(SecretKind::Password)
    {
        return Some((Form::Plain, value));
    }
    let is_variable = called.len() > 2 && !called.iter().any(u8::is_ascii_lowercase);
    if is_variable
        && value.range.start <= at + 2
        && (value.is_quoted || !is_call(text.get(value.range.clone())?))
    {
        return Some((Form::Plain, value));
    }
    by_sign(text, name, at)
}

/// Returns true if a text calls something or takes part of it.
fn is_call(value: &[u8]) -> bool {
    value.iter().any(|byte| b"(){}[]".contains(byte))
        || is_identifier(value) && value.contains(&b'.')
}

/// `name: password` above `value: …`.
fn by_next_line(text: &[u8], name: &Range<usize>, at: usize) -> Option<(Form, Value)> {
    let at = at + space(text, at);
    let rest = text.get(at..)?;
    let length = rest.iter().take(SPACE).take_while(|byte| byte.is_ascii_alphabetic()).count();
    let is_member = rest.get(length) == Some(&b':') && labels::is_value(rest.get(..length)?);
    is_member.then(|| by_sign(text, name, at + length + 1))?
}

/// `<password>value</password>`.
fn by_tag(text: &[u8], at: usize) -> Option<(Form, Value)> {
    let rest = text.get(at..text.len().min(at + LONGEST))?;
    let end = rest.iter().position(|byte| matches!(byte, b'<' | b'\n'))?;
    let is_closed = rest.get(end..)?.starts_with(b"</");
    let value = Value { range: at..at + end, is_quoted: false };
    is_closed.then_some((Form::Plain, value))
}

/// `<th>password</th><td>value</td>`.
fn by_cell(text: &[u8], at: usize) -> Option<(Form, Value)> {
    const TAGS: usize = 64;
    let rest = text.get(at..text.len().min(at + TAGS))?;
    let close = rest.iter().position(|byte| *byte == b'>')? + 1;
    let gap = rest.get(close..)?.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
    let cell = rest.get(close + gap..)?;
    let is_cell = cell.starts_with(b"<td") || cell.starts_with(b"<dd");
    let open = cell.iter().position(|byte| *byte == b'>').filter(|_| is_cell)? + 1;
    let (_, value) = by_tag(text, at + close + gap + open)?;
    let is_head = rest.starts_with(b"</th") || rest.starts_with(b"</dt");
    let is_word = !text.get(value.range.clone())?.contains(&b' ');
    Some((if is_head && is_word { Form::Plain } else { Form::Line }, value))
}

/// `password = value` and `password: value`.
fn by_sign(text: &[u8], name: &Range<usize>, at: usize) -> Option<(Form, Value)> {
    let stars = text.get(at..)?.iter().take(2).take_while(|byte| **byte == b'*').count();
    let at = at + stars + space(text, at + stars);
    let mut value = value_at(text, at, name)?;
    if !value.is_quoted && TYPES.contains(&text.get(value.range.clone())?) {
        let sign = value.range.end + space(text, value.range.end);
        let is_given = text.get(sign) == Some(&b'=') && text.get(sign + 1) != Some(&b'=');
        let next = is_given.then(|| sign + 1 + space(text, sign + 1))?;
        value = value_at(text, next, name)?;
    }
    if value.is_quoted {
        return Some((Form::Quoted, value));
    }
    let rest = near(text, value.range.end);
    let rest = rest.split(|byte| matches!(byte, b'\n' | b'\r')).next()?.trim_ascii_start();
    let is_line = rest.is_empty() || rest.starts_with(b"#") || rest.starts_with(b"\\n");
    let called = text.get(name.clone())?;
    let is_variable = called.contains(&b'_') && !called.iter().any(u8::is_ascii_lowercase);
    Some(match (is_line, is_variable) {
        (true, true) if !is_call(text.get(value.range.clone())?) => (Form::Plain, value),
        (true, _) => (Form::Line, value),
        (false, _) => (Form::Word, value),
    })
}

/// `the password for the VPN is value`, `--password value`.
fn by_words(text: &[u8], name: &Range<usize>, at: usize) -> Option<(Form, Value)> {
    let before = text.get(..name.start)?;
    if before.ends_with(b"--") || before.ends_with(b" -") {
        let value = value_at(text, at, name)?;
        let rest = near(text, value.range.end).trim_ascii_start();
        let is_all = rest.is_empty() || matches!(rest.first(), Some(b'-' | b'|' | b'&' | b';'));
        return Some((if is_all { Form::Plain } else { Form::Word }, value));
    }
    if follows_login(before) {
        return value_at(text, at, name).map(|value| (Form::Plain, value));
    }
    for sign in ["是", "为", "は", "為"] {
        if text.get(at..)?.starts_with(sign.as_bytes()) {
            let at = at + sign.len() + space(text, at + sign.len());
            return value_at(text, at, name).map(|value| (Form::Word, value));
        }
    }
    let sentence = text.get(at..text.len().min(at + SENTENCE))?;
    let mut from = at;
    for word in sentence.split(|byte| *byte == b' ').take(5) {
        let next = from + word.len() + 1;
        if COPULAS.hold(word) {
            let next = next + space(text, next);
            return value_at(text, next, name).map(|value| (Form::Word, value));
        }
        if !word.iter().all(|byte| byte.is_ascii_alphanumeric() || !byte.is_ascii()) {
            return None;
        }
        from = next;
    }
    None
}

/// The bytes at an offset that tell whether a value is all of a line or a command.
fn near(text: &[u8], at: usize) -> &[u8] {
    text.get(at..text.len().min(at + SPACE)).unwrap_or_default()
}

/// Returns true if a text ends with `login name`, as lines of `.netrc` do before the password.
fn follows_login(before: &[u8]) -> bool {
    const NEAR: usize = 96;
    let near = before.get(before.len().saturating_sub(NEAR)..).unwrap_or_default();
    let mut words = near.rsplit(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    near.ends_with(b" ") && words.next().is_some() && words.next() == Some(b"login")
}
