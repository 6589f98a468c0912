//! No known security advisory concerns what is built in.

use super::{Violation, repository::Repository};
use crate::advisories::{self, TABLE};

/// Finds packages of the lock file that an advisory concerns, or that were not looked up yet.
pub(crate) fn check(repository: &Repository) -> Vec<Violation> {
    let text =
        |path: &str| repository.find(path).map(|file| file.text.as_str()).unwrap_or_default();
    let remedy = "update it, or ignore the advisory in deny.toml and say why; look up new ones with \
                  `cargo xtask advisories`";
    match advisories::check(text("Cargo.lock"), text(TABLE), text("deny.toml")) {
        Ok(found) => {
            found.into_iter().map(|what| Violation::new("Cargo.lock", 1, what, remedy)).collect()
        }
        Err(error) => vec![Violation::new(TABLE, 1, error.to_string(), remedy)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_table_nothing_passes() {
        let found = check(&Repository::of(&[("Cargo.lock", ""), ("deny.toml", "")]));

        assert_eq!(found.len(), 1);
    }

    #[test]
    fn an_advisory_is_a_violation() {
        let lock = "[[package]]\nname = \"a\"\nversion = \"1.0.0\"\nsource = \"registry\"\n";
        let table = "taken = \"2026-08-21\"\n[crates]\n\
            a = [{ id = \"RUSTSEC-1\", kind = \"unsound\", safe = [\">=1.0.1\"] }]\n";
        let files = [("Cargo.lock", lock), (TABLE, table), ("deny.toml", "")];

        let found = check(&Repository::of(&files));

        assert!(found.len() == 1 && found[0].what.contains("RUSTSEC-1"), "{found:?}");
    }
}
