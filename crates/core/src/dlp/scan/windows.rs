//! The stretches that literals wake detectors for.

use std::ops::Range;

use super::{
    super::{
        body::{Body, small},
        context,
        detector::{Edges, Shape, is_word},
    },
    Cursor, Desk, Match, Scanner,
};

/// A stretch of a segment that a detector shall look at.
pub(super) struct Window {
    pub(super) active: u16,
    pub(super) segment: u32,
    pub(super) range: Range<usize>,
    /// The key of the member whose value it is, when the detector wants to read both as one.
    pub(super) key: Option<Range<usize>>,
}

/// How far a detector looks from a literal.
#[derive(Debug, Clone, Copy)]
pub(in crate::dlp) enum Reach {
    /// Bytes before the literal's start, and from there on.
    Across { before: usize, after: usize },
    /// The same for a rule from elsewhere, which reads a member's key and value as one line.
    Own { before: usize, after: usize },
    /// Bytes from the literal's start, where a word begins.
    From { after: usize },
    /// Bytes from the literal's start, wherever it stands: the detector tells marks from words.
    Mark { after: usize },
    /// Bytes from the literal's end, or from the start of what is below it when it is a key.
    Beyond { after: usize },
    /// As far as context counts, and all that is below when it is a key.
    Near,
    /// The detector sees for itself.
    Here,
}

/// The longest number, with its separators.
const LONGEST: usize = 40;

/// Names up to this length must be whole words: too many words begin with them.
const SHORT: usize = 4;

/// How much of a value is looked at below a key that names it.
const BELOW: usize = 1024;

impl Reach {
    pub(in crate::dlp) fn of(shape: &Shape, edges: Edges) -> Reach {
        match shape {
            Shape::Pattern { before: 0, after, .. } if edges == Edges::Mark => {
                Reach::Mark { after: usize::from(*after) }
            }
            Shape::Pattern { before: 0, after, .. } if edges != Edges::Any => {
                Reach::From { after: usize::from(*after) }
            }
            Shape::Pattern { before, after, .. } => {
                Reach::Across { before: usize::from(*before), after: usize::from(*after) }
            }
            Shape::Beside { after, .. } => Reach::Beyond { after: usize::from(*after) },
            Shape::Number { .. } => Reach::Near,
            Shape::At(_)
            | Shape::Digits { .. }
            | Shape::Around { .. }
            | Shape::Run(_)
            | Shape::Colons => Reach::Here,
        }
    }

    /// The part of the literal's own text.
    pub(super) fn around(self, literal: &Range<usize>) -> Range<usize> {
        match self {
            Reach::Across { before, after } | Reach::Own { before, after } => {
                literal.start.saturating_sub(before)..literal.start + after
            }
            Reach::From { after } | Reach::Mark { after } => literal.start..literal.start + after,
            Reach::Beyond { after } => literal.end..literal.end + after,
            Reach::Near => {
                literal.start.saturating_sub(context::AFTER + LONGEST)
                    ..literal.start + context::BEFORE + 1
            }
            Reach::Here => literal.clone(),
        }
    }

    /// Whether a literal may wake in the middle of a word.
    pub(in crate::dlp) fn begins_anywhere(self) -> bool {
        match self {
            Reach::Across { .. } | Reach::Own { .. } | Reach::Here => true,
            Reach::From { .. } | Reach::Mark { .. } | Reach::Beyond { .. } | Reach::Near => false,
        }
    }

    /// Whether a literal wakes where it stands: words do when they are whole, names of vendors
    /// when a word begins with them.
    fn admits(self, text: &[u8], literal: &Range<usize>) -> bool {
        match self {
            Reach::Across { .. } | Reach::Own { .. } | Reach::Mark { .. } | Reach::Here => true,
            Reach::From { .. } => match text.get(..literal.start) {
                Some([.., b'\\', b'n' | b'r' | b't'] | []) | None => true,
                Some([.., before]) => !is_word(*before),
            },
            Reach::Beyond { .. } => {
                context::begins_at(text, literal.start)
                    && (literal.len() > SHORT || context::ends_at(text, literal.end))
            }
            Reach::Near => {
                context::begins_at(text, literal.start) && context::ends_at(text, literal.end)
            }
        }
    }

    /// How much of each value below a key, when a key can wake it.
    fn below(self) -> Option<usize> {
        match self {
            Reach::Beyond { after } => Some(after),
            Reach::Near | Reach::Own { .. } => Some(BELOW),
            Reach::Across { .. } | Reach::From { .. } | Reach::Mark { .. } | Reach::Here => None,
        }
    }
}

