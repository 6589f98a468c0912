//! Every error code is described in `docs/errors.md`, and nothing else is.

use std::collections::BTreeSet;

use super::{
    Violation,
    code::{Keep, before_tests, blanked},
    repository::Repository,
};

const CATALOGUE: &str = "crates/core/src/refusal.rs";
const DOCUMENT: &str = "docs/errors.md";

/// Compares the codes of `Refusal::code` with the headings of the document.
pub(crate) fn check(repository: &Repository) -> Vec<Violation> {
    let Some(catalogue) = repository.find(CATALOGUE) else { return Vec::new() };
    let document = repository.find(DOCUMENT).map(|file| file.text.as_str()).unwrap_or_default();
    let codes = codes(&catalogue.text);
    let described = described(document);
    let mut found = Vec::new();
    for (line, code) in &codes {
        if !described.iter().any(|(_, known)| known == code) {
            let what = format!("error code `{code}` is not described");
            let remedy = format!("add a heading \"### `{code}`\" to {DOCUMENT}");
            found.push(Violation::new(CATALOGUE, *line, what, remedy));
        }
    }
    for (line, code) in &described {
        if !codes.iter().any(|(_, known)| known == code) {
            let what = format!("error code `{code}` is described but never answered");
            found.push(Violation::new(DOCUMENT, *line, what, "remove it, or answer it"));
        }
    }
    found
}

/// Line and text of every string in the body of `fn code`.
fn codes(source: &str) -> BTreeSet<(usize, String)> {
    let code = blanked(before_tests(source), Keep::Literals);
    let mut inside = false;
    let mut found = BTreeSet::new();
    for (at, line) in code.lines().enumerate() {
        if line.contains("fn ") {
            inside = line.contains("fn code(");
        }
        if inside && let Some(literal) = line.split('"').nth(1) {
            found.insert((at + 1, literal.to_owned()));
        }
    }
    found
}

/// Line and code of every heading that is one code in backticks.
fn described(document: &str) -> Vec<(usize, String)> {
    let heading = |line: &str| -> Option<String> {
        let title = line.strip_prefix('#')?.trim_start_matches('#').trim();
        let code = title.strip_prefix('`')?.split('`').next()?;
        Some(code.to_owned())
    };
    let numbered = document.lines().enumerate();
    numbered.filter_map(|(at, line)| heading(line).map(|code| (at + 1, code))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "impl R {\n    fn code(&self) -> &str {\n        match self {\n            \
                          Self::A => \"a_code\",\n            Self::B => \"b_code\",\n        }\n    }\n    \
                          fn other() { f(\"no_code\") }\n}\n";

    #[test]
    fn a_code_without_a_heading_is_found_at_its_line() {
        let repository = Repository::of(&[(CATALOGUE, SOURCE), (DOCUMENT, "### `a_code`\n")]);

        let found = check(&repository);

        assert_eq!(found.len(), 1);
        assert_eq!((found[0].path.as_str(), found[0].line), (CATALOGUE, 5));
    }

    #[test]
    fn a_heading_without_a_code_is_found() {
        let document = "# Errors\n### `a_code`\n### `b_code` (403)\n### `c_code`\n";
        let repository = Repository::of(&[(CATALOGUE, SOURCE), (DOCUMENT, document)]);

        let found = check(&repository);

        assert_eq!(found.len(), 1);
        assert_eq!((found[0].path.as_str(), found[0].line), (DOCUMENT, 4));
    }
}
