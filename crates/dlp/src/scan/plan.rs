//! Compilation of the enabled detectors into a scanner.

use std::collections::BTreeMap;

use crate::{
    body::segment::small,
    catalogue::{
        detector::{Detector, Shape},
        list,
    },
    scan::{
        active::Active,
        glued::Glued,
        literals::{Literal, Literals},
        reach::Reach,
        scanner::Scanner,
        triggers::Triggers,
    },
    settings::{custom::Own, options::Settings, patterns},
    text::hidden,
};

/// Detectors that a literal wakes.
#[derive(Default)]
struct Claim {
    owners: Vec<(u16, Reach)>,
    /// True if a detector wants it also in the middle of a word.
    anywhere: bool,
    /// As its vendor writes it, if it is the mark of tokens.
    mark: Option<Box<[u8]>>,
}

/// A scanner in the making.
#[derive(Default)]
struct Plan {
    /// In lower case.
    literals: BTreeMap<String, Claim>,
    active: Vec<Active>,
    triggers: Triggers,
    restless: Vec<u16>,
    hidden: Option<u16>,
    doubt: Option<u16>,
    problems: Vec<String>,
}

impl Scanner {
    /// Compiles what the settings leave enabled, or says everything that is wrong.
    pub(crate) fn new(settings: &Settings, owns: Vec<Own>) -> Result<Scanner, Vec<String>> {
        let mut plan = Plan::default();
        plan.add_built_in(settings);
        plan.add_own(settings, owns);
        if settings.is_enabled(hidden::NAME) {
            plan.hidden = Some(plan.index());
            plan.active.push(Active::hidden());
        }
        plan.compile()
    }
}

impl Plan {
    fn index(&self) -> u16 {
        small(self.active.len()).try_into().unwrap_or(u16::MAX)
    }

    fn add_built_in(&mut self, settings: &Settings) {
        for detector in list::all().filter(|found| settings.is_enabled(found.name)) {
            let index = self.index();
            if list::reports_doubts(detector.name) {
                self.doubt = Some(index);
            }
            let active = Active::built_in(detector, settings.min_likelihood(detector.name));
            self.claim(detector.literals(), index, active.reach);
            self.claim_marks(detector, active.reach);
            self.triggers.add(index, detector);
            self.active.push(active);
        }
    }

    fn add_own(&mut self, settings: &Settings, owns: Vec<Own>) {
        for own in owns.into_iter().filter(|own| settings.is_enabled(&own.name)) {
            let index = self.index();
            let name = own.name.clone();
            if own.literals.is_empty() {
                self.restless.push(index);
            }
            let literals = own.literals.clone();
            match Active::own(own, settings.min_likelihood(&name)) {
                Ok(active) => {
                    self.claim(literals, index, active.reach);
                    self.active.push(active);
                }
                Err(error) => {
                    self.problems.push(format!("detector `{name}`: {}", patterns::plain(&error)));
                }
            }
        }
    }

    fn claim(&mut self, literals: Vec<String>, index: u16, reach: Reach) {
        for literal in literals {
            let claim = self.literals.entry(literal.to_ascii_lowercase()).or_default();
            claim.owners.push((index, reach));
            claim.anywhere |= reach.begins_anywhere();
        }
    }

    /// Notes how a vendor writes the marks of its tokens, of which the pattern tells.
    fn claim_marks(&mut self, detector: &Detector, reach: Reach) {
        let (Shape::Pattern { pattern, literals, .. }, Reach::Mark { .. } | Reach::From { .. }) =
            (&detector.shape, reach)
        else {
            return;
        };
        for literal in *literals {
            let capital = literal.to_ascii_uppercase();
            let is_capital = pattern.contains(&capital) && !pattern.contains(literal);
            let mark = if is_capital { capital } else { (*literal).to_owned() };
            let claim = self.literals.get_mut(&literal.to_ascii_lowercase());
            if let Some(claim) = claim.filter(|_| is_mark(&mark)) {
                claim.mark = Some(mark.into_bytes().into());
            }
        }
    }

    fn compile(self) -> Result<Scanner, Vec<String>> {
        let Self { literals, active, triggers, restless, hidden, doubt, problems } = self;
        if !problems.is_empty() {
            return Err(problems);
        }
        let (literals, (wakes, marks)): (Vec<Literal>, (Vec<_>, Vec<_>)) = literals
            .into_iter()
            .map(|(text, Claim { owners, anywhere, mark })| {
                (Literal { text: text.into_bytes(), anywhere }, (owners, mark))
            })
            .unzip();
        let wakes_mark = |owners: &Vec<(u16, Reach)>| {
            owners.iter().any(|(_, reach)| matches!(reach, Reach::Mark { .. }))
        };
        let marked = literals.iter().map(|literal| literal.text.as_slice()).zip(&wakes);
        let glued = Glued::new(marked.map(|(text, owners)| (text, wakes_mark(owners))));
        let prefilter = Literals::new(literals);
        Ok(Scanner { prefilter, wakes, marks, active, glued, triggers, restless, hidden, doubt })
    }
}

/// Returns true if a literal is the mark of tokens: two letters or more, and a joint or a capital.
fn is_mark(literal: &str) -> bool {
    let letters = literal.bytes().filter(u8::is_ascii_alphabetic).count();
    let is_told = |byte: u8| matches!(byte, b'_' | b'-' | b'.') || byte.is_ascii_uppercase();
    letters >= 2 && literal.len() >= 3 && literal.bytes().any(is_told)
}
