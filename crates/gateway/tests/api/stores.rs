//! On which store the tests run: on SQLite and, with `PORTCULLIS_TEST_STORE=postgres`, on
//! PostgreSQL, each gateway on a database of its own. Tests that bring a store of their own use that
//! one in any pass, and are listed here. The second pass runs the modules of `on_postgres.txt`.

use crate::prelude::*;

/// The files whose tests choose their store, and why.
const OWN_STORE: [(&str, &str); 17] = [
    ("audit_log/changed_database.rs", "sets back an SQLite file to an earlier copy"),
    ("cluster.rs", "nodes of one installation share a PostgreSQL database"),
    ("cluster/encrypted.rs", "speaks TLS to a PostgreSQL server of its own"),
    ("cluster/members.rs", "the same"),
    ("login/issuers/nodes.rs", "nodes of one installation share a PostgreSQL database"),
    ("durability/full_disk.rs", "fills the disk that an SQLite file lies on"),
    ("durability/postgres.rs", "breaks the wire to PostgreSQL as a transaction commits"),
    ("durability/power.rs", "cuts the power of a disk that an SQLite file lies on"),
    ("durability/promised.rs", "weakens PostgreSQL databases and servers of its own"),
    ("first_steps.rs", "looks at the mode of an SQLite file"),
    ("backup.rs", "copies an SQLite file, and only names PostgreSQL"),
    ("v1/providers.rs", "a command of another process makes a call in an SQLite file"),
    ("moving.rs", "moves an installation from SQLite to PostgreSQL"),
    ("quickstart.rs", "a quickstart makes a data folder with an SQLite file in it"),
    ("config.rs", "refuses a database URL that names no database; opens none"),
    ("v1/invoke/idempotency.rs", "one race is played on PostgreSQL also where there is no other"),
    ("stores.rs", "this file"),
];

/// Texts that mark a test which chooses its store.
const CHOOSES: [&str; 5] =
    ["[database]", ".on_sqlite()", "PostgresDatabase::create", "PowerCut::build", "\"quickstart\""];

fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] }).collect()
}

#[test]
fn only_the_tests_listed_choose_their_store() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/api");
    let chooses = |file: &PathBuf| {
        let text = fs::read_to_string(file).unwrap();
        CHOOSES.iter().any(|word| text.contains(word))
    };

    let found: BTreeSet<String> = sources(&folder)
        .iter()
        .filter(|file| chooses(file))
        .map(|file| file.strip_prefix(&folder).unwrap().to_string_lossy().into_owned())
        .collect();

    let listed = OWN_STORE.map(|(file, _)| file.to_owned());
    assert_eq!(found, BTreeSet::from(listed));
}

/// The modules of this binary: `v1::invoke::fair::` for `v1/invoke/fair.rs`.
fn modules(folder: &Path) -> Vec<String> {
    let named = |file: PathBuf| {
        let path = file.strip_prefix(folder).unwrap().with_extension("");
        path.to_string_lossy().replace('/', "::") + "::"
    };
    sources(folder).into_iter().map(named).collect()
}

#[test]
fn the_second_pass_runs_exactly_the_modules_of_the_list() {
    let modules = modules(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/api"));
    let lines = include_str!("on_postgres.txt").lines();
    let chosen: Vec<String> = lines
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| line.split_once("::  ").unwrap_or_else(|| panic!("a reason in `{line}`")).0)
        .map(|name| format!("{name}::"))
        .collect();

    for name in &chosen {
        assert!(modules.iter().any(|module| module.starts_with(name)), "there is no `{name}`");
        // `cargo test` runs whatever holds the name, wherever it stands.
        let held = modules.iter().filter(|module| module.contains(name.as_str()));
        let listed = |module: &&String| chosen.iter().any(|it| module.starts_with(it));
        let beside: Vec<_> = held.filter(|module| !listed(module)).collect();
        assert!(beside.is_empty(), "`{name}` would also run {beside:?}");
    }
}
