//! The scan buffer: every key, string and number literal of a JSON value in one run of bytes,
//! with what is needed to say later where a byte came from.

use std::{borrow::Cow, cell::Cell, fmt::Write as _, ops::Range};

use serde_json::Value;

use super::{
    Unscannable,
    evidence::Memo,
    joins::{self, Neighbours},
    marks::{Marks, Set},
    media,
    settings::Limits,
    sheets::LastLine,
    tables::{Parts, Tables},
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
    /// What kinds of bytes stand in the segments that are scanned now.
    pub(super) marks: Marks,
    /// Texts of one array, by the array's node.
    pub(super) neighbours: Vec<(u32, Neighbours)>,
    /// How many images, recordings and other media there are.
    pub(super) media: u32,
    pub(super) memo: Cell<Memo>,
    /// Of a table in a text.
    pub(super) line: Cell<LastLine>,
    tables: Tables,
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
    /// Neighbours read as one, by the same.
    Joined(u32),
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
        self.marks.clear();
        self.neighbours.clear();
        self.media = 0;
        self.memo.take();
        self.line.take();
        self.tables.clear();
        self.nodes.clear();
    }

    /// How much room it has taken, in bytes.
    pub(super) fn room(&self) -> usize {
        self.text.capacity()
            + self.segments.capacity() * size_of::<Segment>()
            + self.nodes.capacity() * size_of::<Node>()
            + self.marks.room()
    }

    /// Tells the kinds of the bytes of the segments from `first` on.
    pub(super) fn mark(&mut self, first: usize, rare: &Set) {
        let start = self.segments.get(first).map_or(self.text.len(), |it| it.start as usize);
        self.marks.set(&self.text, start, rare);
    }

    /// Returns true if there are non-ASCII characters, or control characters other than tabs, line
    /// ends and the separators of the `segments` segments that are scanned now.
    pub(super) fn has_odd(&self, segments: usize) -> bool {
        self.marks.has_beyond() || self.marks.controls() > segments
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
                let start = self.segments.len();
                for (index, element) in (0..).zip(elements) {
                    let child = self.node(node, Step::Element { index }, limits)?;
                    let first = self.segments.len();
                    self.walk(element, child, depth + 1, limits)?;
                    neighbours.extend(joins::joining(self, element, first));
                }
                if neighbours.len() > 1 {
                    self.neighbours.push((node, neighbours));
                }
                self.tables.add_first_row(node, elements, start);
            }
            Value::Object(members) => {
                let mut parts = Parts::default();
                for (key, member) in members {
                    let step = Step::Member { key: small(self.segments.len()) };
                    let child = self.node(node, step, limits)?;
                    self.push(key.as_bytes(), child, Kind::Key, limits)?;
                    self.media += u32::from(media::is_one(key, member, members));
                    let first = self.segments.len();
                    self.walk(member, child, depth + 1, limits)?;
                    parts.look(self, key, member, child, first);
                }
                parts.note(&mut self.tables);
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

    /// The names of the members and columns above a place, nearest first.
    pub(super) fn keys_above(&self, node: u32) -> impl Iterator<Item = &[u8]> {
        let segments = self.members_above(node).filter_map(|(_, key)| self.segment(key));
        segments.map(|key| self.slice(key.range()))
    }

    /// The members and columns above a place, nearest first, each with the segment that names it.
    pub(super) fn members_above(&self, node: u32) -> impl Iterator<Item = (u32, u32)> {
        self.steps(node).filter_map(|(node, step)| match step {
            Step::Member { key } => Some((node, key)),
            Step::Element { index } => self.head(node, index),
        })
    }

    /// Whether a segment names what is below it: a key, or the head of a column.
    pub(super) fn is_name(&self, segment: u32) -> bool {
        let is_key = self.segment(segment).is_some_and(|segment| segment.kind == Kind::Key);
        is_key || !self.tables.is_empty() && self.tables.is_name(segment)
    }

    /// Whether a segment is the head of the column that a cell stands in.
    pub(super) fn is_head_of(&self, segment: u32, cell: u32) -> bool {
        self.element(cell).and_then(|column| self.head(cell, column)).map(|(_, head)| head)
            == Some(segment)
    }

    /// The node and the segment of what heads the column that an element of a row stands in.
    fn head(&self, cell: u32, column: u32) -> Option<(u32, u32)> {
        if self.tables.is_empty() {
            return None;
        }
        let row = self.nodes.get(cell as usize)?.parent;
        let rows = self.nodes.get(row as usize)?.parent;
        let head = self.tables.head(rows, column)?;
        let node = self.segment(head)?.node;
        (node != cell).then_some((node, head))
    }

    /// Which element of the array `array` a place is, if it is one.
    pub(super) fn element_of(&self, node: u32, array: u32) -> Option<u32> {
        let is_in = self.nodes.get(node as usize).is_some_and(|found| found.parent == array);
        is_in.then(|| self.element(node)).flatten()
    }

    /// Which element of its array a place is, if it is one.
    fn element(&self, node: u32) -> Option<u32> {
        match self.nodes.get(node as usize)?.step {
            Step::Element { index } => Some(index),
            Step::Member { .. } => None,
        }
    }

    /// The key of a member, and the object it is in.
    pub(super) fn member_above(&self, node: u32) -> Option<(&[u8], u32)> {
        let found = self.nodes.get(node as usize)?;
        match found.step {
            Step::Member { key } => Some((self.slice(self.segment(key)?.range()), found.parent)),
            Step::Element { .. } => None,
        }
    }

    /// RFC 6901 pointer of a place.
    pub(super) fn pointer(&self, node: u32) -> String {
        Pointers::new(self, |_, key| Cow::Borrowed(key)).of(node)
    }

    fn steps(&self, node: u32) -> impl Iterator<Item = (u32, Step)> {
        let at = |node: u32| self.nodes.get(node as usize).map(|found| (node, *found));
        std::iter::successors(at(node), move |(_, found)| at(found.parent))
            .map(|(node, found)| (node, found.step))
    }
}

