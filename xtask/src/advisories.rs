//! Security advisories of what is built in, from a table that is stored here: no network is needed.
//!
//! `xtask/advisories.toml` has an entry for each crate of the lock file, empty if nothing is known of
//! it, so that a new dependency is noticed. [`refresh`] writes it anew from a checkout of the `RustSec`
//! database. **Invariant:** a crate that is not in the table fails the check.

use std::{collections::BTreeMap, fs, io, path::Path, process::Command};

use semver::{Version, VersionReq};
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

/// Path of the table from the root.
pub(crate) const TABLE: &str = "xtask/advisories.toml";

const HEAD: &str = "\
# Versions of the crates in Cargo.lock that no known advisory concerns, by advisory: facts from the
# RustSec database (github.com/rustsec/advisory-db, CC0). An empty list: looked up, nothing known.
# `cargo xtask advisories FOLDER` writes this file anew from a checkout of the database in FOLDER.
";

/// The table as it is stored.
#[derive(Debug, Deserialize)]
struct Known {
    /// Date of the database.
    taken: String,
    crates: BTreeMap<String, Vec<Advisory>>,
}

/// One advisory and the versions that it does not concern.
#[derive(Debug, Deserialize, Serialize)]
struct Advisory {
    id: String,
    /// `vulnerability`, `unsound` or `unmaintained`.
    kind: String,
    safe: Vec<VersionReq>,
}

/// Lists packages of the lock file that an advisory concerns, or that were not looked up. Advisories
/// that deny.toml ignores are left out. Fails if one of the files cannot be read.
pub(crate) fn check(lock: &str, table: &str, policy: &str) -> io::Result<Vec<String>> {
    let known: Known = toml::from_str(table).map_err(io::Error::other)?;
    let ignored = ignored(policy)?;
    let mut found = Vec::new();
    for (name, version) in locked(lock)? {
        let Some(advisories) = known.crates.get(&name) else {
            found.push(format!("`{name}` was not looked up in the advisories of {}", known.taken));
            continue;
        };
        let concerns = |advisory: &&Advisory| {
            !ignored.contains(&advisory.id)
                && !advisory.safe.iter().any(|safe| safe.matches(&version))
        };
        let told = |advisory: &Advisory| {
            format!("`{name}` {version}: {} ({})", advisory.id, advisory.kind)
        };
        found.extend(advisories.iter().filter(concerns).map(told));
    }
    Ok(found)
}

/// Writes the table anew for the crates of the lock file, from a checkout of the database; returns
/// the number of advisories.
pub(crate) fn refresh(root: &Path, database: &Path) -> io::Result<usize> {
    let lock = fs::read_to_string(root.join("Cargo.lock"))?;
    let git =
        Command::new("git").current_dir(database).args(["log", "-1", "--format=%cs"]).output()?;
    let taken = String::from_utf8_lossy(&git.stdout).trim().to_owned();
    if taken.is_empty() {
        return Err(io::Error::other("there is no git checkout of the database"));
    }
    let mut names: Vec<String> = locked(&lock)?.into_iter().map(|(name, _)| name).collect();
    names.dedup();
    let mut text = format!("{HEAD}taken = \"{taken}\"\n\n[crates]\n");
    let mut count = 0;
    for name in names {
        let advisories = advisories_of(&database.join("crates").join(&name))?;
        count += advisories.len();
        text.push_str(&entry(&name, &advisories)?);
    }
    fs::write(root.join(TABLE), text)?;
    Ok(count)
}

/// Names and versions of the packages that come from a registry, sorted.
fn locked(lock: &str) -> io::Result<Vec<(String, Version)>> {
    let lock: Table = lock.parse().map_err(io::Error::other)?;
    let packages = lock.get("package").and_then(Value::as_array).into_iter().flatten();
    let mut locked = Vec::new();
    for package in packages.filter(|package| package.get("source").is_some()) {
        let text = |key| package.get(key).and_then(Value::as_str).unwrap_or_default();
        locked.push((text("name").to_owned(), text("version").parse().map_err(io::Error::other)?));
    }
    locked.sort();
    Ok(locked)
}

fn ignored(policy: &str) -> io::Result<Vec<String>> {
    let policy: Table = policy.parse().map_err(io::Error::other)?;
    let list = policy.get("advisories").and_then(|it| it.get("ignore")).and_then(Value::as_array);
    let id =
        |entry: &Value| entry.as_str().or_else(|| entry.get("id")?.as_str()).map(str::to_owned);
    Ok(list.into_iter().flatten().filter_map(id).collect())
}

/// The advisories in the folder of a crate, sorted; none if there is no folder. Withdrawn ones and mere
/// notices are left out.
fn advisories_of(folder: &Path) -> io::Result<Vec<Advisory>> {
    let Ok(entries) = fs::read_dir(folder) else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    for entry in entries {
        let path = entry?.path();
        found.extend(
            parsed(&fs::read_to_string(&path)?)
                .map_err(|error| io::Error::other(format!("{}: {error}", path.display())))?,
        );
    }
    found.sort_by(|a: &Advisory, b| a.id.cmp(&b.id));
    Ok(found)
}

