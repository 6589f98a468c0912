//! One pass of the prefilter over the buffer, and the detectors it wakes.

use std::{
    collections::{BTreeMap, HashSet},
    ops::Range,
};

use super::{
    active::{Active, Pattern},
    body::{Body, Segment, small},
    custom::{self, Own},
    detectors, hidden,
    kinds::Likelihood,
    layouts,
    marks::Set,
    runs::Run,
    settings::Settings,
};

mod anchors;
mod columns;
mod glued;
mod literals;
mod triggers;
mod windows;

pub(super) use windows::Reach;

use columns::Columns;
use glued::Glued;
use literals::{Literal, Literals};
use triggers::Triggers;
use windows::{Window, Windows};

/// The enabled detectors, compiled.
pub(super) struct Scanner {
    prefilter: Literals,
    /// Which detectors a literal of the prefilter wakes, and how far they look.
    wakes: Vec<Vec<(u16, Reach)>>,
    pub(super) active: Vec<Active>,
    /// Marks of vendors behind a letter.
    glued: Glued,
    triggers: Triggers,
    /// Those without a literal: they look at everything.
    restless: Vec<u16>,
    hidden: Option<u16>,
}

/// One match, before matches are gathered into findings.
pub(super) struct Match {
    pub(super) active: u16,
    pub(super) segment: u32,
    /// Bytes of the buffer.
    pub(super) range: Range<usize>,
    pub(super) likelihood: Likelihood,
}

/// What a scan works with. It is used again for the next one.
#[derive(Default)]
pub(super) struct Desk {
    /// What was found so far.
    pub(super) matches: Vec<Match>,
    windows: Windows,
    /// Members whose keys woke a detector, in this pass or one before.
    keys: Vec<(u32, u16)>,
    /// Tables of text in whose first line detectors woke.
    columns: Columns,
    /// A member written as in a program.
    line: Vec<u8>,
}

impl Desk {
    /// Makes it ready for the next value.
    pub(super) fn clear(&mut self) {
        self.matches.clear();
        self.windows.clear();
        self.keys.clear();
        self.columns.clear();
        self.line.clear();
    }
}

/// Whom a literal wakes.
#[derive(Default)]
struct Claim {
    owners: Vec<(u16, Reach)>,
    /// Whether somebody wants it also in the middle of a word, in lower case.
    anywhere: bool,
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
    problems: Vec<String>,
}

impl Scanner {
    /// Compiles what the settings leave enabled, or says everything that is wrong.
    pub(super) fn new(settings: &Settings, owns: Vec<Own>) -> Result<Scanner, Vec<String>> {
        let mut plan = Plan::default();
        plan.add_built_in(settings);
        plan.add_own(settings, owns);
        if settings.is_enabled(hidden::NAME) {
            plan.hidden = Some(plan.index());
            plan.active.push(Active::hidden());
        }
        plan.compile()
    }

    /// What has to be marked in a body for a scan, besides words.
    pub(super) fn rare(&self) -> &Set {
        self.prefilter.rare()
    }

    /// Scans the segments from the given one on, which are marked and in which the given runs are
    /// long. Returns how many bytes detectors looked at beyond the single pass, so that a test can
    /// hold the work to a bound.
    pub(super) fn scan(&self, body: &Body, first: usize, runs: &[Run], desk: &mut Desk) -> usize {
        let Some(segment) = body.segments.get(first) else {
            return 0;
        };
        if let (Some(active), 0) = (self.hidden, first) {
            hidden::scan(body, active, &mut desk.matches);
        }
        let range = segment.start as usize..body.text.len();
        self.find_windows(body, first, desk);
        let mut work = 0;
        let Desk { matches, windows, line, columns, .. } = desk;
        for window in windows.list() {
            work += window.range.len();
            self.search(body, window, line, matches);
        }
        let known = matches.len();
        work += columns.each_cell(body, self, |window| self.search(body, window, line, matches));
        self.find_glued(body, runs, windows);
        for window in windows.list() {
            work += window.range.len();
            self.search(body, window, line, matches);
        }
        drop_known(matches, known);
        work + self.scan_triggers(body, first, &range, runs, matches)
    }

    fn search(&self, body: &Body, window: &Window, line: &mut Vec<u8>, matches: &mut Vec<Match>) {
        let Some(active) = self.active.get(usize::from(window.active)) else { return };
        let Some(home) = body.segment(window.segment).map(Segment::range) else { return };
        let part = window.range.start - home.start..window.range.end - home.start;
        let mut take = |found: Range<usize>| {
            let range = home.start + found.start..home.start + found.end;
            matches.extend(active.weigh(window.active, body, window.segment, range, 0));
        };
        match (&active.pattern, window.key.clone()) {
            (Some(pattern), Some(key)) => {
                let (key, value) = (body.slice(key), body.slice(window.range.clone()));
                in_member(pattern, key, value, line, &mut take);
            }
            (Some(pattern), None) => {
                pattern.find_in(body.slice(home.start..window.range.end), part, take);
            }
            (None, _) => {
                layouts::find_in(&active.layouts, body.slice(home.clone()), part)
                    .for_each(&mut take);
            }
        }
    }
}

