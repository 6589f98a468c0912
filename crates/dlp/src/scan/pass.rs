//! One pass of the prefilter over the buffer, and the detectors it wakes.

use std::{
    collections::{HashMap, HashSet},
    ops::Range,
};

use crate::{
    body::{buffer::Body, segment::Segment},
    catalogue::{
        detector::{LOOSE_BITS, Shape},
        pattern::Pattern,
    },
    pace::{LOOK, Meter, PEEK},
    scan::{
        active::Active,
        found::Match,
        hidden,
        reach::Reach,
        scanner::{Scanner, Scratch},
        window::{Stretch, Stretches, clip},
    },
    text::{groups, layouts, marks::Set},
    views::{encoded::Run, recased::Recased},
};

impl Scanner {
    /// Bytes that have to be marked in a body for a scan, besides words.
    pub(crate) fn rare(&self) -> &Set {
        self.prefilter.rare()
    }

    /// Scans the segments from the given one on, which are marked and in which the given runs are
    /// long. Returns how many bytes detectors looked at beyond the single pass, so that a test can
    /// hold the work to a bound.
    pub(crate) fn scan(
        &self,
        body: &Body,
        first: usize,
        runs: &[Run],
        scratch: &mut Scratch,
        recased: &mut Vec<Recased>,
    ) -> usize {
        let Some(segment) = body.segments.get(first) else {
            return 0;
        };
        if let (Some(active), 0) = (self.hidden, first) {
            hidden::scan(body, active, &mut scratch.matches);
        }
        let range = segment.start as usize..body.text.len();
        scratch.meter.spend(range.len());
        self.find_windows(body, first, scratch, recased);
        let mut work = 0;
        let Scratch { matches, windows, line, meter, .. } = scratch;
        let mut is_grouped = false;
        for window in windows.list() {
            work += window.range.len();
            is_grouped |= self.search(body, window, meter, line, matches);
        }
        let known = matches.len();
        self.find_glued(body, runs, windows);
        for window in windows.list() {
            work += window.range.len();
            is_grouped |= self.search(body, window, meter, line, matches);
        }
        drop_known(matches, known);
        work += self.scan_triggers(body, first, &range, runs, scratch);
        if is_grouped {
            drop_repeated(&mut scratch.matches);
        }
        work
    }

    /// Looks at a window, unless the scan shall end. Returns true if digits in groups of any kind were found,
    /// which a layout that is telling by itself may find once more.
    fn search(
        &self,
        body: &Body,
        window: &Stretch,
        meter: &Meter,
        line: &mut Vec<u8>,
        matches: &mut Vec<Match>,
    ) -> bool {
        let Some(active) = self.active.get(usize::from(window.active)) else { return false };
        let steps = if active.takes_values() { LOOK } else { PEEK };
        if !meter.spend(steps + window.range.len()) {
            return false;
        }
        let Some(home) = body.segment(window.segment).map(Segment::range) else { return false };
        let part = window.range.start - home.start..window.range.end - home.start;
        let mut weigh = |found: Range<usize>, more: i32| {
            let range = home.start + found.start..home.start + found.end;
            matches.extend(self.weigh_or_doubt(window.active, body, window.segment, range, more));
        };
        match (&active.detector.pattern, window.key.clone()) {
            (Some(pattern), Some(key)) => {
                let key = body.slice(key);
                let value = body.slice(window.range.clone());
                in_member(pattern, key, value, line, meter, |found| weigh(found, 0));
            }
            (Some(pattern), None) => {
                let text = body.slice(home.start..window.range.end);
                pattern.find_in(
                    text,
                    part,
                    |steps| meter.spend(steps),
                    |found| {
                        weigh(found, 0);
                        meter.spend(body.notes.steps.take());
                    },
                );
            }
            (None, _) if active.takes_values() => {
                let value = unquoted(body.slice(window.range.clone()));
                if part.start == 0 {
                    weigh(value, 0);
                }
            }
            (None, _) => return find_numbers(active, body.slice(home.clone()), &part, weigh),
        }
        false
    }
}

