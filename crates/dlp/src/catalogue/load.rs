//! The built-in detectors, read from their TOML files: `detectors/README.md` says what these hold.

use std::{collections::BTreeMap, mem::take, ops::Range, sync::LazyLock};

use serde::Deserialize;
use toml::Spanned;

use crate::{
    catalogue::{
        checks::digits::DigitRule,
        detector::{Before, Check, Detector, Edges, NormalForm, Shape},
        functions::{self, named},
        lists::{leaked, shared},
    },
    text::groups::Grouping,
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

/// Sign between the parts of an example, so that no scanner of code takes it for a real secret.
const SEAM: char = '¦';

/// Bytes from the start of a mark that most secrets need.
const MARK_REACH: u16 = 420;

/// Bytes from the end of a name that most values need.
const NAME_REACH: u16 = 160;

/// Every built-in detector, and everything that is wrong with the files: nothing, as a test shows.
pub(crate) struct Catalogue {
    pub(crate) detectors: Vec<Detector>,
    pub(crate) problems: Vec<String>,
    floor: Vec<&'static str>,
    actions: BTreeMap<&'static str, Action>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    /// Category of those that name no other.
    category: Category,
    detector: BTreeMap<String, Spanned<DetectorEntry>>,
}

/// A detector as it is written.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct DetectorEntry {
    finds: String,
    category: Option<Category>,
    marks: Vec<String>,
    beside: Vec<String>,
    value_of: Vec<String>,
    around: Vec<String>,
    start: Vec<String>,
    wakes: Option<Wakes>,
    pattern: Option<String>,
    before: Option<u16>,
    after: Option<u16>,
    find: Option<String>,
    alone: Vec<String>,
    named: Vec<String>,
    grouped: Option<Grouping>,
    edges: Option<Edges>,
    bits: Option<i32>,
    check: Option<String>,
    digits: Option<DigitRule>,
    words: Option<Vec<String>>,
    words_bits: Option<i32>,
    against: Vec<String>,
    normal_form: Option<NormalForm>,
    action: Option<Action>,
    floor: bool,
    fires: Vec<String>,
    passes: Vec<String>,
}

/// The trigger of a detector that has neither literals nor layouts.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Wakes {
    At,
    Digits { least: usize, before: Before },
    Run,
    Colons,
}

/// The default of a key that an entry leaves out.
struct Defaults {
    edges: Edges,
    bits: i32,
    check: &'static str,
    words: &'static str,
    words_bits: i32,
    normal_form: NormalForm,
}

/// A detector whose matches a function finds.
const PLAIN: Defaults = Defaults {
    edges: Edges::Any,
    bits: 24,
    check: "any",
    words: "",
    words_bits: 0,
    normal_form: NormalForm::Verbatim,
};

/// A number: layouts that could be anything need one of its words beside them.
const NUMBER: Defaults = Defaults {
    edges: Edges::Word,
    bits: 6,
    words_bits: 14,
    normal_form: NormalForm::Alphanumeric,
    ..PLAIN
};

/// A secret with a mark of its vendor. What follows must look random, so that documentation may
/// speak of the mark.
const MARKED: Defaults =
    Defaults { edges: Edges::Mark, bits: 32, check: "randomness::random", ..PLAIN };

/// The same where the pattern begins before the mark: it needs a free beginning.
const AROUND_MARK: Defaults = Defaults { edges: Edges::Word, ..MARKED };

/// A secret without a mark: the name of its vendor must stand before it, and a word that says that
/// it is a secret.
const BESIDE_NAME: Defaults = Defaults {
    edges: Edges::Word,
    bits: 8,
    check: "assigned::assigned",
    words: "@secret",
    words_bits: 14,
    ..PLAIN
};

