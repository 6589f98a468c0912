//! Imports between the modules of a folder run one way: no circle of files, none of sub-folders.
//!
//! An arrow leads from a file to the file that defines what it names; a re-export on the way is
//! followed, so that a table of contents may list modules that use each other's items through it.
//! `mod` declarations and methods are no arrows, and tests may name anything.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    Violation,
    code::before_tests,
    imports::{Import, Source, read},
    repository::Repository,
};

/// Folders in which no files import each other in a circle.
const FILES_OF: [&str; 3] = ["crates/app/src/calls", "crates/core/src/policy", "crates/dlp/src"];
/// Folders whose modules, each with all that is below it, do not import each other in a circle.
const MODULES_OF: [&str; 3] = ["crates/app/src", "crates/core/src/policy", "crates/dlp/src"];

const REMEDY: &str = "move what both need into a module below both";

/// Finds circles in the folders that are to have none.
pub(crate) fn check(repository: &Repository) -> Vec<Violation> {
    let files = FILES_OF.iter().flat_map(|folder| between_files(repository, folder));
    let modules = MODULES_OF.iter().flat_map(|folder| between_modules(repository, folder));
    files.chain(modules).collect()
}

/// Circles among the files in `folder`, such as `crates/core/src/dlp`, and the file of its name.
pub(crate) fn between_files(repository: &Repository, folder: &str) -> Vec<Violation> {
    circles(repository, folder, |module| Some(module.join("::")))
}

/// Circles among the modules directly in `folder`; what is below one counts as part of it.
pub(crate) fn between_modules(repository: &Repository, folder: &str) -> Vec<Violation> {
    circles(repository, folder, |below| below.first().cloned())
}

/// A module by its names from the crate on; the crate itself has none.
type Module = Vec<String>;

/// One import, with the file and the line it stands on.
struct Arrow<'a> {
    from: Module,
    to: Module,
    path: &'a str,
    line: usize,
}

/// The circles of the modules in a folder, after `node` has named what each is part of.
fn circles(
    repository: &Repository,
    folder: &str,
    node: impl Fn(&[String]) -> Option<String>,
) -> Vec<Violation> {
    let (root, below) = folder.split_once("/src").unwrap_or((folder, ""));
    let names = below.split('/').filter(|name| !name.is_empty());
    let home: Module = names.map(str::to_owned).collect();
    let sources = sources(repository, root);
    let all = Crate { sources: &sources };
    let mut graph: BTreeMap<String, BTreeMap<String, Arrow<'_>>> = BTreeMap::new();
    for arrow in all.arrows() {
        let inside = |module: &Module| module.strip_prefix(home.as_slice()).and_then(&node);
        if let (Some(from), Some(to)) = (inside(&arrow.from), inside(&arrow.to))
            && from != to
        {
            graph.entry(from).or_default().entry(to).or_insert(arrow);
        }
    }
    let mut found = Vec::new();
    while let Some(circle) = circle(&graph) {
        let names: Vec<&str> = circle.iter().map(String::as_str).collect();
        let label = |name: &&str| if name.is_empty() { folder } else { *name }.to_owned();
        let shown: Vec<String> = names.iter().chain(names.first()).map(label).collect();
        let back = circle.last().zip(circle.first());
        if let Some(arrow) = back.and_then(|(last, first)| graph.get(last)?.get(first)) {
            let what = format!("imports run in a circle: {}", shown.join(" → "));
            found.push(Violation::new(arrow.path, arrow.line, what, REMEDY));
        }
        graph.retain(|name, _| !circle.contains(name));
    }
    found
}

/// The sources of a crate by their modules, tests left out.
fn sources<'a>(repository: &'a Repository, root: &str) -> BTreeMap<Module, Source<'a>> {
    let files = repository.rust().filter_map(|file| {
        let path = file.path.strip_prefix(root)?.strip_prefix("/src/")?.strip_suffix(".rs")?;
        let mut module: Module = path.split('/').map(str::to_owned).collect();
        if module.iter().any(|name| name == "tests") {
            return None;
        }
        if path == "lib" || path == "main" {
            module.clear();
        }
        Some((module, read(&file.path, before_tests(&file.text))))
    });
    files.collect()
}

struct Crate<'a> {
    sources: &'a BTreeMap<Module, Source<'a>>,
}

