//! A value that is shown to DLP alone: it is part of no call and is never sent.

use super::{Payload, ScanAttempt, Scanned};
use crate::{
    dlp::{Direction, Engine, Pace, Subject},
    json::{Document, Node},
};

/// A value that is scanned as if it travelled.
#[derive(Debug, Clone)]
pub struct Specimen {
    value: Document,
    direction: Direction,
}

impl Specimen {
    /// A value, and the direction that it is taken to travel in.
    #[must_use]
    pub const fn new(value: Document, direction: Direction) -> Self {
        Self { value, direction }
    }

    /// The direction that it is taken to travel in.
    #[must_use]
    pub const fn direction(&self) -> Direction {
        self.direction
    }

    /// Scans it at a pace.
    #[must_use]
    pub fn scan_at(self, engine: &Engine, subject: &Subject, pace: Pace) -> ScanAttempt<Self> {
        let direction = self.direction;
        Scanned::scan_at(self, direction, engine, subject, pace)
    }
}

impl Payload for Specimen {
    fn payload(&self) -> Node<'_> {
        self.value.root()
    }
}

impl Scanned<Specimen> {
    /// The value.
    #[must_use]
    pub const fn value(&self) -> &Document {
        &self.inner.value
    }
}
