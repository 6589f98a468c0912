//! One pass of the prefilter over the buffer, and the detectors it wakes.

use std::ops::Range;

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use regex::bytes::{Regex, RegexBuilder};

use super::{
    body::{Body, Kind, Segment, small},
    context,
    detector::{Candidate, Detector, Shape},
    detectors, digits,
    kinds::Likelihood,
    settings::Settings,
};

/// The enabled detectors, compiled.
pub(super) struct Scanner {
    prefilter: AhoCorasick,
    /// Which detectors a literal of the prefilter wakes.
    wakes: Vec<Vec<u16>>,
    pub(super) active: Vec<Active>,
    at: Vec<u16>,
    digits: Vec<u16>,
}

/// One enabled detector.
pub(super) struct Active {
    pub(super) detector: &'static Detector,
    pattern: Option<Pattern>,
    min_likelihood: Likelihood,
}

struct Pattern {
    regex: Regex,
    has_group: bool,
    before: usize,
    after: usize,
    beside: bool,
}

/// One match, before matches are gathered into findings.
pub(super) struct Match {
    pub(super) active: u16,
    pub(super) segment: u32,
    /// Bytes of the buffer.
    pub(super) range: Range<usize>,
    pub(super) likelihood: Likelihood,
}

/// A stretch of a segment that a detector shall look at.
struct Window {
    active: u16,
    segment: u32,
    range: Range<usize>,
}