impl<'a> Crate<'a> {
    /// Every import of one module from another.
    fn arrows(&self) -> Vec<Arrow<'a>> {
        let mut found = Vec::new();
        for (from, source) in self.sources {
            for import in &source.imports {
                if let Some(to) = self.defined_in(from, import) {
                    let (from, path, line) = (from.clone(), source.path, import.line);
                    found.push(Arrow { from, to, path, line });
                }
            }
        }
        found
    }

    /// The module that defines what an import of `from` names, if it is one of this crate. Naming
    /// a module takes nothing from it yet.
    fn defined_in(&self, from: &[String], import: &Import) -> Option<Module> {
        let mut seen = BTreeSet::new();
        let (module, item) = self.find(from, &import.segments, &mut seen)?;
        (item.is_some() || import.is_glob).then_some(module)
    }

    /// The module that a path of `from` leads to, and the item in it that the path names.
    fn find<'p>(
        &self,
        from: &[String],
        path: &'p [String],
        seen: &mut BTreeSet<(Module, String)>,
    ) -> Option<(Module, Option<&'p str>)> {
        let (mut module, mut rest) = self.base(from, path, seen)?;
        while let Some((name, below)) = rest.split_first() {
            let child = below_of(&module, name);
            if self.sources.contains_key(&child) {
                (module, rest) = (child, below);
                continue;
            }
            if !seen.insert((module.clone(), name.clone())) {
                return Some((module, Some(name)));
            }
            return Some(match self.re_exported(&module, name, seen) {
                Some((target, Some(_))) => (target, Some(name)),
                // The name of a module that was imported.
                Some((target, None)) => return self.find(&target, below, seen),
                None => (module, Some(name)),
            });
        }
        Some((module, None))
    }

    /// Module at which a path begins, and what is left of the path.
    fn base<'p>(
        &self,
        from: &[String],
        path: &'p [String],
        seen: &mut BTreeSet<(Module, String)>,
    ) -> Option<(Module, &'p [String])> {
        let (first, mut rest) = path.split_first()?;
        let mut module = from.to_vec();
        match first.as_str() {
            "crate" => module.clear(),
            "self" => {}
            "super" => {
                module.pop()?;
                while let Some((_, below)) = rest.split_first().filter(|(name, _)| *name == "super")
                {
                    module.pop()?;
                    rest = below;
                }
            }
            name => {
                let child = below_of(from, name);
                if self.sources.contains_key(&child) {
                    return Some((child, rest));
                }
                if !seen.insert((module, name.to_owned())) {
                    return None;
                }
                let (target, None) = self.re_exported(from, name, seen)? else { return None };
                return Some((target, rest));
            }
        }
        Some((module, rest))
    }

    /// Target of a name that `module` has imported.
    fn re_exported<'p>(
        &self,
        module: &[String],
        name: &'p str,
        seen: &mut BTreeSet<(Module, String)>,
    ) -> Option<(Module, Option<&'p str>)> {
        let source = self.sources.get(module)?;
        let bound = |import: &&Import| import.name.as_deref() == Some(name);
        if let Some(import) = source.imports.iter().find(bound) {
            let (target, item) = self.find(module, &import.segments, seen)?;
            return Some((target, item.map(|_| name)));
        }
        if source.defines(name) {
            return None;
        }
        source.imports.iter().filter(|import| import.is_glob).find_map(|import| {
            let (target, None) = self.find(module, &import.segments, seen)? else { return None };
            let is_there = self.sources.get(&target).is_some_and(|source| source.defines(name));
            is_there.then_some((target, Some(name)))
        })
    }
}

/// A module directly below another one.
fn below_of(module: &[String], name: &str) -> Module {
    module.iter().cloned().chain([name.to_owned()]).collect()
}

