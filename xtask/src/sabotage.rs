//! Sabotages: promises of docs/threat-model.md that are broken one after the other in a copy of the
//! tree, to see which tests of the API notice. All are compiled into that copy, each behind a
//! switch of the environment, which the gateways of the tests inherit.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::{Path, PathBuf},
    process::Command,
    time::Instant,
};

use serde::Deserialize;

#[cfg(test)]
mod tests;

const LIST: &str = "xtask/sabotages.toml";
/// Holds the id of the sabotage that is in force.
const VARIABLE: &str = "PORTCULLIS_SABOTAGE";
/// Seconds after which tests that do not end are given up.
const PATIENCE: &str = "600";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    sabotage: Vec<Sabotage>,
}

/// A change of the source that breaks a promise.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Sabotage {
    id: String,
    /// Words of docs/threat-model.md.
    promise: String,
    file: String,
    before: String,
    after: String,
    /// Functions that should fail.
    tests: Vec<String>,
    /// True if one of them did when the row was written.
    caught: bool,
}

/// Tries the sabotages of these ids, or all. Returns those that were caught once and no longer are.
pub(crate) fn run(root: &Path, ids: &[&str]) -> io::Result<Vec<String>> {
    let list = read(root)?;
    let (changed, stale) = apply(root, &list);
    let chosen = list.iter().filter(|row| ids.is_empty() || ids.contains(&row.id.as_str()));
    let chosen: Vec<&Sabotage> = chosen.collect();
    let all: BTreeSet<&String> = chosen.iter().flat_map(|row| &row.tests).collect();
    if !stale.is_empty() || all.is_empty() {
        let stale = stale.join("\n");
        return Err(io::Error::other(format!("no such sabotage, or stale rows\n{stale}")));
    }
    let folder = root.join("target/sabotage");
    copy(root, &folder.join("tree"), &changed)?;
    if !test(&folder, Command::new(env!("CARGO"))).arg("--no-run").status()?.success() {
        return Err(io::Error::other("the copy in target/sabotage/tree does not compile"));
    }
    let failed = failing(&folder, all, None)?.join(", ");
    if !failed.is_empty() {
        return Err(io::Error::other(format!("without any sabotage these fail: {failed}")));
    }
    let mut missed = Vec::new();
    for row in chosen {
        #[expect(clippy::disallowed_methods, reason = "people are told how long the tests took")]
        let begun = Instant::now();
        let failed = failing(&folder, &row.tests, Some(&row.id))?;
        let seconds = begun.elapsed().as_secs();
        let (verdict, by) = match failed.as_slice() {
            [] => ("not caught", row.promise.clone()),
            by => ("caught", by.join(", ")),
        };
        crate::say(&format!("{:<18} {verdict:<11} {seconds:>4} s  {by}\n", row.id));
        if row.caught && failed.is_empty() {
            missed.push(row.id.clone());
        }
    }
    Ok(missed)
}

fn read(root: &Path) -> io::Result<Vec<Sabotage>> {
    let text = fs::read_to_string(root.join(LIST))?;
    let list: List = toml::from_str(&text).map_err(io::Error::other)?;
    Ok(list.sabotage)
}

/// The files that sabotages change, with all of them, and a line for each row that is stale.
fn apply(root: &Path, list: &[Sabotage]) -> (BTreeMap<PathBuf, String>, Vec<String>) {
    let mut changed = BTreeMap::new();
    let mut stale = Vec::new();
    for Sabotage { id, file, before, after, .. } in list {
        let path = PathBuf::from(file);
        let known: Option<String> = changed.remove(&path);
        let read = || fs::read_to_string(root.join(file)).unwrap_or_default();
        let text = known.unwrap_or_else(read);
        let count = text.matches(before.as_str()).count();
        if count != 1 {
            stale.push(format!("{LIST}: `before` of `{id}` stands {count} times in {file}"));
        }
        let call = format!("sabotaged(\"{id}\")");
        if !after.contains(&call) {
            stale.push(format!("{LIST}: `after` of `{id}` does not ask for `{call}`"));
        }
        let after = after.replace(&call, &switch(id));
        changed.insert(path, text.replacen(before.as_str(), &after, 1));
    }
    (changed, stale)
}

