//! Helpers for tests of several modules.

use serde_json::Value;

use crate::json::{Document, Node};

/// A value as a node of a document that stays for the rest of the run.
pub(crate) fn node(value: &Value) -> Node<'static> {
    Box::leak(Box::new(Document::of(value))).root()
}
