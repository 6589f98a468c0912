//! The policy language: entity types, principals given by name, paths into the context, and bounds on nesting.

pub(super) mod context_paths;
pub(super) mod entity_types;
pub(super) mod misnamed;
pub(super) mod nesting;

/// Advice on comparing numbers.
pub(super) const NUMBERS: &str = "an integer is compared as in `> 1000`, any other number as in \
     `.greaterThan(decimal(\"1000.0\"))`, `.greaterThanOrEqual(…)`, `.lessThan(…)`, `.lessThanOrEqual(…)` or \
     `== decimal(\"1000.0\")`";
