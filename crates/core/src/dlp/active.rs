//! A detector made ready to run: compiled, with the evidence it weighs.

use std::{
    borrow::Cow,
    ops::Range,
    sync::{Arc, OnceLock},
};

use regex::bytes::{Regex, RegexBuilder};

use super::{
    body::{Body, Kind},
    custom::Own,
    detector::{Candidate, Detector, NormalForm, Shape},
    evidence, hidden,
    kinds::{Category, Likelihood},
    layouts::Layout,
    mask,
    scan::{Match, Reach},
};

/// One enabled detector.
pub(super) struct Active {
    pub(super) name: Arc<str>,
    pub(super) category: Category,
    pub(super) normal_form: NormalForm,
    pub(super) pattern: Option<Pattern>,
    /// Layouts that are looked for beside context words.
    pub(super) layouts: Vec<Layout>,
    pub(super) reach: Reach,
    min_likelihood: Likelihood,
    rule: Rule,
}

/// Where a detector comes from.
enum Rule {
    BuiltIn(&'static Detector),
    /// From the configuration.
    Own(Box<Own>),
    /// Characters that cannot be seen.
    Hidden,
}

/// A detector's regular expression. Those that are built in are compiled when they are first
/// needed: most never are, and together they take a tenth of a second and 20 MB.
pub(super) struct Pattern {
    source: Cow<'static, str>,
    /// The group that is what is found, unless it is the first one, or the whole match where
    /// there is none.
    group: Option<usize>,
    made: OnceLock<Option<Made>>,
}

/// What a regular expression needs to run.
struct Made {
    regex: Regex,
    /// The group that is what is found; 0 is the whole match.
    group: usize,
}

/// What a pattern matched, and the part of it that is what is found.
struct Found {
    whole: Range<usize>,
    wanted: Range<usize>,
}

impl Active {
    pub(super) fn built_in(detector: &'static Detector, min_likelihood: Likelihood) -> Active {
        Active {
            name: Arc::from(detector.name),
            category: detector.category,
            normal_form: detector.normal_form,
            pattern: Pattern::of(detector),
            layouts: layouts_of(detector),
            reach: Reach::of(&detector.shape, detector.edges),
            min_likelihood,
            rule: Rule::BuiltIn(detector),
        }
    }

    pub(super) fn own(own: Own, min_likelihood: Likelihood) -> Result<Active, regex::Error> {
        Ok(Active {
            name: Arc::from(own.name.as_str()),
            category: own.category,
            normal_form: NormalForm::Verbatim,
            pattern: Some(Pattern::of_own(&own)?),
            layouts: Vec::new(),
            reach: Reach::Own { before: OWN_BEFORE, after: OWN_AFTER },
            min_likelihood,
            rule: Rule::Own(Box::new(own)),
        })
    }

    pub(super) fn hidden() -> Active {
        Active {
            name: Arc::from(hidden::NAME),
            category: Category::Hidden,
            normal_form: NormalForm::Verbatim,
            pattern: None,
            layouts: Vec::new(),
            reach: Reach::Here,
            min_likelihood: Likelihood::Possible,
            rule: Rule::Hidden,
        }
    }

    /// The built-in detector behind it, if it is one.
    pub(super) fn detector(&self) -> Option<&'static Detector> {
        match self.rule {
            Rule::BuiltIn(detector) => Some(detector),
            Rule::Own(_) | Rule::Hidden => None,
        }
    }

    /// The configured detector behind it, if it is one.
    pub(super) fn as_own(&self) -> Option<&Own> {
        match &self.rule {
            Rule::Own(own) => Some(own),
            Rule::BuiltIn(_) | Rule::Hidden => None,
        }
    }

    /// Whether it finds groups of digits.
    pub(super) fn is_number(&self) -> bool {
        self.detector().is_some_and(|detector| matches!(detector.shape, Shape::Digits { .. }))
    }

    /// The candidate as a match of the detector `index`, if there is enough evidence, with `more`
    /// bits of what woke it.
    pub(super) fn weigh(
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

    /// Whether what it finds there counts. Where neighbours are read as one only what may be cut does.
    pub(super) fn looks_at(&self, kind: Kind) -> bool {
        match kind {
            Kind::Joined(_) => self.category.may_be_cut(),
            Kind::Key | Kind::Text | Kind::Number | Kind::View(_) => true,
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
        let key = body.keys_above(home.node).next();
        let candidate = Candidate { text, range: inside, key };
        if candidate.range.end > text.len() || mask::is_masked(candidate.matched()) {
            return None;
        }
        let bits = match &self.rule {
            Rule::BuiltIn(detector) => evidence::bits(detector, body, segment, &candidate)?,
            Rule::Own(own) => own.bits(body, home.node, &candidate)?,
            Rule::Hidden => return None,
        };
        Likelihood::from_bits(bits + more).filter(|likelihood| *likelihood >= self.min_likelihood)
    }
}

/// How far from a literal a detector of one's own looks.
const OWN_BEFORE: usize = 256;
const OWN_AFTER: usize = 1024;

fn layouts_of(detector: &Detector) -> Vec<Layout> {
    match detector.shape {
        Shape::Number { named, .. } => named.iter().map(|source| Layout::new(source)).collect(),
        Shape::Pattern { .. }
        | Shape::Beside { .. }
        | Shape::At(_)
        | Shape::Digits { .. }
        | Shape::Around { .. }
        | Shape::Run(_)
        | Shape::Colons => Vec::new(),
    }
}

impl Pattern {
    fn of(detector: &'static Detector) -> Option<Pattern> {
        let source = match detector.shape {
            Shape::Pattern { pattern, .. } | Shape::Beside { pattern, .. } => pattern,
            Shape::At(_)
            | Shape::Digits { .. }
            | Shape::Number { .. }
            | Shape::Around { .. }
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

    /// Whether the pattern can run.
    #[cfg(test)]
    pub(super) fn compiles(&self) -> bool {
        self.made().is_some()
    }

    /// Calls `take` with everything that is found in a part of the haystack.
    pub(super) fn find_in(
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
    fn find_at(&self, haystack: &[u8], at: usize) -> Option<Found> {
        let whole = self.regex.find_at(haystack, at)?.range();
        if self.group == 0 {
            return Some(Found { wanted: whole.clone(), whole });
        }
        let captures = self.regex.captures_at(haystack, whole.start)?;
        let wanted = captures.get(self.group).map_or_else(|| whole.clone(), |group| group.range());
        Some(Found { whole, wanted })
    }
}

/// Largest compiled form of one pattern, in bytes.
const MAX_COMPILED: usize = 2 << 20;

/// Patterns read bytes, so that they match in text that is cut anywhere.
pub(super) fn compile(source: &str) -> Result<Regex, regex::Error> {
    RegexBuilder::new(source).unicode(false).size_limit(MAX_COMPILED).build()
}
