//! The compiled detectors, and the memory that a scan works in.

use crate::{
    pace::Meter,
    scan::{
        active::Active,
        found::Match,
        glued::Glued,
        literals::{Literals, Looked},
        reach::Reach,
        triggers::Triggers,
        window::Stretches,
    },
    text::digits::DigitRun,
};

/// The enabled detectors, compiled.
pub(crate) struct Scanner {
    pub(super) prefilter: Literals,
    /// Detectors that a literal of the prefilter wakes, and how far they look.
    pub(super) wakes: Vec<Vec<(u16, Reach)>>,
    /// By literal of the prefilter, how a vendor writes it if it is a mark.
    pub(super) marks: Vec<Option<Box<[u8]>>>,
    pub(crate) active: Vec<Active>,
    /// Marks of vendors behind a letter.
    pub(super) glued: Glued,
    pub(super) triggers: Triggers,
    /// Those without a literal: they look at everything.
    pub(super) restless: Vec<u16>,
    pub(super) hidden: Option<u16>,
    /// The detector that reports numbers with a wrong check digit.
    pub(super) doubt: Option<u16>,
}

/// Working memory of a scan, used again for the next one.
#[derive(Default)]
pub(crate) struct Scratch {
    /// Matches so far.
    pub(crate) matches: Vec<Match>,
    pub(super) looked: Looked,
    /// The digits that are looked at, and the same in their window.
    pub(super) run: [DigitRun; 2],
    pub(super) windows: Stretches,
    /// Members whose keys woke a detector, in this pass or one before.
    pub(super) keys: Vec<(u32, u16)>,
    /// Steps of the scan.
    pub(crate) meter: Meter,
    /// A member written as in a program.
    pub(super) line: Vec<u8>,
}

impl Scratch {
    /// Makes it ready for the next value.
    pub(crate) fn clear(&mut self) {
        self.matches.clear();
        self.windows.clear();
        self.keys.clear();
        self.line.clear();
    }
}
