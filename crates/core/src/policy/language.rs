//! The policy language: entity types, principals given by name, paths into the context, and bounds on nesting.

pub(super) mod context_paths;
pub(super) mod entity_types;
pub(super) mod misnamed;
pub(super) mod nesting;
