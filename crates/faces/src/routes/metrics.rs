//! Requests counted by route template, method and status: labels that callers cannot multiply.

use std::sync::{Arc, LazyLock};

use axum::{
    extract::{MatchedPath, Request},
    http::{Method, StatusCode},
};
use metrics::counter;
use portcullis_app::{
    Origin,
    telemetry::histograms::{Family, MOMENTS, Times},
};
use portcullis_core::refusal::Refusal;

use crate::gateway::Gateway;

static FAMILY: Family = Family {
    name: "portcullis_http_request_seconds",
    help: "Time to answer",
    label: "class",
    bounds: &MOMENTS,
};

/// Classes of routes, beginning with those that are asked for most.
const CLASSES: [&str; 10] =
    ["invoke", "mcp", "api", "console", "assets", "oauth", "scim", "probe", "page", "none"];

static TIMES: LazyLock<[(&str, Arc<Times>); CLASSES.len()]> =
    LazyLock::new(|| CLASSES.map(|class| (class, Times::of(&FAMILY, class))));

/// Class of a route template.
fn class_of(path: Option<&str>) -> &'static str {
    let Some(path) = path else { return "none" };
    let mut segments = path.split('/').skip(1);
    match (segments.next(), segments.next()) {
        (Some("v1"), Some("mcps")) if path.ends_with("/invoke") => "invoke",
        (Some("v1"), _) => "api",
        (Some("mcp"), _) | (Some(".well-known"), Some("ai-catalog.json")) => "mcp",
        (Some("console"), Some("assets")) => "assets",
        (Some("console"), _) => "console",
        (Some("oauth" | ".well-known"), _) => "oauth",
        (Some("scim"), _) => "scim",
        (Some("healthz" | "readyz"), _) => "probe",
        (Some(_) | None, _) => "page",
    }
}

/// The route of a request.
pub(crate) struct Route {
    method: &'static str,
    path: Option<MatchedPath>,
}

impl Route {
    pub(crate) fn of(request: &Request) -> Self {
        let method = match *request.method() {
            Method::GET => "GET",
            Method::POST => "POST",
            Method::DELETE => "DELETE",
            Method::HEAD => "HEAD",
            _ => "other",
        };
        Self { method, path: request.extensions().get::<MatchedPath>().cloned() }
    }

    /// The method, one of a closed set.
    pub(crate) const fn method(&self) -> &'static str {
        self.method
    }

    /// The route template; absent for a path that is none.
    pub(crate) fn path(&self) -> Option<&str> {
        self.path.as_ref().map(MatchedPath::as_str)
    }

    /// Counts the request, how long it took, and why it was refused.
    pub(crate) fn count(
        &self,
        gateway: &Gateway,
        origin: &Origin,
        status: StatusCode,
        refusal: Option<&Refusal>,
    ) {
        if let Some(refusal) = refusal {
            counter!("portcullis_refusals_total", "code" => refusal.code()).increment(1);
        }
        if let Some(Refusal::RateLimited { resource, .. }) = refusal {
            counter!("portcullis_rate_limited_total", "resource" => resource.as_str()).increment(1);
        }
        let labels = [
            ("method", self.method.to_owned()),
            ("path", self.path().unwrap_or("none").to_owned()),
            ("status", status.as_str().to_owned()),
        ];
        counter!("portcullis_http_requests_total", &labels).increment(1);
        let class = class_of(self.path());
        if let Some((_, times)) = TIMES.iter().find(|(it, _)| *it == class) {
            times.count(origin.arrived, gateway.app.base.now());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_route_has_one_of_the_classes() {
        for (path, class) in [
            (Some("/v1/mcps/{id}/invoke"), "invoke"),
            (Some("/v1/mcps/{id}"), "api"),
            (Some("/mcp"), "mcp"),
            (Some("/mcp/"), "mcp"),
            (Some("/mcp/{slug}"), "mcp"),
            (Some("/.well-known/ai-catalog.json"), "mcp"),
            (Some("/console"), "console"),
            (Some("/console/tools/{id}"), "console"),
            (Some("/console/assets/{name}"), "assets"),
            (Some("/oauth/token"), "oauth"),
            (Some("/.well-known/oauth-protected-resource/mcp/{slug}"), "oauth"),
            (Some("/scim/v2/Users"), "scim"),
            (Some("/readyz"), "probe"),
            (Some("/"), "page"),
            (Some("/login/link"), "page"),
            (None, "none"),
        ] {
            assert_eq!(class_of(path), class, "{path:?}");
            assert!(CLASSES.contains(&class), "{class}");
        }
    }
}
