//! Words that a program puts together, `"sk-""live"` and `'ghp_' + 'abc'`, or a page: `41<b></b>11`.
//!
//! A splice is one quote that ends a literal and one that begins the next, with nothing between
//! them or with an operator and spaces, tags of HTML that break no line, or a comment, where a word goes on
//! behind it: a letter, a digit or a joint stands on either side. A comma is an operator in a list that a
//! program joins. What is near a splice is read without it.

use std::ops::Range;

use crate::views::unescape::Unescaped;

/// Bytes before the first of some splices and after the last of them that are a part with them.
const NEAR: usize = 256;

/// Spaces on either side of an operator, at most.
const SPACES: usize = 4;

/// The parts of a text in which splices stand, read without them.
pub(super) fn parts(text: &[u8]) -> Vec<Unescaped> {
    parts_within(text, NEAR)
}

/// All of a text, read without its splices; `None` when there are none.
pub(super) fn whole(text: &[u8]) -> Option<Unescaped> {
    parts_within(text, text.len()).pop()
}

/// Returns true if a splice begins at an offset.
pub(super) fn begins(text: &[u8], at: usize) -> bool {
    splice_end(text, at).is_some()
}

/// The splices with so many bytes before and behind them.
fn parts_within(text: &[u8], near: usize) -> Vec<Unescaped> {
    let mut parts: Vec<SplicedPart> = Vec::new();
    let mut done = 0;
    for at in places(text) {
        let Some(end) = splice_end(text, at).filter(|_| at >= done) else { continue };
        done = end;
        match parts.last_mut() {
            Some(part) if at <= part.last + 2 * near => part.skip(text, at..end),
            Some(_) | None => {
                let last = at.saturating_sub(near);
                let mut part = SplicedPart { read: Unescaped::default(), last };
                part.skip(text, at..end);
                parts.push(part);
            }
        }
    }
    parts.into_iter().map(|part| part.finish(text, near)).collect()
}

/// A part in the making.
struct SplicedPart {
    read: Unescaped,
    /// The end of the last splice.
    last: usize,
}

impl SplicedPart {
    fn skip(&mut self, text: &[u8], splice: Range<usize>) {
        self.read.copy(text, self.last..splice.start);
        self.last = splice.end;
    }

    fn finish(mut self, text: &[u8], near: usize) -> Unescaped {
        let end = text.len().min(self.last + near);
        self.read.copy(text, self.last..end);
        self.read.end(end);
        self.read
    }
}

/// The end of the splice that begins with the quote at an offset.
fn splice_end(text: &[u8], at: usize) -> Option<usize> {
    text.get(at.checked_sub(1)?).filter(|before| goes_on(**before))?;
    let length = match text.get(at..)? {
        [b'<', ..] => tags_length(text.get(at..)?)?,
        [b'/', b'*', ..] => comment_length(text.get(at..)?)?,
        _ => 0,
    };
    if length > 0 {
        let end = at + length;
        return goes_on(*text.get(end)?).then_some(end);
    }
    let rest = text.get(at + 1..)?;
    let first = spaces(rest);
    let operator = match rest.get(first..)? {
        [b'|', b'|', ..] => 2,
        [b'+' | b'.' | b'&', ..] => 1,
        [b',', ..] if is_joined(text, at) => 1,
        _ => 0,
    };
    let between = match operator {
        0 => 0,
        length => first + length + spaces(rest.get(first + length..)?),
    };
    let [quote, next, ..] = rest.get(between..)? else { return None };
    let is_quote = matches!(quote, b'"' | b'\'');
    (is_quote && goes_on(*next)).then_some(at + between + 2)
}

/// Returns true if the literals of a list are put together, by a call before or behind them.
fn is_joined(text: &[u8], at: usize) -> bool {
    let before = text.get(at.saturating_sub(NEAR)..at).unwrap_or_default();
    let after = text.get(at..text.len().min(at + NEAR)).unwrap_or_default();
    let calls = |name: &[u8]| before.windows(name.len()).any(|it| it.eq_ignore_ascii_case(name));
    calls(b"concat(") || memchr::memmem::find(after, b"].join(").is_some()
}

/// Length of the comment of a program that a text begins with.
fn comment_length(text: &[u8]) -> Option<usize> {
    let near = text.get(..text.len().min(LONGEST_TAG))?;
    memchr::memmem::find(near.get(2..)?, b"*/").map(|at| at + 4)
}

