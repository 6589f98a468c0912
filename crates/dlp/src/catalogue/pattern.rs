//! Regular expressions of detectors and exceptions.

use std::{ops::Range, sync::OnceLock};

use regex::bytes::{Regex, RegexBuilder};

/// Largest compiled form of one pattern, in bytes.
const MAX_COMPILED: usize = 2 << 20;

/// A regular expression, or the library's message on one line, without its drawing. Patterns read bytes, so
/// that they match in text that is cut anywhere.
pub(crate) fn compile(source: &str) -> Result<Regex, String> {
    let built = RegexBuilder::new(source).unicode(false).size_limit(MAX_COMPILED).build();
    built.map_err(|error| {
        let text = error.to_string();
        let said = text.lines().rev().find_map(|line| line.strip_prefix("error: "));
        said.unwrap_or(&text).replace('\n', " ")
    })
}

/// A detector's regular expression, compiled when it is first needed: most of those that are built in
/// never are, and together they take a tenth of a second and 20 MB.
#[derive(Debug)]
pub(crate) struct Pattern {
    pub(crate) source: String,
    /// The group that is what is found, unless it is the first one, or the whole match where
    /// there is none.
    group: Option<usize>,
    made: OnceLock<Result<Made, String>>,
}

/// Compiled form of a regular expression.
#[derive(Debug)]
struct Made {
    regex: Regex,
    /// The group that is what is found; 0 is the whole match.
    group: usize,
}

/// Match of a pattern, and the part of it that is reported.
struct PatternMatch {
    whole: Range<usize>,
    wanted: Range<usize>,
}

impl Pattern {
    pub(super) const fn new(source: String, group: Option<usize>) -> Self {
        Self { source, group, made: OnceLock::new() }
    }

    /// The compiled form. A built-in pattern always has one; a test compiles them all.
    fn made(&self) -> Result<&Made, &String> {
        let make = || {
            let regex = compile(&self.source)?;
            let group = self.group.unwrap_or(1).min(regex.captures_len() - 1);
            Ok(Made { regex, group })
        };
        self.made.get_or_init(make).as_ref()
    }

    /// The fault of the pattern, in words.
    pub(super) fn problem(&self) -> Option<&str> {
        match self.made() {
            Err(problem) => Some(problem),
            Ok(made) if made.regex.is_match(b"") => {
                Some("it matches nothing at all, and so everywhere; make it longer")
            }
            Ok(_) => None,
        }
    }

    /// Returns true if it has groups, of which one is what is found.
    pub(super) fn has_groups(&self) -> bool {
        self.made().is_ok_and(|made| made.regex.captures_len() > 1)
    }

    /// Calls `take` with everything that is found in a part of the haystack.
    pub(crate) fn find_in(
        &self,
        haystack: &[u8],
        part: Range<usize>,
        mut take: impl FnMut(Range<usize>),
    ) {
        let Ok(made) = self.made() else { return };
        let mut at = part.start;
        while let Some(found) = made.find_at(haystack, at) {
            at = found.whole.end.max(at + 1);
            take(found.wanted);
        }
    }
}

impl Made {
    /// The first match that begins at `at` or later.
    fn find_at(&self, haystack: &[u8], at: usize) -> Option<PatternMatch> {
        let whole = self.regex.find_at(haystack, at)?.range();
        if self.group == 0 {
            return Some(PatternMatch { wanted: whole.clone(), whole });
        }
        let captures = self.regex.captures_at(haystack, whole.start)?;
        let wanted = captures.get(self.group).map_or_else(|| whole.clone(), |group| group.range());
        Some(PatternMatch { whole, wanted })
    }
}
