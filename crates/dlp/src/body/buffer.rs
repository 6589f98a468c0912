//! The scan buffer: every key, string and number literal of a JSON value in one run of bytes,
//! with what is needed to say later where a byte came from.

use std::{cell::Cell, ops::Range};

use crate::{
    body::{
        folded::Inner,
        memo::ContextMemo,
        neighbours::Neighbours,
        segment::{Segment, SegmentKind, small},
        tables::Tables,
    },
    text::{
        labels,
        marks::{Marks, Set},
        placeholders::Placeholder,
        window::{Notes, Place, Window},
    },
};

/// Stands between segments, so that nothing matches across two of them.
const SEPARATOR: u8 = 0;

/// Index of the node that has no parent, and the parent it names.
pub(super) const ROOT: u32 = u32::MAX;

/// A JSON value laid flat.
#[derive(Default)]
pub(crate) struct Body {
    pub(crate) text: Vec<u8>,
    pub(crate) segments: Vec<Segment>,
    /// Kinds of the bytes of the segments that are scanned now.
    pub(crate) marks: Marks,
    pub(crate) neighbours: Neighbours,
    /// Number of images, recordings and other media.
    pub(crate) media: u32,
    pub(crate) memo: Cell<ContextMemo>,
    pub(crate) notes: Notes,
    /// Placeholders that were blanked, in order.
    pub(super) placeholders: Vec<Placeholder>,
    pub(super) tables: Tables,
    pub(super) nodes: Vec<PathNode>,
    /// Texts of JSON that stands in texts.
    pub(super) inner: Inner,
}

/// One member or element, named by its key's segment or its index.
#[derive(Debug, Clone, Copy)]
pub(super) struct PathNode {
    pub(super) parent: u32,
    pub(super) step: PathStep,
    /// The segment of the label that names it instead, or [`UNLABELLED`].
    pub(super) label: u32,
}

/// The label of a place that has none.
pub(super) const UNLABELLED: u32 = u32::MAX;

#[derive(Debug, Clone, Copy)]
pub(super) enum PathStep {
    Member { key: u32 },
    Element { index: u32 },
}

