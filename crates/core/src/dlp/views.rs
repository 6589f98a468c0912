//! Other readings of a text: unescaped, decoded, or joined with its neighbours.

pub(super) mod encoded;
pub(super) mod unescape;
pub(super) mod view;
