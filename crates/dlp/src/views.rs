//! Other readings of a text: unescaped, decoded, or joined with its neighbours.

mod characters;
mod cut;
pub(super) mod encoded;
mod escapes;
pub(super) mod inflate;
mod lines;
mod pairs;
mod readable;
pub(super) mod recased;
mod sextets;
mod splices;
pub(super) mod unescape;
pub(super) mod view;
