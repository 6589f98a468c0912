//! The routes of the OpenAPI document, and the scope that each of them asks for.

use crate::prelude::*;

/// Every route as the OpenAPI document has it.
pub(super) fn templates() -> Vec<(Method, String)> {
    let document: Value = serde_json::from_str(&gateway().prepare().run(&["openapi"])).unwrap();
    let mut found = Vec::new();
    for (path, operations) in document["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            if path == "/oauth/introspect" || path.starts_with("/scim/") {
                // Their errors are those of OAuth and of SCIM: see `oauth::law` and `scim::law`.
                continue;
            }
            let open = matches!(path.as_str(), "/" | "/healthz" | "/readyz" | "/openapi.json")
                || [
                    "/oauth/", "/approvals/", "/.well-known/", "/login", "/logout", "/console",
                    "/mcp/",
                ]
                .iter()
                .any(|begin| path.starts_with(begin));
            assert_eq!(operation["security"] == json!([{}]), open, "{path}");
            if !open {
                found.push((method.to_uppercase().parse().unwrap(), path.clone()));
            }
        }
    }
    found
}

/// Every route that needs a token, with the scope it asks for.
pub(in super::super) fn routes() -> Vec<(Method, String, Option<&'static str>)> {
    let scope = |method: &Method, path: &str| match (method.as_str(), path) {
        (
            "GET",
            "/v1/mcps" | "/v1/mcps/{id}" | "/v1/tools/left-out" | "/v1/prompts" | "/v1/prompts/{id}"
            | "/v1/resources" | "/v1/skills" | "/v1/skills/{id}",
        ) => Some("mcps:read"),
        ("POST", "/v1/mcps/{id}/invoke" | "/v1/prompts/{id}/get" | "/v1/resources/read") => Some("mcps:invoke"),
        ("GET", "/v1/providers" | "/v1/providers/waiting" | "/v1/providers/{id}") => Some("providers:read"),
        ("DELETE", "/v1/providers/{id}")
        | (
            "POST",
            "/v1/providers/{slug}/connect"
            | "/v1/providers/{id}/refresh"
            | "/v1/providers/{id}/test",
        ) => Some("providers:write"),
        ("GET", "/v1/policies" | "/v1/policies/{id}")
        | ("POST", "/v1/policies/simulate" | "/v1/policies/check" | "/v1/dlp/scan") => {
            Some("policies:read")
        }
        ("POST", "/v1/audit/export")
        | ("GET", "/v1/audit/exports/{id}" | "/v1/audit/exports/{id}/file") => {
            Some("audit:export")
        }
        ("GET", "/v1/audit/checkpoint" | "/v1/audit/counts" | "/v1/audit/tool-counts") => Some("audit:read"),
        ("GET", "/v1/approvals" | "/v1/approvals/{id}") => Some("approvals:read"),
        ("POST", "/v1/approvals/{id}/decision") => Some("approvals:decide"),
        ("GET" | "POST" | "DELETE", "/v1/principals/{id}/keys")
        | ("GET" | "POST", "/v1/principals" | "/v1/tokens" | "/v1/audit/holds")
        | ("GET" | "PATCH", "/v1/principals/{id}")
        | ("DELETE", "/v1/tokens/{id}" | "/v1/audit/holds/{id}")
        | ("POST", "/v1/tools/{id}/accept" | "/v1/tokens/inspect")
        | ("PUT" | "DELETE", "/v1/policies/{id}/override")
        | ("GET", "/v1/org" | "/v1/tools" | "/v1/tools/waiting") => Some("admin"),
        (
            "GET",
            "/v1/audit/events" | "/v1/audit/events/{id}" | "/v1/audit/events/{id}/proof"
            | "/v1/sessions" | "/v1/consents",
        )
        | ("DELETE", "/v1/sessions/{id}" | "/v1/consents/{id}" | "/v1/auth/token")
        // There the Bearer is the credential itself.
        | ("POST", "/v1/auth/token" | "/v1/auth/refresh") => None,
        other => panic!("say which scope {other:?} needs"),
    };
    let all = templates().into_iter();
    all.map(|(method, path)| {
        let needs = scope(&method, &path);
        let path = path.replace("{id}", "sample:create_note").replace("{slug}", "sample");
        (method, path, needs)
    })
    .collect()
}
