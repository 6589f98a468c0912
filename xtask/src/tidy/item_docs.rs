//! Every public function, type, constant and macro of the inner crates has a doc comment.
//!
//! Fields and variants may do without: a comment that only repeats their name says nothing, and the
//! lint `missing_docs` would demand it. The doc of `pub mod name;` is the first line of its file.

use std::mem;

use super::{
    Violation,
    code::{Keep, blanked},
    repository::{File, Repository},
};

const SOURCES: [&str; 8] = [
    "crates/json/src/",
    "crates/dlp/src/",
    "crates/core/src/",
    "crates/app/src/",
    "crates/store/src/",
    "crates/upstream/src/",
    "crates/lanes/src/",
    "crates/faces/src/",
];

/// Words with which an item begins, after its `pub`.
const ITEMS: [&str; 11] = [
    "fn", "struct", "enum", "trait", "type", "union", "const", "static", "async", "unsafe",
    "extern",
];

/// Finds public items without a doc comment; tests and bodies of macros are passed over.
pub(crate) fn check(repository: &Repository) -> Vec<Violation> {
    let files = SOURCES.iter().flat_map(|folder| repository.under(folder));
    let is_test = |path: &str| path.contains("/tests/") || path.ends_with("/tests.rs");
    files.filter(|file| file.is_rust() && !is_test(&file.path)).flat_map(check_file).collect()
}

fn check_file(file: &File) -> Vec<Violation> {
    let code = blanked(&file.text, Keep::CodeOnly);
    let mut reader = Reader::default();
    let mut found = Vec::new();
    for (at, (raw, code)) in file.text.lines().zip(code.lines()).enumerate() {
        if reader.finds_undocumented(raw, code) {
            let what = "a public item has no doc comment";
            found.push(Violation::new(&file.path, at + 1, what, "say in `/// …` what it does"));
        }
    }
    found
}

/// Lines above an item.
#[derive(Default)]
struct Above {
    doc: bool,
    exported: bool,
    test: bool,
}

/// Position of the reader, line by line. Relies on the indentation that rustfmt makes.
#[derive(Default)]
struct Reader {
    above: Above,
    /// Brackets of an attribute that are still open.
    open: usize,
    /// Indentation of the public trait that is read.
    in_trait: Option<usize>,
    /// Indentation of the macro or test that is passed over.
    passed_over: Option<usize>,
}

impl Reader {
    /// Reads the next line; returns true if an item without a doc comment begins there.
    fn finds_undocumented(&mut self, raw: &str, code: &str) -> bool {
        let line = code.trim();
        let indent = code.len() - code.trim_start().len();
        if let Some(start) = self.passed_over {
            if indent == start && is_end(line) {
                self.passed_over = None;
            }
            return false;
        }
        if line.is_empty() {
            self.above.doc |= raw.trim_start().starts_with("///");
            return false;
        }
        if self.open > 0 || line.starts_with("#[") {
            self.read_attribute(line);
            return false;
        }
        let above = mem::take(&mut self.above);
        let is_macro = line.starts_with("macro_rules!");
        if above.test || is_macro {
            self.passed_over = (!is_end(line)).then_some(indent);
            return above.exported && !above.test && !above.doc;
        }
        self.begins_item(line, indent) && !above.doc
    }

    fn read_attribute(&mut self, line: &str) {
        self.above.doc |= line.starts_with("#[doc");
        self.above.exported |= line.starts_with("#[macro_export");
        self.above.test |= line.starts_with("#[cfg(test)");
        self.open += line.matches('[').count();
        self.open = self.open.saturating_sub(line.matches(']').count());
    }

