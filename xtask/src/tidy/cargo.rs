//! What cargo knows of the packages that are built here.

use std::{collections::BTreeSet, io, path::Path, process::Command};

use serde_json::Value;

/// A package and the licence it states.
#[derive(Debug, Clone)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) licence: Option<String>,
}

/// The answers of `cargo metadata` and `cargo tree`, as far as they are needed.
#[derive(Debug, Default)]
pub(crate) struct Metadata {
    /// Every package in the lock file that could be built, optional ones included.
    pub(crate) packages: Vec<Package>,
    /// The names of those that some target of this workspace does build.
    pub(crate) built: BTreeSet<String>,
}

impl Metadata {
    /// Asks cargo about the workspace at `root`; fails when the lock file is out of date.
    pub(crate) fn read(root: &Path) -> io::Result<Self> {
        let metadata = ask(root, &["metadata", "--format-version", "1", "--locked"])?;
        let tree = ask(root, &TREE)?;
        let built = tree.lines().filter_map(|line| line.split(' ').next());
        Ok(Self {
            packages: packages(&serde_json::from_str(&metadata)?),
            built: built.map(str::to_owned).collect(),
        })
    }

    /// Metadata made of these names and licences, all of them built.
    #[cfg(test)]
    pub(crate) fn of(packages: &[(&str, Option<&str>)]) -> Self {
        let package = |(name, licence): &(&str, Option<&str>)| Package {
            name: (*name).to_owned(),
            version: "1.0.0".to_owned(),
            licence: licence.map(str::to_owned),
        };
        let built = packages.iter().map(|(name, _)| (*name).to_owned()).collect();
        Self { packages: packages.iter().map(package).collect(), built }
    }
}

const TREE: [&str; 8] =
    ["tree", "--workspace", "--locked", "--target", "all", "--prefix", "none", "--format={p}"];

/// What cargo prints; fails with its words when it fails.
fn ask(root: &Path, arguments: &[&str]) -> io::Result<String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo).args(arguments).current_dir(root).output()?;
    if !output.status.success() {
        return Err(io::Error::other(String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    String::from_utf8(output.stdout).map_err(io::Error::other)
}

fn packages(metadata: &Value) -> Vec<Package> {
    let text = |value: &Value, key: &str| value.get(key)?.as_str().map(str::to_owned);
    let list = metadata.get("packages").and_then(Value::as_array);
    let package = |package: &Value| {
        Some(Package {
            name: text(package, "name")?,
            version: text(package, "version")?,
            licence: text(package, "license"),
        })
    };
    list.into_iter().flatten().filter_map(package).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_workspace_knows_its_packages_and_which_of_them_are_built() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();

        let metadata = Metadata::read(root).unwrap();

        let own = metadata.packages.iter().find(|package| package.name == "xtask").unwrap();
        assert_eq!(own.licence.as_deref(), Some("Apache-2.0"));
        assert!(metadata.built.contains("xtask") && metadata.built.contains("serde_json"));
    }
}
