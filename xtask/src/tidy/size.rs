//! Sizes: a file has at most 400 lines of code, and a crate no more lines than its budget.
//!
//! A line counts if it holds more than blanks and comments. Lines of tests are those of files `tests.rs`, of
//! files below a folder `tests`, and those from `#[cfg(test)] mod` on.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{
    Violation,
    code::{Keep, before_tests, blanked},
    repository::{File, Repository},
};

const MAX_CODE_LINES: usize = 400;
const BUDGETS: &str = "xtask/budgets.toml";
/// Hundredths of its budget that a crate has at least; with fewer lines the budget goes down.
const LEAST: usize = 98;

/// Lines of a crate or a file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
struct Size {
    code: usize,
    tests: usize,
}

/// Finds source files with too much code, and crates that their budget does not fit.
pub(crate) fn check(repository: &Repository) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut crates: BTreeMap<&str, Size> = BTreeMap::new();
    for file in repository.rust() {
        let lines = Size::of(file);
        let own = if file.is_test() { lines.tests } else { lines.code };
        if own > MAX_CODE_LINES {
            let what = format!("has {own} lines of code, {MAX_CODE_LINES} are allowed");
            found.push(Violation::new(&file.path, 1, what, "split it by what it talks about"));
        }
        let path = file.path.strip_prefix("crates/").unwrap_or(&file.path);
        let size = crates.entry(path.split('/').next().unwrap_or_default()).or_default();
        *size = Size { code: size.code + lines.code, tests: size.tests + lines.tests };
    }
    let budgets = repository.find(BUDGETS).map(|file| file.text.as_str()).unwrap_or_default();
    let misfits = misfits(&crates, budgets).into_iter();
    found.extend(misfits.map(|(what, remedy)| Violation::new(BUDGETS, 1, what, remedy)));
    found
}

/// The crates that are larger than their budget, or so much smaller that it has to go down.
fn misfits(crates: &BTreeMap<&str, Size>, budgets: &str) -> Vec<(String, String)> {
    let Ok(budgets) = toml::from_str::<BTreeMap<String, Size>>(budgets) else {
        return vec![("is no table of crates".to_owned(), "mend it".to_owned())];
    };
    let mut found = Vec::new();
    for (name, size) in crates {
        let budget = budgets.get(*name).copied().unwrap_or_default();
        let Size { code, tests } = *size;
        let is_less = |lines: usize, most: usize| lines * 100 < most * LEAST;
        let what = format!("`{name}` has {code} lines of code and {tests} of tests");
        if code > budget.code || tests > budget.tests {
            let most = format!("{} and {} are allowed", budget.code, budget.tests);
            found.push((format!("{what}, {most}"), "take out as many elsewhere in it".to_owned()));
        } else if is_less(code, budget.code) || is_less(tests, budget.tests) {
            let row = format!("write `{name} = {{ code = {code}, tests = {tests} }}`");
            found.push((what, row));
        }
    }
    found
}

impl Size {
    fn of(file: &File) -> Self {
        let code = if file.is_test() { "" } else { before_tests(&file.text) };
        let all = lines(&file.text);
        let code = lines(code);
        Self { code, tests: all - code }
    }
}

fn lines(source: &str) -> usize {
    let code = blanked(source, Keep::Literals);
    code.lines().filter(|line| !line.trim().is_empty()).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_blank_lines_do_not_count_and_tests_count_apart() {
        let source =
            "//! A.\n\nfn f() {}\n/* x\ny */\n#[cfg(test)]\nmod tests {\n    fn g() {}\n}\n";
        let of = |path: &str| Size::of(&File { path: path.to_owned(), text: source.to_owned() });

        assert_eq!(of("crates/a/src/b.rs"), Size { code: 1, tests: 4 });
        for path in ["crates/a/src/b/tests.rs", "crates/a/tests/b.rs"] {
            assert_eq!(of(path), Size { code: 0, tests: 5 });
        }
    }

    #[test]
    fn a_file_and_a_crate_have_no_line_too_many_and_budgets_only_fall() {
        let count = |lines: usize, budget: &str| {
            let source = "a();\n".repeat(lines);
            check(&Repository::of(&[("crates/a/src/b.rs", &source), (BUDGETS, budget)])).len()
        };

        assert_eq!(count(MAX_CODE_LINES, "a = { code = 400, tests = 0 }"), 0);
        assert_eq!(count(MAX_CODE_LINES + 1, "a = { code = 401, tests = 0 }"), 1);
        assert_eq!(count(100, "a = { code = 99, tests = 0 }"), 1);
        assert_eq!(count(98, "a = { code = 100, tests = 0 }"), 0);
        for budget in ["a = { code = 100, tests = 0 }", "a = { code = 97, tests = 1 }", "", "a"] {
            assert_eq!(count(97, budget), 1, "{budget}");
        }
    }
}
