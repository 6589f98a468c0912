//! Depth of a policy text, found before it is parsed: parsing, validating and evaluating recurse,
//! and a text that is all brackets or operators would exhaust the stack. The same walk tells where
//! each policy of a file begins and ends.

use std::ops::Range;

/// Brackets within brackets.
const MAX_BRACKETS: usize = 64;
/// Operators in one policy; a chain of them is a tree as deep as it is long.
const MAX_OPERATORS: usize = 500;

/// The statements of a text: where each begins, without the space and the comments before it, and
/// where it ends, with its `;`. Says where the text first nests deeper than is parsed.
pub(in crate::policy) fn statements(text: &str) -> Result<Vec<Range<usize>>, usize> {
    let mut scan = Scan::default();
    let mut found = Vec::new();
    let mut start = None;
    let mut previous = ' ';
    for (offset, letter) in text.char_indices() {
        let code = matches!(scan.within, Within::Code);
        scan.step(previous, letter);
        if scan.brackets > MAX_BRACKETS || scan.operators > MAX_OPERATORS {
            return Err(offset);
        }
        if code && matches!(scan.within, Within::Comment) && start == Some(offset - 1) {
            // What looked like a beginning was the first half of `//`.
            start = None;
        } else if code && start.is_none() && !letter.is_whitespace() {
            start = Some(offset);
        }
        if code && letter == ';' {
            found.extend(start.take().map(|start| start..offset + 1));
        }
        previous = letter;
    }
    found.extend(start.map(|start| start..text.len()));
    Ok(found)
}

#[derive(Default)]
enum Within {
    #[default]
    Code,
    Text,
    /// After a backslash in a text.
    Escape,
    Comment,
}

#[derive(Default)]
struct Scan {
    within: Within,
    brackets: usize,
    operators: usize,
}

impl Scan {
    fn step(&mut self, previous: char, letter: char) {
        self.within = match (&self.within, letter) {
            (Within::Code, '"') | (Within::Escape, _) => Within::Text,
            (Within::Code, '/') if previous == '/' => Within::Comment,
            (Within::Text, '\\') => Within::Escape,
            (Within::Text, '"') | (Within::Comment, '\n') => Within::Code,
            (Within::Code, _) => {
                self.code(previous, letter);
                Within::Code
            }
            (Within::Text, _) => Within::Text,
            (Within::Comment, _) => Within::Comment,
        };
    }

    fn code(&mut self, previous: char, letter: char) {
        match letter {
            '(' | '[' | '{' => self.brackets += 1,
            ')' | ']' | '}' => self.brackets = self.brackets.saturating_sub(1),
            ';' => *self = Self::default(),
            '!' | '+' | '-' | '*' => self.operators += 1,
            // `&&`, `||`, `if`.
            '&' | '|' if previous == letter => self.operators += 1,
            'f' if previous == 'i' => self.operators += 1,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_falls_into_its_statements_without_what_stands_between_them() {
        let text = "// one; two\npermit (a); // x\n\n  @id(\";\") forbid /* */ (b);\n// end\n";

        let found: Vec<&str> = statements(text).unwrap().into_iter().map(|at| &text[at]).collect();

        assert_eq!(found, ["permit (a);", "@id(\";\") forbid /* */ (b);"]);
    }

    #[test]
    fn what_has_no_end_is_a_statement_and_a_comment_is_none() {
        let of = |text: &str| statements(text).unwrap().len();

        assert_eq!(of(""), 0);
        assert_eq!(of(" // only this"), 0);
        assert_eq!(of("permit (principal, action, resource)"), 1);
        assert_eq!(of("permit (\"unfinished; "), 1);
        assert_eq!(of("a; / b;"), 2);
        assert_eq!(of(";"), 1);
    }
}
