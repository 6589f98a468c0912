//! Exceptions: known false alarms that may pass, named one by one.

use regex::bytes::Regex;
use serde::Deserialize;

use crate::{
    catalogue::pattern::compile, findings::fingerprint::Fingerprint, nearest::unknown_detector,
    settings::floor::Floor,
};

/// One exception. All that it says has to hold; it says at least a tool, a path, a pattern or
/// fingerprints.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Allow {
    /// Reason that this is no leak; for those who read the configuration later.
    pub reason: String,
    /// Only findings of these detectors; empty means any.
    pub detectors: Vec<String>,
    /// Only in calls of these tools: an id in which `*` stands for anything.
    pub tool: Option<String>,
    /// Only at these places: a JSON Pointer in which `*` stands for one step and a last `**` for
    /// all below.
    pub path: Option<String>,
    /// Only values that this regular expression matches from end to end.
    pub regex: Option<String>,
    /// Only values with one of these fingerprints.
    pub fingerprints: Vec<String>,
}

/// The exceptions, compiled.
#[derive(Default)]
pub(crate) struct Allowlist {
    entries: Vec<Exception>,
    floor: Floor,
}

struct Exception {
    detectors: Vec<String>,
    tool: Option<String>,
    path: Option<String>,
    regex: Option<Regex>,
    fingerprints: Vec<Fingerprint>,
}

/// A match, as exceptions look at it. What is costly to know is asked for when it is needed.
pub(crate) struct Occasion<'a> {
    pub(crate) detector: &'a str,
    pub(crate) tool: Option<&'a str>,
    pub(crate) value: &'a [u8],
    pub(crate) pointer: &'a dyn Fn() -> String,
    pub(crate) fingerprint: &'a dyn Fn() -> Fingerprint,
}

impl Allowlist {
    /// The exceptions, or everything that is wrong with them. `known` are the detectors' names.
    pub(crate) fn new(
        allows: &[Allow],
        known: &[&str],
        floor: Floor,
    ) -> Result<Allowlist, Vec<String>> {
        let mut problems = Vec::new();
        let mut entries = Vec::new();
        for (number, allow) in (1..).zip(allows) {
            match allow.entry(known) {
                Ok(entry) => entries.push(entry),
                Err(problem) => problems.push(format!("`allow` entry {number}: {problem}")),
            }
        }
        if problems.is_empty() { Ok(Allowlist { entries, floor }) } else { Err(problems) }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns true if some exception fits.
    pub(crate) fn permits(&self, occasion: &Occasion<'_>) -> bool {
        // Of what stands on the floor single values are allowed, no places and no patterns.
        let is_on_floor = self.floor.holds(occasion.detector);
        let mut entries =
            self.entries.iter().filter(|it| !is_on_floor || !it.fingerprints.is_empty());
        entries.any(|entry| entry.fits(occasion))
    }
}

impl Allow {
    fn entry(&self, known: &[&str]) -> Result<Exception, String> {
        if let Some(unknown) = self.detectors.iter().find(|name| !known.contains(&name.as_str())) {
            return Err(unknown_detector(unknown, known));
        }
        let says_where = self.tool.is_some() || self.path.is_some();
        if !says_where && self.regex.is_none() && self.fingerprints.is_empty() {
            return Err(
                "say at least one of `tool`, `path`, `regex` and `fingerprints`; to switch \
                        a detector off everywhere, set `enabled = false` for it"
                    .to_owned(),
            );
        }
        if self.path.as_ref().is_some_and(|path| !path.is_empty() && !path.starts_with('/')) {
            return Err("a `path` is a JSON Pointer and begins with `/`".to_owned());
        }
        let whole = |source: &String| compile(&format!("^(?:{source})$"));
        let regex = self.regex.as_ref().map(whole).transpose();
        let fingerprints = self.fingerprints.iter().map(|text| {
            let wrong = || format!("`{text}` is no fingerprint: 32 hexadecimal digits");
            text.parse::<Fingerprint>().map_err(|()| wrong())
        });
        Ok(Exception {
            detectors: self.detectors.clone(),
            tool: self.tool.clone(),
            path: self.path.clone(),
            regex: regex.map_err(|problem| format!("`regex`: {problem}"))?,
            fingerprints: fingerprints.collect::<Result<_, _>>()?,
        })
    }
}

impl Exception {
    fn fits(&self, occasion: &Occasion<'_>) -> bool {
        (self.detectors.is_empty() || self.detectors.iter().any(|own| own == occasion.detector))
            && self.tool.as_ref().is_none_or(|tool| {
                occasion.tool.is_some_and(|called| globbed(tool.as_bytes(), called.as_bytes()))
            })
            && self.regex.as_ref().is_none_or(|regex| regex.is_match(occasion.value))
            && self.path.as_ref().is_none_or(|path| leads_to(path, &(occasion.pointer)()))
            && (self.fingerprints.is_empty()
                || self.fingerprints.contains(&(occasion.fingerprint)()))
    }
}

/// Returns true if a text fits a pattern in which `*` stands for anything.
fn globbed(pattern: &[u8], text: &[u8]) -> bool {
    let mut parts = pattern.split(|byte| *byte == b'*');
    let Some(mut rest) = parts.next().and_then(|first| text.strip_prefix(first)) else {
        return false;
    };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        match memchr::memmem::find(rest, part) {
            Some(at) => rest = rest.get(at + part.len()..).unwrap_or_default(),
            None => return false,
        }
    }
    true
}

fn leads_to(path: &str, pointer: &str) -> bool {
    let mut steps = pointer.split('/');
    for wanted in path.split('/') {
        match (wanted, steps.next()) {
            ("**", Some(_)) => return true,
            ("*", Some(_)) => {}
            (wanted, Some(step)) if wanted == step => {}
            (_, _) => return false,
        }
    }
    steps.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stand_for_anything() {
        for (pattern, text) in
            [("a:b", "a:b"), ("*", "x:y"), ("gh:*", "gh:list"), ("*:get_*", "a:get_b")]
        {
            assert!(globbed(pattern.as_bytes(), text.as_bytes()), "{pattern} {text}");
        }
        for (pattern, text) in [("a:b", "a:bc"), ("gh:*", "x:gh:"), ("a*b*c", "acb"), ("", "a")] {
            assert!(!globbed(pattern.as_bytes(), text.as_bytes()), "{pattern} {text}");
        }
    }

    #[test]
    fn a_path_leads_to_its_pointers_only() {
        for (path, pointer) in
            [("/a/b", "/a/b"), ("/a/*/c", "/a/0/c"), ("/a/**", "/a/b/c"), ("", "")]
        {
            assert!(leads_to(path, pointer), "{path} {pointer}");
        }
        for (path, pointer) in [("/a", "/a/b"), ("/a/*", "/a"), ("/a/**", "/b/c"), ("/a/b", "/a")] {
            assert!(!leads_to(path, pointer), "{path} {pointer}");
        }
    }
}