impl Scanner {
    /// The stretches that literals wake detectors for, merged where they overlap.
    pub(super) fn find_windows(&self, body: &Body, first: usize, desk: &mut Desk) {
        let Desk { matches, windows, keys, columns, .. } = desk;
        windows.clear();
        columns.clear();
        let known_keys = keys.len();
        let mut cursor = Cursor::new(body, first);
        self.prefilter.each(&body.text, &body.marks, |index, literal| {
            let Some(segment) = cursor.seek(literal.start) else { return };
            let Some(home) = body.segment(segment) else { return };
            for (active, reach) in self.wakes.get(index).into_iter().flatten() {
                if let Reach::Here = reach {
                    matches.extend(self.around(body, *active, segment, &literal));
                    continue;
                }
                let owner = self.active.get(usize::from(*active));
                if !owner.is_some_and(|owner| owner.looks_at(home.kind))
                    || !reach.admits(&body.text, &literal)
                {
                    continue;
                }
                let range = clip(&reach.around(&literal), &home.range());
                windows.push(Window { active: *active, segment, range, key: None });
                if reach.below().is_none() {
                    continue;
                }
                if body.is_name(segment) {
                    keys.push((home.node, *active));
                } else {
                    columns.note(body, segment, &literal, *active);
                }
            }
        });
        if keys.len() > known_keys {
            keys.sort_unstable();
            keys.dedup();
        }
        self.add_below(body, first, keys, windows);
        for active in &self.restless {
            for (index, home) in (small(first)..).zip(body.segments.iter().skip(first)) {
                let range = home.range();
                windows.push(Window { active: *active, segment: index, range, key: None });
            }
        }
    }

    /// What a detector finds at a literal that wakes it.
    fn around(
        &self,
        body: &Body,
        index: u16,
        segment: u32,
        literal: &Range<usize>,
    ) -> Option<Match> {
        let active = self.active.get(usize::from(index))?;
        let Shape::Around { find, .. } = active.detector()?.shape else { return None };
        let home = body.segment(segment)?.range();
        let found =
            find(body.slice(home.clone()), literal.start - home.start..literal.end - home.start)?;
        active.weigh(index, body, segment, home.start + found.start..home.start + found.end, 0)
    }

    /// Adds what stands below keys that wake detectors, as far down as keys count as context.
    fn add_below(&self, body: &Body, first: usize, keys: &[(u32, u16)], windows: &mut Windows) {
        if keys.is_empty() {
            return;
        }
        for (index, segment) in (0..).zip(&body.segments).skip(first) {
            for (member, key) in body.members_above(segment.node).take(context::KEYS) {
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

    fn below(&self, body: &Body, active: u16, index: u32, own_key: Option<u32>) -> Option<Window> {
        let reach = self.active.get(usize::from(active))?.reach;
        let key = match reach {
            Reach::Own { .. } => Some(body.segment(own_key?)?.range()),
            Reach::Across { .. }
            | Reach::From { .. }
            | Reach::Mark { .. }
            | Reach::Beyond { .. }
            | Reach::Near
            | Reach::Here => None,
        };
        let whole = body.segment(index)?.range();
        let range = whole.start..whole.end.min(whole.start + reach.below()?);
        Some(Window { active, segment: index, range, key })
    }
}

pub(super) fn clip(wanted: &Range<usize>, home: &Range<usize>) -> Range<usize> {
    wanted.start.clamp(home.start, home.end)..wanted.end.clamp(home.start, home.end)
}

/// Windows in the making; each detector's last one grows while new ones touch it.
#[derive(Default)]
pub(super) struct Windows {
    list: Vec<Window>,
    /// One more than the place of each detector's last window; 0 while it has none.
    last: Vec<u32>,
}

impl Windows {
    pub(super) fn list(&self) -> &[Window] {
        &self.list
    }

    pub(super) fn clear(&mut self) {
        for window in self.list.drain(..) {
            if let Some(last) = self.last.get_mut(usize::from(window.active)) {
                *last = 0;
            }
        }
    }

    pub(super) fn push(&mut self, window: Window) {
        let detector = usize::from(window.active);
        if self.last.len() <= detector {
            self.last.resize(detector + 1, 0);
        }
        let Some(last) = self.last.get_mut(detector) else { return };
        let known = last.checked_sub(1).and_then(|place| self.list.get_mut(place as usize));
        match known {
            Some(known) if known.touches(&window) => {
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
    fn touches(&self, next: &Window) -> bool {
        self.segment == next.segment
            && self.key == next.key
            && next.range.start <= self.range.end
            && self.range.start <= next.range.end
    }
}
