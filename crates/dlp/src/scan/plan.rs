//! Compilation of the enabled detectors into a scanner.

use std::{collections::BTreeMap, sync::Arc};

use crate::{
    body::segment::small,
    catalogue::{
        detector::{Detector, Shape},
        load::Catalogue,
    },
    scan::{
        active::Active,
        glued::Glued,
        literals::{Literal, Literals},
        reach::Reach,
        scanner::Scanner,
        triggers::Triggers,
    },
    settings::options::Settings,
    text::hidden,
    vocabulary::Category,
};

/// The detector of numbers that others turned down: nothing wakes it.
const DOUBTS: &str = "mistyped_number";

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
}

impl Scanner {
    /// A scanner without detectors.
    pub(crate) fn idle() -> Scanner {
        Plan::default().compile()
    }

    /// Compiles the detectors that the settings leave enabled: those built in and these.
    pub(crate) fn new(settings: &Settings, configured: &[Arc<Detector>]) -> Scanner {
        let mut plan = Plan::default();
        let hidden = Detector::new(hidden::NAME, Category::Hidden, Shape::Hidden);
        let all = Catalogue::all().chain(configured).cloned().chain([Arc::new(hidden)]);
        for detector in all.filter(|detector| settings.is_enabled(&detector.name)) {
            let least = settings.min_likelihood(&detector.name);
            plan.add(Active::new(detector, least));
        }
        plan.compile()
    }
}

impl Plan {
    fn add(&mut self, active: Active) {
        // The settings have a bound for the number of detectors that is far below.
        let index = small(self.active.len()).try_into().unwrap_or(u16::MAX);
        let detector = &active.detector;
        if matches!(detector.shape, Shape::Hidden) {
            self.hidden = Some(index);
        }
        if detector.is_restless() {
            self.restless.push(index);
        }
        if detector.name() == DOUBTS {
            self.doubt = Some(index);
        }
        self.claim(detector.wakes_at(), index, active.reach);
        self.claim_marks(detector, active.reach);
        self.triggers.add(index, detector);
        self.active.push(active);
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
        let (Some(pattern), Reach::Mark { .. } | Reach::From { .. }) = (&detector.pattern, reach)
        else {
            return;
        };
        for literal in &detector.literals {
            let capital = literal.to_ascii_uppercase();
            let is_capital = pattern.source.contains(&capital) && !pattern.source.contains(literal);
            let mark = if is_capital { capital } else { literal.clone() };
            let claim = self.literals.get_mut(&literal.to_ascii_lowercase());
            if let Some(claim) = claim.filter(|_| is_mark(&mark)) {
                claim.mark = Some(mark.into_bytes().into());
            }
        }
    }

    fn compile(self) -> Scanner {
        let Self { literals, active, triggers, restless, hidden, doubt } = self;
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
        Scanner { prefilter, wakes, marks, active, glued, triggers, restless, hidden, doubt }
    }
}

/// Returns true if a literal is the mark of tokens: two letters or more, and a joint or a capital.
fn is_mark(literal: &str) -> bool {
    let letters = literal.bytes().filter(u8::is_ascii_alphabetic).count();
    let is_told = |byte: u8| matches!(byte, b'_' | b'-' | b'.') || byte.is_ascii_uppercase();
    letters >= 2 && literal.len() >= 3 && literal.bytes().any(is_told)
}
