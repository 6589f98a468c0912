//! Imports between files run one way: no circle of files in a crate, and of folders in some.
//!
//! An arrow leads from a file to the file that defines what it names; a re-export on the way is
//! followed, so that a table of contents may list modules that use each other's items through it.
//! `mod` declarations and methods are no arrows, and tests may name anything.
//!
//! A file in a folder may name what the file of the folder defines, and be named by it: they are read
//! together. That ends at the room, which is a folder directly below `src` with the file of its name,
//! and in the folders of [`FILES_OF`].

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::{
    Violation,
    code::before_tests,
    imports::{Import, Source, read},
    repository::Repository,
};

/// Folders in which no file names the file of its folder either, if that one names it.
const FILES_OF: [&str; 3] = ["crates/app/src/calls", "crates/core/src/policy", "crates/dlp/src"];
/// Folders whose modules, each with all that is below it, do not import each other in a circle.
const MODULES_OF: [&str; 7] = [
    "crates/app/src", "crates/core/src/policy", "crates/dlp/src", "crates/faces/src",
    "crates/gateway/src", "crates/json/src", "crates/store/src",
];

const REMEDY: &str = "move what both need into a module below both";

/// Finds circles where there are to be none.
pub(crate) fn check(repository: &Repository) -> Vec<Violation> {
    let crates = roots(repository).into_iter().flat_map(|root| in_crate(repository, root));
    let files = FILES_OF.iter().flat_map(|folder| between_files(repository, folder));
    let modules = MODULES_OF.iter().flat_map(|folder| between_modules(repository, folder));
    crates.chain(files).chain(modules).collect()
}

/// The folders of all crates.
fn roots(repository: &Repository) -> BTreeSet<&str> {
    let roots = repository.rust().filter_map(|file| Some(file.path.split_once("/src/")?.0));
    roots.filter(|root| root.starts_with("crates/") || *root == "xtask").collect()
}

/// Circles among the files of a crate.
fn in_crate(repository: &Repository, root: &str) -> Vec<Violation> {
    let sources = sources(repository, root);
    let arrows = Crate { sources: &sources }.arrows();
    let is_inward = |arrow: &Arrow<'_>| arrow.from.starts_with(&arrow.to);
    let files = graph(&arrows, |arrow| (!is_inward(arrow)).then(|| arrow.ends()));
    let found = closed(&files, imports(&files).rev(), root);
    if found.is_empty() { over_rooms(&arrows, root) } else { found }
}

/// Circles of files in several rooms. The root of the crate puts them together and is in none.
fn over_rooms(arrows: &[Arrow<'_>], root: &str) -> Vec<Violation> {
    let is_inside = |arrow: &Arrow<'_>| !arrow.from.is_empty() && !arrow.to.is_empty();
    let files = graph(arrows, |arrow| is_inside(arrow).then(|| arrow.ends()));
    let room_of = |name: &str| name.split("::").next().map(str::to_owned);
    closed(&files, imports(&files).filter(|(from, to)| room_of(from) != room_of(to)), root)
}

/// Circles among the files in `folder`, such as `crates/core/src/dlp`, and the file of its name.
fn between_files(repository: &Repository, folder: &str) -> Vec<Violation> {
    circles(repository, folder, |module| Some(module.join("::")))
}

/// Circles among the modules directly in `folder`; what is below one counts as part of it.
fn between_modules(repository: &Repository, folder: &str) -> Vec<Violation> {
    circles(repository, folder, |below| below.first().cloned())
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
    let arrows = Crate { sources: &sources }.arrows();
    let inside = |module: &Module| module.strip_prefix(home.as_slice()).and_then(&node);
    let graph = graph(&arrows, |arrow| Some((inside(&arrow.from)?, inside(&arrow.to)?)));
    closed(&graph, imports(&graph).rev(), folder)
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

impl Arrow<'_> {
    /// The names of the two modules.
    fn ends(&self) -> (String, String) {
        (self.from.join("::"), self.to.join("::"))
    }
}

/// The first import of each name by each name.
type Graph<'a> = BTreeMap<String, BTreeMap<String, &'a Arrow<'a>>>;

/// The graph of arrows between the names that `ends` gives, without those that it leaves out.
fn graph<'a>(
    arrows: &'a [Arrow<'a>],
    ends: impl Fn(&Arrow<'_>) -> Option<(String, String)>,
) -> Graph<'a> {
    let mut graph = Graph::new();
    for arrow in arrows {
        if let Some((from, to)) = ends(arrow)
            && from != to
        {
            graph.entry(from).or_default().entry(to).or_insert(arrow);
        }
    }
    graph
}

/// All imports of a graph in the order of their names.
fn imports<'g>(graph: &'g Graph<'_>) -> impl DoubleEndedIterator<Item = (&'g str, &'g str)> {
    graph.iter().flat_map(|(from, to)| to.keys().map(move |to| (from.as_str(), to.as_str())))
}

/// The circles that these imports close. Of those that begin in the same file one is told.
fn closed<'g>(
    graph: &'g Graph<'_>,
    imports: impl Iterator<Item = (&'g str, &'g str)>,
    folder: &str,
) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut told: BTreeSet<&str> = BTreeSet::new();
    for (from, to) in imports {
        let Some(arrow) = graph.get(from).and_then(|next| next.get(to)) else { continue };
        if told.contains(from) {
            continue;
        }
        let Some(way) = way(graph, to, from) else { continue };
        let label = |name: &&'g str| if name.is_empty() { folder } else { *name };
        let shown: Vec<_> = way.iter().chain([&to]).map(label).collect();
        let what = format!("imports run in a circle: {}", shown.join(" → "));
        found.push(Violation::new(arrow.path, arrow.line, what, REMEDY));
        told.extend(way);
    }
    found
}

/// The shortest way from one name to another.
fn way<'g>(graph: &'g Graph<'_>, from: &'g str, to: &str) -> Option<Vec<&'g str>> {
    let mut ways = VecDeque::from([vec![from]]);
    let mut seen = BTreeSet::from([from]);
    while let Some(way) = ways.pop_front() {
        let last = *way.last()?;
        if last == to {
            return Some(way);
        }
        let next = graph.get(last).into_iter().flat_map(BTreeMap::keys).map(String::as_str);
        for next in next.filter(|next| seen.insert(*next)) {
            ways.push_back([way.as_slice(), &[next]].concat());
        }
    }
    None
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
                    let from = from.clone();
                    let path = source.path;
                    let line = import.line;
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

#[cfg(test)]
mod tests;