/// An expression that is true while the sabotage is in force. It needs nothing of its crate.
fn switch(id: &str) -> String {
    format!(
        "({{ static ON: std::sync::LazyLock<bool> = std::sync::LazyLock::new(|| \
         std::env::var(\"{VARIABLE}\").is_ok_and(|id| id == \"{id}\")); *ON }})"
    )
}

/// Makes `tree` the working tree with these files changed. What is the same keeps its time, so that
/// cargo builds little anew.
fn copy(root: &Path, tree: &Path, changed: &BTreeMap<PathBuf, String>) -> io::Result<()> {
    let mut git = Command::new("git");
    git.args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]).current_dir(root);
    let listed = git.output()?;
    if !listed.status.success() {
        return Err(io::Error::other("`git ls-files` does not list the tree"));
    }
    let listed = String::from_utf8(listed.stdout).map_err(io::Error::other)?;
    let listed: BTreeSet<&Path> =
        listed.split('\0').map(Path::new).filter(|name| root.join(name).is_file()).collect();
    remove_others(tree, tree, &listed)?;
    for name in listed {
        let (from, to) = (root.join(name), tree.join(name));
        let bytes = match changed.get(name) {
            Some(text) => text.clone().into_bytes(),
            None => fs::read(&from)?,
        };
        if fs::read(&to).is_ok_and(|known| known == bytes) {
            continue;
        }
        fs::create_dir_all(to.parent().unwrap_or(tree))?;
        fs::write(&to, bytes)?;
        fs::set_permissions(&to, fs::metadata(&from)?.permissions())?;
    }
    Ok(())
}

/// Removes the files below `folder` that are not listed: an old migration would be built in.
fn remove_others(tree: &Path, folder: &Path, listed: &BTreeSet<&Path>) -> io::Result<()> {
    let Ok(entries) = fs::read_dir(folder) else { return Ok(()) };
    for entry in entries {
        let entry = entry?;
        let path = entry.path();
        if entry.file_type()?.is_dir() {
            remove_others(tree, &path, listed)?;
        } else if !path.strip_prefix(tree).is_ok_and(|name| listed.contains(name)) {
            fs::remove_file(path)?;
        }
    }
    Ok(())
}

/// `cargo`, which may stand behind another program, for the tests of the API in the copy. Clippy,
/// by which `./test` compiles, would refuse it.
fn test(folder: &Path, mut cargo: Command) -> Command {
    cargo.args(["test", "--locked", "--package", "portcullis", "--test", "api"]);
    cargo.current_dir(folder.join("tree")).env("CARGO_TARGET_DIR", folder.join("build"));
    for name in ["RUSTC_WORKSPACE_WRAPPER", "CLIPPY_ARGS", VARIABLE] {
        cargo.env_remove(name);
    }
    cargo
}

/// Runs tests under a sabotage, or none. Returns the names of those that fail.
fn failing<'a>(
    folder: &Path,
    tests: impl IntoIterator<Item = &'a String>,
    sabotage: Option<&str>,
) -> io::Result<Vec<String>> {
    let mut timed = Command::new("timeout");
    timed.args([PATIENCE, env!("CARGO")]);
    let mut command = test(folder, timed);
    command.arg("--").args(tests);
    command.envs(sabotage.map(|id| (VARIABLE, id)));
    let output = command.output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let ended = text.lines().filter_map(|line| line.strip_prefix("test ")?.split_once(" ... "));
    let (failed, passed): (Vec<_>, Vec<_>) = ended.partition(|(_, how)| *how == "FAILED");
    if !failed.is_empty() {
        return Ok(failed.into_iter().map(|(name, _)| name.to_owned()).collect());
    }
    if passed.is_empty() && output.status.success() {
        return Err(io::Error::other("there are no tests of these names"));
    }
    // 124 is that of `timeout`.
    let ended_early = (!output.status.success()).then(|| format!("none ({})", output.status));
    Ok(ended_early.into_iter().collect())
}
