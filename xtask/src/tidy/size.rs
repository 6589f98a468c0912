//! Files stay small: at most 400 lines of code.

use super::{
    Violation,
    code::{Keep, before_tests, blanked},
    repository::Repository,
};

const MAX_CODE_LINES: usize = 400;

/// Finds source files with too much code; blank lines, comments and inline tests do not count.
pub(crate) fn check(repository: &Repository) -> Vec<Violation> {
    repository
        .rust()
        .filter_map(|file| {
            let lines = code_lines(&file.text);
            let what = format!("has {lines} lines of code, {MAX_CODE_LINES} are allowed");
            (lines > MAX_CODE_LINES)
                .then(|| Violation::new(&file.path, 1, what, "split it by what it talks about"))
        })
        .collect()
}

fn code_lines(source: &str) -> usize {
    let code = blanked(before_tests(source), Keep::Literals);
    code.lines().filter(|line| !line.trim().is_empty()).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_blank_lines_and_tests_do_not_count() {
        let source =
            "//! A.\n\nfn f() {}\n/* x\ny */\n#[cfg(test)]\nmod tests {\n    fn g() {}\n}\n";

        assert_eq!(code_lines(source), 1);
    }

    #[test]
    fn one_line_too_many_is_found() {
        let fits = "a();\n".repeat(MAX_CODE_LINES);
        let too_long = "a();\n".repeat(MAX_CODE_LINES + 1);

        assert!(check(&Repository::of(&[("a.rs", &fits)])).is_empty());
        assert_eq!(check(&Repository::of(&[("a.rs", &too_long)])).len(), 1);
    }
}
