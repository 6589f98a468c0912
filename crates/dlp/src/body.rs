//! The scan buffer: a JSON value laid flat, with the place that every byte came from.

pub(super) mod buffer;
mod columns;
pub(super) mod embedded;
pub(super) mod flatten;
mod folded;
mod html_rows;
pub(super) mod inner;
pub(super) mod joins;
mod lists;
pub(super) mod media;
pub(super) mod memo;
pub(super) mod neighbours;
pub(super) mod pairs;
pub(super) mod placeholders;
pub(super) mod pointers;
mod records;
pub(super) mod segment;
mod sql;
pub(super) mod table_rows;
pub(super) mod tables;
mod text_lines;
mod text_tables;
mod yaml;
