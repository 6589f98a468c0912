//! Tools as policies see them: attributes, declared facts, types and values.

pub(super) mod catalogue;
pub(super) mod facts;
pub(super) mod schema;
pub(super) mod shape;
pub(super) mod values;
