//! Bounds of a scan, and the reasons for which a value is not scanned.

use serde::Deserialize;

/// Limits of a scan. A body beyond any of them is [`Unscannable`], never silently passed.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Bytes of keys, strings and number literals in one body.
    pub max_bytes: usize,
    /// Objects, arrays, members and elements in one body.
    pub max_nodes: usize,
    pub max_depth: usize,
    /// Bytes of decoded text (base64, percent, …) per body, on top of four times its own size.
    pub max_decoded_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_bytes: 4 << 20, max_nodes: 200_000, max_depth: 128, max_decoded_bytes: 64 << 10 }
    }
}

impl Limits {
    pub(crate) fn problems(&self) -> Vec<String> {
        let limits = [
            ("limits.max_bytes", self.max_bytes),
            ("limits.max_nodes", self.max_nodes),
            ("limits.max_depth", self.max_depth),
        ];
        let zero = limits.into_iter().filter(|(_, value)| *value == 0);
        let mut problems: Vec<String> = zero
            .map(|(name, _)| format!("`{name}` is 0, which refuses every body; raise it"))
            .collect();
        if self.max_bytes > MAX_BYTES {
            problems.push(format!("`limits.max_bytes` is above {MAX_BYTES}; lower it"));
        }
        if self.max_depth > MAX_DEPTH {
            problems.push(format!("`limits.max_depth` is above {MAX_DEPTH}; lower it"));
        }
        problems
    }
}

/// Offsets are kept in 32 bits; decoded views need room beside the body.
const MAX_BYTES: usize = 32 << 20;

/// Values are walked level by level on the stack.
const MAX_DEPTH: usize = 512;

/// Reason that a value was not scanned. The caller must refuse it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unscannable {
    #[error("the text is longer than the {limit} bytes DLP scans; send less at once")]
    TooLarge {
        /// `limits.max_bytes`.
        limit: usize,
    },
    #[error("there are more than the {limit} members and elements DLP scans; send less at once")]
    TooManyNodes {
        /// `limits.max_nodes`.
        limit: usize,
    },
    #[error("the nesting is deeper than the {limit} levels DLP scans; send it flatter")]
    TooDeep {
        /// `limits.max_depth`.
        limit: usize,
    },
    /// More encoded text inside encoded text than the body's size allows.
    #[error("decoding takes more than the {limit} bytes DLP spends on this body; send it decoded")]
    TooMuchDecoding {
        /// The budget of this body.
        limit: usize,
    },
    /// More work than a text of that length is worth: it is made of what wakes detectors.
    #[error(
        "looking through the text takes more than the {limit} steps DLP spends on it; send less at once"
    )]
    TooCostly {
        /// The budget of this body.
        limit: usize,
    },
    /// A detector outside was to look as well, and did not.
    #[error("the external detector gave no answer; try again later")]
    NoExternalDetector,
}
