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

use super::Gateway;

static FAMILY: Family = Family {
    name: "portcullis_http_request_seconds",
    help: "Time to answer",
    label: "",
    bounds: &MOMENTS,
};

static TIMES: LazyLock<Arc<Times>> = LazyLock::new(|| Times::of(&FAMILY, ""));

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
        TIMES.count(origin.arrived, gateway.app.base.now());
    }
}
