//! One pass of the prefilter over the buffer, and the detectors it wakes.

use std::{collections::HashSet, ops::Range};

use crate::dlp::{
    body::{buffer::Body, segment::Segment},
    scan::{
        active::Pattern,
        found::Match,
        hidden,
        reach::Reach,
        scanner::{Scanner, Scratch},
        window::{Window, Windows, clip},
    },
    text::{layouts, marks::Set},
    views::encoded::Run,
};

impl Scanner {
    /// Bytes that have to be marked in a body for a scan, besides words.
    pub(in crate::dlp) fn rare(&self) -> &Set {
        self.prefilter.rare()
    }

    /// Scans the segments from the given one on, which are marked and in which the given runs are
    /// long. Returns how many bytes detectors looked at beyond the single pass, so that a test can
    /// hold the work to a bound.
    pub(in crate::dlp) fn scan(
        &self,
        body: &Body,
        first: usize,
        runs: &[Run],
        scratch: &mut Scratch,
    ) -> usize {
        let Some(segment) = body.segments.get(first) else {
            return 0;
        };
        if let (Some(active), 0) = (self.hidden, first) {
            hidden::scan(body, active, &mut scratch.matches);
        }
        let range = segment.start as usize..body.text.len();
        self.find_windows(body, first, scratch);
        let mut work = 0;
        let Scratch { matches, windows, line, columns, .. } = scratch;
        for window in windows.list() {
            work += window.range.len();
            self.search(body, window, line, matches);
        }
        let known = matches.len();
        work += columns
            .each_cell(body, &self.active, |window| self.search(body, window, line, matches));
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

/// Runs a pattern over a value when the member is written as in a program: rules from elsewhere
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

impl Scanner {
    /// The stretches that marks behind a letter wake detectors for, in place of those there were.
    fn find_glued(&self, body: &Body, runs: &[Run], windows: &mut Windows) {
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
                        windows.push(Window { active: *active, segment, range, key: None });
                    }
                }
            });
        }
    }
}
