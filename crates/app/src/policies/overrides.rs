//! The kill switch: policies that the operator switched off for a while, whatever their files say.
//! A small file beside the data, for the folder may belong to a deployment that cannot be edited in
//! a hurry.

use std::{collections::BTreeMap, fs, io, path::PathBuf, sync::Arc, time::SystemTime};

use portcullis_core::{
    clock::Timestamp,
    policy::{Changes, PolicyError, PolicySet, Status},
};
use serde::{Deserialize, Serialize};

use super::{Policies, private_file};

/// The file of policies that are switched off.
#[derive(Debug, Clone)]
pub struct Overrides(PathBuf);

/// Until when each policy is switched off.
pub(crate) type Off = BTreeMap<String, Timestamp>;

#[derive(Serialize, Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct OverridesFile {
    disabled: BTreeMap<String, Entry>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    until: String,
}

/// Modification time and size of the file at the last read; changes are detected once a second.
type Stamp = Option<(SystemTime, u64)>;

/// Overrides of the last read.
#[derive(Debug, Default)]
pub(crate) struct OverridesInForce {
    stamp: Stamp,
    off: Off,
}

impl Overrides {
    /// The file at `path`; it need not exist.
    #[must_use]
    pub const fn new(path: PathBuf) -> Self {
        Self(path)
    }

    /// Switches a policy off until then. Fails if the file cannot be read or written.
    pub fn disable(&self, id: &str, until: Timestamp, now: Timestamp) -> io::Result<()> {
        let mut off = self.in_force(now)?;
        off.insert(id.to_owned(), until);
        self.write(&off)
    }

    /// Takes that back; false when the policy was not switched off.
    pub fn enable(&self, id: &str, now: Timestamp) -> io::Result<bool> {
        let mut off = self.in_force(now)?;
        let was_off = off.remove(id).is_some();
        self.write(&off)?;
        Ok(was_off)
    }

    /// Policies that are switched off at this moment.
    pub fn in_force(&self, now: Timestamp) -> io::Result<Off> {
        let mut off = self.read()?;
        off.retain(|_, until| *until > now);
        Ok(off)
    }

    /// The set without the policies that are switched off at this moment.
    pub fn applied_to(
        &self,
        set: Arc<PolicySet>,
        now: Timestamp,
    ) -> Result<Arc<PolicySet>, Vec<PolicyError>> {
        let off = self.in_force(now).map_err(|error| vec![self.unreadable(&error)])?;
        without(set, &off, now)
    }

    fn read(&self) -> io::Result<Off> {
        let text = match fs::read(&self.0) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Off::new()),
            Err(error) => return Err(error),
        };
        let written: OverridesFile = serde_json::from_slice(&text)?;
        let until = |(id, Entry { until }): (String, Entry)| {
            let moment = Timestamp::parse_rfc3339(&until);
            let wrong = || io::Error::other(format!("`{until}` is no moment"));
            Ok((id, moment.ok_or_else(wrong)?))
        };
        written.disabled.into_iter().map(until).collect()
    }

    /// A crash at any line leaves either the old file or the new one.
    fn write(&self, off: &Off) -> io::Result<()> {
        let entry =
            |(id, until): (&String, &Timestamp)| (id.clone(), Entry { until: until.to_string() });
        let text =
            serde_json::to_vec(&OverridesFile { disabled: off.iter().map(entry).collect() })?;
        private_file::replace(&self.0, &text)
    }

    fn unreadable(&self, error: &io::Error) -> PolicyError {
        PolicyError {
            path: self.0.to_string_lossy().into_owned(),
            line: 1,
            column: 1,
            code: "unreadable",
            policy: None,
            message: format!(
                "the file of policies that are switched off cannot be read ({error}); mend or \
                 remove it"
            ),
        }
    }

    fn stamp(&self) -> Stamp {
        let found = fs::metadata(&self.0).ok()?;
        Some((found.modified().ok()?, found.len()))
    }
}

impl Policies {
    /// The set as its files say, without the policies that are switched off. Fails if the file of
    /// these cannot be read: passing over it would put in force what the operator switched off.
    pub(super) fn switched(&self, now: Timestamp) -> Result<Arc<PolicySet>, Vec<PolicyError>> {
        let stamp = self.overrides.stamp();
        let written = self.written.load_full();
        let off = match self.overrides.in_force(now) {
            Ok(off) => off,
            Err(error) => {
                let off = self.applied.load().off.clone();
                self.applied.store(Arc::new(OverridesInForce { stamp, off }));
                return Err(vec![self.overrides.unreadable(&error)]);
            }
        };
        let switched = without(written, &off, now);
        self.applied.store(Arc::new(OverridesInForce { stamp, off }));
        switched
    }
}

/// The set with these policies switched off, as far as it has them.
fn without(
    set: Arc<PolicySet>,
    off: &Off,
    now: Timestamp,
) -> Result<Arc<PolicySet>, Vec<PolicyError>> {
    let known = off.keys().filter(|id| set.find(id).is_some_and(|record| !record.builtin));
    let statuses: BTreeMap<String, Status> =
        known.map(|id| (id.clone(), Status::Disabled)).collect();
    if statuses.is_empty() {
        return Ok(set);
    }
    set.draft(&Changes { statuses, ..Changes::default() }, now).map(Arc::new)
}

impl Policies {
    /// True if the policies have to be loaded anew because one was switched off, or because the
    /// time of one that was is over.
    #[must_use]
    pub fn overrides_changed(&self) -> bool {
        let applied = self.applied.load();
        let now = self.base.clock.now();
        self.overrides.stamp() != applied.stamp || applied.off.values().any(|until| *until <= now)
    }

    /// Until when the operator has switched the policy off, if that is so.
    #[must_use]
    pub(super) fn switched_off_until(&self, id: &str) -> Option<Timestamp> {
        self.applied.load().off.get(id).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOON: Timestamp = Timestamp::from_micros(1_795_000_000_000_000);

    #[test]
    fn a_policy_is_off_until_its_time_is_over_or_it_is_switched_on() {
        let folder = tempfile::tempdir().unwrap();
        let overrides = Overrides::new(folder.path().join("off.json"));
        let until = NOON.plus_seconds(60);

        assert_eq!(overrides.in_force(NOON).unwrap(), Off::new());
        overrides.disable("a", until, NOON).unwrap();
        overrides.disable("b", until.plus_seconds(60), NOON).unwrap();

        let off = overrides.in_force(NOON).unwrap();
        assert_eq!(off.keys().collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(off["a"], until);
        assert_eq!(overrides.in_force(until).unwrap().keys().collect::<Vec<_>>(), ["b"]);
        assert!(overrides.enable("b", NOON).unwrap());
        assert!(!overrides.enable("b", NOON).unwrap());
        assert_eq!(overrides.in_force(NOON).unwrap().len(), 1);
    }

    #[test]
    fn a_file_that_cannot_be_read_is_no_empty_one() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("off.json");
        let overrides = Overrides::new(file.clone());
        for text in ["", "{\"disabled\": {\"a\": {\"until\": \"soon\"}}}", "{\"enabled\": {}}"] {
            fs::write(&file, text).unwrap();

            assert!(overrides.in_force(NOON).is_err(), "{text}");
        }
    }
}
