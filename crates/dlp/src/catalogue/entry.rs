//! A detector as it is written: in a file of the catalogue, in the configuration, or as a rule of gitleaks.
//! All are checked and compiled here.

use std::mem::take;

use serde::Deserialize;

use crate::{
    catalogue::{
        checks::{conditions::Conditions, digits::DigitRule},
        detector::{Before, Check, Detector, Edges, NormalForm, Shape},
        functions::{self, named},
        lists::{leaked, shared},
        pattern::Pattern,
    },
    text::{groups::Grouping, layouts::Layout},
    vocabulary::{Action, Category},
};

/// Sign between the parts of an example, so that no scanner of code takes it for a real secret.
const SEAM: char = '¦';

/// Bytes from the start of a mark that most secrets need.
const MARK_REACH: u16 = 420;

/// Bytes from the end of a name that most values need.
const NAME_REACH: u16 = 160;

/// A detector as it is written.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Entry {
    #[serde(skip)]
    pub(crate) name: String,
    /// Name and place, for messages.
    #[serde(skip)]
    pub(crate) label: String,
    #[serde(skip)]
    pub(crate) keys: &'static Keys,
    /// Settings of an entry of the configuration, or of a rule. Its `marks` may stand anywhere.
    #[serde(skip)]
    pub(crate) configured: Option<Configured>,
    pub(crate) finds: String,
    pub(crate) category: Option<Category>,
    pub(crate) marks: Vec<String>,
    pub(crate) beside: Vec<String>,
    pub(crate) value_of: Vec<String>,
    pub(crate) around: Vec<String>,
    pub(crate) start: Vec<String>,
    pub(crate) wakes: Option<Wakes>,
    pub(crate) pattern: Option<String>,
    pub(crate) before: Option<u16>,
    pub(crate) after: Option<u16>,
    pub(crate) find: Option<String>,
    pub(crate) alone: Vec<String>,
    pub(crate) named: Vec<String>,
    pub(crate) grouped: Option<Grouping>,
    pub(crate) edges: Option<Edges>,
    pub(crate) bits: Option<i32>,
    pub(crate) check: Option<String>,
    pub(crate) digits: Option<DigitRule>,
    pub(crate) words: Option<Vec<String>>,
    pub(crate) words_bits: Option<i32>,
    pub(crate) against: Vec<String>,
    pub(crate) normal_form: Option<NormalForm>,
    pub(crate) action: Option<Action>,
    pub(crate) floor: bool,
    pub(crate) fires: Vec<String>,
    pub(crate) passes: Vec<String>,
}

/// The part of an entry that only the operator writes.
pub(crate) struct Configured {
    /// The group that is what is found; the first one that holds something when absent.
    pub(crate) group: Option<usize>,
    /// True if a match counts only where one of the words stands.
    pub(crate) needs_context: bool,
    pub(crate) conditions: Conditions,
}

/// The names of keys in messages about entries of one kind, and what these have to have.
pub(crate) struct Keys {
    pub(crate) longest_name: usize,
    pub(crate) wrong_name: &'static str,
    pub(crate) pattern: &'static str,
    /// Told where there are no examples; a rule of gitleaks has none.
    pub(crate) no_examples: Option<&'static str>,
}

const BUILT_IN: Keys = Keys {
    longest_name: 64,
    wrong_name: "a name is 1 to 64 of a-z, 0-9 and `_`, beginning with a letter",
    pattern: "pattern",
    no_examples: Some("give at least one example in `fires` and one in `passes`"),
};

impl Default for &'static Keys {
    fn default() -> Self {
        &BUILT_IN
    }
}

/// The trigger of a detector that has neither literals nor layouts.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Wakes {
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
            Shape::Value(_)
            | Shape::At(_)
            | Shape::Digits { .. }
            | Shape::Around(_)
            | Shape::Start(_)
            | Shape::Configured { .. }
            | Shape::Run(_)
            | Shape::Colons
            | Shape::Hidden => &PLAIN,
        }
    }
}

/// The line of a text that an offset stands in.
pub(crate) fn line_of(text: &str, offset: usize) -> usize {
    let before = text.as_bytes().get(..offset).unwrap_or_default();
    memchr::memchr_iter(b'\n', before).count() + 1
}

