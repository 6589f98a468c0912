//! The room that configured detectors may take.

use crate::{
    catalogue::{detector::Detector, entry::Entry},
    vocabulary::Category,
};

/// Configured detectors that there may be.
pub(super) const MAX_DETECTORS: usize = 4_000;

/// Bytes of compiled patterns and exceptions of all configured detectors.
const MAX_COMPILED: usize = 64 << 20;

/// Room for compiled patterns that is left.
pub(super) struct Room {
    left: usize,
    is_full: bool,
}

impl Default for Room {
    fn default() -> Self {
        Self { left: MAX_COMPILED, is_full: false }
    }
}

impl Room {
    pub(super) fn take(&mut self, bytes: usize) -> Result<(), String> {
        if let Some(left) = self.left.checked_sub(bytes) {
            self.left = left;
            return Ok(());
        }
        self.is_full = true;
        let most = MAX_COMPILED >> 20;
        Err(format!(
            "with those before it takes more than the {most} MiB that compiled rules may have; \
             remove some, or shorten their repetitions"
        ))
    }

    pub(super) fn is_full(&self) -> bool {
        self.is_full
    }

    /// The detector of an entry, or everything that is wrong with it.
    pub(super) fn compile(
        &mut self,
        entry: Entry,
        category: Category,
    ) -> Result<Detector, Vec<String>> {
        let detector = entry.detector(category)?;
        let taken = self.take(detector.compiled_bytes());
        taken.map_err(|problem| vec![format!("{}: {problem}", detector.label)])?;
        Ok(detector)
    }
}
