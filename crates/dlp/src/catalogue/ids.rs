//! Numbers that states gave to persons and companies.

pub(super) mod americas;
pub(super) mod asia;
pub(super) mod documents;
pub(super) mod europe;
