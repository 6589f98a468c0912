//! The crates that are linked into the gateway, as a `CycloneDX` 1.6 document.

use std::{
    collections::{BTreeMap, BTreeSet},
    env, fs, io,
    path::Path,
    process::Command,
};

use serde_json::{Value, json};
use toml::Table;

use super::output;

const ROOT: &str = "portcullis";

/// The document for the gateway on this target: every crate that is linked, with licence, checksum and
/// dependencies.
pub(super) fn of(root: &Path, target: &str, version: &str, epoch: &str) -> io::Result<String> {
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["metadata", "--format-version", "1", "--locked", "--filter-platform", target]);
    let metadata: Value = serde_json::from_str(&output(cargo.current_dir(root))?)?;
    let lock: Table =
        fs::read_to_string(root.join("Cargo.lock"))?.parse().map_err(io::Error::other)?;
    let document = document(&metadata, &checksums(&lock), version, &iso(epoch)?);
    Ok(serde_json::to_string_pretty(&document)? + "\n")
}

fn document(
    metadata: &Value,
    checksums: &BTreeMap<(String, String), String>,
    version: &str,
    timestamp: &str,
) -> Value {
    let packages = by_id(metadata.get("packages"));
    let nodes = by_id(metadata.pointer("/resolve/nodes"));
    let gateway = packages.iter().find(|(_, package)| text(package, "name") == ROOT);
    let linked = gateway.map(|(id, _)| linked(id, &nodes)).unwrap_or_default();
    let known = |id: &str| packages.get(id).map(|package| purl(package));
    let components =
        linked.iter().filter_map(|id| packages.get(id)).filter(|it| text(it, "name") != ROOT);
    let dependencies = linked.iter().filter_map(|id| {
        let on: BTreeSet<String> = links(nodes.get(id)?).filter_map(known).collect();
        Some(json!({ "ref": known(id)?, "dependsOn": on }))
    });
    json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "timestamp": timestamp,
            "component": {
                "type": "application",
                "bom-ref": format!("pkg:cargo/{ROOT}@{version}"),
                "name": ROOT,
                "version": version,
                "purl": format!("pkg:cargo/{ROOT}@{version}"),
                "licenses": [{ "expression": "Apache-2.0" }],
            },
        },
        "components": components.map(|it| component(it, checksums)).collect::<Vec<_>>(),
        "dependencies": dependencies.collect::<Vec<_>>(),
    })
}

fn by_id(list: Option<&Value>) -> BTreeMap<&str, &Value> {
    let list = list.and_then(Value::as_array).into_iter().flatten();
    list.map(|entry| (text(entry, "id"), entry)).collect()
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// Ids of what a package is linked with, itself included.
fn linked<'a>(id: &'a str, nodes: &BTreeMap<&'a str, &'a Value>) -> BTreeSet<&'a str> {
    let mut found = BTreeSet::new();
    let mut open = vec![id];
    while let Some(id) = open.pop() {
        if found.insert(id) {
            open.extend(nodes.get(id).into_iter().flat_map(|node| links(node)));
        }
    }
    found
}

/// Ids of the normal dependencies of a node: not what only builds or tests it.
fn links(node: &Value) -> impl Iterator<Item = &str> {
    let is_normal = |dependency: &&Value| {
        let kinds = dependency.get("dep_kinds").and_then(Value::as_array).into_iter().flatten();
        kinds.into_iter().any(|kind| kind.get("kind").is_some_and(Value::is_null))
    };
    let all = node.get("deps").and_then(Value::as_array).into_iter().flatten();
    all.filter(is_normal).map(|dependency| text(dependency, "pkg"))
}

fn purl(package: &Value) -> String {
    format!("pkg:cargo/{}@{}", text(package, "name"), text(package, "version"))
}

fn component(package: &Value, checksums: &BTreeMap<(String, String), String>) -> Value {
    let name = text(package, "name");
    let version = text(package, "version");
    let mut component = json!({
        "type": "library",
        "bom-ref": purl(package),
        "name": name,
        "version": version,
        "purl": purl(package),
        // `/` is an old way to write `OR`.
        "licenses": [{ "expression": text(package, "license").replace('/', " OR ") }],
    });
    let hash = checksums.get(&(name.to_owned(), version.to_owned()));
    if let (Some(hash), Some(members)) = (hash, component.as_object_mut()) {
        members.insert("hashes".to_owned(), json!([{ "alg": "SHA-256", "content": hash }]));
    }
    component
}

/// SHA-256 of each package in the lock file, by name and version.
fn checksums(lock: &Table) -> BTreeMap<(String, String), String> {
    let packages = lock.get("package").and_then(toml::Value::as_array).into_iter().flatten();
    let entry = |package: &toml::Value| {
        let text = |key| package.get(key).and_then(toml::Value::as_str).map(str::to_owned);
        Some(((text("name")?, text("version")?), text("checksum")?))
    };
    packages.filter_map(entry).collect()
}

fn iso(epoch: &str) -> io::Result<String> {
    let told = output(
        Command::new("date").args(["-u", "+%Y-%m-%dT%H:%M:%SZ", "-d"]).arg(format!("@{epoch}")),
    )?;
    Ok(told.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_linked_is_listed_and_what_only_tests_is_not() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();

        let text = of(root, "x86_64-unknown-linux-gnu", "9.8.7", "1700000000").unwrap();

        let document: Value = serde_json::from_str(&text).unwrap();
        let components = document["components"].as_array().unwrap();
        let named = |name: &str| components.iter().find(|it| it["name"] == name);
        let serde = named("serde_json").unwrap();
        assert_eq!(serde["licenses"][0]["expression"], "MIT OR Apache-2.0");
        assert_eq!(serde["hashes"][0]["content"].as_str().unwrap().len(), 64);
        for absent in ["proptest", "xtask", "portcullis-testkit", "windows-sys"] {
            assert!(named(absent).is_none(), "{absent}");
        }
        assert_eq!(document["metadata"]["timestamp"], "2023-11-14T22:13:20Z");
        let refs: BTreeSet<&str> = document["dependencies"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| it["ref"].as_str().unwrap())
            .collect();
        assert_eq!(refs.len(), components.len() + 1);
    }
}