/// Drops those of the matches behind the first `known` that are among these: the first rows of a
/// table stand near its head, and a mark behind a letter near one that stands free.
fn drop_known(matches: &mut Vec<Match>, known: usize) {
    if known == matches.len() {
        return;
    }
    let name = |found: &Match| (found.active, found.segment, found.range.start, found.range.end);
    let (before, _) = matches.split_at_checked(known).unwrap_or_default();
    let before: HashSet<_> = before.iter().map(name).collect();
    let mut at = 0;
    matches.retain(|found| {
        at += 1;
        at <= known || !before.contains(&name(found))
    });
}

/// What a pattern finds in a value when the member is written as in a program: rules from elsewhere
/// want the name and the value on one line.
fn in_member(
    pattern: &Pattern,
    key: &[u8],
    value: &[u8],
    line: &mut Vec<u8>,
    mut take: impl FnMut(Range<usize>),
) {
    line.clear();
    line.extend_from_slice(key);
    line.extend_from_slice(b": \"");
    let start = line.len();
    line.extend_from_slice(value);
    let end = line.len();
    line.push(b'"');
    pattern.find_in(line, 0..line.len(), |found| {
        if start <= found.start && found.end <= end {
            take(found.start - start..found.end - start);
        }
    });
}

impl Plan {
    fn index(&self) -> u16 {
        small(self.active.len()).try_into().unwrap_or(u16::MAX)
    }

    fn add_built_in(&mut self, settings: &Settings) {
        for detector in detectors::all().filter(|found| settings.is_enabled(found.name)) {
            let index = self.index();
            let active = Active::built_in(detector, settings.min_likelihood(detector.name));
            self.claim(detector.literals(), (index, active.reach));
            self.triggers.add(index, detector);
            self.active.push(active);
        }
    }

    fn add_own(&mut self, settings: &Settings, owns: Vec<Own>) {
        for own in owns.into_iter().filter(|own| settings.is_enabled(&own.name)) {
            let (index, name) = (self.index(), own.name.clone());
            if own.literals.is_empty() {
                self.restless.push(index);
            }
            let literals = own.literals.clone();
            match Active::own(own, settings.min_likelihood(&name)) {
                Ok(active) => {
                    self.claim(literals, (index, active.reach));
                    self.active.push(active);
                }
                Err(error) => {
                    self.problems.push(format!("detector `{name}`: {}", custom::plain(&error)));
                }
            }
        }
    }

    fn claim(&mut self, literals: Vec<String>, owner: (u16, Reach)) {
        let (_, reach) = owner;
        for literal in literals {
            let capital = literal.starts_with(|first: char| first.is_ascii_uppercase());
            let claim = self.literals.entry(literal.to_ascii_lowercase()).or_default();
            claim.owners.push(owner);
            claim.anywhere |= reach.begins_anywhere() && !capital;
        }
    }

    fn compile(self) -> Result<Scanner, Vec<String>> {
        let Self { literals, active, triggers, restless, hidden, problems } = self;
        if !problems.is_empty() {
            return Err(problems);
        }
        let (literals, wakes): (Vec<Literal>, Vec<_>) = literals
            .into_iter()
            .map(|(text, Claim { owners, anywhere })| {
                (Literal { text: text.into_bytes(), anywhere }, owners)
            })
            .unzip();
        let is_mark = |owners: &Vec<(u16, Reach)>| {
            owners.iter().any(|(_, reach)| matches!(reach, Reach::Mark { .. }))
        };
        let marked = literals.iter().map(|literal| literal.text.as_slice()).zip(&wakes);
        let glued = Glued::new(marked.map(|(text, owners)| (text, is_mark(owners))));
        let prefilter = Literals::new(literals);
        Ok(Scanner { prefilter, wakes, active, glued, triggers, restless, hidden })
    }
}

/// Finds the segment of ever greater offsets.
struct Cursor<'a> {
    body: &'a Body,
    index: usize,
}

impl<'a> Cursor<'a> {
    fn new(body: &'a Body, first: usize) -> Self {
        Self { body, index: first }
    }

    fn seek(&mut self, offset: usize) -> Option<u32> {
        // Overlapping literals may start a little before the last one.
        while self.index > 0
            && self.body.segments.get(self.index).is_none_or(|at| at.start as usize > offset)
        {
            self.index -= 1;
        }
        while self.body.segments.get(self.index)?.end as usize <= offset {
            self.index += 1;
        }
        let found = self.body.segments.get(self.index)?;
        (found.start as usize <= offset).then(|| small(self.index))
    }
}
