//! Packages that deny.toml bans are not built.

use toml::{Table, Value};

use super::{Violation, cargo::Metadata, repository::Repository};

const POLICY: &str = "deny.toml";

/// Finds packages on the list `bans.deny`, whatever depends on them.
pub(crate) fn check(repository: &Repository, metadata: &Metadata) -> Vec<Violation> {
    let policy = repository.find(POLICY).and_then(|file| file.text.parse::<Table>().ok());
    let policy = policy.unwrap_or_default();
    let banned = policy.get("bans").and_then(|bans| bans.get("deny")).and_then(Value::as_array);
    let banned: Vec<&str> = banned.into_iter().flatten().filter_map(name_of).collect();
    let built = metadata.built.iter().filter(|name| banned.contains(&name.as_str()));
    built
        .map(|name| {
            let what = format!("`{name}` is banned but built");
            let remedy = format!("see `cargo tree -i {name} --target all` for who wants it");
            Violation::new("Cargo.lock", 1, what, remedy)
        })
        .collect()
}

fn name_of(entry: &Value) -> Option<&str> {
    entry.as_str().or_else(|| entry.get("crate")?.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_banned_package_is_found_in_either_notation() {
        let policy = "[bans]\ndeny = [\"a\", { crate = \"b\", reason = \"two of them\" }]\n";
        let metadata = Metadata::of(&[("a", None), ("b", None), ("c", None)]);

        let found = check(&Repository::of(&[(POLICY, policy)]), &metadata);

        assert_eq!(found.len(), 2);
    }
}
