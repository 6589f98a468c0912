//! Masking: placeholders, and the value with findings taken out.

mod inside;
pub(super) mod redact;
pub(super) mod replacement;
pub(super) mod schema;
pub(super) mod stretches;
