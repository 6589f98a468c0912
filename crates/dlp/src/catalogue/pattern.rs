//! Regular expressions of detectors and exceptions.

use std::{ops::Range, sync::OnceLock};

use regex::bytes::{Regex, RegexBuilder};

use crate::catalogue::bounded::BoundedRegex;

/// Largest compiled form of one pattern, in bytes.
const MAX_COMPILED: usize = 2 << 20;

/// The same of a regular expression in an allowlist.
const MAX_SMALL: usize = 256 << 10;

/// A regular expression, or the library's message on one line, without its drawing. Patterns read bytes, so
/// that they match in text that is cut anywhere.
pub(crate) fn compile(source: &str) -> Result<Regex, String> {
    compile_within(source, MAX_COMPILED)
}

/// The same of one that many may stand beside, with the bytes that it may take.
pub(crate) fn compile_small(source: &str) -> Result<(Regex, usize), String> {
    let known = |limit: usize| Some((compile_within(source, limit).ok()?, limit));
    match [16 << 10, 64 << 10].into_iter().find_map(known) {
        Some(compiled) => Ok(compiled),
        None => compile_within(source, MAX_SMALL).map(|regex| (regex, MAX_SMALL)),
    }
}

fn compile_within(source: &str, limit: usize) -> Result<Regex, String> {
    let built = RegexBuilder::new(source).unicode(false).size_limit(limit).build();
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
    finds: Finds,
    made: OnceLock<Result<Made, String>>,
}

/// The part of a match that is what is found.
#[derive(Debug, Clone, Copy)]
enum Finds {
    /// Of a built-in pattern: its first group, if it has one.
    First,
    /// Of a configured one: its first group that holds something.
    FirstFull,
    /// Of a configured one: this group.
    Group(usize),
}

/// Compiled form of a regular expression.
#[derive(Debug)]
enum Made {
    BuiltIn(Regex),
    Configured(Box<BoundedRegex>),
}

impl Pattern {
    pub(super) const fn new(source: String) -> Self {
        Self { source, finds: Finds::First, made: OnceLock::new() }
    }

    /// One of the configuration. It finds what a group holds, which is the first that holds something where
    /// none is named.
    pub(super) const fn configured(source: String, group: Option<usize>) -> Self {
        let finds = match group {
            Some(group) => Finds::Group(group),
            None => Finds::FirstFull,
        };
        Self { source, finds, made: OnceLock::new() }
    }

    /// The compiled form. A built-in pattern always has one; a test compiles them all.
    fn made(&self) -> Result<&Made, &String> {
        let make = || match self.finds {
            Finds::First => Ok(Made::BuiltIn(compile(&self.source)?)),
            Finds::FirstFull | Finds::Group(_) => {
                let made = BoundedRegex::new(&self.source);
                // The other library says it in fewer words.
                let told = |error| compile(&self.source).err().unwrap_or(error);
                Ok(Made::Configured(Box::new(made.map_err(told)?)))
            }
        };
        self.made.get_or_init(make).as_ref()
    }

    /// The fault of the pattern, in words.
    pub(super) fn problem(&self) -> Option<String> {
        let made = match self.made() {
            Ok(made) => made,
            Err(problem) => return Some(problem.clone()),
        };
        let groups = made.groups();
        match self.finds {
            Finds::Group(group) if group > groups => {
                Some(format!("it has {groups} groups, and group {group} is to be found"))
            }
            Finds::First | Finds::FirstFull | Finds::Group(_) => made
                .matches_nothing()
                .then(|| "it matches nothing at all, and so everywhere; make it longer".to_owned()),
        }
    }

    /// Returns true if it has groups, of which one is what is found.
    pub(super) fn has_groups(&self) -> bool {
        self.made().is_ok_and(|made| made.groups() > 0)
    }

    /// Bytes that the compiled form of a configured pattern takes.
    pub(super) fn compiled_bytes(&self) -> usize {
        match self.made() {
            Ok(Made::Configured(regex)) => regex.bytes(),
            Ok(Made::BuiltIn(_)) | Err(_) => 0,
        }
    }

    /// Calls `take` with everything that is found in a part of the haystack. `spend` is told the steps of the
    /// search of a configured pattern, and ends it.
    pub(crate) fn find_in(
        &self,
        haystack: &[u8],
        part: Range<usize>,
        spend: impl Fn(usize) -> bool,
        mut take: impl FnMut(Range<usize>),
    ) {
        match self.made() {
            Ok(Made::BuiltIn(regex)) => find_all(regex, haystack, part, take),
            Ok(Made::Configured(regex)) => regex.find_in(haystack, part, spend, |whole, groups| {
                let group = match self.finds {
                    Finds::Group(group) => {
                        group.checked_sub(1).and_then(|place| groups.get(place).cloned()?)
                    }
                    Finds::First | Finds::FirstFull => {
                        groups.iter().flatten().find(|group| !group.is_empty()).cloned()
                    }
                };
                take(group.filter(|group| !group.is_empty()).unwrap_or(whole));
            }),
            Err(_) => {}
        }
    }
}

impl Made {
    fn groups(&self) -> usize {
        match self {
            Made::BuiltIn(regex) => regex.captures_len() - 1,
            Made::Configured(regex) => regex.groups(),
        }
    }

    fn matches_nothing(&self) -> bool {
        match self {
            Made::BuiltIn(regex) => regex.is_match(b""),
            Made::Configured(regex) => regex.is_match(b""),
        }
    }
}

/// Calls `take` with the first group, or with all, of each match in a part of the haystack.
fn find_all(
    regex: &Regex,
    haystack: &[u8],
    part: Range<usize>,
    mut take: impl FnMut(Range<usize>),
) {
    let mut at = part.start;
    while let Some(whole) = regex.find_at(haystack, at).map(|found| found.range()) {
        at = whole.end.max(at + 1);
        if regex.captures_len() == 1 {
            take(whole);
        } else if let Some(captures) = regex.captures_at(haystack, whole.start) {
            take(captures.get(1).map_or(whole, |group| group.range()));
        }
    }
}
