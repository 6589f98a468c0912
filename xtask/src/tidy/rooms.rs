//! The modules of `app` in different rooms do not depend on each other in a circle.
//!
//! A room is a folder below `crates/app/src` with the file of its name, or a file that stands there
//! alone. `app.rs` and `lib.rs` put the rooms together and belong to none.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::{
    Violation,
    code::before_tests,
    paths::{code_of, named},
    repository::{File, Repository},
};

const SOURCES: &str = "crates/app/src/";
const ABOVE: [&str; 2] = ["app", "lib"];

/// Segments of a module's path, from the root of the crate.
type Module = Vec<String>;

/// The modules that each module names, with the line where it does so first.
type Graph = BTreeMap<Module, BTreeMap<Module, usize>>;

/// Finds modules that know, over others, a module of another room that knows them.
pub(crate) fn check(repository: &Repository) -> Vec<Violation> {
    let files: BTreeMap<Module, &File> =
        repository.under(SOURCES).filter_map(|file| Some((module_of(file)?, file))).collect();
    let graph: Graph = files
        .iter()
        .map(|(module, file)| (module.clone(), known_by(module, file, &files)))
        .collect();
    let mut found = Vec::new();
    let mut told = BTreeSet::new();
    for (module, knows) in &graph {
        for (other, line) in knows.iter().filter(|(other, _)| other.first() != module.first()) {
            let Some(back) = way(&graph, other, module) else { continue };
            let members: BTreeSet<Module> = back.iter().cloned().collect();
            if !told.insert(members) {
                continue;
            }
            let names: Vec<_> = back.iter().map(|module| module.join("::")).collect();
            let what = format!("closes a circle of rooms: {}", names.join(" → "));
            let path = files.get(module).map_or(SOURCES, |file| &file.path);
            let remedy = "move the shared noun below both, or pass what is needed";
            found.push(Violation::new(path, *line, what, remedy));
        }
    }
    found
}

fn module_of(file: &File) -> Option<Module> {
    let path = file.path.strip_prefix(SOURCES)?.strip_suffix(".rs")?;
    (!ABOVE.contains(&path)).then(|| path.split('/').map(str::to_owned).collect())
}

/// The modules that the code of a file names, but for its tests.
fn known_by(
    module: &Module,
    file: &File,
    files: &BTreeMap<Module, &File>,
) -> BTreeMap<Module, usize> {
    let mut known = BTreeMap::new();
    let code = code_of(before_tests(&file.text));
    for path in named(&code) {
        let Some(target) = absolute(module, &path.segments) else { continue };
        let lengths = (1..=target.len()).rev();
        let existing = lengths.filter_map(|length| target.get(..length));
        let found = existing.map(<[String]>::to_vec).find(|prefix| files.contains_key(prefix));
        if let Some(found) = found.filter(|found| found != module) {
            known.entry(found).or_insert(path.line);
        }
    }
    known
}

/// The path from the root of the crate; `None` for one into another crate.
fn absolute(module: &Module, segments: &[&str]) -> Option<Module> {
    let (first, rest) = segments.split_first()?;
    // The keyword alone is a value or a visibility.
    if rest.iter().all(|segment| *segment == "super") {
        return None;
    }
    let own = |segments: &[&str]| segments.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
    match *first {
        "crate" => Some(own(rest)),
        "self" => Some([module.clone(), own(rest)].concat()),
        "super" => {
            let ups = segments.iter().take_while(|segment| **segment == "super").count();
            let above = module.get(..module.len().checked_sub(ups)?)?;
            Some([above.to_vec(), own(segments.get(ups..)?)].concat())
        }
        _ => None,
    }
}

/// The shortest way from one module to another.
fn way(graph: &Graph, from: &Module, to: &Module) -> Option<Vec<Module>> {
    let mut before: BTreeMap<&Module, Option<&Module>> = BTreeMap::from([(from, None)]);
    let mut waiting = VecDeque::from([from]);
    while let Some(module) = waiting.pop_front() {
        if module == to {
            let mut way = vec![module.clone()];
            let mut last = module;
            while let Some(Some(earlier)) = before.get(last) {
                way.push((*earlier).clone());
                last = earlier;
            }
            way.reverse();
            return Some(way);
        }
        for next in graph.get(module).into_iter().flat_map(BTreeMap::keys) {
            if !before.contains_key(next) {
                before.insert(next, Some(module));
                waiting.push_back(next);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<(String, usize)> {
        let files: Vec<_> =
            files.iter().map(|(path, text)| (format!("{SOURCES}{path}"), *text)).collect();
        let files: Vec<_> = files.iter().map(|(path, text)| (path.as_str(), *text)).collect();
        let found = check(&Repository::of(&files));
        found.into_iter().map(|it| (it.path.replace(SOURCES, ""), it.line)).collect()
    }

    #[test]
    fn a_circle_over_two_rooms_is_found_once_at_its_line() {
        let files = [
            ("access.rs", "mod tokens;\n"),
            ("access/tokens.rs", "//! T.\n\nuse crate::audit::events::Event;\n"),
            ("audit.rs", "pub mod events;\n"),
            ("audit/events.rs", "use super::log;\n"),
            ("audit/log.rs", "use crate::{access::{self, tokens::Token}, base::Base};\n"),
            ("base.rs", "pub(super) struct Base;\n"),
        ];

        assert_eq!(found(&files), [("access/tokens.rs".to_owned(), 3)]);
    }

    #[test]
    fn circles_within_a_room_and_in_tests_are_left_alone() {
        let files = [
            ("access.rs", "pub(crate) use self::tokens::Token;\n"),
            ("access/tokens.rs", "use super::Access;\nuse crate::audit::Audit;\n"),
            ("audit.rs", "#[cfg(test)]\nmod tests {\n    use crate::access::Access;\n}\n"),
        ];

        assert_eq!(found(&files), []);
    }

    #[test]
    fn the_files_that_put_rooms_together_belong_to_none() {
        let files = [
            ("app.rs", "use crate::access::Access;\n"),
            ("access.rs", "use crate::app::App;\n"),
            ("lib.rs", "pub use self::access::Access;\n"),
        ];

        assert_eq!(found(&files), []);
    }
}
