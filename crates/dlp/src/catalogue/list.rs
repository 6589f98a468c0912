//! Every built-in detector.

use super::{detector::Detector, load::Catalogue};

/// The detector of numbers that others turned down: nothing wakes it.
const DOUBTS: &str = "mistyped_number";

/// Returns true for the detector of numbers that others turned down.
pub(crate) fn reports_doubts(name: &str) -> bool {
    name == DOUBTS
}

/// Every built-in detector, in the order of the documentation.
pub(crate) fn all() -> impl Iterator<Item = &'static Detector> {
    Catalogue::get().detectors.iter()
}
