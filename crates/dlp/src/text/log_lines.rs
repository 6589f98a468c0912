//! Lines of logs: numbers in them are counts, ids and times unless a word right before them says otherwise.

use crate::text::words;

/// Bytes at the beginning of a line in which a log has its time or its level.
const HEAD: usize = 64;

/// Levels as logs write them.
const LEVELS: [&[u8]; 8] =
    [b"INFO", b"WARN", b"WARNING", b"ERROR", b"DEBUG", b"TRACE", b"FATAL", b"NOTICE"];

/// Words between a name and its value that say nothing.
const FILLERS: [&[u8]; 8] = [b"is", b"was", b"no", b"nr", b"num", b"number", b"id", b"code"];

/// Words that may stand between a name and a number in groups.
const WORDS_BETWEEN: usize = 2;

/// Strictness about the name of a number of digits only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Naming {
    /// The name stands right before it.
    Word,
    /// A sign stands between: `phone=…`.
    Sign,
}

/// The part of a text from the start of a line up to an offset, if the line is one of a log.
pub(crate) fn start_of_line(text: &[u8], at: usize) -> Option<&[u8]> {
    let before = text.get(..at)?;
    let start = memchr::memrchr(b'\n', before).map_or(0, |end| end + 1);
    let head = text.get(start..text.len().min(start + HEAD))?;
    is_head(head).then(|| before.get(start..)).flatten()
}

/// Returns true if the last of the words before a number in the line of a log names it.
pub(crate) fn names<W: AsRef<str>>(
    before: &[u8],
    value: &[u8],
    named: &[W],
    naming: Naming,
) -> bool {
    let near = before.get(before.len().saturating_sub(words::BEFORE)..).unwrap_or_default();
    let Some(gap) = words::last_end(near, named).and_then(|end| near.get(end..)) else {
        return false;
    };
    if gap.iter().any(u8::is_ascii_digit) {
        return false;
    }
    let between = gap.split(|byte| !byte.is_ascii_alphabetic()).filter(|word| !word.is_empty());
    if !value.iter().all(u8::is_ascii_digit) {
        return between.count() <= WORDS_BETWEEN;
    }
    let is_filler = |word: &[u8]| FILLERS.iter().any(|filler| word.eq_ignore_ascii_case(filler));
    let has_sign = || gap.iter().any(|byte| matches!(byte, b'=' | b':'));
    between.into_iter().all(is_filler) && (naming == Naming::Word || has_sign())
}

/// Returns true if a line that begins like this is one of a log: a clock, a level or a time in digits.
fn is_head(head: &[u8]) -> bool {
    let head = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let is_digit = |at: usize| head.get(at).is_some_and(u8::is_ascii_digit);
    let is_clock = |colon: usize| {
        colon >= 2
            && head.get(colon + 3) == Some(&b':')
            && [1, 2, 4, 5].iter().all(|at| is_digit(colon + at))
            && is_digit(colon - 1)
            && is_digit(colon - 2)
    };
    let has_clock = || memchr::memchr_iter(b':', head).any(is_clock);
    let digits = head.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let has_time = matches!(digits, 10 | 13 | 16 | 19) && head.get(digits) == Some(&b' ');
    let has_level = || {
        let mut parts = head.split(|byte| !byte.is_ascii_alphabetic());
        parts.any(|part| LEVELS.contains(&part))
    };
    has_time || has_clock() || has_level()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_log(text: &str) -> bool {
        start_of_line(text.as_bytes(), text.len()).is_some()
    }

    #[test]
    fn a_line_of_a_log_has_a_time_or_a_level() {
        for line in [
            "2026-03-01T10:22:01.123Z call",
            "Mar  1 10:22:01 host sshd[1]: x",
            "192.168.0.1 - - [01/Mar/2026:10:22:01 +0000] \"GET",
            "081109 203615 148 INFO dfs.DataNode: x",
            "1780387014476 call",
            "a letter\n[10:22:01] call",
        ] {
            assert!(is_log(line), "{line}");
        }
        for line in ["call me at 10:22", "10:22:01\nmy card", "Information: x", "12345 call", ""] {
            assert!(!is_log(line), "{line}");
        }
    }

    #[test]
    fn a_word_right_before_a_number_names_it() {
        let is_named = |before: &str, value: &str, naming| {
            names(before.as_bytes(), value.as_bytes(), &["ssn", "call"], naming)
        };

        assert!(is_named("INFO ssn ", "509452281", Naming::Word));
        assert!(is_named("INFO ssn number is: ", "509452281", Naming::Word));
        assert!(is_named("INFO ssn of Ada ", "509-45-2281", Naming::Word));
        assert!(is_named("INFO call=", "4155550132", Naming::Sign));

        assert!(!is_named("INFO call ", "4155550132", Naming::Sign));
        assert!(!is_named("INFO ssn table: vacuumed ", "509452281", Naming::Word));
        assert!(!is_named("INFO ssn 4 of ", "509-45-2281", Naming::Word));
        assert!(!is_named("INFO call to order took ", "509-45-2281", Naming::Word));
        assert!(!is_named("INFO ", "509-45-2281", Naming::Word));
    }
}
