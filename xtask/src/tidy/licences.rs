//! Everything that is linked may be given away under our licence.

use std::collections::BTreeSet;

use toml::{Table, Value};

use super::{
    Violation,
    cargo::{Metadata, Package},
    repository::Repository,
    spdx,
};

const POLICY: &str = "deny.toml";

/// Finds packages whose licence cannot be satisfied from `licenses.allow` and
/// `licenses.exceptions`. An empty list allows nothing.
pub(crate) fn check(repository: &Repository, metadata: &Metadata) -> Vec<Violation> {
    let policy = repository.find(POLICY).and_then(|file| file.text.parse::<Table>().ok());
    let policy = policy.unwrap_or_default();
    let licences = policy.get("licenses");
    let allow = names(licences.and_then(|table| table.get("allow")));
    let exceptions = licences.and_then(|table| table.get("exceptions")).and_then(Value::as_array);
    let exceptions: Vec<&Value> = exceptions.into_iter().flatten().collect();
    let mut found = Vec::new();
    for package in &metadata.packages {
        let mut allowed = allow.clone();
        for exception in exceptions.iter().filter(|e| names_package(e, package)) {
            allowed.extend(names(exception.get("allow")));
        }
        if let Some(what) = complaint(package, &allowed) {
            let remedy = format!("replace it, or extend licenses in {POLICY} and say why");
            found.push(Violation::new("Cargo.lock", 1, what, remedy));
        }
    }
    found
}

fn names(list: Option<&Value>) -> BTreeSet<String> {
    let list = list.and_then(Value::as_array).into_iter().flatten();
    list.filter_map(Value::as_str).map(str::to_owned).collect()
}

fn names_package(exception: &Value, package: &Package) -> bool {
    let name = exception.get("crate").or_else(|| exception.get("name")).and_then(Value::as_str);
    name == Some(package.name.as_str())
}

fn complaint(package: &Package, allowed: &BTreeSet<String>) -> Option<String> {
    let who = format!("`{}` {}", package.name, package.version);
    let Some(licence) = &package.licence else { return Some(format!("{who} states no licence")) };
    match spdx::satisfied(licence, |name| allowed.contains(name)) {
        Ok(true) => None,
        Ok(false) => Some(format!("{who} is licensed `{licence}`, which is not allowed")),
        Err(error) => Some(format!("{who} is licensed `{licence}`: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: &str = "[licenses]\nallow = [\"MIT\", \"Apache-2.0\"]\n\
                         exceptions = [{ crate = \"roots\", allow = [\"CDLA-Permissive-2.0\"] }]\n";

    fn offenders(packages: &[(&str, Option<&str>)]) -> Vec<String> {
        let repository = Repository::of(&[(POLICY, RULES)]);
        check(&repository, &Metadata::of(packages)).into_iter().map(|found| found.what).collect()
    }

    #[test]
    fn permitted_licences_pass() {
        let packages = [("a", Some("GPL-3.0-only OR MIT")), ("roots", Some("CDLA-Permissive-2.0"))];

        assert!(offenders(&packages).is_empty());
    }

    #[test]
    fn the_offender_is_named() {
        let offenders = offenders(&[("a", Some("MIT AND GPL-3.0-only")), ("b", None)]);

        assert_eq!(offenders.len(), 2);
        assert!(offenders[0].contains("`a` 1.0.0") && offenders[1].contains("`b` 1.0.0"));
    }

    #[test]
    fn without_a_list_nothing_is_allowed() {
        let found = check(&Repository::default(), &Metadata::of(&[("a", Some("MIT"))]));

        assert_eq!(found.len(), 1);
    }
}
