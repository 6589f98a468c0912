//! One pass of the prefilter over the buffer, and the detectors it wakes.

use std::{collections::BTreeMap, ops::Range};

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use regex::bytes::{Regex, RegexBuilder};

use super::{
    body::{Body, Segment, small},
    context,
    detector::{Candidate, Detector, Shape},
    detectors,
    kinds::Likelihood,
    layouts::{self, Layout},
    settings::Settings,
};

mod triggers;
mod windows;

use triggers::Triggers;
use windows::{Reach, Window};

/// The enabled detectors, compiled.
pub(super) struct Scanner {
    prefilter: AhoCorasick,
    /// Which detectors a literal of the prefilter wakes.
    wakes: Vec<Vec<u16>>,
    pub(super) active: Vec<Active>,
    triggers: Triggers,
}

/// One enabled detector.
pub(super) struct Active {
    pub(super) detector: &'static Detector,
    pattern: Option<Pattern>,
    /// Layouts that are looked for beside context words.
    layouts: Vec<Layout>,
    reach: Reach,
    min_likelihood: Likelihood,
}

struct Pattern {
    regex: Regex,
    has_group: bool,
}

/// One match, before matches are gathered into findings.
pub(super) struct Match {
    pub(super) active: u16,
    pub(super) segment: u32,
    /// Bytes of the buffer.
    pub(super) range: Range<usize>,
    pub(super) likelihood: Likelihood,
}

impl Scanner {
    /// Compiles what the settings leave enabled.
    pub(super) fn new(settings: &Settings) -> Result<Scanner, Vec<String>> {
        let mut problems = Vec::new();
        let mut literals: BTreeMap<String, Vec<u16>> = BTreeMap::new();
        let (mut active, mut triggers) = (Vec::new(), Triggers::default());
        for detector in detectors::all().filter(|found| settings.is_enabled(found.name)) {
            let index = u16::try_from(active.len()).unwrap_or(u16::MAX);
            for literal in detector.literals() {
                literals.entry(literal).or_default().push(index);
            }
            triggers.add(index, &detector.shape);
            match Active::compile(detector, settings) {
                Ok(compiled) => active.push(compiled),
                Err(error) => problems.push(format!("detector `{}`: {error}", detector.name)),
            }
        }
        let prefilter = AhoCorasick::builder()
            .ascii_case_insensitive(true)
            .match_kind(MatchKind::Standard)
            .kind(Some(AhoCorasickKind::DFA))
            .build(literals.keys());
        let wakes = literals.into_values().collect();
        match prefilter {
            Ok(prefilter) if problems.is_empty() => {
                Ok(Scanner { prefilter, wakes, active, triggers })
            }
            Ok(_) => Err(problems),
            Err(error) => Err(vec![format!("the detectors' literals: {error}")]),
        }
    }

    /// Scans the segments from the given one on. Returns how many bytes detectors looked at
    /// beyond the single pass, so that a test can hold the work to a bound.
    pub(super) fn scan(&self, body: &Body, first: usize, matches: &mut Vec<Match>) -> usize {
        let Some(segment) = body.segments.get(first) else {
            return 0;
        };
        let range = segment.start as usize..body.text.len();
        let windows = self.windows(body, first, range.clone(), matches);
        let mut work = 0;
        for window in &windows {
            work += window.range.len();
            self.search(body, window, matches);
        }
        work + self.scan_triggers(body, first, &range, matches)
    }

    fn search(&self, body: &Body, window: &Window, matches: &mut Vec<Match>) {
        let Some(active) = self.active.get(usize::from(window.active)) else { return };
        let Some(home) = body.segment(window.segment).map(Segment::range) else { return };
        let part = window.range.start - home.start..window.range.end - home.start;
        let mut take = |found: Range<usize>| {
            let range = home.start + found.start..home.start + found.end;
            matches.extend(active.weigh(window.active, body, window.segment, range, 0));
        };
        match &active.pattern {
            Some(pattern) => pattern.find_in(body.slice(home.start..window.range.end), part, take),
            None => {
                layouts::find_in(&active.layouts, body.slice(home.clone()), part)
                    .for_each(&mut take);
            }
        }
    }
}