/// RFC 6901 pointers of places, with keys as `name` gives them. Those that stand side by side share
/// most of theirs, which is made once.
pub(super) struct Pointers<'a, N> {
    body: &'a Body,
    name: N,
    /// The pointer of the place above the last one, and that place.
    above: String,
    parent: Option<u32>,
    path: Vec<(u32, Step)>,
}

impl<'a, N: Fn(u32, &'a [u8]) -> Cow<'a, [u8]>> Pointers<'a, N> {
    pub(super) fn new(body: &'a Body, name: N) -> Self {
        Self { body, name, above: String::new(), parent: None, path: Vec::new() }
    }

    pub(super) fn of(&mut self, node: u32) -> String {
        let Some(Node { parent, step }) = self.body.nodes.get(node as usize).copied() else {
            return String::new();
        };
        if self.parent != Some(parent) {
            let mut above = std::mem::take(&mut self.above);
            above.clear();
            self.path.clear();
            self.path.extend(self.body.steps(parent));
            for (node, step) in self.path.iter().rev() {
                self.push(*node, *step, &mut above);
            }
            (self.above, self.parent) = (above, Some(parent));
        }
        let mut pointer = String::with_capacity(self.above.len() + 12);
        pointer.push_str(&self.above);
        self.push(node, step, &mut pointer);
        pointer
    }

    fn push(&self, node: u32, step: Step, pointer: &mut String) {
        pointer.push('/');
        match step {
            Step::Element { index } => {
                // A string takes everything.
                let _ = write!(pointer, "{index}");
            }
            Step::Member { key } => {
                let text = self.body.segment(key).map(|key| self.body.slice(key.range()));
                escape(&(self.name)(node, text.unwrap_or_default()), pointer);
            }
        }
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
pub(super) fn plain_number(literal: &str) -> Cow<'_, str> {
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
