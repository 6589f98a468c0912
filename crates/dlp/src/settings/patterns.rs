//! Regular expressions from the configuration and from the catalogue.

use regex::bytes::{Regex, RegexBuilder};

/// Largest compiled form of one pattern, in bytes.
const MAX_COMPILED: usize = 2 << 20;

/// Patterns read bytes, so that they match in text that is cut anywhere.
pub(crate) fn compile(source: &str) -> Result<Regex, regex::Error> {
    RegexBuilder::new(source).unicode(false).size_limit(MAX_COMPILED).build()
}

/// The library's message on one line, without its drawing.
pub(crate) fn plain(error: &regex::Error) -> String {
    let text = error.to_string();
    let said = text.lines().rev().find_map(|line| line.strip_prefix("error: "));
    said.unwrap_or(&text).replace('\n', " ")
}