impl Body {
    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.text.clear();
        self.segments.clear();
        self.marks.clear();
        self.neighbours.clear();
        self.media = 0;
        self.memo.take();
        self.notes.clear();
        self.placeholders.clear();
        self.tables.clear();
        self.nodes.clear();
        self.inner.clear();
    }

    /// Memory that is allocated, in bytes.
    pub(crate) fn room(&self) -> usize {
        self.text.capacity()
            + self.segments.capacity() * size_of::<Segment>()
            + self.nodes.capacity() * size_of::<PathNode>()
            + self.marks.room()
    }

    /// Tells the kinds of the bytes of the segments from `first` on.
    pub(crate) fn mark(&mut self, first: usize, rare: &Set) {
        let start = self.segments.get(first).map_or(self.text.len(), |it| it.start as usize);
        self.marks.set(&self.text, start, rare);
    }

    /// Returns true if there are non-ASCII characters, or control characters other than tabs, line
    /// ends and the separators of the `segments` segments that are scanned now.
    pub(crate) fn has_odd(&self, segments: usize) -> bool {
        self.marks.has_beyond() || self.marks.controls() > segments
    }

    /// Adds a segment at the end of the buffer.
    #[inline]
    pub(crate) fn append(&mut self, text: &[u8], node: u32, kind: SegmentKind) {
        let start = small(self.text.len());
        self.text.extend_from_slice(text);
        self.segments.push(Segment { start, end: small(self.text.len()), node, kind });
        self.text.push(SEPARATOR);
    }

    pub(crate) fn slice(&self, range: Range<usize>) -> &[u8] {
        self.text.get(range).unwrap_or_default()
    }

    /// The window around a range of a segment, which is at `home`.
    pub(crate) fn window(&self, home: &Range<usize>, range: &Range<usize>) -> Window<'_> {
        let place = Place { at: home.start, notes: &self.notes, placeholders: &self.placeholders };
        Window::around(self.slice(home.clone()), range).placed(place)
    }

    pub(crate) fn segment(&self, index: u32) -> Option<&Segment> {
        self.segments.get(index as usize)
    }

    /// The names of the members and columns above a place, nearest first.
    pub(crate) fn keys_above(&self, node: u32) -> impl Iterator<Item = &[u8]> {
        let segments = self.members_above(node).filter_map(|(_, key)| self.segment(key));
        segments.map(|key| self.slice(key.name()))
    }

    /// The members and columns above a place, nearest first, each with the segment that names it: the label beside a
    /// value before the value's own key. Names that say only that a value follows are left out.
    pub(crate) fn members_above(&self, node: u32) -> impl Iterator<Item = (u32, u32)> {
        self.places(node).flat_map(|(node, PathNode { step, label, .. })| {
            let own = match step {
                PathStep::Member { key } => Some((node, key)),
                PathStep::Element { index } => self.head(node, index),
            };
            let label = self.segment(label).map(|segment| (segment.node, label));
            label.into_iter().chain(own.filter(|(_, name)| !self.is_hollow(*name)))
        })
    }

    /// A place above which the same names stand as above another one: that of the array it is in, as far
    /// as neither labels nor columns name elements.
    pub(crate) fn named_place(&self, node: u32) -> u32 {
        if !self.tables.is_empty() {
            return node;
        }
        let is_unnamed = |found: &PathNode| {
            found.label == UNLABELLED && matches!(found.step, PathStep::Element { .. })
        };
        self.places(node).find(|(_, found)| !is_unnamed(found)).map_or(ROOT, |(place, _)| place)
    }

    /// Returns true if a key says only that a value follows.
    fn is_hollow(&self, key: u32) -> bool {
        self.segment(key).is_some_and(|key| labels::is_value(self.slice(key.range())))
    }

    /// The name of a place: the nearest above it.
    pub(crate) fn name_of(&self, node: u32) -> Option<&[u8]> {
        self.keys_above(node).next()
    }

    /// Returns true if a segment names what is below it: a key, or the head of a column.
    pub(crate) fn is_name(&self, segment: u32) -> bool {
        let is_key = self.segment(segment).is_some_and(|segment| segment.kind == SegmentKind::Key);
        is_key || self.tables.is_name(segment)
    }

    /// The head of the column that a cell stands in, if a label names it, too.
    pub(crate) fn column_of(&self, cell: u32) -> Option<&[u8]> {
        let place = self.nodes.get(cell as usize)?;
        let is_labelled = place.label != UNLABELLED;
        let column = is_labelled.then(|| self.element(cell))??;
        let (_, head) = self.head(cell, column)?;
        self.segment(head).map(|head| self.slice(head.name()))
    }

    /// Returns true if a segment is the label of a place, or the head of the column it stands in.
    pub(crate) fn is_head_of(&self, segment: u32, cell: u32) -> bool {
        let is_label = self.nodes.get(cell as usize).is_some_and(|found| found.label == segment);
        is_label
            || self.element(cell).and_then(|column| self.head(cell, column)).map(|(_, head)| head)
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

    /// Index of a place in the array `array`, if it is an element of it.
    pub(crate) fn element_of(&self, node: u32, array: u32) -> Option<u32> {
        self.is_in(node, array).then(|| self.element(node)).flatten()
    }

    /// The place that holds another one.
    pub(crate) fn parent(&self, node: u32) -> Option<u32> {
        self.nodes.get(node as usize).map(|found| found.parent)
    }

    /// Returns true if a place is a member or an element of what is at another.
    pub(super) fn is_in(&self, node: u32, parent: u32) -> bool {
        self.nodes.get(node as usize).is_some_and(|found| found.parent == parent)
    }

    /// Index of a place in its array, if it is in one.
    fn element(&self, node: u32) -> Option<u32> {
        match self.nodes.get(node as usize)?.step {
            PathStep::Element { index } => Some(index),
            PathStep::Member { .. } => None,
        }
    }

    /// The key of a member, and the object it is in.
    pub(crate) fn member_above(&self, node: u32) -> Option<(&[u8], u32)> {
        let found = self.nodes.get(node as usize)?;
        match found.step {
            PathStep::Member { key } => {
                Some((self.slice(self.segment(key)?.range()), found.parent))
            }
            PathStep::Element { .. } => None,
        }
    }

    pub(super) fn steps(&self, node: u32) -> impl Iterator<Item = (u32, PathStep)> {
        self.places(node).map(|(node, found)| (node, found.step))
    }

    /// A place and those above it.
    fn places(&self, node: u32) -> impl Iterator<Item = (u32, PathNode)> {
        let at = |node: u32| self.nodes.get(node as usize).map(|found| (node, *found));
        std::iter::successors(at(node), move |(_, found)| at(found.parent))
    }
}
