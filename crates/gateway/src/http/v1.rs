//! Version 1 of the API, one file a resource.

pub(super) mod approvals;
pub(super) mod auth;
pub(super) mod checkpoint;
pub(super) mod events;
pub(super) mod exports;
pub(super) mod invoke;
pub(super) mod mcps;
pub(super) mod policies;
pub(super) mod providers;
pub(super) mod simulate;

use std::sync::Arc;

use axum::{
    extract::{FromRequestParts, Path, rejection::PathRejection},
    http::request::Parts,
};
use portcullis_app::tool_named;
use portcullis_core::{refusal::Refusal, tool::ToolId};

use super::{Gateway, outcome::Outcome};

/// A path parameter decoded once; what is not UTF-8 becomes a text that names nothing.
type Segment = Result<Path<String>, PathRejection>;

fn segment(path: Segment) -> String {
    path.map(|Path(text)| text).unwrap_or_default()
}

/// The tool that the path names, decoded and parsed once. What is malformed can name no tool.
pub(super) struct ToolPath(Result<ToolId, Refusal>);

impl FromRequestParts<Arc<Gateway>> for ToolPath {
    type Rejection = Outcome;

    async fn from_request_parts(
        parts: &mut Parts,
        gateway: &Arc<Gateway>,
    ) -> Result<Self, Outcome> {
        Ok(Self(tool_named(&segment(Path::from_request_parts(parts, gateway).await))))
    }
}
