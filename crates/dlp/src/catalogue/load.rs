//! The built-in detectors, read from their TOML files: `detectors/README.md` says what these hold.

use std::{
    collections::BTreeMap,
    sync::{Arc, LazyLock},
};

use serde::Deserialize;
use toml::Spanned;

use crate::{
    catalogue::{
        detector::Detector,
        entry::{Entry, line_of},
    },
    vocabulary::{Action, Category},
};

/// A file.
struct Source {
    path: &'static str,
    text: &'static str,
}

macro_rules! files {
    ($($path:literal),* $(,)?) => {
        &[$(Source { path: $path, text: include_str!(concat!("../../detectors/", $path)) }),*]
    };
}

/// In the order of the documentation.
const FILES: &[Source] = files! {
    "secrets/keys.toml", "secrets/aws.toml", "secrets/cloud.toml", "secrets/data.toml", "secrets/code.toml",
    "secrets/ai.toml", "secrets/chat.toml", "secrets/money.toml", "secrets/mail.toml", "secrets/insight.toml",
    "secrets/office.toml", "secrets/passwords.toml", "financial.toml", "ids/documents.toml", "ids/us.toml",
    "ids/uk_ie.toml", "ids/dach.toml", "ids/west.toml", "ids/south.toml", "ids/east.toml",
    "ids/balkans_baltics.toml", "ids/north.toml", "ids/asia.toml", "ids/east_asia.toml",
    "ids/south_and_middle_east.toml", "ids/americas.toml", "ids/further.toml", "contact.toml", "network.toml",
    "health.toml", "injection.toml",
};

/// Every built-in detector, and everything that is wrong with the files: nothing, as a test shows.
pub(crate) struct Catalogue {
    pub(crate) detectors: Vec<Arc<Detector>>,
    pub(crate) problems: Vec<String>,
    floor: Vec<String>,
    actions: BTreeMap<String, Action>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    /// Category of those that name no other.
    category: Category,
    detector: BTreeMap<String, Spanned<Entry>>,
}

impl Catalogue {
    /// The catalogue, read when it is first asked for.
    pub(crate) fn get() -> &'static Self {
        static CATALOGUE: LazyLock<Catalogue> = LazyLock::new(|| Catalogue::read(FILES));
        &CATALOGUE
    }

    fn read(files: &[Source]) -> Self {
        let mut catalogue = Self {
            detectors: Vec::new(),
            problems: Vec::new(),
            floor: Vec::new(),
            actions: BTreeMap::new(),
        };
        for source in files {
            catalogue.add(source);
        }
        catalogue
    }

    fn add(&mut self, source: &Source) {
        let file = match toml::from_str::<File>(source.text) {
            Ok(file) => file,
            Err(error) => {
                let place = source.place(error.span().unwrap_or_default().start);
                self.problems.push(format!("{place}: {}", error.message()));
                return;
            }
        };
        let mut entries: Vec<_> = file.detector.into_iter().collect();
        entries.sort_by_key(|(_, entry)| entry.span().start);
        for (name, entry) in entries {
            let label = format!("{}: `{name}`", source.place(entry.span().start));
            let entry = entry.into_inner();
            if entry.floor {
                self.floor.push(name.clone());
            }
            self.actions.extend(entry.action.map(|action| (name.clone(), action)));
            match (Entry { name, label, ..entry }).detector(file.category) {
                Ok(detector) => self.detectors.push(Arc::new(detector)),
                Err(problems) => self.problems.extend(problems),
            }
        }
    }

    /// Every built-in detector, in the order of the documentation.
    pub(crate) fn all() -> std::slice::Iter<'static, Arc<Detector>> {
        Self::get().detectors.iter()
    }

    /// Returns true if the findings of a detector are acted on whatever the settings say.
    pub(crate) fn is_on_floor(&self, name: &str) -> bool {
        self.floor.iter().any(|own| own == name)
    }

    /// Default action for the findings of a detector, where it differs from its category's; policies
    /// and settings override it.
    pub(crate) fn usual_action(&self, name: &str) -> Option<Action> {
        self.actions.get(name).copied()
    }
}

impl Source {
    /// `file:line` of an offset in it.
    fn place(&self, offset: usize) -> String {
        format!("detectors/{}:{}", self.path, line_of(self.text, offset))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_is_read_and_complete() {
        let catalogue = Catalogue::get();
        let patterns = catalogue.detectors.iter().filter_map(|detector| {
            let problem = detector.pattern_problem()?;
            Some(format!("{}: `pattern`: {problem}", detector.label))
        });
        let wrong: Vec<String> = catalogue.problems.iter().cloned().chain(patterns).collect();
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn a_faulty_entry_is_named_with_file_and_line() {
        let file = |entry: &str| format!("category = \"secret\"\n\n[detector.x]\n{entry}\n");
        for (entry, expected) in [
            ("bits = \"many\"", "detectors/x.toml:4: invalid type"),
            ("finds = \"x\"\nword = [\"y\"]", "detectors/x.toml:5: unknown field `word`"),
            ("check = \"none\"", "detectors/x.toml:3: `x`: there is no function `none`"),
            ("marks = [\"x-\"]", "detectors/x.toml:3: `x`: it has no `pattern`"),
            ("words = [\"@none\"]", "detectors/x.toml:3: `x`: no list `@none`"),
            ("wakes = \"colons\"\nalone = [\"9\"]", "detectors/x.toml:3: `x`: it has a key"),
            ("[detector.x]", "detectors/x.toml:4: duplicate key"),
            ("fires = [\"x\"]\npasses = [\"y\"]", "detectors/x.toml:3: `x`: say what it `finds`"),
            ("finds = \"x\"\nfires = [\"x\"]", "detectors/x.toml:3: `x`: give at least one"),
        ] {
            let text = file(entry).leak();
            let problems = Catalogue::read(&[Source { path: "x.toml", text }]).problems;
            assert!(problems.len() == 1 && problems[0].starts_with(expected), "{problems:?}");
        }
    }
}
