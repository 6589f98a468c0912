//! Every test that the table of compatibility names is there.

use super::{Violation, repository::Repository};

const DOCUMENT: &str = "docs/compatibility.md";
/// Mark in place of a test where nothing of the gateway can be tested.
const NONE: &str = "–";

/// Finds rows of the document whose last cell names something else than tests of this repository.
pub(crate) fn check(repository: &Repository) -> Vec<Violation> {
    let Some(document) = repository.find(DOCUMENT) else { return Vec::new() };
    let mut found = Vec::new();
    for (at, line) in document.text.lines().enumerate() {
        for name in tests_of(line).filter(|name| !is_test(repository, name)) {
            let what = format!("names `{name}`, which is no test");
            let remedy = format!("name a test, or write {NONE}");
            found.push(Violation::new(DOCUMENT, at + 1, what, remedy));
        }
    }
    found
}

/// The names in the last cell of a row; heads of tables have none.
fn tests_of(line: &str) -> impl Iterator<Item = &str> {
    let row = line.strip_prefix("| ").and_then(|row| row.strip_suffix(" |"));
    let cell = row.and_then(|row| row.rsplit(" | ").next());
    let names = cell.filter(|cell| !matches!(*cell, "Test" | NONE)).into_iter();
    names.flat_map(|cell| cell.split(", ")).map(|name| name.trim_matches('`'))
}

fn is_test(repository: &Repository, name: &str) -> bool {
    let function = format!("fn {name}(");
    repository.rust().any(|file| file.text.contains(&function))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_that_names_a_test_which_is_not_there_is_found() {
        let document = "| Who | Test |\n|---|---|\n| a | `it_works`, `it_is_gone` |\n| b | – |\n";
        let code = ("crates/a/src/lib.rs", "#[test]\nfn it_works() {}\n");

        let found = check(&Repository::of(&[(DOCUMENT, document), code]));

        assert_eq!(found.len(), 1);
        assert_eq!(found[0].line, 3);
        assert!(found[0].what.contains("`it_is_gone`"), "{}", found[0]);
    }
}
