//! Matches of detectors that no literal wakes.

use std::ops::Range;

use crate::{
    body::{
        buffer::Body,
        segment::{SegmentKind, small},
    },
    catalogue::detector::ALONE_BITS,
    pace::{LOOK, Meter},
    scan::{
        cursor::Cursor,
        found::Match,
        scanner::{Scanner, Scratch},
        triggers::DigitTrigger,
    },
    text::{
        digits::{self, DigitRun},
        marks::BLOCK,
        window::Window,
    },
    views::encoded::Run,
};

/// The shortest address with colons that is looked for.
const SHORTEST_ADDRESS: usize = 11;

/// The longest address with colons: IPv6 with an IPv4 tail.
const LONGEST_ADDRESS: usize = 45;

impl Scanner {
    /// Looks at what no literal marks. Returns how many bytes detectors looked at.
    pub(super) fn scan_triggers(
        &self,
        body: &Body,
        first: usize,
        range: &Range<usize>,
        runs: &[Run],
        scratch: &mut Scratch,
    ) -> usize {
        let Scratch { matches, run, meter, .. } = scratch;
        self.scan_at(body, first, range, meter, matches)
            + self.scan_digits(body, first, run, meter, matches)
            + self.scan_starts(body, first, meter, matches)
            + self.scan_runs(body, runs, meter, matches)
            + self.scan_colons(body, first, meter, matches)
    }

    fn scan_at(
        &self,
        body: &Body,
        first: usize,
        range: &Range<usize>,
        meter: &Meter,
        matches: &mut Vec<Match>,
    ) -> usize {
        let mut cursor = Cursor::new(body, first);
        let mut work = 0;
        for hit in memchr::memchr_iter(b'@', body.slice(range.clone())) {
            let at = range.start + hit;
            if !meter.wake(at) || !meter.spend(LOOK) {
                return work;
            }
            let Some(segment) = cursor.seek(at) else { continue };
            let Some((kind, home)) = body.segment(segment).map(|it| (it.kind, it.range())) else {
                continue;
            };
            let here = at - home.start..at - home.start + 1;
            let window = Window::around(body.slice(home.clone()), &here);
            for (index, find) in &self.triggers.at {
                let Some(active) = self.active.get(usize::from(*index)) else { continue };
                if !active.looks_at(kind) {
                    continue;
                }
                work += 1;
                if let Some(found) = find(&window, at - home.start - window.start()) {
                    work += found.len();
                    let found = window.outside(&found);
                    let range = home.start + found.start..home.start + found.end;
                    matches.extend(active.weigh(*index, body, segment, range, 0));
                }
            }
        }
        work
    }

    /// Looks at the beginnings of texts that may hold a sentence.
    fn scan_starts(
        &self,
        body: &Body,
        first: usize,
        meter: &Meter,
        matches: &mut Vec<Match>,
    ) -> usize {
        let mut work = 0;
        for (segment, home) in (small(first)..).zip(body.segments.iter().skip(first)) {
            let text = body.slice(home.range());
            if home.kind != SegmentKind::Text || !may_be_sentence(text) {
                continue;
            }
            if !meter.spend(LOOK) {
                return work;
            }
            work += 1;
            let window = body.window(&home.range(), &(0..0));
            for (index, find) in &self.triggers.starts {
                let Some(active) = self.active.get(usize::from(*index)) else { continue };
                if let Some(found) = find(&window, 0..0) {
                    let range = home.range().start + found.start..home.range().start + found.end;
                    add_once(matches, active.weigh(*index, body, segment, range, 0));
                }
            }
            meter.spend(body.notes.steps.take());
        }
        work
    }

    fn scan_digits(
        &self,
        body: &Body,
        first: usize,
        runs: &mut [DigitRun; 2],
        meter: &Meter,
        matches: &mut Vec<Match>,
    ) -> usize {
        let [run, nearby] = runs;
        let mut cursor = Cursor::new(body, first);
        let mut work = 0;
        digits::each_run(&body.text, &body.marks, run, |run| {
            let Some(start) = run.groups.first().map(|group| group.start) else { return };
            let before = start.checked_sub(1).and_then(|at| body.text.get(at));
            let end = run.groups.last().map_or(start, |last| last.end);
            let mut near = None;
            for DigitTrigger { index, find, .. } in self.triggers.woken_by(run.total, before) {
                let Some(segment) = cursor.seek(start) else { return };
                if !meter.spend(run.total) {
                    return;
                }
                work += run.groups.len();
                let window = *near.get_or_insert_with(|| {
                    let window = Window::around(&body.text, &(start..end));
                    nearby.move_from(run, window.start());
                    window
                });
                for range in find(&window, nearby) {
                    let range = window.outside(&range);
                    matches.extend(self.weigh_or_doubt(*index, body, segment, range, 0));
                }
            }
            meter.spend(run.total);
            self.scan_layouts(body, &mut cursor, run, matches);
        });
        work
    }

    /// The layouts that begin at a group of digits of this length.
    fn scan_layouts(
        &self,
        body: &Body,
        cursor: &mut Cursor<'_>,
        run: &DigitRun,
        matches: &mut Vec<Match>,
    ) {
        for group in &run.groups {
            for (index, layout) in self.triggers.layouts_at(&body.text, group) {
                let Some(range) = layout.around(&body.text, group.start) else { continue };
                let Some(segment) = cursor.seek(group.start) else { return };
                let Some(active) = self.active.get(usize::from(*index)) else { continue };
                matches.extend(active.weigh(*index, body, segment, range, ALONE_BITS));
            }
        }
    }