impl Entry {
    /// The detector, or everything that is wrong with the entry. It has `category` unless it names another.
    pub(crate) fn detector(mut self, category: Category) -> Result<Detector, Vec<String>> {
        let label = take(&mut self.label);
        let told = |problem: &str| format!("{label}: {problem}");
        let problems = self.problems();
        let Keys { pattern: key, .. } = self.keys;
        let detector = self.compiled(category).map_err(|problem| vec![told(&problem)])?;
        let mut problems: Vec<String> = problems.into_iter().map(told).collect();
        // A built-in pattern is compiled when it is first needed.
        if !detector.is_built_in() {
            problems.extend(detector.pattern_problem().map(|it| told(&format!("`{key}`: {it}"))));
        }
        if problems.is_empty() { Ok(Detector { label, ..detector }) } else { Err(problems) }
    }

    /// Everything that is wrong with it besides its pattern.
    fn problems(&self) -> Vec<&'static str> {
        let Keys { longest_name, wrong_name, no_examples, .. } = self.keys;
        let is_short = |literals: &Vec<String>| literals.iter().any(|literal| literal.len() < 2);
        let literals = [&self.marks, &self.beside, &self.value_of, &self.around, &self.start];
        let has_words = self.words.as_ref().is_some_and(|words| !words.is_empty());
        let needs_words = self.configured.as_ref().is_some_and(|it| it.needs_context);
        let has_examples = !self.fires.is_empty() && !self.passes.is_empty();
        let checks = [
            (is_name(&self.name, *longest_name), Some(*wrong_name)),
            (self.configured.is_some() || !self.finds.is_empty(), Some("say what it `finds`")),
            (!literals.into_iter().any(is_short), Some("a literal has at least 2 characters")),
            (
                has_words || !needs_words,
                Some("`needs_context` without words in `context` never fires; name some"),
            ),
            (has_examples, *no_examples),
        ];
        checks.into_iter().filter_map(|(holds, problem)| problem.filter(|_| !holds)).collect()
    }

    fn compiled(mut self, category: Category) -> Result<Detector, String> {
        let configured = self.configured.take();
        let (shape, literals) = match &configured {
            Some(Configured { needs_context, .. }) => {
                // Where one cannot be found in any case, or is too short to wake by, none wakes it.
                let marks = take(&mut self.marks);
                let can_wake = marks.iter().all(|mark| mark.len() >= 2 && has_ascii_case(mark));
                let marks = if can_wake { marks } else { Vec::new() };
                (Shape::Configured { needs_context: *needs_context }, marks)
            }
            None => self.take_shape()?,
        };
        let has_pattern = matches!(
            shape,
            Shape::Pattern { .. } | Shape::Beside { .. } | Shape::Configured { .. }
        );
        if has_pattern && self.pattern.is_none() {
            return Err("it has no `pattern`".to_owned());
        }
        if self.has_more() || !has_pattern && self.pattern.is_some() {
            return Err("it has a key that detectors of its shape do not have".to_owned());
        }
        let defaults = Defaults::of(&shape);
        let words = self.words.unwrap_or_else(|| vec![defaults.words.to_owned()]);
        let is_built_in = configured.is_none();
        let pattern = self.pattern.map(|source| match &configured {
            None => Pattern::new(source),
            Some(configured) => Pattern::configured(source, configured.group),
        });
        let is_whole = !is_built_in && !pattern.as_ref().is_some_and(Pattern::has_groups);
        // A group is cut out of what the pattern itself puts around it.
        let edges = if is_whole { Edges::Word } else { defaults.edges };
        Ok(Detector {
            description: self.finds,
            literals,
            pattern,
            edges: self.edges.unwrap_or(edges),
            bits: self.bits.unwrap_or(defaults.bits),
            check: check_of(self.digits, self.check, configured, defaults)?,
            context: if is_built_in { listed(words)? } else { words },
            context_bits: self.words_bits.unwrap_or(defaults.words_bits),
            against: listed(self.against)?,
            normal_form: self.normal_form.unwrap_or(defaults.normal_form),
            positives: if is_built_in { whole(&self.fires) } else { self.fires },
            negatives: if is_built_in { whole(&self.passes) } else { self.passes },
            ..Detector::new(&self.name, self.category.unwrap_or(category), shape)
        })
    }

    /// The shape and its literals, with the keys that it is made of taken out.
    fn take_shape(&mut self) -> Result<(Shape, Vec<String>), String> {
        let reach = |key: &mut Option<u16>, usual| key.take().unwrap_or(usual);
        let shape = match self.wakes {
            Some(Wakes::At) => Shape::At(self.take_function(functions::AT)?),
            Some(Wakes::Digits { least, before }) => {
                Shape::Digits { least, before, find: self.take_function(functions::DIGITS)? }
            }
            Some(Wakes::Run) => Shape::Run(self.take_function(functions::PARTS)?),
            Some(Wakes::Colons) => Shape::Colons,
            None if !self.marks.is_empty() => {
                let before = reach(&mut self.before, 0);
                let after = reach(&mut self.after, MARK_REACH);
                return Ok((Shape::Pattern { before, after }, take(&mut self.marks)));
            }
            None if !self.beside.is_empty() => {
                let after = reach(&mut self.after, NAME_REACH);
                return Ok((Shape::Beside { after }, take(&mut self.beside)));
            }
            None if !self.value_of.is_empty() => {
                let find = self.take_function(functions::PARTS)?;
                return Ok((Shape::Value(find), take(&mut self.value_of)));
            }
            None if !self.around.is_empty() => {
                let find = self.take_function(functions::PARTS)?;
                return Ok((Shape::Around(find), take(&mut self.around)));
            }
            None if !self.start.is_empty() => {
                let find = self.take_function(functions::PARTS)?;
                return Ok((Shape::Start(find), take(&mut self.start)));
            }
            None => self.take_number(),
        };
        Ok((shape, Vec::new()))
    }

    fn take_number(&mut self) -> Shape {
        let layouts = |sources: &mut Vec<String>| -> Vec<Layout> {
            leaked(take(sources)).iter().map(|source| Layout::new(source)).collect()
        };
        let alone = layouts(&mut self.alone);
        let named = layouts(&mut self.named);
        let grouped = self.grouped.take();
        // Those with digits enough, unless the detector looks for any grouping.
        let may_be_loose = |layout: &&Layout| grouped.is_none() && layout.may_be_loose();
        let loose = named.iter().chain(&alone).filter(may_be_loose).copied().collect();
        Shape::Number { alone, named, loose, grouped }
    }

    fn take_function<T: Copy>(&mut self, known: &[(&str, T)]) -> Result<T, String> {
        named(known, &self.find.take().unwrap_or_default())
    }

    /// Returns true if a key of a shape is left that was not taken.
    fn has_more(&self) -> bool {
        let Self { marks, beside, value_of, around, start, alone, named, .. } = self;
        let lists = [marks, beside, value_of, around, start, alone, named];
        lists.into_iter().any(|list| !list.is_empty())
            || self.grouped.is_some()
            || self.find.is_some()
            || self.before.is_some()
            || self.after.is_some()
    }
}

