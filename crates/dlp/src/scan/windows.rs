//! The stretches that literals wake detectors for.

use std::ops::Range;

use crate::{
    body::{
        buffer::Body,
        segment::{SegmentKind, small},
    },
    catalogue::detector::Shape,
    pace::LOOK,
    scan::{
        cursor::Cursor,
        found::Match,
        reach::Reach,
        scanner::{Scanner, Scratch},
        triggered::add_once,
        window::{Stretch, Stretches, clip},
    },
    text::words,
    views::recased::{self, Recased},
};

impl Scanner {
    /// The stretches that literals wake detectors for, merged where they overlap.
    pub(super) fn find_windows(
        &self,
        body: &Body,
        first: usize,
        scratch: &mut Scratch,
        recased: &mut Vec<Recased>,
    ) {
        let Scratch { matches, windows, keys, looked, meter, .. } = scratch;
        windows.clear();
        let known_keys = keys.len();
        let mut cursor = Cursor::new(body, first);
        let mut tried = Vec::new();
        self.prefilter.each(&body.text, &body.marks, looked, |index, literal| {
            if meter.is_over() {
                return;
            }
            let Some(segment) = cursor.seek(literal.start) else { return };
            let Some(home) = body.segment(segment) else { return };
            if let Some(mark) = self.marks.get(index).and_then(Option::as_deref)
                && recased.last().is_none_or(|last| last.may_be_followed_at(literal.start))
            {
                recased.extend(recased::of(&body.text, segment, &home.range(), &literal, mark));
            }
            for (active, reach) in self.wakes.get(index).into_iter().flatten() {
                let owner = self.active.get(usize::from(*active));
                if let Reach::Here | Reach::Within = reach {
                    meter.wake(literal.start);
                    meter.spend(LOOK);
                    let found = self.find_around(body, *active, segment, &literal);
                    if let Some(found) = found.filter(|found| is_new(&mut tried, found)) {
                        add_once(matches, self.weigh(body, found));
                    }
                    meter.spend(body.notes.steps.take());
                    continue;
                }
                if !owner.is_some_and(|owner| owner.looks_at(home.kind))
                    || !reach.admits(&body.text, &literal)
                {
                    continue;
                }
                meter.wake(literal.start);
                if let Reach::Value = reach {
                    meter.spend(LOOK);
                    let found = self.find_around(body, *active, segment, &literal);
                    matches.extend(found.and_then(|found| self.weigh(body, found)));
                } else {
                    let range = clip(&reach.around(&literal), &home.range());
                    windows.push(Stretch { active: *active, segment, range, key: None });
                }
                if reach.below().is_some() && body.is_name(segment) {
                    keys.push((home.node, *active));
                }
            }
        });
        if keys.len() > known_keys {
            keys.sort_unstable();
            keys.dedup();
        }
        self.add_below(body, first, keys, windows);
        self.add_all(body, first, windows);
    }

    /// Adds all texts from `first` on for detectors without a literal.
    fn add_all(&self, body: &Body, first: usize, windows: &mut Stretches) {
        for active in &self.restless {
            for (index, home) in (small(first)..).zip(body.segments.iter().skip(first)) {
                let range = home.range();
                windows.push(Stretch { active: *active, segment: index, range, key: None });
            }
        }
    }

    /// The stretch that a detector finds at a literal that wakes it.
    fn find_around(
        &self,
        body: &Body,
        active: u16,
        segment: u32,
        literal: &Range<usize>,
    ) -> Option<Stretch> {
        let detector = &self.active.get(usize::from(active))?.detector;
        let (Shape::Around(find) | Shape::Start(find) | Shape::Value(find)) = detector.shape else {
            return None;
        };
        let home = body.segment(segment)?.range();
        let inside = literal.start - home.start..literal.end - home.start;
        let window = body.window(&home, &inside);
        let found = window.outside(&find(&window, window.inside(&inside))?);
        let range = home.start + found.start..home.start + found.end;
        Some(Stretch { active, segment, range, key: None })
    }

    /// Match of a detector that takes all of a stretch.
    fn weigh(&self, body: &Body, found: Stretch) -> Option<Match> {
        let Stretch { active, segment, range, .. } = found;
        self.active.get(usize::from(active))?.weigh(active, body, segment, range, 0)
    }

    /// Adds what stands below keys that wake detectors, as far down as keys count as context.
    fn add_below(&self, body: &Body, first: usize, keys: &[(u32, u16)], windows: &mut Stretches) {
        if keys.is_empty() {
            return;
        }
        for (index, segment) in (0..).zip(&body.segments).skip(first) {
            for (member, key) in body.members_above(segment.node).take(words::KEYS) {
                let from = keys.partition_point(|(node, _)| *node < member);
                let woken = keys.iter().skip(from).take_while(|(node, _)| *node == member);
                for (_, active) in woken.filter(|_| key != index) {
                    let is_own = segment.node == member || body.is_head_of(key, segment.node);
                    let own_key = is_own.then_some(key);
                    if let Some(window) = self.below(body, *active, index, own_key) {
                        windows.push(window);
                    }
                }
            }
        }
    }

    fn below(&self, body: &Body, active: u16, index: u32, own_key: Option<u32>) -> Option<Stretch> {
        let reach = self.active.get(usize::from(active))?.reach;
        let key = match reach {
            Reach::Own { .. } => Some(body.segment(own_key?)?.name()),
            Reach::Across { .. }
            | Reach::From { .. }
            | Reach::Mark { .. }
            | Reach::Beyond { .. }
            | Reach::Near
            | Reach::Here
            | Reach::Within
            | Reach::Value => None,
        };
        let home = body.segment(index)?;
        // Of `{"key": "password", "content": …}` the label names the value and not its key.
        if home.kind == SegmentKind::Key && matches!(reach, Reach::Value) {
            return None;
        }
        let whole = home.range();
        if whole.is_empty() {
            return None;
        }
        let range = whole.start..whole.end.min(whole.start + reach.below()?);
        Some(Stretch { active, segment: index, range, key })
    }
}

/// Returns false if a stretch is the one that its detector found last: a text that is read from its beginning is
/// found at each literal in it.
fn is_new(tried: &mut Vec<Stretch>, found: &Stretch) -> bool {
    match tried.iter_mut().find(|last| last.active == found.active) {
        Some(last) if *last == *found => return false,
        Some(last) => last.clone_from(found),
        None => tried.push(found.clone()),
    }
    true
}
