//! Escapes of pages, addresses and programs, one at a time.

use crate::views::characters::Step;

/// Bytes of a character reference, at most.
const LONGEST: usize = 24;

/// RFC 3986 percent-encoding of whole characters of UTF-8, and `%u0040` as JavaScript writes it.
pub(super) fn percent(rest: &[u8]) -> Option<Step> {
    match rest.get(1)? {
        b'u' => Some((6, Some(unit(rest.get(2..6)?)?))),
        _ => character(rest, b"%"),
    }
}

/// `=40` of quoted-printable, and the end of a line that goes on in the next one.
pub(super) fn quoted(text: &[u8], at: usize) -> Option<Step> {
    let rest = text.get(at..)?;
    let before = at.checked_sub(1).and_then(|before| text.get(before));
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    let is_joint = || before.is_some_and(is_part);
    match rest {
        [b'=', b'\n', next, ..] if is_part(next) && is_joint() => Some((2, None)),
        [b'=', b'\r', b'\n', next, ..] if is_part(next) && is_joint() => Some((3, None)),
        [b'=', first, second, ..] => {
            let is_digit = |byte: &u8| matches!(byte, b'0'..=b'9' | b'A'..=b'F');
            (is_digit(first) && is_digit(second)).then(|| character(rest, b"="))?
        }
        _ => None,
    }
}

/// HTML character references: numeric ones, also without their semicolon, and the names that spell
/// ASCII or nothing.
pub(super) fn entity(rest: &[u8]) -> Option<Step> {
    let head = rest.get(1..rest.len().min(LONGEST))?;
    if let Some(number) = head.strip_prefix(b"#") {
        let (radix, mark) = if matches!(number.first()?, b'x' | b'X') { (16, 1) } else { (10, 0) };
        let digits = number.get(mark..)?;
        let length = digits.iter().take_while(|byte| char::from(**byte).is_digit(radix)).count();
        let value = std::str::from_utf8(digits.get(..length)?).ok()?;
        let char = char::from_u32(u32::from_str_radix(value, radix).ok()?)?;
        return match digits.get(length) {
            Some(b';') => Some((3 + mark + length, Some(char))),
            // More of the number, or its end, may be escaped itself.
            Some(b'\\' | b'%') => None,
            Some(_) | None => (char >= ' ').then_some((2 + mark + length, Some(char))),
        };
    }
    let length = head.iter().position(|byte| *byte == b';')?;
    let name = std::str::from_utf8(head.get(..length)?).ok()?;
    Some((length + 2, named(name).ok()?))
}

/// `\u0040`, `\u{40}`, `\U00000040`, `\x40`, `\100` and `\/` as they stand in text that was escaped once
/// more, `\_` of Markdown, and the end of a line that goes on in the next one.
pub(super) fn backslash(rest: &[u8]) -> Option<Step> {
    match rest.get(1)? {
        b'u' if rest.get(2) == Some(&b'{') => {
            let digits = rest.get(3..rest.len().min(3 + 7))?;
            let length = digits.iter().position(|byte| *byte == b'}')?;
            Some((4 + length, Some(unit(digits.get(..length)?)?)))
        }
        b'u' => utf16(rest),
        b'U' => Some((10, Some(unit(rest.get(2..10)?)?))),
        b'x' => character(rest, b"\\x"),
        // As `4111\n1111`.
        b'n' | b'r' | b't' if rest.get(2)?.is_ascii_digit() => Some((2, Some('\n'))),
        mark @ (b'/' | b'_') => Some((2, Some(char::from(*mark)))),
        b'0' | b'1' => {
            let digits = std::str::from_utf8(rest.get(1..4)?).ok()?;
            let code =
                u8::from_str_radix(digits, 8).ok().filter(|code| (0x20..0x7F).contains(code))?;
            Some((4, Some(char::from(code))))
        }
        b'\n' => Some((2, None)),
        b'\r' if rest.get(2) == Some(&b'\n') => Some((3, None)),
        _ => None,
    }
}

