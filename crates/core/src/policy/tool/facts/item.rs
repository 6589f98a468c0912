//! Values between the functions of a pipeline.

use std::borrow::Cow;

use crate::json::Node;

/// The fact cannot be computed for this input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Failed;

/// A value on its way.
#[derive(Debug, Clone)]
pub(super) enum Item<'a> {
    Json(Node<'a>),
    Text(Cow<'a, str>),
    Long(i64),
    Bool(bool),
    Decimal(i64),
}

/// Type of the items, as far as it is known before anything runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Typed {
    /// Whatever the input holds.
    Any,
    Text,
    Long,
    Bool,
    Decimal,
}