impl Defaults {
    const fn of(shape: &Shape) -> &'static Self {
        match shape {
            Shape::Number { .. } => &NUMBER,
            Shape::Pattern { before: 0, .. } => &MARKED,
            Shape::Pattern { .. } => &AROUND_MARK,
            Shape::Beside { .. } => &BESIDE_NAME,
            Shape::Value { .. }
            | Shape::At(_)
            | Shape::Digits { .. }
            | Shape::Around { .. }
            | Shape::Start { .. }
            | Shape::Run(_)
            | Shape::Colons => &PLAIN,
        }
    }
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
                let place = source.place(&error.span().unwrap_or_default());
                self.problems.push(format!("{place}: {}", error.message()));
                return;
            }
        };
        let mut entries: Vec<_> = file.detector.into_iter().collect();
        entries.sort_by_key(|(_, entry)| entry.span().start);
        for (name, entry) in entries {
            let span = entry.span();
            let name: &'static str = name.leak();
            let entry = entry.into_inner();
            if entry.floor {
                self.floor.push(name);
            }
            self.actions.extend(entry.action.map(|action| (name, action)));
            match entry.detector(name, file.category) {
                Ok(detector) => self.detectors.push(detector),
                Err(problem) => {
                    self.problems.push(format!("{}: `{name}`: {problem}", source.place(&span)));
                }
            }
        }
    }

    /// Returns true if the findings of a detector are acted on whatever the settings say.
    pub(crate) fn is_on_floor(&self, name: &str) -> bool {
        self.floor.contains(&name)
    }

    /// Default action for the findings of a detector, where it differs from its category's; policies
    /// and settings override it.
    pub(crate) fn usual_action(&self, name: &str) -> Option<Action> {
        self.actions.get(name).copied()
    }
}

impl Source {
    /// `file:line` of a stretch of it.
    fn place(&self, span: &Range<usize>) -> String {
        let before = self.text.get(..span.start).unwrap_or(self.text);
        format!("detectors/{}:{}", self.path, before.matches('\n').count() + 1)
    }
}

impl DetectorEntry {
    fn detector(mut self, name: &'static str, category: Category) -> Result<Detector, String> {
        let shape = self.take_shape()?;
        if self.has_more() {
            return Err("it has a key that detectors of its shape do not have".to_owned());
        }
        let defaults = Defaults::of(&shape);
        let check = match (self.digits, self.check) {
            (None, check) => {
                let name = check.as_deref().unwrap_or(defaults.check);
                Check::Function(named(functions::CHECKS, name)?)
            }
            (Some(rule), None) => {
                rule.problem().map_or(Ok(()), Err)?;
                Check::Digits(rule)
            }
            (Some(_), Some(_)) => return Err("it has both `check` and `digits`".to_owned()),
        };
        let words = self.words.unwrap_or_else(|| vec![defaults.words.to_owned()]);
        Ok(Detector {
            name,
            category: self.category.unwrap_or(category),
            description: self.finds.leak(),
            shape,
            edges: self.edges.unwrap_or(defaults.edges),
            bits: self.bits.unwrap_or(defaults.bits),
            check,
            context: listed(words)?,
            context_bits: self.words_bits.unwrap_or(defaults.words_bits),
            against: listed(self.against)?,
            normal_form: self.normal_form.unwrap_or(defaults.normal_form),
            positives: examples(&self.fires),
            negatives: examples(&self.passes),
        })
    }