impl Active {
    fn compile(detector: &'static Detector, settings: &Settings) -> Result<Active, regex::Error> {
        let layouts = match detector.shape {
            Shape::Number { named, .. } => named.iter().map(|source| Layout::new(source)).collect(),
            Shape::Pattern { .. }
            | Shape::Beside { .. }
            | Shape::At(_)
            | Shape::Digits(_)
            | Shape::Around { .. }
            | Shape::Run
            | Shape::Colons => Vec::new(),
        };
        Ok(Active {
            detector,
            pattern: Pattern::compile(detector)?,
            layouts,
            reach: Reach::of(&detector.shape),
            min_likelihood: settings.min_likelihood(detector.name),
        })
    }

    /// The candidate as a match of the detector `index`, if there is enough evidence.
    fn weigh(
        &self,
        index: u16,
        body: &Body,
        segment: u32,
        range: Range<usize>,
        more: i32,
    ) -> Option<Match> {
        let likelihood = self.judge(body, segment, &range, more)?;
        Some(Match { active: index, segment, range, likelihood })
    }

    /// Weighs the evidence for a candidate, with `more` bits of the trigger's own; `None` when
    /// there is too little.
    fn judge(
        &self,
        body: &Body,
        segment: u32,
        range: &Range<usize>,
        more: i32,
    ) -> Option<Likelihood> {
        let home = body.segment(segment)?;
        let detector = self.detector;
        let text = body.slice(home.range());
        let start = home.start as usize;
        let inside = range.start.checked_sub(start)?..range.end.checked_sub(start)?;
        if inside.end > text.len() || !has_free_edges(detector, text, &inside) {
            return None;
        }
        let candidate = Candidate { text, range: inside };
        let shape = detector.bits + more + (detector.check)(&candidate)?;
        let in_context = !detector.context.is_empty()
            && (context::stands_near(text, &candidate.range, detector.context)
                || context::stands_above(body, home.node, detector.context));
        let weight = if in_context {
            detector.context_bits
        } else if !detector.against.is_empty()
            && context::stands_above(body, home.node, detector.against)
        {
            -AGAINST_BITS
        } else {
            0
        };
        Likelihood::from_bits(shape + weight)
            .filter(|likelihood| *likelihood >= self.min_likelihood)
    }
}

/// What a key that speaks against a match takes away.
const AGAINST_BITS: i32 = 12;

impl Pattern {
    fn compile(detector: &Detector) -> Result<Option<Pattern>, regex::Error> {
        let source = match detector.shape {
            Shape::Pattern { pattern, .. } | Shape::Beside { pattern, .. } => pattern,
            Shape::At(_)
            | Shape::Digits(_)
            | Shape::Number { .. }
            | Shape::Around { .. }
            | Shape::Run
            | Shape::Colons => return Ok(None),
        };
        let regex = RegexBuilder::new(source).unicode(false).build()?;
        Ok(Some(Pattern { has_group: regex.captures_len() > 1, regex }))
    }

    /// Calls `take` with everything that is found in a part of the haystack.
    fn find_in(&self, haystack: &[u8], part: Range<usize>, mut take: impl FnMut(Range<usize>)) {
        let mut at = part.start;
        while let Some(found) = self.find_at(haystack, at) {
            at = found.whole.end.max(at + 1);
            take(found.wanted);
        }
    }

    fn find_at(&self, haystack: &[u8], at: usize) -> Option<Found> {
        let whole = self.regex.find_at(haystack, at)?.range();
        if !self.has_group {
            return Some(Found { wanted: whole.clone(), whole });
        }
        let group = self.regex.captures_at(haystack, at)?.get(1)?.range();
        Some(Found { wanted: group, whole })
    }
}

struct Found {
    whole: Range<usize>,
    wanted: Range<usize>,
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

/// Whether nothing touches a match that may not. A letter that ends an escape such as a
/// literal `\n` is no part of a word.
fn has_free_edges(detector: &Detector, text: &[u8], inside: &Range<usize>) -> bool {
    let before = text.get(..inside.start).unwrap_or_default();
    let free_before = match before {
        [.., b'\\', b'n' | b'r' | b't'] | [] => true,
        [.., last] => detector.edges.allow(*last),
    };
    free_before && text.get(inside.end).is_none_or(|next| detector.edges.allow(*next))
}
