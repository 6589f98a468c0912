//! The imports of a source file, and the names it defines.

use std::collections::BTreeSet;

use super::paths::{code_of, named};

/// A source file as far as other modules are concerned.
#[derive(Debug)]
pub(crate) struct Source<'a> {
    pub(crate) path: &'a str,
    pub(crate) imports: Vec<Import>,
    defined: BTreeSet<String>,
}

/// A path that leads out of a file: a `use`, or a path in its code.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Import {
    pub(crate) line: usize,
    pub(crate) segments: Vec<String>,
    /// The name that a `use` gives it.
    pub(crate) name: Option<String>,
    /// A `use` of everything in a module.
    pub(crate) is_glob: bool,
}

impl Source<'_> {
    /// Returns true if the file defines an item of this name.
    pub(crate) fn defines(&self, name: &str) -> bool {
        self.defined.contains(name)
    }
}

pub(crate) fn read<'a>(path: &'a str, text: &str) -> Source<'a> {
    let code = without_visibility(&code_of(text));
    let mut imports = Vec::new();
    let mut rest = String::with_capacity(code.len());
    let mut line = 1;
    let mut from = 0;
    while let Some((start, end)) = next_use(&code, from) {
        let before = code.get(from..start).unwrap_or_default();
        let statement = code.get(start..end).unwrap_or_default();
        line += before.matches('\n').count();
        rest.push_str(before);
        rest.extend(statement.chars().filter(|c| *c == '\n'));
        let tree = statement.strip_prefix("use").unwrap_or_default().trim_end_matches(';');
        expand(&[], tree, line, &mut imports);
        line += statement.matches('\n').count();
        from = end;
    }
    rest.push_str(code.get(from..).unwrap_or_default());
    imports.extend(named(&rest).into_iter().filter(|path| path.segments.len() > 1).map(|path| {
        let segments = path.segments.iter().map(|name| (*name).to_owned()).collect();
        Import { line: path.line, segments, name: None, is_glob: false }
    }));
    Source { path, imports, defined: defined(&rest) }
}

/// `code` with `(super)`, `(crate)` and `(in …)` behind `pub` blanked out.
fn without_visibility(code: &str) -> String {
    let mut parts = code.split("pub(");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        out.push_str("pub ");
        out.push_str(part.split_once(')').map_or(part, |(_, rest)| rest));
    }
    out
}

/// Start and end of the next `use` statement at or behind `from`.
fn next_use(code: &str, from: usize) -> Option<(usize, usize)> {
    let mut at = from;
    loop {
        let start = at + code.get(at..)?.find("use ")?;
        let before = code.get(..start)?.chars().next_back();
        if before.is_none_or(|c| !c.is_alphanumeric() && c != '_') {
            let end = start + code.get(start..)?.find(';')? + 1;
            return Some((start, end));
        }
        at = start + 1;
    }
}

/// Adds the paths of a tree such as `a::{b, c as d}`.
fn expand(prefix: &[String], tree: &str, line: usize, imports: &mut Vec<Import>) {
    let tree = tree.trim();
    let group =
        tree.split_once('{').and_then(|(path, rest)| Some((path, rest.rsplit_once('}')?.0)));
    let path = group.map_or(tree, |(path, _)| path);
    let (path, alias) = path.split_once(" as ").map_or((path, None), |(p, a)| (p, Some(a.trim())));
    let names = path.split("::").map(str::trim).filter(|name| !name.is_empty());
    let mut segments: Vec<String> =
        prefix.iter().cloned().chain(names.map(str::to_owned)).collect();
    if let Some((_, group)) = group {
        for member in members(group) {
            expand(&segments, member, line, imports);
        }
        return;
    }
    let is_glob = segments.pop_if(|last| last == "*").is_some();
    if segments.len() > 1 {
        segments.pop_if(|last| last == "self");
    }
    let name = alias.or(segments.last().map(String::as_str)).map(str::to_owned);
    if !segments.is_empty() {
        let name = name.filter(|_| !is_glob);
        imports.push(Import { line, segments, name, is_glob });
    }
}

/// The members of a group, split at the commas that are not inside another group.
fn members(group: &str) -> Vec<&str> {
    let mut depth = 0_usize;
    let parts = group.split(|c| {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    });
    parts.filter(|part| !part.trim().is_empty()).collect()
}

/// The names of the items that code defines.
fn defined(code: &str) -> BTreeSet<String> {
    const KEYWORDS: [&str; 8] =
        ["fn", "struct", "enum", "trait", "type", "const", "static", "union"];
    let mut words = code.split(|c: char| !c.is_alphanumeric() && c != '_');
    let mut found = BTreeSet::new();
    let mut is_next = false;
    for word in words.by_ref().filter(|word| !word.is_empty()) {
        if KEYWORDS.contains(&word) {
            is_next = true;
        } else if is_next {
            found.insert(word.to_owned());
            is_next = false;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn imports(text: &str) -> Vec<(usize, String, Option<String>)> {
        let source = read("a.rs", text);
        let shown = |it: Import| (it.line, it.segments.join("::"), it.name);
        source.imports.into_iter().map(shown).collect()
    }

    #[test]
    fn a_tree_of_imports_is_written_out_with_the_names_it_binds() {
        let text = "use a::{\n    self,\n    b::{C, d as e},\n    f::*,\n};\nfn g() { h::i() }\n";
        let name = |name: &str| Some(name.to_owned());

        assert_eq!(
            imports(text),
            [
                (1, "a".to_owned(), name("a")),
                (1, "a::b::C".to_owned(), name("C")),
                (1, "a::b::d".to_owned(), name("e")),
                (1, "a::f".to_owned(), None),
                (6, "h::i".to_owned(), None),
            ]
        );
    }

    #[test]
    fn visibility_is_no_path_and_definitions_are_known() {
        let source = read("a.rs", "pub(in crate::a) const fn b() {}\npub(super) enum C { D }\n");

        assert!(source.imports.is_empty());
        assert!(source.defines("b") && source.defines("C") && !source.defines("D"));
    }
}
