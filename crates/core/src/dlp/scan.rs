//! One pass of the prefilter over the buffer, and the detectors it wakes.

use std::{collections::HashMap, ops::Range};

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};

use super::{
    active::Active,
    body::{Body, Kind, Segment, small},
    custom::{self, Own},
    detector::Shape,
    detectors, digits, hidden,
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

/// A stretch of a segment that a detector shall look at.
struct Window {
    active: u16,
    segment: u32,
    range: Range<usize>,
}

/// A scanner in the making.
#[derive(Default)]
struct Plan {
    literals: HashMap<String, Vec<u16>>,
    active: Vec<Active>,
    at: Vec<u16>,
    digits: Vec<u16>,
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

    /// Finds characters that cannot be seen. To be called before there are views.
    pub(super) fn scan_hidden(&self, body: &Body, matches: &mut Vec<Match>) {
        if let Some(active) = self.hidden {
            hidden::scan(body, active, matches);
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

    /// The stretches that detectors shall look at: where a literal wakes them, merged where they
    /// overlap, and everything for those without one.
    fn windows(&self, body: &Body, first: usize, range: Range<usize>) -> Vec<Window> {
        let mut windows = Windows::new(self.active.len());
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
        for active in &self.restless {
            for (index, home) in (small(first)..).zip(body.segments.iter().skip(first)) {
                windows.push(Window { active: *active, segment: index, range: home.range() });
            }
        }
        windows.list
    }

    fn wake(
        &self,
        body: &Body,
        active: u16,
        segment: u32,
        literal: &Range<usize>,
        windows: &mut Windows,
    ) {
        let pattern = self.active.get(usize::from(active)).and_then(|found| found.pattern.as_ref());
        let (Some(pattern), Some(home)) = (pattern, body.segment(segment)) else {
            return;
        };
        let start = if pattern.beside { literal.end } else { literal.start };
        let wanted = start.saturating_sub(pattern.before)..start + pattern.after;
        windows.push(Window { active, segment, range: clip(&wanted, &home.range()) });
        if pattern.beside
            && home.kind == Kind::Key
            && let Some(value) = body.segment(segment + 1)
            && value.node == home.node
        {
            let wanted = value.range().start..value.range().start + pattern.after;
            let range = clip(&wanted, &value.range());
            windows.push(Window { active, segment: segment + 1, range });
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
            matches.extend(weigh(active, window.active, body, window.segment, range));
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
                let Some(Shape::At(find)) = active.detector().map(|found| &found.shape) else {
                    continue;
                };
                work += 1;
                if let Some(found) = find(body.slice(home.clone()), at - home.start) {
                    work += found.len();
                    let range = home.start + found.start..home.start + found.end;
                    matches.extend(weigh(active, *index, body, segment, range));
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
                let Some(Shape::Digits(find)) = active.detector().map(|found| &found.shape) else {
                    continue;
                };
                work += run.groups.len();
                for range in find(&body.text, run) {
                    matches.extend(weigh(active, *index, body, segment, range));
                }
            }
        });
        work
    }
}

/// The candidate as a match of the detector `index`, if there is enough evidence.
fn weigh(
    active: &Active,
    index: u16,
    body: &Body,
    segment: u32,
    range: Range<usize>,
) -> Option<Match> {
    let likelihood = active.judge(body, segment, &range)?;
    Some(Match { active: index, segment, range, likelihood })
}

impl Plan {
    fn index(&self) -> u16 {
        small(self.active.len()).try_into().unwrap_or(u16::MAX)
    }

    fn add_built_in(&mut self, settings: &Settings) {
        for detector in detectors::all().filter(|found| settings.is_enabled(found.name)) {
            let index = self.index();
            match detector.shape {
                Shape::Pattern { literals, .. } | Shape::Beside { literals, .. } => {
                    self.claim(literals.iter().copied(), index);
                }
                Shape::At(_) => self.at.push(index),
                Shape::Digits(_) => self.digits.push(index),
            }
            match Active::built_in(detector, settings.min_likelihood(detector.name)) {
                Ok(active) => self.active.push(active),
                Err(error) => self.problems.push(format!("detector `{}`: {error}", detector.name)),
            }
        }
    }

    fn add_own(&mut self, settings: &Settings, owns: Vec<Own>) {
        for own in owns.into_iter().filter(|own| settings.is_enabled(&own.name)) {
            let (index, name) = (self.index(), own.name.clone());
            if own.literals.is_empty() {
                self.restless.push(index);
            }
            self.claim(own.literals.iter().map(String::as_str), index);
            match Active::own(own, settings.min_likelihood(&name)) {
                Ok(active) => self.active.push(active),
                Err(error) => {
                    self.problems.push(format!("detector `{name}`: {}", custom::plain(&error)));
                }
            }
        }
    }

    fn claim<'a>(&mut self, literals: impl Iterator<Item = &'a str>, owner: u16) {
        for literal in literals {
            self.literals.entry(literal.to_owned()).or_default().push(owner);
        }
    }

    fn compile(self) -> Result<Scanner, Vec<String>> {
        let Self { literals, active, at, digits, restless, hidden, problems } = self;
        if !problems.is_empty() {
            return Err(problems);
        }
        let (literals, wakes): (Vec<String>, Vec<Vec<u16>>) = literals.into_iter().unzip();
        let prefilter = AhoCorasick::builder()
            .ascii_case_insensitive(true)
            .match_kind(MatchKind::Standard)
            .kind(Some(AhoCorasickKind::DFA))
            .build(&literals)
            .map_err(|error| vec![format!("the detectors' literals: {error}")])?;
        Ok(Scanner { prefilter, wakes, active, at, digits, restless, hidden })
    }
}

/// Windows in the making; each detector's last one grows while new ones touch it.
struct Windows {
    list: Vec<Window>,
    /// One more than the place of each detector's last window; 0 while it has none.
    last: Vec<u32>,
}

impl Windows {
    fn new(detectors: usize) -> Self {
        Self { list: Vec::new(), last: vec![0; detectors] }
    }

    fn push(&mut self, window: Window) {
        let Some(last) = self.last.get_mut(usize::from(window.active)) else { return };
        let known = last.checked_sub(1).and_then(|place| self.list.get_mut(place as usize));
        match known {
            Some(known) if known.takes(&window) => {
                known.range.start = known.range.start.min(window.range.start);
                known.range.end = known.range.end.max(window.range.end);
            }
            Some(_) | None => {
                self.list.push(window);
                *last = small(self.list.len());
            }
        }
    }
}

impl Window {
    /// Whether the next one overlaps or touches this one.
    fn takes(&self, next: &Window) -> bool {
        self.segment == next.segment
            && next.range.start <= self.range.end
            && self.range.start <= next.range.end
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

fn clip(wanted: &Range<usize>, home: &Range<usize>) -> Range<usize> {
    wanted.start.clamp(home.start, home.end)..wanted.end.clamp(home.start, home.end)
}
