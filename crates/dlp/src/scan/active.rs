//! A detector made ready to run: compiled, with the evidence it weighs.

use std::{
    borrow::Cow,
    ops::Range,
    sync::{Arc, OnceLock},
};

use regex::bytes::Regex;

use crate::{
    body::{buffer::Body, segment::SegmentKind},
    catalogue::detector::{Candidate, Detector, LOOSE_BITS, NormalForm, Shape},
    scan::{evidence, found::Match, reach::Reach},
    settings::{custom::Own, patterns::compile},
    text::{groups::Grouping, hidden, layouts::Layout},
    vocabulary::{Category, Likelihood},
};

/// One enabled detector.
pub(crate) struct Active {
    pub(crate) name: Arc<str>,
    pub(crate) category: Category,
    pub(crate) normal_form: NormalForm,
    pub(crate) pattern: Option<Pattern>,
    /// Layouts that are looked for beside context words.
    pub(crate) layouts: Vec<Layout>,
    /// Layouts that are looked for there with other signs between their characters.
    pub(crate) loose: Vec<Layout>,
    /// Grouping of digits that is looked for there.
    pub(crate) grouping: Option<Grouping>,
    pub(crate) reach: Reach,
    min_likelihood: Likelihood,
    rule: DetectorSource,
}

/// Origin of a detector.
enum DetectorSource {
    BuiltIn(&'static Detector),
    /// From the configuration.
    Own(Box<Own>),
    /// Characters that cannot be seen.
    Hidden,
}

/// A detector's regular expression. Those that are built in are compiled when they are first
/// needed: most never are, and together they take a tenth of a second and 20 MB.
pub(crate) struct Pattern {
    source: Cow<'static, str>,
    /// The group that is what is found, unless it is the first one, or the whole match where
    /// there is none.
    group: Option<usize>,
    made: OnceLock<Option<Made>>,
}

/// Compiled form of a regular expression.
struct Made {
    regex: Regex,
    /// The group that is what is found; 0 is the whole match.
    group: usize,
}

/// Match of a pattern, and the part of it that is reported.
struct PatternMatch {
    whole: Range<usize>,
    wanted: Range<usize>,
}

impl Active {
    pub(crate) fn built_in(detector: &'static Detector, min_likelihood: Likelihood) -> Active {
        Active {
            name: Arc::from(detector.name),
            category: detector.category,
            normal_form: detector.normal_form,
            pattern: Pattern::of(detector),
            layouts: layouts_of(detector),
            loose: loose_of(detector),
            grouping: grouping_of(detector),
            reach: Reach::of(&detector.shape, detector.edges),
            min_likelihood,
            rule: DetectorSource::BuiltIn(detector),
        }
    }

    pub(crate) fn own(own: Own, min_likelihood: Likelihood) -> Result<Active, regex::Error> {
        Ok(Active {
            name: Arc::from(own.name.as_str()),
            category: own.category,
            normal_form: NormalForm::Verbatim,
            pattern: Some(Pattern::of_own(&own)?),
            layouts: Vec::new(),
            loose: Vec::new(),
            grouping: None,
            reach: Reach::Own { before: OWN_BEFORE, after: OWN_AFTER },
            min_likelihood,
            rule: DetectorSource::Own(Box::new(own)),
        })
    }

    pub(crate) fn hidden() -> Active {
        Active {
            name: Arc::from(hidden::NAME),
            category: Category::Hidden,
            normal_form: NormalForm::Verbatim,
            pattern: None,
            layouts: Vec::new(),
            loose: Vec::new(),
            grouping: None,
            reach: Reach::Here,
            min_likelihood: Likelihood::Possible,
            rule: DetectorSource::Hidden,
        }
    }

    /// The built-in detector behind it, if it is one.
    pub(crate) fn detector(&self) -> Option<&'static Detector> {
        match self.rule {
            DetectorSource::BuiltIn(detector) => Some(detector),
            DetectorSource::Own(_) | DetectorSource::Hidden => None,
        }
    }

    /// The configured detector behind it, if it is one.
    pub(crate) fn as_own(&self) -> Option<&Own> {
        match &self.rule {
            DetectorSource::Own(own) => Some(own),
            DetectorSource::BuiltIn(_) | DetectorSource::Hidden => None,
        }
    }

    /// Returns true if all of a value below a name is what it may find.
    pub(crate) fn takes_values(&self) -> bool {
        self.detector().is_some_and(|detector| matches!(detector.shape, Shape::Value { .. }))
    }

    /// Returns true if it finds groups of digits.
    pub(crate) fn is_number(&self) -> bool {
        self.detector().is_some_and(|detector| matches!(detector.shape, Shape::Digits { .. }))
    }

