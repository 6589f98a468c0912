//! Parts of a call that are known when it is judged again from its record.

use crate::policy::language::context_paths::{Paths, TAGS};

/// Prefix of the paths of the principal's tags.
const TAG_PATHS: &str = "principal.tags";

/// Known part of a call's context. A known path without a value is absent; an unknown one may be
/// anything.
#[derive(Debug, Clone)]
pub struct KnownContext(Option<Paths>);

impl KnownContext {
    /// All of it, as when the call is at hand.
    #[must_use]
    pub const fn everything() -> Self {
        Self(None)
    }

    /// Of input, output, facts and the principal's tags only what lies at or below these paths,
    /// written as in [`PolicyRecord::reads`](crate::policy::PolicyRecord::reads). The request, the agent and
    /// the findings are known. A text that is no path makes nothing known.
    #[must_use]
    pub fn only<'a>(paths: impl IntoIterator<Item = &'a str>) -> Self {
        let mut known = Paths::default();
        for name in ["request", "agent", "dlp", "dlp_output"] {
            known.add_whole([name]);
        }
        for path in paths {
            if let Some(path) = parse(path) {
                known.add_whole(path.iter().map(String::as_str));
            }
        }
        Self(Some(known))
    }

    /// Paths of `reads` that are not known.
    pub(in crate::policy) fn missing(&self, reads: &Paths) -> Vec<String> {
        self.0.as_ref().map_or_else(Vec::new, |known| reads.beyond(known))
    }

    /// Returns true if the value of this path is known, with everything below it.
    pub(in crate::policy) fn includes(&self, names: &[String]) -> bool {
        let mut paths = Paths::default();
        paths.add_whole(names.iter().map(String::as_str));
        self.missing(&paths).is_empty()
    }
}

/// The names of a path: `context.input["na me"].x` as `["input", "na me", "x"]`.
pub(super) fn parse(path: &str) -> Option<Vec<String>> {
    let tags = path.strip_prefix(TAG_PATHS);
    let mut rest = tags.map_or_else(|| path.strip_prefix("context"), Some)?;
    let mut names: Vec<String> = tags.map(|_| TAGS.to_owned()).into_iter().collect();
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix('.') {
            let end = after.find(['.', '[']).unwrap_or(after.len());
            let (name, remaining) = after.split_at(end);
            names.push(name.to_owned());
            rest = remaining;
        } else {
            let quoted = rest.strip_prefix('[')?;
            let mut texts = serde_json::Deserializer::from_str(quoted).into_iter::<String>();
            names.push(texts.next()?.ok()?);
            rest = quoted.get(texts.byte_offset()..)?.strip_prefix(']')?;
        }
    }
    (!names.is_empty()).then_some(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_read_back_as_it_was_written() {
        for names in [&["input", "amount"][..], &["input", "na me", "x"], &["facts", "a\"]b", "é"]]
        {
            let write = |path: String, name: &&str| {
                crate::policy::language::context_paths::join(&path, name)
            };
            let path = names.iter().fold("context".to_owned(), write);

            assert_eq!(parse(&path).unwrap(), names, "{path}");
        }
        assert_eq!(parse("principal.tags.region").unwrap(), ["principal", "region"]);
        assert_eq!(parse("principal.tags").unwrap(), ["principal"]);
        assert_eq!(parse("principal.id"), None);
        assert_eq!(parse("context"), None);
        assert_eq!(parse("input.x"), None);
        assert_eq!(parse("context[x]"), None);
    }
}
