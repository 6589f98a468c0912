//! The parameter of a path.

use axum::extract::{Path, rejection::PathRejection};

/// A parameter of a path, decoded once.
pub(crate) type Segment = Result<Path<String>, PathRejection>;

/// The text of a parameter; empty, which names nothing, if it is not UTF-8.
pub(crate) fn segment(path: Segment) -> String {
    path.map(|Path(text)| text).unwrap_or_default()
}