/// `\\u0040`, `\\\\x40` and the like: a text that is escaped again and again doubles the backslashes of its
/// escapes.
pub(super) fn doubled(rest: &[u8]) -> Option<Step> {
    const MOST: usize = 8;
    let signs = rest.iter().take(MOST).take_while(|byte| **byte == b'\\').count();
    let escape = rest.get(signs.checked_sub(1).filter(|more| *more > 0)?..)?;
    let is_code = matches!(escape.get(1), Some(b'u' | b'U' | b'x'));
    let (taken, char) = is_code.then(|| backslash(escape))??;
    Some((signs - 1 + taken, char))
}

/// One character of UTF-16, which may take two escapes.
fn utf16(rest: &[u8]) -> Option<Step> {
    let first = u16::try_from(hex(rest.get(2..6)?)?).ok()?;
    let second = match rest.get(6..12) {
        Some([b'\\', b'u', digits @ ..]) => hex(digits).and_then(|unit| u16::try_from(unit).ok()),
        Some(_) | None => None,
    };
    let mut chars = char::decode_utf16([first].into_iter().chain(second));
    let char = chars.next()?.ok()?;
    Some((if char.len_utf16() == 2 { 12 } else { 6 }, Some(char)))
}

/// One character of UTF-8, each of its bytes after a mark.
fn character(rest: &[u8], mark: &[u8]) -> Option<Step> {
    let step = mark.len() + 2;
    let byte = |index: usize| {
        let escaped = rest.get(index * step..(index + 1) * step)?.strip_prefix(mark)?;
        u8::try_from(hex(escaped)?).ok()
    };
    let first = byte(0)?;
    let length = match first {
        0..0x80 => return Some((step, Some(char::from(first)))),
        0xC2..=0xDF => 2,
        0xE0..=0xEF => 3,
        0xF0..=0xF4 => 4,
        _ => return None,
    };
    let bytes = (0..length).map(byte).collect::<Option<Vec<u8>>>()?;
    Some((length * step, Some(std::str::from_utf8(&bytes).ok()?.chars().next()?)))
}

/// The character of a named reference, or nothing that is seen. No other name is known.
fn named(name: &str) -> Result<Option<char>, UnknownName> {
    const NAMES: &[(&str, char)] = &[
        ("amp", '&'),
        ("AMP", '&'),
        ("lt", '<'),
        ("LT", '<'),
        ("gt", '>'),
        ("GT", '>'),
        ("quot", '"'),
        ("QUOT", '"'),
        ("apos", '\''),
        ("nbsp", ' '),
        ("ensp", ' '),
        ("emsp", ' '),
        ("Tab", '\t'),
        ("NewLine", '\n'),
        ("commat", '@'),
        ("period", '.'),
        ("comma", ','),
        ("lowbar", '_'),
        ("UnderBar", '_'),
        ("hyphen", '-'),
        ("dash", '-'),
        ("colon", ':'),
        ("semi", ';'),
        ("sol", '/'),
        ("bsol", '\\'),
        ("plus", '+'),
        ("equals", '='),
        ("num", '#'),
        ("excl", '!'),
        ("dollar", '$'),
        ("percnt", '%'),
        ("lpar", '('),
        ("rpar", ')'),
        ("ast", '*'),
        ("midast", '*'),
        ("quest", '?'),
        ("lsqb", '['),
        ("lbrack", '['),
        ("rsqb", ']'),
        ("rbrack", ']'),
        ("lcub", '{'),
        ("lbrace", '{'),
        ("rcub", '}'),
        ("rbrace", '}'),
        ("Hat", '^'),
        ("grave", '`'),
        ("verbar", '|'),
        ("vert", '|'),
    ];
    const NOTHING: &[&str] = &["shy", "zwj", "zwnj", "lrm", "rlm", "ZeroWidthSpace", "NoBreak"];
    let char = NAMES.iter().find(|(known, _)| *known == name).map(|(_, char)| *char);
    if char.is_none() && !NOTHING.contains(&name) {
        return Err(UnknownName);
    }
    Ok(char)
}

/// Error of a reference that stands for nothing of interest.
struct UnknownName;

/// The character of a code point in hex.
fn unit(digits: &[u8]) -> Option<char> {
    char::from_u32(hex(digits)?)
}

fn hex(digits: &[u8]) -> Option<u32> {
    digits.iter().try_fold(0_u32, |sum, digit| {
        sum.checked_mul(16)?.checked_add(char::from(*digit).to_digit(16)?)
    })
}
