//! Requests counted by route template, method and status: labels that callers cannot multiply.

use std::sync::{Arc, LazyLock, OnceLock};

use axum::{
    extract::{MatchedPath, Request},
    http::{Method, StatusCode},
};
use metrics::{Counter, counter};
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
    path: Option<Template>,
}

/// The template of a route.
enum Template {
    Matched(MatchedPath),
    Call(&'static CallRoute),
}

/// A route of calls, whose answers are counted without looking their counter up.
pub(crate) struct CallRoute {
    template: &'static str,
    answered: OnceLock<Counter>,
}

impl CallRoute {
    pub(crate) const fn new(template: &'static str) -> Self {
        Self { template, answered: OnceLock::new() }
    }
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
        let path = request.extensions().get::<MatchedPath>().cloned();
        Self { method, path: path.map(Template::Matched) }
    }

    /// A POST to a route of calls.
    pub(crate) const fn call(route: &'static CallRoute) -> Self {
        Self { method: "POST", path: Some(Template::Call(route)) }
    }

    /// The method, one of a closed set.
    pub(crate) const fn method(&self) -> &'static str {
        self.method
    }

    /// The route template; absent for a path that is none.
    pub(crate) fn path(&self) -> Option<&str> {
        self.path.as_ref().map(|path| match path {
            Template::Matched(path) => path.as_str(),
            Template::Call(route) => route.template,
        })
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
        match &self.path {
            Some(Template::Call(route)) if status == StatusCode::OK => {
                route.answered.get_or_init(|| self.counter(status)).increment(1);
            }
            Some(_) | None => self.counter(status).increment(1),
        }
        TIMES.count(origin.arrived, gateway.app.base.now());
    }
    fn counter(&self, status: StatusCode) -> Counter {
        let path = self.path().unwrap_or("none").to_owned();
        let labels = [
            ("method", self.method.to_owned()),
            ("path", path),
            ("status", status.as_str().to_owned()),
        ];
        counter!("portcullis_http_requests_total", &labels)
    }
}
