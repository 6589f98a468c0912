//! Both databases have the same migrations.

use std::collections::BTreeSet;

use super::{Violation, repository::Repository};

const SQLITE: &str = "crates/store/migrations/sqlite/";
const POSTGRES: &str = "crates/store/migrations/postgres/";

/// Finds migrations that only one of the two databases has.
pub(crate) fn check(repository: &Repository) -> Vec<Violation> {
    let names = |folder: &'static str| -> BTreeSet<&str> {
        repository.under(folder).filter_map(|file| file.path.strip_prefix(folder)).collect()
    };
    let sqlite = names(SQLITE);
    let postgres = names(POSTGRES);
    let only_in = |here: &'static str, there: &'static str, name: &str| {
        let remedy = format!("add {there}{name}");
        Violation::new(format!("{here}{name}"), 1, "has no twin for the other database", remedy)
    };
    let mut found = Vec::new();
    found.extend(sqlite.difference(&postgres).map(|name| only_in(SQLITE, POSTGRES, name)));
    found.extend(postgres.difference(&sqlite).map(|name| only_in(POSTGRES, SQLITE, name)));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_migration_without_a_twin_is_found() {
        let repository = Repository::of(&[
            ("crates/store/migrations/sqlite/0001_init.sql", ""),
            ("crates/store/migrations/postgres/0001_init.sql", ""),
            ("crates/store/migrations/postgres/0002_more.sql", ""),
        ]);

        let found = check(&repository);

        assert_eq!(found.len(), 1);
        assert_eq!(found[0].path, "crates/store/migrations/postgres/0002_more.sql");
    }
}
