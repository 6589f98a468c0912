//! Version 1 of the API, one file a resource.

pub(super) mod auth;
pub(super) mod checkpoint;
pub(super) mod events;
pub(super) mod exports;
pub(super) mod invoke;
pub(super) mod mcps;
pub(super) mod policies;
pub(super) mod providers;
pub(super) mod shapes;
pub(super) mod simulate;

use axum::extract::{Path, rejection::PathRejection};

/// A path parameter decoded once; what is not UTF-8 becomes a text that names nothing.
type Segment = Result<Path<String>, PathRejection>;

fn segment(path: Segment) -> String {
    path.map(|Path(text)| text).unwrap_or_default()
}
