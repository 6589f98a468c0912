//! Packages that the tests install from other registries are pinned, and come from those
//! registries.

use serde_json::Value;

use super::{
    Violation,
    repository::{File, Repository},
};

const NPM: &str = "https://registry.npmjs.org/";

/// Finds npm lock entries fetched from elsewhere, and Python requirements without `==`.
pub(crate) fn check(repository: &Repository) -> Vec<Violation> {
    let mut found = Vec::new();
    for file in repository.files() {
        if file.path.ends_with("package-lock.json") {
            found.extend(check_npm(file));
        } else if file.path.ends_with("requirements.txt") {
            found.extend(check_python(file));
        }
    }
    found
}

fn check_npm(file: &File) -> Vec<Violation> {
    let lock: Value = serde_json::from_str(&file.text).unwrap_or_default();
    let Some(packages) = lock.get("packages").and_then(Value::as_object) else {
        return vec![Violation::new(&file.path, 1, "is no lock file", "run npm install")];
    };
    let mut found = Vec::new();
    for (name, package) in packages.iter().filter(|(name, _)| !name.is_empty()) {
        let resolved = package.get("resolved").and_then(Value::as_str);
        if resolved.is_some_and(|url| !url.starts_with(NPM)) {
            let what = format!("`{name}` is not taken from the npm registry");
            found.push(Violation::new(&file.path, 1, what, "lock it without `resolved`"));
        }
        if package.get("integrity").is_none() {
            let what = format!("`{name}` has no checksum");
            found.push(Violation::new(&file.path, 1, what, "lock it anew"));
        }
    }
    found
}

fn check_python(file: &File) -> Vec<Violation> {
    let mut found = Vec::new();
    for (at, line) in file.text.lines().enumerate() {
        let requirement = line.starts_with(char::is_alphanumeric);
        if requirement && !line.contains("==") {
            let what = "does not pin a version";
            found.push(Violation::new(&file.path, at + 1, what, "write `name==version`"));
        }
        if line.contains("://") {
            let what = "takes a package from an address";
            found.push(Violation::new(&file.path, at + 1, what, "take it from PyPI"));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_entry_from_another_place_or_without_checksum_is_found() {
        let lock = r#"{"packages": {"": {}, "node_modules/a": {"integrity": "sha512-x"},
            "node_modules/b": {"resolved": "https://mirror.example/b.tgz", "integrity": "sha512-x"},
            "node_modules/c": {"resolved": "https://registry.npmjs.org/c.tgz"}}}"#;

        let found = check(&Repository::of(&[("tests/servers/package-lock.json", lock)]));

        assert_eq!(found.len(), 2);
    }

    #[test]
    fn a_requirement_without_a_version_is_found_at_its_line() {
        let text = "# why\na==1.2 \\\n    --hash=sha256:00\nb>=1\n";

        let found = check(&Repository::of(&[("tests/servers/requirements.txt", text)]));

        assert_eq!(found.len(), 1);
        assert_eq!(found[0].line, 4);
    }
}
