//! Crates that each crate may depend on: gateway → faces → app → {store, upstream} → {core, lanes}; core → dlp → json.

use toml::Table;

use super::{
    Violation,
    repository::{File, Repository},
};

/// A crate, the crates it may use, and those its tests may use besides.
struct Crate {
    folder: &'static str,
    uses: &'static [&'static str],
    tests_use: &'static [&'static str],
}

const CRATES: [Crate; 13] = [
    Crate { folder: "crates/json", uses: &[], tests_use: &[] },
    Crate { folder: "crates/dlp", uses: &["json"], tests_use: &[] },
    Crate { folder: "crates/core", uses: &["json", "dlp"], tests_use: &[] },
    Crate { folder: "crates/lanes", uses: &[], tests_use: &[] },
    Crate { folder: "crates/store", uses: &["core", "lanes"], tests_use: &["testkit"] },
    Crate { folder: "crates/upstream", uses: &["core", "lanes"], tests_use: &["testkit"] },
    Crate {
        folder: "crates/app",
        uses: &["core", "lanes", "store", "upstream"],
        tests_use: &["testkit"],
    },
    Crate { folder: "crates/faces", uses: &["core", "store", "app"], tests_use: &[] },
    Crate {
        folder: "crates/gateway",
        uses: &["core", "lanes", "store", "upstream", "app", "faces"],
        tests_use: &["testkit"],
    },
    Crate { folder: "crates/testkit", uses: &["core"], tests_use: &[] },
    Crate { folder: "crates/bench", uses: &["core", "lanes", "store"], tests_use: &[] },
    Crate { folder: "fuzz", uses: &["json"], tests_use: &[] },
    Crate { folder: "xtask", uses: &[], tests_use: &[] },
];

/// Crates that do not wait, dial or ask a database.
const PURE: [&str; 3] = ["crates/json", "crates/dlp", "crates/core"];

/// Packages that would let them.
const NOT_IN_CORE: [&str; 9] = [
    "axum", "futures-util", "hyper", "hyper-util", "reqwest", "rusqlite", "tokio",
    "tokio-postgres", "tokio-util",
];

const OWN_PREFIX: &str = "portcullis-";

/// Finds crates that use what their place in the house does not allow.
pub(crate) fn check(repository: &Repository) -> Vec<Violation> {
    repository
        .files()
        .filter_map(|file| Some((file, file.path.strip_suffix("/Cargo.toml")?)))
        .flat_map(|(file, folder)| check_crate(file, folder))
        .collect()
}

fn check_crate(file: &File, folder: &str) -> Vec<Violation> {
    let Some(place) = CRATES.iter().find(|place| place.folder == folder) else {
        return vec![Violation::new(
            &file.path,
            1,
            format!("crate `{folder}` has no place in the house"),
            "add it to the table in xtask/src/tidy/edges.rs, and to ARCHITECTURE.md",
        )];
    };
    let Ok(manifest) = file.text.parse::<Table>() else {
        return vec![Violation::new(&file.path, 1, "is not TOML", "mend it")];
    };
    let mut found = Vec::new();
    for (kind, name) in dependencies(&manifest) {
        let forbidden = match (name.strip_prefix(OWN_PREFIX), kind) {
            (Some(own), Kind::Tests) => {
                !place.uses.contains(&own) && !place.tests_use.contains(&own)
            }
            (Some(own), Kind::Code) => !place.uses.contains(&own),
            (None, Kind::Code) => PURE.contains(&folder) && NOT_IN_CORE.contains(&name.as_str()),
            (None, Kind::Tests) => false,
        };
        if forbidden {
            found.push(Violation::new(
                &file.path,
                line_of(&file.text, &name),
                format!("`{folder}` may not use `{name}`"),
                "gateway → faces → app → {store, upstream} → core → dlp → json; testkit in dev-dependencies only",
            ));
        }
    }
    found
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    Code,
    Tests,
}

/// Every dependency a manifest names, also those of a single target.
fn dependencies(manifest: &Table) -> Vec<(Kind, String)> {
    let targets = manifest.get("target").and_then(|value| value.as_table());
    let targets = targets.into_iter().flat_map(Table::values).filter_map(|value| value.as_table());
    let mut found = Vec::new();
    for table in std::iter::once(manifest).chain(targets) {
        for (key, kind) in [
            ("dependencies", Kind::Code),
            ("build-dependencies", Kind::Code),
            ("dev-dependencies", Kind::Tests),
        ] {
            let names = table.get(key).and_then(|value| value.as_table());
            found.extend(names.into_iter().flat_map(Table::keys).map(|name| (kind, name.clone())));
        }
    }
    found
}

fn line_of(text: &str, name: &str) -> usize {
    text.lines().position(|line| line.starts_with(name)).map_or(1, |at| at + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(folder: &str, manifest: &str) -> Vec<Violation> {
        check(&Repository::of(&[(&format!("{folder}/Cargo.toml"), manifest)]))
    }

    #[test]
    fn an_arrow_pointing_up_is_found_at_its_line() {
        let manifest = "[package]\n[dependencies]\nportcullis-app.workspace = true\n";

        let found = found("crates/store", manifest);

        assert_eq!(found.len(), 1);
        assert_eq!(found[0].line, 3);
    }

    #[test]
    fn testkit_is_for_tests_only() {
        assert!(
            found("crates/gateway", "[dev-dependencies]\nportcullis-testkit = \"1\"").is_empty()
        );
        assert_eq!(found("crates/gateway", "[dependencies]\nportcullis-testkit = \"1\"").len(), 1);
    }

    #[test]
    fn core_cannot_wait_but_its_tests_may_use_anything_from_outside() {
        assert_eq!(found("crates/core", "[dependencies]\ntokio = \"1\"").len(), 1);
        assert!(found("crates/core", "[dev-dependencies]\nproptest = \"1\"").is_empty());
    }

    #[test]
    fn a_target_specific_dependency_is_seen() {
        let manifest = "[target.'cfg(unix)'.dependencies]\nportcullis-gateway = \"1\"";

        assert_eq!(found("crates/app", manifest).len(), 1);
    }

    #[test]
    fn an_unknown_crate_is_asked_for_its_place() {
        assert_eq!(found("crates/helpers", "[package]").len(), 1);
    }
}
