//! Other readings of a text: unescaped, decoded, or joined with its neighbours.

mod characters;
mod cut;
pub(super) mod encoded;
mod escapes;
mod frames;
pub(super) mod inflate;
mod lines;
pub(super) mod origins;
mod readable;
mod readings;
pub(super) mod recased;
mod rows;
mod sextets;
mod splices;
pub(super) mod unescape;
pub(super) mod view;