/// Offsets at which a splice may begin.
pub(super) fn places(text: &[u8]) -> impl Iterator<Item = usize> {
    let stars = memchr::memchr_iter(b'*', text).filter_map(|at| at.checked_sub(1));
    let mut comments = stars.filter(|at| text.get(*at) == Some(&b'/')).peekable();
    let mut others = memchr::memchr3_iter(b'"', b'\'', b'<', text).peekable();
    std::iter::from_fn(move || match (comments.peek(), others.peek()) {
        (Some(comment), Some(other)) if comment < other => comments.next(),
        (Some(_), None) => comments.next(),
        (_, _) => others.next(),
    })
}

/// Elements that stand within a text, and whose tags part no cells and paragraphs.
const INLINE: &[&[u8]] = &[
    b"a", b"abbr", b"b", b"bdi", b"bdo", b"big", b"code", b"del", b"em", b"font", b"i", b"ins",
    b"kbd", b"mark", b"nobr", b"s", b"samp", b"small", b"span", b"strike", b"strong", b"sub",
    b"sup", b"tt", b"u", b"var", b"wbr",
];

/// Bytes of a tag or a comment, and tags side by side, at most.
const LONGEST_TAG: usize = 128;
const TAGS: usize = 8;

/// Length of the tags and comments that a text begins with.
fn tags_length(text: &[u8]) -> Option<usize> {
    let mut length = 0;
    for _ in 0..TAGS {
        let Some(tag) = text.get(length..).and_then(tag_length) else { break };
        length += tag;
    }
    (length > 0).then_some(length)
}

/// Length of the tag of an element within a word, or of the comment, that a text begins with.
fn tag_length(text: &[u8]) -> Option<usize> {
    let near = text.get(..text.len().min(LONGEST_TAG))?;
    if near.starts_with(b"<!--") {
        return memchr::memmem::find(near, b"-->").map(|at| at + 3);
    }
    let inside = near.strip_prefix(b"<")?;
    let named = inside.strip_prefix(b"/").unwrap_or(inside);
    let name =
        named.iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'-').count();
    let name = named.get(..name)?;
    let is_custom = name.contains(&b'-') && name.first().is_some_and(u8::is_ascii_alphabetic);
    let is_inline = || INLINE.iter().any(|known| known.eq_ignore_ascii_case(name));
    (is_custom || is_inline()).then_some(())?;
    let end = memchr::memchr2(b'>', b'<', inside)?;
    (inside.get(end) == Some(&b'>')).then_some(end + 2)
}

fn spaces(text: &[u8]) -> usize {
    text.iter().take(SPACES).take_while(|byte| matches!(byte, b' ' | b'\t' | b'\n')).count()
}

fn goes_on(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'/' | b'+' | b'=' | b':')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<String> {
        let text_of = |read: Unescaped| {
            assert_eq!(read.from.len(), read.text.len() + 1);
            String::from_utf8(read.text).unwrap()
        };
        parts(text.as_bytes()).into_iter().map(text_of).collect()
    }

    #[test]
    fn words_in_pieces_are_put_together() {
        assert_eq!(texts(r#"x = "sk-""live""#), [r#"x = "sk-live""#]);
        assert_eq!(texts("'ghp_'\"abc\"'def'"), ["'ghp_abcdef'"]);
        assert_eq!(texts(r#""ghp_" + "abc" . "def""#), [r#""ghp_abcdef""#]);
        assert_eq!(texts("'ghp_' || 'abc' & \"def\""), ["'ghp_abcdef\""]);
        assert_eq!(texts("41<b></b>11<!-- x -->22<x-y a=b>3</x-y>3"), ["41112233"]);
        assert_eq!(texts("41/* x */11"), ["4111"]);
        assert_eq!(texts("CONCAT('ghp_', 'abc')"), ["CONCAT('ghp_abc')"]);
        assert_eq!(texts("['ghp_', 'abc'].join('')"), ["['ghp_abc'].join('')"]);
        let far = format!("'a''b'{}'c''d'", " ".repeat(600));
        assert_eq!(texts(&far).len(), 2);
        let whole = whole(far.as_bytes()).unwrap();
        assert_eq!(whole.text, format!("'ab'{}'cd'", " ".repeat(600)).as_bytes());
    }

    #[test]
    fn other_quotes_stay() {
        for text in [
            "", "don't", r#"{"a":"","b":"c"}"#, r#"say "a" "b""#, r#"["a", "b"]"#,
            "src/*.rs, lib/*.c", r#"f("") + "b""#, "a<td>b</td>c", "a<br>b<br/>c", "Vec<u8>x",
            "a<b c",
        ] {
            assert!(texts(text).is_empty(), "{text}");
        }
    }
}
