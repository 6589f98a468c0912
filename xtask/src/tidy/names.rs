//! Types and modules are not named by words that say nothing of what they are.

use super::{
    Violation,
    code::{Keep, blanked},
    repository::Repository,
};

const AVOIDED: [&str; 10] =
    ["Turn", "Way", "Went", "Who", "Party", "Standing", "Held", "Kept", "Owed", "Said"];
const REMEDY: &str = "name it by what it is";

/// Finds types and files that have one of these names.
pub(crate) fn check(repository: &Repository) -> Vec<Violation> {
    let mut found = Vec::new();
    for file in repository.rust() {
        let stem = file.path.rsplit('/').next().and_then(|name| name.strip_suffix(".rs"));
        if AVOIDED.iter().any(|avoided| stem.is_some_and(|stem| avoided.eq_ignore_ascii_case(stem)))
        {
            found.push(Violation::new(&file.path, 1, "is named by a generic word", REMEDY));
        }
        for (at, line) in blanked(&file.text, Keep::CodeOnly).lines().enumerate() {
            if let Some(name) = defined_type(line).filter(|name| AVOIDED.contains(name)) {
                let what = format!("`{name}` is a generic name");
                found.push(Violation::new(&file.path, at + 1, what, REMEDY));
            }
        }
    }
    found
}

/// Name of the type or trait that a line of code defines.
fn defined_type(line: &str) -> Option<&str> {
    let mut words =
        line.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|it| !it.is_empty());
    words.find(|word| matches!(*word, "struct" | "enum" | "type" | "trait"))?;
    words.next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generic_names_of_types_and_files_are_found() {
        let code = "// struct Held\npub(crate) struct Turn<'a> {\n    turn: &'a str,\n}\nstruct TurnOrder;\n";
        let files = [("crates/a/src/order.rs", code), ("crates/a/src/kept.rs", "struct Copy;\n")];

        let found = check(&Repository::of(&files));

        let places: Vec<_> = found.iter().map(|it| (it.path.as_str(), it.line)).collect();
        assert_eq!(places, [("crates/a/src/order.rs", 2), ("crates/a/src/kept.rs", 1)]);
    }
}
