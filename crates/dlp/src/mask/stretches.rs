//! Stretches of a text, and what is put there instead.

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
    ops::Range,
};

use crate::{mask::replacement, text::hidden};

/// A stretch of a text, and what is put there instead.
pub(crate) struct Replacement<'a> {
    /// Bytes of the text.
    pub(crate) span: Range<u32>,
    pub(crate) detector: &'a str,
    pub(crate) text: Cow<'static, str>,
}

impl Replacement<'_> {
    /// Text in place of a whole text in which it was found.
    pub(super) fn whole(&self) -> String {
        replacement::placeholder(self.detector).into_owned()
    }
}

/// A text with stretches replaced. Overlapping ones become one plain placeholder, of the first that
/// leaves one: what one of them keeps could be a part of the other. A stretch that is no part of the text masks all of it.
pub(crate) fn replace(text: &str, mut replacements: Vec<Replacement<'_>>) -> String {
    replacements.sort_by_key(|it| (it.span.start, std::cmp::Reverse(it.span.end)));
    let mut masked = String::with_capacity(text.len());
    let mut done = 0;
    let mut rest = replacements.into_iter().peekable();
    while let Some(first) = rest.next() {
        let start = floor_char(text, first.span.start as usize).max(done);
        let mut end = first.span.end as usize;
        let mut put = first.text;
        let mut named = first.detector;
        while let Some(next) = rest.next_if(|next| (next.span.start as usize) < end) {
            end = end.max(next.span.end as usize);
            if named == hidden::NAME {
                named = next.detector;
            }
            put = replacement::placeholder(named);
        }
        if end > text.len() {
            return replacement::placeholder(first.detector).into_owned();
        }
        masked.push_str(text.get(done..start).unwrap_or_default());
        masked.push_str(&put);
        done = ceil_char(text, end);
    }
    masked.push_str(text.get(done..).unwrap_or_default());
    masked
}

fn floor_char(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

fn ceil_char(text: &str, at: usize) -> usize {
    (at..text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len())
}

/// Part of a matched string that is masked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    Matches,
    /// In JSON that stands in a text, all of each name, text or number.
    Leaves,
    Everything,
}

/// The wanted name, or the first of `wanted#2`, `wanted#3`, … that is free.
pub(super) fn unused(
    taken: &mut HashSet<String>,
    uses: &mut HashMap<String, u64>,
    wanted: &str,
) -> String {
    let count = uses.entry(wanted.to_owned()).or_default();
    let mut name = wanted.to_owned();
    loop {
        *count += 1;
        if *count > 1 {
            name = format!("{wanted}#{count}");
        }
        if taken.insert(name.clone()) {
            return name;
        }
    }
}