fn check_of(
    digits: Option<DigitRule>,
    check: Option<String>,
    configured: Option<Configured>,
    defaults: &Defaults,
) -> Result<Check, String> {
    match (configured, digits, check) {
        (Some(configured), _, _) => Ok(Check::Conditions(configured.conditions)),
        (None, None, check) => {
            let name = check.as_deref().unwrap_or(defaults.check);
            Ok(Check::Function(named(functions::CHECKS, name)?))
        }
        (None, Some(rule), None) => {
            rule.problem().map_or(Ok(()), Err)?;
            Ok(Check::Digits(rule))
        }
        (None, Some(_), Some(_)) => Err("it has both `check` and `digits`".to_owned()),
    }
}

fn is_name(name: &str, longest: usize) -> bool {
    (1..=longest).contains(&name.len())
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
        && name.starts_with(|first: char| first.is_ascii_lowercase())
}

/// True if no letter beyond ASCII has another case.
fn has_ascii_case(text: &str) -> bool {
    let beyond = text.chars().filter(|char| !char.is_ascii());
    let cases = |char: char| char.to_lowercase().chain(char.to_uppercase());
    !beyond.into_iter().any(|char| cases(char).any(|case| case != char))
}

fn whole(examples: &[String]) -> Vec<String> {
    examples.iter().map(|text| text.replace(SEAM, "")).collect()
}

/// Words, with those of a list in the place of its name: `@card`.
fn listed(words: Vec<String>) -> Result<Vec<String>, String> {
    match words.as_slice() {
        [name] if name.is_empty() => Ok(Vec::new()),
        [name] if name.starts_with('@') => {
            let list = shared(name.trim_start_matches('@'));
            let list = list.ok_or_else(|| format!("no list `{name}`"))?;
            Ok(list.iter().map(|word| (*word).to_owned()).collect())
        }
        _ => Ok(words),
    }
}
