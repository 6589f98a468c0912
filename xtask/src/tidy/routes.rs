//! Every route has a test that names it.

use serde_json::Value;

use super::{Violation, repository::Repository};

const DOCUMENT: &str = "docs/openapi.json";
const TESTS: &str = "crates/gateway/tests/api/";
const METHODS: [&str; 7] = ["get", "put", "post", "delete", "options", "head", "patch"];

/// Finds operations of the OpenAPI document that no file under `tests/api/` names as
/// `METHOD /path`. Says nothing while there is no document.
pub(crate) fn check(repository: &Repository) -> Vec<Violation> {
    let Some(document) = repository.find(DOCUMENT) else { return Vec::new() };
    let Ok(openapi) = serde_json::from_str::<Value>(&document.text) else {
        return vec![Violation::new(DOCUMENT, 1, "is not JSON", "generate it anew")];
    };
    let mut found = Vec::new();
    for (path, method) in operations(&openapi) {
        let route = format!("{method} {path}");
        if !repository.under(TESTS).any(|test| names(&test.text, &route)) {
            let line = line_of(&document.text, &path);
            let what = format!("no test names `{route}`");
            let remedy = format!("write `{route}` into the file under {TESTS} that tests it");
            found.push(Violation::new(DOCUMENT, line, what, remedy));
        }
    }
    found
}

fn operations(openapi: &Value) -> Vec<(String, String)> {
    let paths = openapi.get("paths").and_then(Value::as_object);
    let mut found = Vec::new();
    for (path, item) in paths.into_iter().flatten() {
        let methods = METHODS.iter().filter(|method| item.get(method).is_some());
        found.extend(methods.map(|method| (path.clone(), method.to_uppercase())));
    }
    found
}

/// Returns true if `text` holds `route` and the path ends there.
fn names(text: &str, route: &str) -> bool {
    text.match_indices(route).any(|(at, _)| {
        let next = text.get(at + route.len()..).and_then(|rest| rest.chars().next());
        next.is_none_or(|c| !(c.is_alphanumeric() || "/{}_-".contains(c)))
    })
}

fn line_of(text: &str, path: &str) -> usize {
    let key = format!("\"{path}\"");
    text.lines().position(|line| line.contains(&key)).map_or(1, |at| at + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPENAPI: &str =
        r#"{"paths": {"/v1/mcps": {"get": {}}, "/v1/mcps/{id}": {"get": {}, "parameters": []}}}"#;

    #[test]
    fn a_route_is_not_named_by_a_longer_one() {
        let test = ("crates/gateway/tests/api/mcps.rs", "//! GET /v1/mcps/{id}, in full.\n");

        let found = check(&Repository::of(&[(DOCUMENT, OPENAPI), test]));

        assert_eq!(found.len(), 1);
        assert!(found[0].what.contains("`GET /v1/mcps`"));
    }

    #[test]
    fn without_a_document_nothing_is_asked() {
        assert!(check(&Repository::default()).is_empty());
    }
}
