//! JSON in texts: the places where it was read, and the texts that wait to be read.

use std::{collections::VecDeque, ops::Range};

use portcullis_json::Document;

use crate::body::{records::Records, yaml::Outline};

/// Treatment of texts that hold JSON.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Folding {
    #[default]
    Left,
    Unfolded,
}

/// The segments that were read in texts, and the texts that wait to be read.
#[derive(Default)]
pub(crate) struct Inner {
    pub(super) folding: Folding,
    /// Depth of the JSON that is being read.
    pub(super) level: usize,
    /// The first of the segments.
    pub(super) first: usize,
    pub(super) origins: Vec<InnerOrigin>,
    pub(super) folded: VecDeque<Folded>,
    /// Their bytes, and the values and names in their JSON.
    pub(super) waiting: usize,
    pub(super) entries: usize,
}

/// Segment in which another one was read, and where.
pub(super) struct InnerOrigin {
    pub(super) source: u32,
    pub(super) place: InnerPlace,
}

pub(super) enum InnerPlace {
    /// As it stands there, from an offset on.
    Slice(usize),
    /// The same, of what is read with its name as well.
    Again(usize),
    /// Byte by byte; one more entry than there are bytes.
    Mapped(Vec<u32>),
    /// A number that may be written otherwise there.
    Whole(Range<usize>),
}

/// A text that holds JSON.
pub(super) struct Folded {
    pub(super) segment: u32,
    pub(super) node: u32,
    pub(super) level: usize,
    pub(super) bytes: usize,
    /// Values and names in it.
    pub(super) entries: usize,
    pub(super) pieces: Vec<Piece>,
    /// The text, if parts of it are laid flat as they stand there.
    pub(super) text: Box<str>,
}

pub(super) enum Piece {
    Prose(Range<usize>),
    Json(usize, Document),
    /// Names and values in a part of the text from an offset on.
    Records(usize, Records),
    Outline(Outline),
}

impl Piece {
    /// Values and names in it.
    pub(super) fn entries(&self) -> usize {
        match self {
            Piece::Prose(_) => 0,
            Piece::Json(_, document) | Piece::Outline(Outline { document, .. }) => {
                document.entries()
            }
            Piece::Records(_, records) => records.names.len(),
        }
    }

    /// Bytes that it takes, at most.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Piece::Prose(range) => range.len(),
            Piece::Records(_, records) => records.bytes(),
            Piece::Json(_, document) => document.root().raw().len(),
            Piece::Outline(Outline { leaves, .. }) => leaves.iter().map(Range::len).sum(),
        }
    }

    /// Returns true for a part of the text itself.
    pub(super) fn is_written(&self) -> bool {
        match self {
            Piece::Prose(_) | Piece::Records(..) => true,
            Piece::Json(..) | Piece::Outline(_) => false,
        }
    }
}

impl Inner {
    pub(super) fn clear(&mut self) {
        self.origins.clear();
        self.folded.clear();
        (self.level, self.first, self.waiting, self.entries) = (0, 0, 0, 0);
    }

    pub(super) fn begin(&mut self, folding: Folding) {
        self.folding = folding;
    }

    /// Bytes of the texts that are yet to be laid flat.
    #[inline]
    pub(super) fn waiting(&self) -> usize {
        self.waiting
    }

    /// Origin of a segment that was read in another one.
    pub(super) fn origin(&self, segment: u32) -> Option<&InnerOrigin> {
        (segment as usize).checked_sub(self.first).and_then(|at| self.origins.get(at))
    }
}
