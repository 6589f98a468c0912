//! Licence expressions: `(MIT OR Apache-2.0) AND Unicode-3.0`.
//!
//! The grammar of SPDX 2.3, annex D, as far as crates use it: names, `WITH` and its exception,
//! `AND` before `OR`, parentheses; and `/`, the old way to write `OR`.

use std::{fmt, iter::Peekable, vec::IntoIter};

/// Why an expression cannot be read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SyntaxError {
    found: Option<String>,
}

impl fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.found {
            Some(found) => write!(f, "`{found}` does not belong there"),
            None => f.write_str("the expression ends too early"),
        }
    }
}

/// Whether the licences that `allowed` accepts are enough for `expression`. A licence with an
/// exception is asked for as a whole: `Apache-2.0 WITH LLVM-exception`.
pub(crate) fn satisfied(
    expression: &str,
    allowed: impl Fn(&str) -> bool,
) -> Result<bool, SyntaxError> {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let words: Vec<String> = spaced.split_whitespace().map(str::to_owned).collect();
    let mut reader = Reader { words: words.into_iter().peekable(), allowed };
    let answer = reader.any()?;
    match reader.words.next() {
        None => Ok(answer),
        found => Err(SyntaxError { found }),
    }
}

struct Reader<F> {
    words: Peekable<IntoIter<String>>,
    allowed: F,
}

impl<F: Fn(&str) -> bool> Reader<F> {
    fn any(&mut self) -> Result<bool, SyntaxError> {
        let mut answer = self.all()?;
        while self.words.next_if(|word| word == "OR").is_some() {
            answer |= self.all()?;
        }
        Ok(answer)
    }

    fn all(&mut self) -> Result<bool, SyntaxError> {
        let mut answer = self.one()?;
        while self.words.next_if(|word| word == "AND").is_some() {
            answer &= self.one()?;
        }
        Ok(answer)
    }

    fn one(&mut self) -> Result<bool, SyntaxError> {
        if self.words.next_if(|word| word == "(").is_some() {
            let answer = self.any()?;
            return match self.words.next() {
                Some(word) if word == ")" => Ok(answer),
                found => Err(SyntaxError { found }),
            };
        }
        let mut name = self.name()?;
        if self.words.next_if(|word| word == "WITH").is_some() {
            name = format!("{name} WITH {}", self.name()?);
        }
        Ok((self.allowed)(&name))
    }

    fn name(&mut self) -> Result<String, SyntaxError> {
        match self.words.next() {
            Some(word) if !["AND", "OR", "WITH", "(", ")"].contains(&word.as_str()) => Ok(word),
            found => Err(SyntaxError { found }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mit_and_apache(expression: &str) -> Result<bool, SyntaxError> {
        satisfied(expression, |name| ["MIT", "Apache-2.0"].contains(&name))
    }

    #[test]
    fn one_of_several_is_enough_and_all_of_several_are_needed() {
        assert_eq!(mit_and_apache("GPL-2.0-only OR MIT"), Ok(true));
        assert_eq!(mit_and_apache("MIT AND Apache-2.0"), Ok(true));
        assert_eq!(mit_and_apache("MIT AND ISC"), Ok(false));
        assert_eq!(mit_and_apache("MIT/ISC"), Ok(true));
    }

    #[test]
    fn and_binds_more_tightly_than_or() {
        assert_eq!(mit_and_apache("MIT OR Apache-2.0 AND ISC"), Ok(true));
        assert_eq!(mit_and_apache("(MIT OR Apache-2.0) AND ISC"), Ok(false));
        assert_eq!(mit_and_apache("ISC AND (MIT OR Apache-2.0) OR MIT"), Ok(true));
    }

    #[test]
    fn an_exception_is_part_of_the_licence() {
        assert_eq!(mit_and_apache("Apache-2.0 WITH LLVM-exception"), Ok(false));
        assert_eq!(mit_and_apache("Apache-2.0 WITH LLVM-exception OR MIT"), Ok(true));
        let llvm = |name: &str| name == "Apache-2.0 WITH LLVM-exception";
        assert_eq!(satisfied("Apache-2.0 WITH LLVM-exception", llvm), Ok(true));
    }

    #[test]
    fn what_cannot_be_read_is_an_error() {
        for expression in ["", "MIT OR", "(MIT", "MIT ISC", "AND MIT", "MIT WITH"] {
            assert!(mit_and_apache(expression).is_err(), "{expression}");
        }
    }
}
