//! Bytes of a text: kinds of characters, words, numbers, layouts and hidden characters. Nothing
//! here knows detectors or values.

pub(super) mod digits;
pub(super) mod groups;
pub(super) mod hidden;
pub(super) mod labels;
pub(super) mod layouts;
pub(super) mod line_marks;
pub(super) mod lists;
pub(super) mod log_lines;
pub(super) mod marks;
pub(super) mod number;
pub(super) mod own_words;
pub(super) mod placeholders;
pub(super) mod prefixes;
pub(super) mod window;
pub(super) mod words;