/// One circle of a graph, if it has any.
fn circle<T>(graph: &BTreeMap<String, BTreeMap<String, T>>) -> Option<Vec<String>> {
    let mut left: BTreeSet<&String> = graph.keys().collect();
    loop {
        let has_next = |name: &&String| {
            graph.get(*name).is_some_and(|next| next.keys().any(|next| left.contains(next)))
        };
        let kept: BTreeSet<&String> = left.iter().copied().filter(has_next).collect();
        if kept.len() == left.len() {
            break;
        }
        left = kept;
    }
    let mut walk = vec![*left.first()?];
    loop {
        let next = graph.get(*walk.last()?)?.keys().find(|next| left.contains(next))?;
        if let Some(start) = walk.iter().position(|name| *name == next) {
            return Some(walk.split_off(start).into_iter().cloned().collect());
        }
        walk.push(next);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FOLDER: &str = "crates/core/src/dlp";

    fn repository(files: &[(&str, &str)]) -> Repository {
        let paths: Vec<_> =
            files.iter().map(|(path, text)| (format!("crates/core/src/{path}"), *text)).collect();
        let files: Vec<_> = paths.iter().map(|(path, text)| (path.as_str(), *text)).collect();
        Repository::of(&files)
    }

    fn files(files: &[(&str, &str)]) -> Vec<String> {
        let found = between_files(&repository(files), FOLDER);
        found.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_circle_of_two_files_is_found_at_the_import_that_closes_it() {
        let found = files(&[
            ("dlp.rs", "mod a;\nmod b;\n"),
            ("dlp/a.rs", "use super::b::B;\n"),
            ("dlp/b.rs", "//! B.\nuse crate::dlp::{\n    a::{A, C},\n};\nstruct B;\n"),
        ]);

        assert_eq!(found.len(), 1);
        assert!(found[0].starts_with("crates/core/src/dlp/b.rs:2: "), "{}", found[0]);
        assert!(found[0].contains("a → b → a"), "{}", found[0]);
    }

    #[test]
    fn a_circle_of_three_through_paths_in_code_is_found() {
        let found = files(&[
            ("dlp.rs", "mod a;\nmod b;\nmod c;\n"),
            ("dlp/a.rs", "use super::b;\nfn f() { b::g() }\n"),
            ("dlp/b.rs", "fn g() { crate::dlp::c::h() }\n"),
            ("dlp/c.rs", "fn h(a: super::a::A) {}\n"),
        ]);

        assert_eq!(found.len(), 1);
        assert!(found[0].contains("a → b → c → a"), "{}", found[0]);
    }

    #[test]
    fn a_table_of_contents_is_looked_through() {
        let contents = "mod a;\nmod b;\npub use a::A;\npub use b::B;\n";
        let one_way = [
            ("dlp.rs", contents),
            ("dlp/a.rs", "struct A;\n"),
            ("dlp/b.rs", "use super::A;\nstruct B;\n"),
        ];
        assert!(files(&one_way).is_empty());

        let both_ways = [
            ("dlp.rs", contents),
            ("dlp/a.rs", "use super::B;\nstruct A;\n"),
            ("dlp/b.rs", "use super::A;\nstruct B;\n"),
        ];
        assert_eq!(files(&both_ways).len(), 1);
    }

    #[test]
    fn a_parent_that_uses_a_child_which_uses_it_is_a_circle() {
        let found = files(&[
            ("dlp.rs", "mod a;\nstruct Engine(a::A);\n"),
            ("dlp/a.rs", "use super::Engine;\nstruct A;\n"),
        ]);

        assert_eq!(found.len(), 1);
    }

    #[test]
    fn tests_visibility_and_a_name_for_itself_are_no_arrows() {
        let found = files(&[
            ("dlp.rs", "mod a;\npub use a::A as B;\n#[cfg(test)]\nmod tests;\n"),
            ("dlp/a.rs", "pub(in crate::dlp) struct A;\nimpl A { fn b() -> Self { Self } }\n"),
            ("dlp/tests.rs", "use super::a::A;\n"),
            ("dlp/c.rs", "use super::a::A;\n#[cfg(test)]\nmod tests { use super::super::d::D; }\n"),
            ("dlp/d.rs", "use super::c::C;\n"),
        ]);

        assert!(found.is_empty(), "{found:?}");
    }

    #[test]
    fn modules_may_have_no_circle_though_their_files_have_none() {
        let files = [
            ("dlp.rs", "mod mask;\nmod scan;\n"),
            ("dlp/mask.rs", "mod b;\nmod c;\n"),
            ("dlp/scan.rs", "mod a;\nmod d;\n"),
            ("dlp/scan/a.rs", "use crate::dlp::mask::b::B;\n"),
            ("dlp/mask/b.rs", "struct B;\n"),
            ("dlp/mask/c.rs", "use crate::dlp::scan::d::D;\n"),
            ("dlp/scan/d.rs", "struct D;\n"),
        ];
        let repository = repository(&files);

        assert!(between_files(&repository, FOLDER).is_empty());
        assert_eq!(between_modules(&repository, FOLDER).len(), 1);
        assert!(between_modules(&repository, "crates/core/src").is_empty());
    }
}
