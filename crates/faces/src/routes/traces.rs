//! Attributes of the trace of a request: HTTP and the answer, in the terms of OpenTelemetry's
//! conventions for HTTP servers. Its path, its query and its headers are not told: a caller wrote
//! them.

use axum::http::StatusCode;
use portcullis_app::{Attribute, GovernanceView, Recording};
use portcullis_core::audit::RecordedDecision;

use super::metrics::Route;
use crate::exchange::{Exchange, Outcome};

/// Records the answer of a request.
pub(crate) fn answered(
    recording: &Recording,
    exchange: &Exchange,
    route: &Route,
    outcome: Option<&Outcome>,
    status: StatusCode,
) {
    let refusal = outcome.and_then(Outcome::refusal);
    let mut attributes = vec![
        Attribute::text("http.request.method", route.method()),
        Attribute::number("http.response.status_code", status.as_u16()),
        Attribute::text("portcullis.request.id", exchange.origin.request_id.to_string()),
    ];
    attributes.extend(route.path().map(|path| Attribute::text("http.route", path)));
    attributes
        .extend(refusal.map(|refusal| Attribute::text("portcullis.error.code", refusal.code())));
    if let Some(governance) = outcome.and_then(|outcome| outcome.governance.as_ref()) {
        attributes.extend(governed(governance));
    }
    let name = match route.path() {
        Some(path) => format!("{} {path}", route.method()),
        None => route.method().to_owned(),
    };
    let failed = status.is_server_error();
    let why = failed.then(|| refusal.map_or(status.as_str(), |refusal| refusal.code()));
    recording.answered(name, attributes, why);
}

fn governed(governance: &GovernanceView) -> [Attribute; 4] {
    let decision = match governance.decision {
        RecordedDecision::Allow => "allow",
        RecordedDecision::Deny => "deny",
    };
    [
        Attribute::text("portcullis.decision", decision),
        Attribute::text("portcullis.policy.id", governance.policy.as_str()),
        Attribute::text("portcullis.dlp.result", governance.dlp_result.as_str()),
        Attribute::text("portcullis.audit.event.id", governance.audit_event_id.to_string()),
    ]
}
