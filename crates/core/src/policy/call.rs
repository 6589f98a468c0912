//! A call as policies see it: the principal, and the question with its context.

pub(super) mod identity;
pub(super) mod question;
