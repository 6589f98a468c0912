//! Contents of a simulation's report and its time limit.

use portcullis_core::policy::Explain;

use super::super::members::{Members, Read};

/// The longest a simulation may take.
const MAX_TIME_MS: u64 = 60_000;
const MAX_LISTED: u64 = 1_000;

const EXPLAINS: [(&str, Explain); 4] = [
    ("none", Explain::Decision),
    ("determining", Explain::Determining),
    ("candidates", Explain::Candidates),
    ("full", Explain::Full),
];

/// Contents of a report and its time limit.
#[derive(Debug, Clone)]
pub struct Options {
    pub explain: Explain,
    pub include_shadow: bool,
    /// Replay: only what changes.
    pub changed_only: bool,
    /// Replay: like changes together.
    pub group: bool,
    /// Replay: the most changes that are listed.
    pub max_changes: usize,
    pub timeout_ms: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            explain: Explain::Determining,
            include_shadow: true,
            changed_only: true,
            group: true,
            max_changes: 200,
            timeout_ms: 20_000,
        }
    }
}

impl Options {
    pub(super) fn read(mut members: Members<'_>) -> Read<Self> {
        let usual = Self::default();
        let listed = members.whole("max_changes", 1, MAX_LISTED)?;
        let options = Self {
            explain: members.choice("explain", &EXPLAINS)?.unwrap_or(usual.explain),
            include_shadow: members.flag("include_shadow")?.unwrap_or(usual.include_shadow),
            changed_only: members.flag("changed_only")?.unwrap_or(usual.changed_only),
            group: members.flag("group")?.unwrap_or(usual.group),
            max_changes: listed.map_or(usual.max_changes, size),
            timeout_ms: members.whole("timeout_ms", 1, MAX_TIME_MS)?.unwrap_or(usual.timeout_ms),
        };
        members.end()?;
        Ok(options)
    }
}

pub(super) fn size(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
