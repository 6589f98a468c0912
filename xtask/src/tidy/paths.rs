//! The paths that a source text names, with grouped imports written out.

use super::code::{Keep, blanked};

/// A path such as `tokio::process::Command` and the line it stands on.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Named<'a> {
    pub(crate) line: usize,
    pub(crate) segments: Vec<&'a str>,
}

impl Named<'_> {
    /// Returns true if the segments of `pattern` (`a::b`) are in this path, one after the other.
    pub(crate) fn contains(&self, pattern: &str) -> bool {
        let wanted: Vec<&str> = pattern.split("::").collect();
        self.segments.windows(wanted.len()).any(|window| window == wanted)
    }
}

/// Code without comments and literals, ready to be asked for its paths.
pub(crate) fn code_of(source: &str) -> String {
    blanked(source, Keep::CodeOnly)
}

/// Every path in `code`: `use a::{b, c::d}` names `a::b` and `a::c::d`.
pub(crate) fn named(code: &str) -> Vec<Named<'_>> {
    let mut walk = Walk { groups: vec![], path: vec![], joined: false, line: 1, found: vec![] };
    for token in tokens(code) {
        walk.take(token);
    }
    walk.end_path();
    walk.found
}

#[derive(Clone, Copy)]
enum Token<'a> {
    Word(&'a str),
    Join,
    Open,
    Close,
    Line,
    Space,
    Other,
}

fn tokens(code: &str) -> impl Iterator<Item = Token<'_>> {
    let mut rest = code;
    std::iter::from_fn(move || {
        let first = rest.chars().next()?;
        let word = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        let (length, token) = match first {
            _ if word > 0 => (word, Token::Word(rest.get(..word)?)),
            ':' if rest.starts_with("::") => (2, Token::Join),
            '{' => (1, Token::Open),
            '}' => (1, Token::Close),
            '\n' => (1, Token::Line),
            c if c.is_whitespace() => (c.len_utf8(), Token::Space),
            c => (c.len_utf8(), Token::Other),
        };
        rest = rest.get(length..)?;
        Some(token)
    })
}

struct Walk<'a> {
    /// The prefix of every brace that is open; empty for one that groups no imports.
    groups: Vec<Vec<&'a str>>,
    path: Vec<&'a str>,
    joined: bool,
    line: usize,
    found: Vec<Named<'a>>,
}

impl<'a> Walk<'a> {
    fn take(&mut self, token: Token<'a>) {
        match token {
            Token::Word(word) => {
                if !self.joined {
                    self.end_path();
                    self.path = self.groups.last().cloned().unwrap_or_default();
                }
                self.path.push(word);
                self.joined = false;
            }
            Token::Join => self.joined = true,
            Token::Open => {
                let prefix = if self.joined { std::mem::take(&mut self.path) } else { vec![] };
                self.end_path();
                self.groups.push(prefix);
            }
            Token::Close => {
                self.end_path();
                self.groups.pop();
            }
            Token::Line => self.line += 1,
            Token::Space => {}
            Token::Other => self.end_path(),
        }
    }

    fn end_path(&mut self) {
        let segments = std::mem::take(&mut self.path);
        if !segments.is_empty() {
            self.found.push(Named { line: self.line, segments });
        }
        self.joined = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grouped_imports_are_written_out_with_their_lines() {
        let code = "use std::{\n    io,\n    process::{Child, Command},\n};\n";

        let found = named(code);

        let command = found.iter().find(|path| path.contains("std::process::Command")).unwrap();
        assert_eq!(command.line, 3);
        assert!(found.iter().any(|path| path.contains("std::io")));
        assert!(!found.iter().any(|path| path.contains("std::Command")));
    }

    #[test]
    fn a_path_in_an_expression_is_found_inside_blocks() {
        let found = named("fn f() { if a { rusqlite::query(b) } }");

        assert!(found.iter().any(|path| path.contains("rusqlite")));
    }
}