    /// Returns true for the first line of a public item, or of one in a public trait.
    fn begins_item(&mut self, line: &str, indent: usize) -> bool {
        if self.in_trait == Some(indent) && line.starts_with('}') {
            self.in_trait = None;
        }
        let inherits = self.in_trait.is_some_and(|start| indent == start + 4);
        let Some(item) = line.strip_prefix("pub ").or(inherits.then_some(line)) else {
            return false;
        };
        if item.strip_prefix("unsafe ").unwrap_or(item).starts_with("trait ") && !is_end(line) {
            self.in_trait = Some(indent);
        }
        let word = item.split(' ').next().unwrap_or_default();
        ITEMS.contains(&word) || (word == "mod" && line.contains('{'))
    }
}

/// Returns true if an item ends with this line, in the indentation it began with.
fn is_end(line: &str) -> bool {
    line.ends_with([';', ',', '}']) || line.starts_with('}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<usize> {
        let found = check(&Repository::of(&[("crates/core/src/a.rs", text)]));
        found.iter().map(|violation| violation.line).collect()
    }

    #[test]
    fn items_without_a_doc_comment_are_found() {
        let functions = "pub fn a() {}\npub const fn b() {}\npub async fn c() {}\n// No doc.\n";
        let types = "pub struct D;\npub enum E {}\npub type F = u8;\npub unsafe trait G {}\n";
        let others = "pub const H: u8 = 1;\npub mod i {}\nimpl D {\n    pub fn j() {}\n}\n";

        let found = lines(&format!("{functions}{types}{others}"));

        assert_eq!(found, [1, 2, 3, 5, 6, 7, 8, 9, 10, 12]);
    }

    #[test]
    fn attributes_may_stand_between_the_doc_comment_and_the_item() {
        let item = "#[expect(\n    a::b,\n    reason = \"]\"\n)]\n#[derive(C)]\npub struct A;\n";

        assert!(lines(&format!("/// A.\n{item}")).is_empty());
        assert_eq!(lines(item), [6]);
        assert_eq!(lines("#[doc = \"A.\"]\npub struct A;\npub struct B;\n"), [3]);
    }

    #[test]
    fn fields_variants_and_what_is_not_public_may_do_without() {
        let types = "/// A.\npub struct A {\n    pub a: u8,\n}\n/// B.\npub enum B {\n    C,\n}\n";
        let others = "pub use b::C;\npub mod c;\npub(crate) fn d() {}\npub(super) struct E;\n";
        let methods = "fn f() {}\nimpl T for A {\n    fn g() {}\n}\n";

        assert!(lines(&format!("{types}{others}{methods}")).is_empty());
    }

    #[test]
    fn items_of_public_traits_count_and_those_of_others_do_not() {
        let items = "    fn a();\n    /// B.\n    fn b() {\n        c();\n    }\n    type D;\n}\n";
        let after = "impl E {\n    fn f() {}\n}\n";

        assert_eq!(lines(&format!("/// T.\npub trait T: U {{\n{items}{after}")), [3, 8]);
        assert!(lines(&format!("trait T {{\n{items}{after}")).is_empty());
    }

    #[test]
    fn bodies_of_macros_and_tests_are_passed_over() {
        let body = "macro_rules! a {\n    () => {\n        pub struct A;\n    };\n}\n";
        let call = "row!(pub(crate) A {\n    b: u8,\n});\n";
        let tests = "#[cfg(test)]\nimpl A {\n    pub fn b() {}\n}\n#[cfg(test)]\nmod tests;\n";

        assert_eq!(lines(&format!("{body}{call}{tests}pub fn c() {{}}\n")), [15]);
        assert_eq!(lines(&format!("#[macro_export]\n{body}")), [2]);
        assert!(lines(&format!("/// A.\n#[macro_export]\n{body}")).is_empty());
    }

    #[test]
    fn files_of_tests_and_other_crates_are_not_read() {
        for path in ["crates/core/src/a/tests.rs", "crates/app/src/tests/a.rs", "xtask/src/a.rs"] {
            assert!(check(&Repository::of(&[(path, "pub fn a() {}\n")])).is_empty());
        }
    }
}
