//! Words that a program puts together: `"sk-""live"`, `'ghp_' + 'abc'`.
//!
//! A splice is one quote that ends a literal and one that begins the next, with nothing between
//! them or with `+` or `.` and spaces, where a word goes on behind it: a letter, a digit or a joint
//! stands on either side. What is near a splice is read without it.

use std::ops::Range;

use crate::views::unescape::Unescaped;

/// Bytes before the first of some splices and after the last of them that are read with them.
const NEAR: usize = 256;

/// Spaces on either side of an operator, at most.
const SPACES: usize = 4;

/// Calls `take` with every stretch of a text in which splices stand, read without them.
pub(super) fn each(text: &[u8], mut take: impl FnMut(Unescaped)) {
    let mut near: Option<Stretch> = None;
    let mut done = 0;
    for at in memchr::memchr2_iter(b'"', b'\'', text) {
        let Some(end) = splice_end(text, at).filter(|_| at >= done) else { continue };
        done = end;
        match &mut near {
            Some(stretch) if at <= stretch.last + 2 * NEAR => stretch.skip(text, at..end),
            _ => {
                if let Some(stretch) = near.take() {
                    take(stretch.finish(text));
                }
                let mut stretch = Stretch::beginning(at.saturating_sub(NEAR));
                stretch.skip(text, at..end);
                near = Some(stretch);
            }
        }
    }
    if let Some(stretch) = near {
        take(stretch.finish(text));
    }
}

/// A stretch in the making.
struct Stretch {
    read: Unescaped,
    /// The end of the last splice.
    last: usize,
}

impl Stretch {
    fn beginning(at: usize) -> Self {
        Self { read: Unescaped::default(), last: at }
    }

    fn skip(&mut self, text: &[u8], splice: Range<usize>) {
        self.read.copy(text, self.last..splice.start);
        self.last = splice.end;
    }

    fn finish(mut self, text: &[u8]) -> Unescaped {
        let end = text.len().min(self.last + NEAR);
        self.read.copy(text, self.last..end);
        self.read.end(end);
        self.read
    }
}

/// The end of the splice that begins with the quote at an offset.
fn splice_end(text: &[u8], at: usize) -> Option<usize> {
    let before = text.get(at.checked_sub(1)?)?;
    let rest = text.get(at + 1..)?;
    let first = spaces(rest);
    let between = match rest.get(first)? {
        b'+' | b'.' => first + 1 + spaces(rest.get(first + 1..)?),
        _ => 0,
    };
    let [quote, next, ..] = rest.get(between..)? else { return None };
    let is_quote = matches!(quote, b'"' | b'\'');
    (is_quote && goes_on(*before) && goes_on(*next)).then_some(at + between + 2)
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
        let mut found = Vec::new();
        each(text.as_bytes(), |read| {
            assert_eq!(read.from.len(), read.text.len() + 1);
            found.push(String::from_utf8(read.text).unwrap());
        });
        found
    }

    #[test]
    fn words_in_pieces_are_put_together() {
        assert_eq!(texts(r#"x = "sk-""live""#), [r#"x = "sk-live""#]);
        assert_eq!(texts("'ghp_'\"abc\"'def'"), ["'ghp_abcdef'"]);
        assert_eq!(texts(r#""ghp_" + "abc" . "def""#), [r#""ghp_abcdef""#]);
        let far = format!("'a''b'{}'c''d'", " ".repeat(600));
        assert_eq!(texts(&far).len(), 2);
    }

    #[test]
    fn other_quotes_stay() {
        for text in ["", "don't", r#"{"a":"","b":"c"}"#, r#"say "a" "b""#, r#"f("") + "b""#] {
            assert!(texts(text).is_empty(), "{text}");
        }
    }
}