    /// The shape, with the keys that it is made of taken out.
    fn take_shape(&mut self) -> Result<Shape, String> {
        Ok(match self.wakes {
            Some(Wakes::At) => Shape::At(self.take_function(functions::AT)?),
            Some(Wakes::Digits { least, before }) => {
                Shape::Digits { least, before, find: self.take_function(functions::DIGITS)? }
            }
            Some(Wakes::Run) => Shape::Run(self.take_function(functions::PARTS)?),
            Some(Wakes::Colons) => Shape::Colons,
            None if !self.marks.is_empty() => Shape::Pattern {
                literals: leaked(take(&mut self.marks)),
                pattern: self.take_pattern()?,
                before: self.before.take().unwrap_or(0),
                after: self.after.take().unwrap_or(MARK_REACH),
            },
            None if !self.beside.is_empty() => Shape::Beside {
                literals: leaked(take(&mut self.beside)),
                pattern: self.take_pattern()?,
                after: self.after.take().unwrap_or(NAME_REACH),
            },
            None if !self.value_of.is_empty() => Shape::Value {
                literals: leaked(take(&mut self.value_of)),
                find: self.take_function(functions::PARTS)?,
            },
            None if !self.around.is_empty() => Shape::Around {
                literals: leaked(take(&mut self.around)),
                find: self.take_function(functions::PARTS)?,
            },
            None if !self.start.is_empty() => Shape::Start {
                literals: leaked(take(&mut self.start)),
                find: self.take_function(functions::PARTS)?,
            },
            None => Shape::Number {
                alone: leaked(take(&mut self.alone)),
                named: leaked(take(&mut self.named)),
                grouped: self.grouped.take(),
            },
        })
    }

    fn take_function<T: Copy>(&mut self, known: &[(&str, T)]) -> Result<T, String> {
        named(known, &self.find.take().unwrap_or_default())
    }

    fn take_pattern(&mut self) -> Result<&'static str, String> {
        let pattern = self.pattern.take().ok_or("it has no `pattern`")?;
        Ok(pattern.leak())
    }

    /// Returns true if a key of a shape is left that was not taken.
    fn has_more(&self) -> bool {
        let lists =
            [&self.marks, &self.beside, &self.value_of, &self.around, &self.start, &self.alone];
        lists.iter().any(|list| !list.is_empty())
            || !self.named.is_empty()
            || self.grouped.is_some()
            || self.pattern.is_some()
            || self.find.is_some()
            || self.before.is_some()
            || self.after.is_some()
    }
}

fn examples(texts: &[String]) -> &'static [&'static str] {
    leaked(texts.iter().map(|text| text.replace(SEAM, "")).collect())
}

/// Words, with those of a list in the place of its name: `@card`.
fn listed(words: Vec<String>) -> Result<&'static [&'static str], String> {
    match words.as_slice() {
        [name] if name.is_empty() => Ok(&[]),
        [name] if name.starts_with('@') => {
            shared(name.trim_start_matches('@')).ok_or_else(|| format!("no list `{name}`"))
        }
        _ => Ok(leaked(words)),
    }
}

#[cfg(test)]
mod tests {
    use regex::bytes::Regex;

    use super::*;
    use crate::settings::patterns::compile;

    /// `file:line` of a built-in detector, for messages.
    fn place_of(name: &str) -> String {
        let header = format!("[detector.{name}]");
        let place = |file: &Source| file.text.find(&header).map(|at| file.place(&(at..at)));
        FILES.iter().find_map(place).unwrap_or_default()
    }

    #[test]
    fn every_entry_is_read_and_complete() {
        let catalogue = Catalogue::get();
        let mut wrong = catalogue.problems.clone();
        for detector in &catalogue.detectors {
            let mut check = |is_right: bool, what: &str| {
                if !is_right {
                    wrong.push(format!("{}: `{}` {what}", place_of(detector.name), detector.name));
                }
            };
            check(!detector.description.is_empty(), "says not what it `finds`");
            check(!detector.positives.is_empty(), "has no example in `fires`");
            check(!detector.negatives.is_empty(), "has no example in `passes`");
            if let Shape::Pattern { pattern, .. } | Shape::Beside { pattern, .. } = detector.shape {
                let found: Result<Regex, _> = compile(pattern);
                check(found.is_ok(), "has a `pattern` that cannot be compiled");
            }
        }
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
        ] {
            let text = file(entry).leak();
            let problems = Catalogue::read(&[Source { path: "x.toml", text }]).problems;
            assert!(problems.len() == 1 && problems[0].starts_with(expected), "{problems:?}");
        }
    }
}