/// An advisory from its file: a block of TOML in Markdown.
fn parsed(text: &str) -> io::Result<Option<Advisory>> {
    let block = text.split_once("```toml\n").and_then(|(_, rest)| rest.split_once("\n```"));
    let (block, _) = block.ok_or_else(|| io::Error::other("has no block of TOML"))?;
    let table: Table = block.parse().map_err(io::Error::other)?;
    let about = table.get("advisory").ok_or_else(|| io::Error::other("has no `advisory`"))?;
    let text = |key: &str| about.get(key).and_then(Value::as_str).map(str::to_owned);
    let kind = text("informational").unwrap_or_else(|| "vulnerability".to_owned());
    if about.get("withdrawn").is_some() || kind == "notice" {
        return Ok(None);
    }
    let versions = |key: &str| table.get("versions")?.get(key)?.as_array();
    let all = ["patched", "unaffected"].into_iter().filter_map(versions).flatten();
    let safe = all.filter_map(Value::as_str).map(str::parse::<VersionReq>);
    let safe = safe.collect::<Result<_, _>>().map_err(io::Error::other)?;
    Ok(Some(Advisory { id: text("id").unwrap_or_default(), kind, safe }))
}

/// The lines of a crate in the table.
fn entry(name: &str, advisories: &[Advisory]) -> io::Result<String> {
    if advisories.is_empty() {
        return Ok(format!("{name} = []\n"));
    }
    let line = |advisory| Ok(format!("    {},\n", Value::try_from(advisory)?));
    let lines: Result<String, toml::ser::Error> = advisories.iter().map(line).collect();
    Ok(format!("{name} = [\n{}]\n", lines.map_err(io::Error::other)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "taken = \"2026-08-21\"\n[crates]\nquiet = []\n\
        h2 = [{ id = \"RUSTSEC-1\", kind = \"vulnerability\", safe = [\">=0.4.16\", \"<0.2\"] }]\n";

    fn found(package: &str, version: &str, policy: &str) -> Vec<String> {
        let lock = format!(
            "[[package]]\nname = \"{package}\"\nversion = \"{version}\"\nsource = \"registry\"\n\
             [[package]]\nname = \"own\"\nversion = \"0.1.0\"\n"
        );
        check(&lock, TABLE, policy).unwrap()
    }

    #[test]
    fn a_vulnerable_version_is_named_with_its_advisory() {
        assert_eq!(found("h2", "0.4.15", ""), ["`h2` 0.4.15: RUSTSEC-1 (vulnerability)"]);
        assert_eq!(found("h2", "0.4.16-rc.1", "").len(), 1);
        for safe in ["0.4.16", "0.5.0", "0.1.9"] {
            assert!(found("h2", safe, "").is_empty(), "{safe}");
        }
        assert!(found("quiet", "1.0.0", "").is_empty());
    }

    #[test]
    fn a_crate_that_was_not_looked_up_is_named() {
        assert_eq!(
            found("new", "1.0.0", ""),
            ["`new` was not looked up in the advisories of 2026-08-21"]
        );
    }

    #[test]
    fn what_the_policy_ignores_is_left_out() {
        for ignore in ["\"RUSTSEC-1\"", "{ id = \"RUSTSEC-1\", reason = \"not reached\" }"] {
            assert!(
                found("h2", "0.4.15", &format!("[advisories]\nignore = [{ignore}]\n")).is_empty()
            );
        }
        assert_eq!(found("h2", "0.4.15", "[advisories]\nignore = [\"RUSTSEC-2\"]\n").len(), 1);
    }

    /// The lock file of this repository with an old version planted in it.
    #[test]
    fn an_old_version_in_this_lock_file_is_found() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let read = |path: &str| fs::read_to_string(root.join(path)).unwrap();
        let lock = read("Cargo.lock");
        let table = read(super::TABLE);
        let policy = read("deny.toml");
        let planted = "\n[[package]]\nname = \"h2\"\nversion = \"0.4.1\"\nsource = \"registry\"\n";

        assert_eq!(check(&lock, &table, &policy).unwrap(), Vec::<String>::new());
        let found = check(&(lock + planted), &table, &policy).unwrap();

        assert!(!found.is_empty() && found.iter().all(|it| it.starts_with("`h2` 0.4.1: RUSTSEC-")));
    }

    #[test]
    fn the_table_is_written_from_a_checkout_of_the_database() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("database");
        fs::create_dir_all(database.join("crates/h2")).unwrap();
        fs::create_dir_all(folder.path().join("xtask")).unwrap();
        let advisory = "```toml\n[advisory]\nid = \"RUSTSEC-1\"\npackage = \"h2\"\n\
            [versions]\npatched = [\">= 0.4.16\"]\n```\n# Text\n";
        fs::write(database.join("crates/h2/RUSTSEC-1.md"), advisory).unwrap();
        let withdrawn = advisory.replace("package", "withdrawn = \"2026-01-01\"\npackage");
        fs::write(database.join("crates/h2/RUSTSEC-2.md"), withdrawn).unwrap();
        let git = |arguments: &[&str]| {
            let mut git = Command::new("git");
            git.current_dir(&database).args([
                "-c",
                "user.name=x",
                "-c",
                "user.email=x@example.com",
            ]);
            assert!(git.args(arguments).status().unwrap().success());
        };
        git(&["init", "--quiet"]);
        git(&["commit", "--quiet", "--allow-empty", "--message", "x"]);
        let lock = "[[package]]\nname = \"h2\"\nversion = \"0.4.1\"\nsource = \"registry\"\n\
            [[package]]\nname = \"quiet\"\nversion = \"1.0.0\"\nsource = \"registry\"\n";
        fs::write(folder.path().join("Cargo.lock"), lock).unwrap();

        let count = refresh(folder.path(), &database).unwrap();

        let table = fs::read_to_string(folder.path().join(super::TABLE)).unwrap();
        assert_eq!((count, check(lock, &table, "").unwrap().len()), (1, 1), "{table}");
    }
}
