//! The scan buffer: every key, string and number literal of a JSON value in one run of bytes,
//! with what is needed to say later where a byte came from.

use std::{borrow::Cow, cell::Cell, ops::Range};

use serde_json::Value;

use super::{
    Unscannable,
    evidence::Memo,
    joins::{self, Neighbours},
    media,
    settings::Limits,
};

/// Stands between segments, so that nothing matches across two of them.
const SEPARATOR: u8 = 0;

/// Index of the node that has no parent, and the parent it names.
const ROOT: u32 = u32::MAX;

/// A JSON value laid flat.
#[derive(Default)]
pub(super) struct Body {
    pub(super) text: Vec<u8>,
    pub(super) segments: Vec<Segment>,
    /// Texts of one array, by the array's node.
    pub(super) neighbours: Vec<(u32, Neighbours)>,
    /// How many images, recordings and other media there are.
    pub(super) media: u32,
    pub(super) memo: Cell<Memo>,
    nodes: Vec<Node>,
}

/// One key, string, number literal or decoded view in the buffer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Segment {
    pub(super) start: u32,
    pub(super) end: u32,
    /// The place in the value; for a key, that of its member. [`ROOT`] is the whole value.
    pub(super) node: u32,
    pub(super) kind: Kind,
}

/// What a segment holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Key,
    Text,
    Number,
    /// A decoded view, by its index among the views.
    View(u32),
}

/// One member or element, named by its key's segment or its index.
#[derive(Debug, Clone, Copy)]
struct Node {
    parent: u32,
    step: Step,
}

#[derive(Debug, Clone, Copy)]
enum Step {
    Member { key: u32 },
    Element { index: u32 },
}

