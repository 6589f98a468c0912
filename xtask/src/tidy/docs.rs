//! Every source file says in its first line what it is for, and public items of the inner crates have a
//! doc comment.
//!
//! The lint `missing_docs` demands one of fields and variants too, where it often only repeats their name.
//! Files are read line by line, in the layout of rustfmt.

use super::{
    Violation,
    code::before_tests,
    repository::{File, Repository},
};

const INNER: [&str; 8] = [
    "crates/json/src/", "crates/dlp/src/", "crates/core/src/", "crates/lanes/src/",
    "crates/store/src/", "crates/upstream/src/", "crates/app/src/", "crates/faces/src/",
];
/// Words with which a public item begins, after `pub`.
const ITEMS: [&str; 9] =
    ["fn", "struct", "enum", "trait", "type", "union", "const", "static", "async"];

/// Finds files without a first `//!` line that says something, and public items without a doc comment.
pub(crate) fn check(repository: &Repository) -> Vec<Violation> {
    repository.rust().flat_map(check_file).collect()
}

fn check_file(file: &File) -> Vec<Violation> {
    let mut found = Vec::new();
    let first = file.text.lines().next().and_then(|line| line.strip_prefix("//!"));
    if !first.is_some_and(|said| said.contains(char::is_alphabetic)) {
        let what = "does not begin with what it is for";
        found.push(Violation::new(&file.path, 1, what, "make `//! …` its first line"));
    }
    if !file.is_test() && INNER.iter().any(|folder| file.path.starts_with(folder)) {
        found.extend(undocumented(before_tests(&file.text)).into_iter().map(|line| {
            let what = "a public item has no doc comment";
            Violation::new(&file.path, line, what, "say in `/// …` what it does")
        }));
    }
    found
}

/// Lines of public items without a doc comment; what only tests compile, traits' items and bodies of
/// macros may do without.
fn undocumented(text: &str) -> Vec<usize> {
    let mut found = Vec::new();
    let mut is_documented = false;
    let mut is_attribute = false;
    let mut is_macro = false;
    for (at, raw) in text.lines().enumerate() {
        let line = raw.trim_start();
        if is_macro {
            is_macro = raw != "}";
        } else if is_attribute || line.starts_with("#[") {
            is_documented |= line.starts_with("#[doc") || line.starts_with("#[cfg(test)");
            is_attribute = !line.ends_with(']');
        } else if line.starts_with("//") {
            is_documented |= line.starts_with("///");
        } else {
            let word = line.strip_prefix("pub ").and_then(|item| item.split(' ').next());
            if !is_documented && word.is_some_and(|word| ITEMS.contains(&word)) {
                found.push(at + 1);
            }
            is_documented = false;
            is_macro = line.starts_with("macro_rules!");
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_says_first_what_it_is_for() {
        let count = |text| check(&Repository::of(&[("xtask/src/a.rs", text)])).len();

        assert_eq!(count("//! Tokens: made, hashed, compared.\npub fn a() {}\n"), 0);
        for text in ["//! .\n", "use a;\n//! Late.\n", ""] {
            assert_eq!(count(text), 1, "{text}");
        }
    }

    #[test]
    fn public_items_have_a_doc_comment_and_fields_may_do_without() {
        let attribute = "#[expect(\n    a::b,\n    reason = \"c\"\n)]\n#[derive(C)]\n";
        let good =
            "/// A.\npub struct A {\n    pub a: u8,\n}\npub use b::C;\npub(crate) fn d() {}\n";

        assert!(undocumented(&format!("{good}/// E.\n{attribute}pub enum E {{}}\n")).is_empty());
        assert_eq!(undocumented(&format!("{attribute}pub enum E {{}}\n    pub fn f();\n")), [6, 7]);
        assert_eq!(undocumented("macro_rules! a {\n    pub fn b() {}\n}\npub fn c() {}\n"), [4]);
        assert!(undocumented("#[cfg(test)]\npub fn a() {}\n").is_empty());
    }
}
