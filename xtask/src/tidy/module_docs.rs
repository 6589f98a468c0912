//! Every source file says in its first line what it is for, and none is called `mod.rs`.

use super::{
    Violation,
    repository::{File, Repository},
};

/// Finds files without a first `//!` line that says something, and `mod.rs` files.
pub(crate) fn check(repository: &Repository) -> Vec<Violation> {
    repository.rust().flat_map(check_file).collect()
}

fn check_file(file: &File) -> Vec<Violation> {
    let mut found = Vec::new();
    let said = file.text.lines().next().and_then(|line| line.strip_prefix("//!")).unwrap_or("");
    if !said.contains(char::is_alphabetic) {
        found.push(Violation::new(
            &file.path,
            1,
            "does not begin with what it is for",
            "make `//! …` its first line",
        ));
    }
    if let Some(folder) = file.path.strip_suffix("/mod.rs") {
        found.push(Violation::new(
            &file.path,
            1,
            "is called mod.rs",
            format!("call it {folder}.rs"),
        ));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(path: &str, text: &str) -> usize {
        check(&Repository::of(&[(path, text)])).len()
    }

    #[test]
    fn a_file_that_says_what_it_is_for_passes() {
        assert_eq!(count("crates/a/src/b.rs", "//! Tokens: made, hashed, compared.\n"), 0);
    }

    #[test]
    fn an_empty_or_missing_first_line_is_found() {
        assert_eq!(count("crates/a/src/b.rs", "//! .\n"), 1);
        assert_eq!(count("crates/a/src/b.rs", "use a;\n//! Late.\n"), 1);
        assert_eq!(count("crates/a/src/b.rs", ""), 1);
    }

    #[test]
    fn mod_rs_is_found() {
        assert_eq!(count("crates/a/src/b/mod.rs", "//! Things.\n"), 1);
    }
}