impl Segment {
    pub(super) fn range(&self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

impl Body {
    /// Lays a value flat in place of what was here, or says which limit it exceeds.
    pub(super) fn flatten(&mut self, value: &Value, limits: &Limits) -> Result<(), Unscannable> {
        self.clear();
        self.walk(value, ROOT, 0, limits)
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        self.text.clear();
        self.segments.clear();
        self.neighbours.clear();
        self.media = 0;
        self.memo.take();
        self.nodes.clear();
    }

    /// How much room it has taken, in bytes.
    pub(super) fn room(&self) -> usize {
        self.text.capacity()
            + self.segments.capacity() * size_of::<Segment>()
            + self.nodes.capacity() * size_of::<Node>()
    }

    fn walk(
        &mut self,
        value: &Value,
        node: u32,
        depth: usize,
        limits: &Limits,
    ) -> Result<(), Unscannable> {
        if depth > limits.max_depth {
            return Err(Unscannable::TooDeep { limit: limits.max_depth });
        }
        match value {
            Value::Null | Value::Bool(_) => {}
            Value::String(text) => self.push(text.as_bytes(), node, Kind::Text, limits)?,
            Value::Number(number) => {
                let text = plain_number(number.as_str());
                self.push(text.as_bytes(), node, Kind::Number, limits)?;
            }
            Value::Array(elements) => {
                let mut neighbours = Neighbours::new();
                for (index, element) in (0..).zip(elements) {
                    let child = self.node(node, Step::Element { index }, limits)?;
                    let first = self.segments.len();
                    self.walk(element, child, depth + 1, limits)?;
                    neighbours.extend(joins::joining(self, element, first));
                }
                if neighbours.len() > 1 {
                    self.neighbours.push((node, neighbours));
                }
            }
            Value::Object(members) => {
                for (key, member) in members {
                    let step = Step::Member { key: small(self.segments.len()) };
                    let child = self.node(node, step, limits)?;
                    self.push(key.as_bytes(), child, Kind::Key, limits)?;
                    self.media += u32::from(media::is_one(key, member, members));
                    self.walk(member, child, depth + 1, limits)?;
                }
            }
        }
        Ok(())
    }

    fn node(&mut self, parent: u32, step: Step, limits: &Limits) -> Result<u32, Unscannable> {
        if self.nodes.len() >= limits.max_nodes {
            return Err(Unscannable::TooManyNodes { limit: limits.max_nodes });
        }
        self.nodes.push(Node { parent, step });
        Ok(small(self.nodes.len() - 1))
    }

    fn push(
        &mut self,
        text: &[u8],
        node: u32,
        kind: Kind,
        limits: &Limits,
    ) -> Result<(), Unscannable> {
        if self.text.len() + text.len() > limits.max_bytes {
            return Err(Unscannable::TooLarge { limit: limits.max_bytes });
        }
        self.append(text, node, kind);
        Ok(())
    }

    /// Adds a segment at the end of the buffer.
    pub(super) fn append(&mut self, text: &[u8], node: u32, kind: Kind) {
        let start = small(self.text.len());
        self.text.extend_from_slice(text);
        self.segments.push(Segment { start, end: small(self.text.len()), node, kind });
        self.text.push(SEPARATOR);
    }

    pub(super) fn slice(&self, range: Range<usize>) -> &[u8] {
        self.text.get(range).unwrap_or_default()
    }

    pub(super) fn segment(&self, index: u32) -> Option<&Segment> {
        self.segments.get(index as usize)
    }

    /// The texts of the keys above a place, nearest first.
    pub(super) fn keys_above(&self, node: u32) -> impl Iterator<Item = &[u8]> {
        let segments = self.members_above(node).filter_map(|(_, key)| self.segment(key));
        segments.map(|key| self.slice(key.range()))
    }

    /// The members above a place, nearest first, each with its key's segment.
    pub(super) fn members_above(&self, node: u32) -> impl Iterator<Item = (u32, u32)> {
        self.steps(node).filter_map(|(node, step)| match step {
            Step::Member { key } => Some((node, key)),
            Step::Element { .. } => None,
        })
    }

    /// RFC 6901 pointer of a place, with keys as `name` gives them.
    pub(super) fn pointer<'a>(
        &'a self,
        node: u32,
        name: impl Fn(u32, &'a [u8]) -> Cow<'a, [u8]>,
    ) -> String {
        let steps: Vec<(u32, Step)> = self.steps(node).collect();
        let mut pointer = String::new();
        for (node, step) in steps.into_iter().rev() {
            pointer.push('/');
            match step {
                Step::Element { index } => pointer.push_str(&index.to_string()),
                Step::Member { key } => {
                    let text = self.segment(key).map(|key| self.slice(key.range()));
                    escape(&name(node, text.unwrap_or_default()), &mut pointer);
                }
            }
        }
        pointer
    }

    fn steps(&self, node: u32) -> impl Iterator<Item = (u32, Step)> {
        let at = |node: u32| self.nodes.get(node as usize).map(|found| (node, *found));
        std::iter::successors(at(node), move |(_, found)| at(found.parent))
            .map(|(node, found)| (node, found.step))
    }
}

/// RFC 6901 §3: `~` becomes `~0` and `/` becomes `~1`.
fn escape(key: &[u8], into: &mut String) {
    for char in String::from_utf8_lossy(key).chars() {
        match char {
            '~' => into.push_str("~0"),
            '/' => into.push_str("~1"),
            _ => into.push(char),
        }
    }
}

/// A number as it is written; without its point and exponent when they leave a whole number of
/// a length of interest. A card number does not hide behind `.0` or `e3`.
fn plain_number(literal: &str) -> Cow<'_, str> {
    const LONGEST: usize = 40;
    let (mantissa, exponent) = literal.split_once(['e', 'E']).unwrap_or((literal, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let fraction = fraction.trim_end_matches('0');
    let zeros = exponent.parse::<usize>().ok().and_then(|e| e.checked_sub(fraction.len()));
    match zeros {
        Some(0) if fraction.is_empty() => Cow::Borrowed(whole),
        Some(zeros) if whole.len() + fraction.len() + zeros <= LONGEST => {
            Cow::Owned(format!("{whole}{fraction}{}", "0".repeat(zeros)))
        }
        Some(_) | None => Cow::Borrowed(literal),
    }
}

/// Lengths stay far below 2³²: [`Limits`] bounds what is appended.
pub(super) fn small(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_lose_what_hides_them() {
        for (literal, plain) in [
            ("12", "12"),
            ("-12.50", "-12.50"),
            ("12.00", "12"),
            ("1.25e2", "125"),
            ("1.2E+3", "1200"),
            ("12e-1", "12e-1"),
            ("1e99", "1e99"),
            ("1e999999999999999999999", "1e999999999999999999999"),
        ] {
            assert_eq!(plain_number(literal), plain);
        }
    }
}
