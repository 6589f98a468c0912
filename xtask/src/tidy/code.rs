//! Rust source with its comments, and if wanted its literals, blanked out.
//!
//! A few dozen lines of lexer instead of a parser: enough to tell code from prose, and fast. Line
//! numbers stay as they are.

/// Parts of a source text that stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keep {
    /// Code with its string and character literals.
    Literals,
    /// Code alone.
    CodeOnly,
}

/// `source` with everything else than `keep` replaced by blanks, line for line.
pub(crate) fn blanked(source: &str, keep: Keep) -> String {
    let mut out = String::with_capacity(source.len());
    let mut rest = source;
    while !rest.is_empty() {
        let (length, kind) = next(rest);
        let (token, tail) = rest.split_at_checked(length).unwrap_or((rest, ""));
        if kind == Kind::Code || (kind == Kind::Literal && keep == Keep::Literals) {
            out.push_str(token);
        } else {
            out.extend(token.chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
        }
        rest = tail;
    }
    out
}

/// The part before the inline tests (`#[cfg(test)]` and then `mod`).
pub(crate) fn before_tests(source: &str) -> &str {
    let mut from = 0;
    while let Some(found) = source.get(from..).and_then(|rest| rest.find("#[cfg(test)]")) {
        let start = from + found;
        let after = start + "#[cfg(test)]".len();
        let line_begins = source.get(..start).is_some_and(|s| s.is_empty() || s.ends_with('\n'));
        if line_begins && source.get(after..).is_some_and(|s| s.trim_start().starts_with("mod ")) {
            return source.get(..start).unwrap_or(source);
        }
        from = after;
    }
    source
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Code,
    Comment,
    Literal,
}

/// Length and kind of the token at the beginning of `rest`, which is not empty.
fn next(rest: &str) -> (usize, Kind) {
    if rest.starts_with("//") {
        return (rest.find('\n').unwrap_or(rest.len()), Kind::Comment);
    }
    if rest.starts_with("/*") {
        return (block_comment(rest), Kind::Comment);
    }
    if rest.starts_with('"') {
        return (quoted(rest, '"'), Kind::Literal);
    }
    if rest.starts_with('\'') {
        return character(rest);
    }
    let word = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
    let (word, tail) = rest.split_at_checked(word).unwrap_or((rest, ""));
    match word {
        "" => (rest.chars().next().map_or(1, char::len_utf8), Kind::Code),
        "r" | "br" | "cr" if let Some(length) = raw(tail) => (word.len() + length, Kind::Literal),
        word => (word.len(), Kind::Code),
    }
}

fn block_comment(rest: &str) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(tail) = rest.get(at..).filter(|tail| !tail.is_empty()) {
        if tail.starts_with("/*") {
            (depth, at) = (depth + 1, at + 2);
        } else if tail.starts_with("*/") {
            (depth, at) = (depth - 1, at + 2);
            if depth == 0 {
                return at;
            }
        } else {
            at += tail.chars().next().map_or(1, char::len_utf8);
        }
    }
    rest.len()
}

/// Length of a literal that begins and ends with `quote` and knows backslash escapes.
fn quoted(rest: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return at + quote.len_utf8(),
            _ => {}
        }
    }
    rest.len()
}

/// A character literal, or the tick of a lifetime or label.
fn character(rest: &str) -> (usize, Kind) {
    let mut after = rest.chars().skip(1);
    match (after.next(), after.next()) {
        (Some('\\'), _) | (Some(_), Some('\'')) => (quoted(rest, '\''), Kind::Literal),
        _ => (1, Kind::Code),
    }
}

/// Length of `#"…"#` or `"…"` after a raw prefix; `None` if no raw string begins here.
fn raw(tail: &str) -> Option<usize> {
    let hashes = tail.find(|c| c != '#')?;
    let body = tail.get(hashes..)?.strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    let length = body.find(&end).map_or(body.len(), |at| at + end.len());
    Some(hashes + 1 + length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_blanked_and_lines_kept() {
        let source =
            "let a = \"rusqlite // no\"; // rusqlite\n/* a /* b */\nc */ let b = r#\"x\"y\"#;\n";

        let code = blanked(source, Keep::CodeOnly);

        assert!(!code.contains("rusqlite") && !code.contains('x') && !code.contains('c'));
        assert_eq!(code.matches('\n').count(), 3);
        assert!(blanked(source, Keep::Literals).contains("rusqlite // no"));
    }

    #[test]
    fn a_lifetime_is_not_the_beginning_of_a_character() {
        let code = blanked("fn f<'a>(x: &'a str) -> char { '\"' } // done", Keep::CodeOnly);

        assert!(code.contains("&'a str") && code.contains('}') && !code.contains("done"));
    }

    #[test]
    fn inline_tests_are_cut_but_a_lone_test_import_is_not() {
        let source = "#[cfg(test)]\nuse a;\nfn f() {}\n#[cfg(test)]\nmod tests {}\n";

        assert_eq!(before_tests(source), "#[cfg(test)]\nuse a;\nfn f() {}\n");
    }
}
