//! Ways to reach a person.

use std::ops::Range;

use crate::text::window::Window;

pub(super) mod phones;

/// Around an `@`: RFC 5321 dot-atoms, a domain with a letters-only top level.
pub(crate) fn email(text: &Window<'_>, at: usize) -> Option<Range<usize>> {
    let before = text.get(at.saturating_sub(64)..at)?;
    let local = before.iter().rev().take_while(|byte| is_local(**byte)).count();
    let start = at - local;
    let after = text.get(at + 1..text.len().min(at + 255))?;
    let length = after.iter().take_while(|byte| is_domain(**byte)).count();
    let domain = trim_end(after.get(..length)?);
    let local = text.get(start..at)?;
    let dotted = local.first() == Some(&b'.') || local.last() == Some(&b'.') || local.is_empty();
    let end = at + 1 + domain.len();
    let is_remote = is_path(text.get(end..).unwrap_or_default())
        || local == b"git" && text.get(end) == Some(&b':');
    let is_nobody = NOBODY.iter().any(|nobody| local.eq_ignore_ascii_case(nobody));
    let is_person = !dotted && !is_remote && !is_nobody;
    (is_person && has_top_level(domain) && !is_user_info(text, start)).then_some(start..end)
}

/// Returns true if the path of a repository follows, as in `user@host:team/tool.git`.
fn is_path(after: &[u8]) -> bool {
    const LONGEST: usize = 64;
    let Some((b':', path)) = after.split_first() else { return false };
    let is_part = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let team = path.iter().take(LONGEST).take_while(is_part).count();
    path.first().is_some_and(u8::is_ascii_alphabetic) && path.get(team) == Some(&b'/')
}

fn is_local(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(byte, b'.' | b'_' | b'%' | b'+' | b'-' | b'\'')
        || byte >= 0x80
}

fn is_domain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-') || byte >= 0x80
}

fn trim_end(domain: &[u8]) -> &[u8] {
    let dots = domain.iter().rev().take_while(|byte| matches!(byte, b'.' | b'-')).count();
    domain.get(..domain.len() - dots).unwrap_or_default()
}

/// Addresses that reach no person.
const NOBODY: &[&[u8]] =
    &[b"noreply", b"no-reply", b"no_reply", b"donotreply", b"do-not-reply", b"mailer-daemon"];

/// File suffixes that follow an `@` in names such as `logo@2x.png`.
const FILES: &[&[u8]] = &[
    b"png", b"jpg", b"jpeg", b"gif", b"svg", b"webp", b"js", b"mjs", b"ts", b"tsx", b"jsx", b"css",
    b"json", b"html", b"tgz", b"gz", b"zip", b"service", b"lock", b"yaml", b"yml", b"toml",
];

fn has_top_level(domain: &[u8]) -> bool {
    let mut labels = domain.rsplit(|byte| *byte == b'.');
    let top = labels.next().unwrap_or_default();
    let is_word =
        top.len() >= 2 && top.iter().all(|byte| byte.is_ascii_alphabetic() || *byte >= 0x80);
    let is_coded =
        top.len() > 4 && top.get(..4).is_some_and(|head| head.eq_ignore_ascii_case(b"xn--"));
    let is_file = FILES.iter().any(|file| top.eq_ignore_ascii_case(file));
    let mut rest = labels.peekable();
    rest.peek().is_some()
        && rest.all(|label| !label.is_empty() && label.first() != Some(&b'-'))
        && (is_word || is_coded)
        && !is_file
}

/// Returns true if the text before is the user part of a URL: `https://user:`.
fn is_user_info(text: &[u8], start: usize) -> bool {
    let before = text.get(start.saturating_sub(80)..start).unwrap_or_default();
    let ends = |byte: &u8| matches!(byte, b'/' | b'@') || byte.is_ascii_whitespace();
    let length = before.iter().rev().take_while(|byte| !ends(byte)).count();
    before.get(..before.len() - length).is_some_and(|head| head.ends_with(b"://"))
}