    fn scan_runs(
        &self,
        body: &Body,
        runs: &[Run],
        meter: &Meter,
        matches: &mut Vec<Match>,
    ) -> usize {
        if self.triggers.runs.is_empty() {
            return 0;
        }
        let mut work = 0;
        for Run { segment, range } in runs {
            for word in words(body, range.clone()).filter(|word| may_be_known(&body.text, word)) {
                work += word.len();
                if !meter.spend(word.len()) {
                    return work;
                }
                self.weigh_run(body, *segment, &word, matches);
            }
        }
        work
    }

    fn weigh_run(&self, body: &Body, segment: u32, word: &Range<usize>, matches: &mut Vec<Match>) {
        for (index, find) in &self.triggers.runs {
            let Some(active) = self.active.get(usize::from(*index)) else { continue };
            let window = Window::around(&body.text, word);
            if let Some(range) = find(&window, window.inside(word)) {
                let range = window.outside(&range);
                matches.extend(active.weigh(*index, body, segment, range, 0));
            }
        }
    }

    fn scan_colons(
        &self,
        body: &Body,
        first: usize,
        meter: &Meter,
        matches: &mut Vec<Match>,
    ) -> usize {
        let mut cursor = Cursor::new(body, first);
        let mut work = 0;
        // No byte is read twice, however long what looks like an address goes on.
        let mut done = body.marks.start();
        for start in body.marks.colons() {
            let end = body.text.len().min(start + 2 * BLOCK);
            let mut at = if start > done { address_start(&body.text, done, start) } else { done };
            while at < end {
                let token = at..at + address_length(body.text.get(at..).unwrap_or_default());
                at = token.end + 1;
                work += token.len() + 1;
                if !(SHORTEST_ADDRESS..=LONGEST_ADDRESS).contains(&token.len()) {
                    continue;
                }
                let Some(segment) = cursor.seek(token.start) else { continue };
                if !meter.spend(token.len()) {
                    return work;
                }
                self.weigh_all(&self.triggers.colons, body, segment, &token, matches);
            }
            done = at;
        }
        work
    }

    fn weigh_all(
        &self,
        indices: &[u16],
        body: &Body,
        segment: u32,
        range: &Range<usize>,
        matches: &mut Vec<Match>,
    ) {
        for index in indices {
            let Some(active) = self.active.get(usize::from(*index)) else { continue };
            matches.extend(active.weigh(*index, body, segment, range.clone(), 0));
        }
    }
}

/// Adds a match unless one of the last is the same.
pub(super) fn add_once(matches: &mut Vec<Match>, found: Option<Match>) {
    const LAST: usize = 8;
    let Some(found) = found else { return };
    let is_same = |known: &Match| {
        (known.active, known.segment) == (found.active, found.segment) && known.range == found.range
    };
    if !matches.iter().rev().take(LAST).any(is_same) {
        matches.push(found);
    }
}

/// Returns true if a text is long enough for an order and begins with a word and a space.
fn may_be_sentence(text: &[u8]) -> bool {
    const SHORTEST: usize = 24;
    const WORD: usize = 20;
    let first = text.get(..WORD).unwrap_or_default();
    text.len() >= SHORTEST
        && first.first().is_some_and(|byte| !byte.is_ascii_digit() && !matches!(byte, b'{' | b'<'))
        && first.contains(&b' ')
}

/// The stretches of letters and digits in a run, which may also hold `+`, `/`, `-` and `_`.
fn words(body: &Body, run: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let mut at = run.start;
    std::iter::from_fn(move || {
        (at < run.end).then(|| {
            let word = at..at + body.marks.word_from(at);
            at = word.end + 1;
            word
        })
    })
}

/// Returns true if a word has the length and the beginning of an address or a key of a coin, or of
/// a token that a dot goes on: cheap to tell, and few have both.
fn may_be_known(text: &[u8], word: &Range<usize>) -> bool {
    const COINS: &[u8] = b"123mnLMD9AXTt5K";
    const IDS: &[u8] = b"MNO";
    let begins = |known: &[u8]| text.get(word.start).is_some_and(|first| known.contains(first));
    matches!(word.len(), 25..=36 | 51 | 52) && begins(COINS)
        || matches!(word.len(), 23..=28) && begins(IDS) && text.get(word.end) == Some(&b'.')
}

const fn is_address(byte: u8) -> bool {
    byte.is_ascii_hexdigit() || matches!(byte, b':' | b'.')
}

/// Number of hex digits, colons and dots that a text begins with.
fn address_length(text: &[u8]) -> usize {
    text.iter().take_while(|byte| is_address(**byte)).count()
}

/// Start of what goes on at an offset, or a place from which on it is too long to be an address.
fn address_start(text: &[u8], floor: usize, at: usize) -> usize {
    let before = text.get(floor..at).unwrap_or_default();
    let near = before.iter().rev().take(LONGEST_ADDRESS + 1);
    at - near.take_while(|byte| is_address(**byte)).count()
}
