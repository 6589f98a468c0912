//! Requests counted by route template, method and status: labels that callers cannot multiply.

use std::time::Duration;

use axum::{
    extract::{MatchedPath, Request},
    http::{Method, StatusCode},
};
use portcullis_app::Origin;

use super::Gateway;

/// Which route a request took.
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

    /// Counts the request and how long it took.
    pub(crate) fn count(&self, gateway: &Gateway, origin: &Origin, status: StatusCode) {
        let path = self.path.as_ref().map_or("none", MatchedPath::as_str).to_owned();
        let micros = gateway.app.now().as_micros() - origin.arrived.as_micros();
        let took = Duration::from_micros(u64::try_from(micros).unwrap_or(0));
        let labels = [
            ("method", self.method.to_owned()),
            ("path", path),
            ("status", status.as_str().to_owned()),
        ];
        metrics::counter!("portcullis_http_requests_total", &labels).increment(1);
        metrics::histogram!("portcullis_http_request_seconds").record(took.as_secs_f64());
    }
}