/// Calls `weigh` with each number of a detector in a part of a text, and with how much its groups speak for it.
/// Returns true if there are digits in groups of any kind.
fn find_numbers(
    active: &Active,
    text: &[u8],
    part: &Range<usize>,
    mut weigh: impl FnMut(Range<usize>, i32),
) -> bool {
    let mut is_grouped = false;
    let Shape::Number { named, loose, grouped, .. } = &active.detector.shape else { return false };
    if layouts::may_begin_in(named, text, part) {
        layouts::find_in(named, text, part.clone()).for_each(|found| weigh(found, 0));
    }
    if layouts::may_begin_in(loose, text, part) {
        layouts::find_loosely_in(loose, text, part.clone()).for_each(|found| {
            is_grouped = true;
            weigh(found, LOOSE_BITS);
        });
    }
    if let Some(grouping) = grouped {
        groups::find_in(grouping, text, part.clone(), |found| {
            is_grouped = true;
            weigh(found, 0);
        });
    }
    is_grouped
}

/// Name of a match: detector, segment and range.
fn name(found: &Match) -> (u16, u32, usize, usize) {
    (found.active, found.segment, found.range.start, found.range.end)
}

/// Leaves one of equal matches, with the greatest likelihood.
fn drop_repeated(matches: &mut Vec<Match>) {
    let mut best = HashMap::new();
    for found in matches.iter() {
        let likelihood = best.entry(name(found)).or_insert(found.likelihood);
        *likelihood = found.likelihood.max(*likelihood);
    }
    matches.retain_mut(|found| match best.remove(&name(found)) {
        Some(likelihood) => {
            found.likelihood = likelihood;
            true
        }
        None => false,
    });
}

/// The part of a value without space and quotes around it.
fn unquoted(value: &[u8]) -> Range<usize> {
    let is_spare = |byte: &&u8| byte.is_ascii_whitespace() || matches!(**byte, b'"' | b'\'' | b'`');
    let start = value.iter().take_while(is_spare).count();
    let end = value.len() - value.iter().rev().take_while(is_spare).count();
    start..end.max(start)
}

/// Drops those of the matches behind the first `known` that are among these: a mark behind a letter may stand near one
/// that stands free.
fn drop_known(matches: &mut Vec<Match>, known: usize) {
    if known == matches.len() {
        return;
    }
    let (before, _) = matches.split_at_checked(known).unwrap_or_default();
    let before: HashSet<_> = before.iter().map(name).collect();
    let mut at = 0;
    matches.retain(|found| {
        at += 1;
        at <= known || !before.contains(&name(found))
    });
}

/// Runs a pattern over a value when the member is written as in a program: rules from elsewhere
/// want the name and the value on one line.
fn in_member(
    pattern: &Pattern,
    key: &[u8],
    value: &[u8],
    line: &mut Vec<u8>,
    meter: &Meter,
    mut take: impl FnMut(Range<usize>),
) {
    line.clear();
    line.extend_from_slice(key);
    line.extend_from_slice(b": \"");
    let start = line.len();
    line.extend_from_slice(value);
    let end = line.len();
    line.push(b'"');
    pattern.find_in(
        line,
        0..line.len(),
        |steps| meter.spend(steps),
        |found| {
            if start <= found.start && found.end <= end {
                take(found.start - start..found.end - start);
            }
        },
    );
}

impl Scanner {
    /// The stretches that marks behind a letter wake detectors for, in place of those there were.
    fn find_glued(&self, body: &Body, runs: &[Run], windows: &mut Stretches) {
        windows.clear();
        for run in runs {
            let Some(home) = body.segment(run.segment) else { continue };
            self.glued.each(&body.text, &run.range, |index, literal| {
                for (active, reach) in self.wakes.get(index).into_iter().flatten() {
                    let Reach::Mark { .. } = reach else { continue };
                    let owner = self.active.get(usize::from(*active));
                    if owner.is_some_and(|owner| owner.looks_at(home.kind)) {
                        let range = clip(&reach.around(&literal), &home.range());
                        let segment = run.segment;
                        windows.push(Stretch { active: *active, segment, range, key: None });
                    }
                }
            });
        }
    }
}