impl Scanner {
    /// Compiles what the settings leave enabled.
    pub(super) fn new(settings: &Settings) -> Result<Scanner, Vec<String>> {
        let mut problems = Vec::new();
        let mut literals: Vec<(&'static str, Vec<u16>)> = Vec::new();
        let (mut active, mut at, mut digits) = (Vec::new(), Vec::new(), Vec::new());
        for detector in detectors::all().filter(|found| settings.is_enabled(found.name)) {
            let index = u16::try_from(active.len()).unwrap_or(u16::MAX);
            match detector.shape {
                Shape::Pattern { literals: own, .. } | Shape::Beside { literals: own, .. } => {
                    for literal in own {
                        claim(&mut literals, literal, index);
                    }
                }
                Shape::At(_) => at.push(index),
                Shape::Digits(_) => digits.push(index),
            }
            match Pattern::compile(detector) {
                Ok(pattern) => active.push(Active {
                    detector,
                    pattern,
                    min_likelihood: settings.min_likelihood(detector.name),
                }),
                Err(error) => problems.push(format!("detector `{}`: {error}", detector.name)),
            }
        }
        let prefilter = AhoCorasick::builder()
            .ascii_case_insensitive(true)
            .match_kind(MatchKind::Standard)
            .kind(Some(AhoCorasickKind::DFA))
            .build(literals.iter().map(|(literal, _)| literal));
        let wakes = literals.into_iter().map(|(_, owners)| owners).collect();
        match prefilter {
            Ok(prefilter) if problems.is_empty() => {
                Ok(Scanner { prefilter, wakes, active, at, digits })
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
        let windows = self.windows(body, first, range.clone());
        let mut work = 0;
        for window in &windows {
            work += window.range.len();
            self.search(body, window, matches);
        }
        work += self.scan_at(body, first, range.clone(), matches);
        work + self.scan_digits(body, first, range, matches)
    }

    /// The stretches that literals wake detectors for, merged where they overlap.
    fn windows(&self, body: &Body, first: usize, range: Range<usize>) -> Vec<Window> {
        let mut windows = Vec::new();
        let mut cursor = Cursor::new(body, first);
        let base = range.start;
        for hit in self.prefilter.find_overlapping_iter(body.slice(range)) {
            let literal = base + hit.start()..base + hit.end();
            let Some(segment) = cursor.seek(literal.start) else {
                continue;
            };
            for active in self.wakes.get(hit.pattern().as_usize()).into_iter().flatten() {
                self.wake(body, *active, segment, &literal, &mut windows);
            }
        }
        merge(windows)
    }

    fn wake(
        &self,
        body: &Body,
        active: u16,
        segment: u32,
        literal: &Range<usize>,
        windows: &mut Vec<Window>,
    ) {
        let pattern = self.active.get(usize::from(active)).and_then(|found| found.pattern.as_ref());
        let (Some(pattern), Some(home)) = (pattern, body.segment(segment)) else {
            return;
        };
        let start = if pattern.beside { literal.end } else { literal.start };
        let wanted = start.saturating_sub(pattern.before)..start + pattern.after;
        push(windows, Window { active, segment, range: clip(&wanted, &home.range()) });
        if pattern.beside
            && home.kind == Kind::Key
            && let Some(value) = body.segment(segment + 1)
            && value.node == home.node
        {
            let wanted = value.range().start..value.range().start + pattern.after;
            let range = clip(&wanted, &value.range());
            push(windows, Window { active, segment: segment + 1, range });
        }
    }

    fn search(&self, body: &Body, window: &Window, matches: &mut Vec<Match>) {
        let Some((active, pattern)) = self
            .active
            .get(usize::from(window.active))
            .and_then(|active| Some((active, active.pattern.as_ref()?)))
        else {
            return;
        };
        let Some(home) = body.segment(window.segment).map(Segment::range) else {
            return;
        };
        let haystack = body.slice(home.start..window.range.end);
        let mut at = window.range.start - home.start;
        while let Some(found) = pattern.find_at(haystack, at) {
            at = found.whole.end.max(at + 1);
            let range = home.start + found.wanted.start..home.start + found.wanted.end;
            let likelihood = active.judge(body, window.segment, &range);
            matches.extend(likelihood.map(|likelihood| Match {
                active: window.active,
                segment: window.segment,
                range,
                likelihood,
            }));
        }
    }

    fn scan_at(
        &self,
        body: &Body,
        first: usize,
        range: Range<usize>,
        matches: &mut Vec<Match>,
    ) -> usize {
        let mut cursor = Cursor::new(body, first);
        let mut work = 0;
        for hit in memchr::memchr_iter(b'@', body.slice(range.clone())) {
            let at = range.start + hit;
            let Some(segment) = cursor.seek(at) else { continue };
            let Some(home) = body.segment(segment).map(Segment::range) else { continue };
            for index in &self.at {
                let Some(active) = self.active.get(usize::from(*index)) else { continue };
                let Shape::At(find) = active.detector.shape else { continue };
                work += 1;
                if let Some(found) = find(body.slice(home.clone()), at - home.start) {
                    work += found.len();
                    let range = home.start + found.start..home.start + found.end;
                    matches.extend(active.weigh(*index, body, segment, range));
                }
            }
        }
        work
    }

    fn scan_digits(
        &self,
        body: &Body,
        first: usize,
        range: Range<usize>,
        matches: &mut Vec<Match>,
    ) -> usize {
        let mut cursor = Cursor::new(body, first);
        let mut work = 0;
        digits::each_run(&body.text, range, |run| {
            let Some(start) = run.groups.first().map(|group| group.start) else { return };
            let Some(segment) = cursor.seek(start) else { return };
            for index in &self.digits {
                let Some(active) = self.active.get(usize::from(*index)) else { continue };
                let Shape::Digits(find) = active.detector.shape else { continue };
                work += run.groups.len();
                for range in find(&body.text, run) {
                    matches.extend(active.weigh(*index, body, segment, range));
                }
            }
        });
        work
    }
}

impl Active {
    /// The candidate as a match of the detector `index`, if there is enough evidence.
    fn weigh(&self, index: u16, body: &Body, segment: u32, range: Range<usize>) -> Option<Match> {
        let likelihood = self.judge(body, segment, &range)?;
        Some(Match { active: index, segment, range, likelihood })
    }

    /// Weighs the evidence for a candidate; `None` when there is too little.
    fn judge(&self, body: &Body, segment: u32, range: &Range<usize>) -> Option<Likelihood> {
        let home = body.segment(segment)?;
        let detector = self.detector;
        let text = body.slice(home.range());
        let start = home.start as usize;
        let inside = range.start.checked_sub(start)?..range.end.checked_sub(start)?;
        if inside.end > text.len() || !has_free_edges(detector, text, &inside) {
            return None;
        }
        let candidate = Candidate { text, range: inside };
        let shape = detector.bits + (detector.check)(&candidate)?;
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
        let (source, before, after, beside) = match detector.shape {
            Shape::Pattern { pattern, before, after, .. } => (pattern, before, after, false),
            Shape::Beside { pattern, after, .. } => (pattern, 0, after, true),
            Shape::At(_) | Shape::Digits(_) => return Ok(None),
        };
        let regex = RegexBuilder::new(source).unicode(false).build()?;
        Ok(Some(Pattern {
            has_group: regex.captures_len() > 1,
            regex,
            before: usize::from(before),
            after: usize::from(after),
            beside,
        }))
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

fn claim(literals: &mut Vec<(&'static str, Vec<u16>)>, literal: &'static str, owner: u16) {
    match literals.iter_mut().find(|(known, _)| *known == literal) {
        Some((_, owners)) => owners.push(owner),
        None => literals.push((literal, vec![owner])),
    }
}

fn clip(wanted: &Range<usize>, home: &Range<usize>) -> Range<usize> {
    wanted.start.clamp(home.start, home.end)..wanted.end.clamp(home.start, home.end)
}

/// Adds a window, or lengthens the last one when it is the same detector's and touches.
fn push(windows: &mut Vec<Window>, window: Window) {
    match windows.last_mut() {
        Some(last) if last.takes(&window) => last.range.end = last.range.end.max(window.range.end),
        Some(_) | None => windows.push(window),
    }
}

fn merge(mut windows: Vec<Window>) -> Vec<Window> {
    windows.sort_by_key(|window| (window.active, window.range.start));
    let mut merged = Vec::with_capacity(windows.len());
    for window in windows {
        push(&mut merged, window);
    }
    merged
}

impl Window {
    fn takes(&self, next: &Window) -> bool {
        self.active == next.active
            && self.segment == next.segment
            && (self.range.start..=self.range.end).contains(&next.range.start)
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