    /// The candidate as a match of the detector `index`, if there is enough evidence, with `more`
    /// bits of what woke it.
    pub(crate) fn weigh(
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

    /// Returns true if what it finds there counts. Where neighbours are read as one only what may
    /// be cut does.
    pub(crate) fn looks_at(&self, kind: SegmentKind) -> bool {
        match kind {
            SegmentKind::Joined(_) => self.category.may_be_cut(),
            SegmentKind::Key | SegmentKind::Text | SegmentKind::Number | SegmentKind::View(_) => {
                true
            }
        }
    }

    /// Weighs the evidence for a candidate; `None` when there is too little.
    fn judge(
        &self,
        body: &Body,
        segment: u32,
        range: &Range<usize>,
        more: i32,
    ) -> Option<Likelihood> {
        let home = body.segment(segment)?;
        if !self.looks_at(home.kind) {
            return None;
        }
        let text = body.slice(home.range());
        let start = home.start as usize;
        let inside = range.start.checked_sub(start)?..range.end.checked_sub(start)?;
        let key = body.name_of(home.node);
        let head = evidence::named_head(self.detector(), body, segment, text, inside.start)
            .or_else(|| body.column_of(home.node));
        if inside.end > text.len() {
            return None;
        }
        let window = body.window(&home.range(), &inside);
        let range = window.inside(&inside);
        let candidate = Candidate { text: window, range, key, head, steps: &body.notes.steps };
        if candidate.is_masked() {
            return None;
        }
        let bits = match &self.rule {
            DetectorSource::BuiltIn(detector) => {
                evidence::bits(detector, body, segment, &candidate, more == LOOSE_BITS)?
            }
            DetectorSource::Own(own) => own.bits(body, home.node, &candidate)?,
            DetectorSource::Hidden => return None,
        };
        Likelihood::from_bits(bits + more).filter(|likelihood| *likelihood >= self.min_likelihood)
    }
}

/// Bytes around a literal that a configured detector looks at.
const OWN_BEFORE: usize = 256;
const OWN_AFTER: usize = 1024;

fn layouts_of(detector: &Detector) -> Vec<Layout> {
    match detector.shape {
        Shape::Number { named, .. } => named.iter().map(|source| Layout::new(source)).collect(),
        Shape::Pattern { .. }
        | Shape::Beside { .. }
        | Shape::Value { .. }
        | Shape::At(_)
        | Shape::Digits { .. }
        | Shape::Around { .. }
        | Shape::Start { .. }
        | Shape::Run(_)
        | Shape::Colons => Vec::new(),
    }
}

/// Layouts with digits enough, unless the detector looks for any grouping.
fn loose_of(detector: &Detector) -> Vec<Layout> {
    let Shape::Number { alone, named, grouped: None } = detector.shape else { return Vec::new() };
    let layouts = named.iter().chain(alone).map(|source| Layout::new(source));
    layouts.filter(Layout::may_be_loose).collect()
}

const fn grouping_of(detector: &Detector) -> Option<Grouping> {
    match detector.shape {
        Shape::Number { grouped, .. } => grouped,
        Shape::Pattern { .. }
        | Shape::Beside { .. }
        | Shape::Value { .. }
        | Shape::At(_)
        | Shape::Digits { .. }
        | Shape::Around { .. }
        | Shape::Start { .. }
        | Shape::Run(_)
        | Shape::Colons => None,
    }
}

impl Pattern {
    fn of(detector: &'static Detector) -> Option<Pattern> {
        let source = match detector.shape {
            Shape::Pattern { pattern, .. } | Shape::Beside { pattern, .. } => pattern,
            Shape::Value { .. }
            | Shape::At(_)
            | Shape::Digits { .. }
            | Shape::Number { .. }
            | Shape::Around { .. }
            | Shape::Start { .. }
            | Shape::Run(_)
            | Shape::Colons => return None,
        };
        Some(Pattern { source: Cow::Borrowed(source), group: None, made: OnceLock::new() })
    }

    /// One from the configuration is compiled at once: if it cannot be, the settings are wrong.
    fn of_own(own: &Own) -> Result<Pattern, regex::Error> {
        let made = OnceLock::from(Some(Made::of(compile(&own.pattern)?, own.group)));
        Ok(Pattern { source: Cow::Owned(own.pattern.clone()), group: own.group, made })
    }

    /// The compiled form. A built-in pattern always has one; a test compiles them all.
    fn made(&self) -> Option<&Made> {
        let make = || Some(Made::of(compile(&self.source).ok()?, self.group));
        self.made.get_or_init(make).as_ref()
    }

    /// Returns true if the pattern can run.
    #[cfg(test)]
    pub(crate) fn compiles(&self) -> bool {
        self.made().is_some()
    }

    /// Calls `take` with everything that is found in a part of the haystack.
    pub(crate) fn find_in(
        &self,
        haystack: &[u8],
        part: Range<usize>,
        mut take: impl FnMut(Range<usize>),
    ) {
        let Some(made) = self.made() else { return };
        let mut at = part.start;
        while let Some(found) = made.find_at(haystack, at) {
            at = found.whole.end.max(at + 1);
            take(found.wanted);
        }
    }
}

impl Made {
    fn of(regex: Regex, group: Option<usize>) -> Made {
        let last = regex.captures_len() - 1;
        Made { group: group.unwrap_or(1).min(last), regex }
    }

    /// The first match that begins at `at` or later.
    fn find_at(&self, haystack: &[u8], at: usize) -> Option<PatternMatch> {
        let whole = self.regex.find_at(haystack, at)?.range();
        if self.group == 0 {
            return Some(PatternMatch { wanted: whole.clone(), whole });
        }
        let captures = self.regex.captures_at(haystack, whole.start)?;
        let wanted = captures.get(self.group).map_or_else(|| whole.clone(), |group| group.range());
        Some(PatternMatch { whole, wanted })
    }
}
