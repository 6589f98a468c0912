//! From matches to findings: one per detector and place, with pointers that hold no match.

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet, hash_map::RandomState},
    hash::BuildHasher,
    ops::Range,
};

use crate::{
    body::{
        buffer::Body,
        pointers::Pointers,
        segment::{SegmentKind, small},
    },
    catalogue::detector::NormalForm,
    engine::exactness,
    findings::{
        finding::{Finding, Findings, How, Span},
        fingerprint::{Fingerprint, Pseudonym},
        subject::Subject,
    },
    mask::{replacement, stretches},
    scan::{active::Active, found::Match, scanner::Scanner},
    settings::allow::{Allowlist, Occasion},
    views::{
        origins::{Origin, Origins},
        view::Views,
    },
    vocabulary::{Category, Likelihood},
};

/// Distinct values beyond this many in one place are counted but have no fingerprint: a reader of
/// findings compares a few.
const MAX_PRINTS: usize = 16;

/// Places beyond this many have no fingerprints at all.
const MAX_PRINTED: usize = 4096;

/// Matches of one place that were read otherwise and have a pseudonym.
const MAX_PSEUDONYMS: usize = 1024;

/// Input of findings.
pub(crate) struct Gather<'a> {
    pub(crate) scanner: &'a Scanner,
    pub(crate) allow: &'a Allowlist,
    pub(crate) body: &'a Body,
    pub(crate) views: &'a Views,
    pub(crate) subject: &'a Subject,
}

/// One finding in the making.
struct FindingGroup {
    active: u16,
    segment: u32,
    /// One more than the place of the segment's group before it; 0 when it is the first.
    before: u32,
    count: u32,
    likelihood: Likelihood,
    spans: Vec<Span>,
    /// The first distinct values: most places hold one.
    first: Value,
    others: Vec<Value>,
    /// Values by place, once something was read another way and may have been seen before.
    seen: Option<HashSet<(u32, u64)>>,
}

/// A distinct value: its hash, and where in the buffer it stands.
struct Value {
    hash: u64,
    range: Range<usize>,
}

/// A match and the hash of its normal form.
struct Valued<'a> {
    found: &'a Match,
    active: &'a Active,
    hash: u64,
}

/// The groups, and where each is.
#[derive(Default)]
pub(crate) struct Groups {
    list: Vec<FindingGroup>,
    /// For each segment one more than the place of the last of its groups; 0 where it has none.
    heads: Vec<u32>,
    hasher: RandomState,
}

impl Gather<'_> {
    /// Groups matches by detector and origin.
    pub(crate) fn findings(&self, matches: &mut Vec<Match>, groups: &mut Groups) -> Findings {
        if matches.is_empty() {
            return Findings::default();
        }
        self.scanner.drop_doubts(matches);
        drop_contained(self.scanner, matches);
        exactness::keep_most_exact(self.scanner, matches);
        groups.list.reserve(matches.len());
        let mut cut = Vec::new();
        let mut certain = Vec::new();
        for found in matches.iter() {
            match self.views.origins(self.body, found.segment, &found.range) {
                Origins::One(origin) => {
                    if let Some(valued) = self.valued(&groups.hasher, found)
                        && self.take(groups, &valued, &origin)
                        && found.likelihood == Likelihood::VeryLikely
                        && valued.active.detector.category != Category::Hidden
                    {
                        certain.push(origin.leaf);
                    }
                }
                Origins::Parts(parts) if parts.is_empty() => {}
                Origins::Parts(parts) => {
                    cut.extend(self.valued(&groups.hasher, found).map(|valued| (valued, parts)));
                }
            }
        }
        self.take_cut(groups, cut, certain);
        let place = |group: &FindingGroup| (group.segment, group.active);
        if !groups.list.is_sorted_by_key(place) {
            groups.list.sort_by_key(place);
        }
        let mut findings = Vec::with_capacity(groups.list.len());
        for group in groups.list.drain(..) {
            let is_printed = findings.len() < MAX_PRINTED;
            findings.extend(self.finding(group, is_printed));
        }
        point(self.body, &mut findings);
        Findings::new(findings, self.subject)
    }

    fn valued<'a>(&'a self, hasher: &RandomState, found: &'a Match) -> Option<Valued<'a>> {
        let active = self.scanner.active.get(usize::from(found.active))?;
        let hash =
            hash_of(hasher, active.detector.normal_form, self.body.slice(found.range.clone()));
        Some(Valued { found, active, hash })
    }

    /// The normal form of what stands in a range of the buffer.
    fn value(&self, active: &Active, range: &Range<usize>) -> Vec<u8> {
        active.detector.normal_form.apply(self.body.slice(range.clone()))
    }

    fn print(&self, active: &Active, range: &Range<usize>) -> Fingerprint {
        self.subject.key.fingerprint(&active.detector.name, &self.value(active, range))
    }

    /// Counts a match. Returns false if it is allowed there.
    fn take(&self, groups: &mut Groups, valued: &Valued<'_>, origin: &Origin) -> bool {
        if self.is_allowed(valued, origin.segment) {
            return false;
        }
        let pseudonym = || {
            let value = self.value(valued.active, &valued.found.range);
            self.subject.key.pseudonym(&valued.active.detector.name, &value)
        };
        groups.of(valued, origin.segment).add(valued, origin, pseudonym);
        true
    }

    /// Matches that neighbours share. Neighbours make words by chance; only what proves itself
    /// counts when it is cut, and not where a part holds something certain by itself.
    fn take_cut(
        &self,
        groups: &mut Groups,
        cut: Vec<(Valued<'_>, Vec<Origin>)>,
        certain: Vec<u32>,
    ) {
        if cut.is_empty() {
            return;
        }
        let certain: HashSet<u32> = certain.into_iter().collect();
        for (valued, parts) in cut {
            let is_part = parts.iter().any(|part| certain.contains(&part.leaf));
            if is_part || !may_be_cut(valued.active, valued.found) {
                continue;
            }
            for part in &parts {
                let _is_counted = self.take(groups, &valued, part);
            }
        }
    }

    fn is_allowed(&self, valued: &Valued<'_>, segment: u32) -> bool {
        if self.allow.is_empty() {
            return false;
        }
        let Valued { found, active, .. } = valued;
        let node = self.body.segment(segment).map(|segment| segment.node);
        self.allow.permits(&Occasion {
            detector: &active.detector.name,
            tool: self.subject.tool.as_deref(),
            value: self.body.slice(found.range.clone()),
            pointer: &|| node.map(|node| self.body.pointer(node)).unwrap_or_default(),
            fingerprint: &|| self.print(active, &found.range),
        })
    }

    fn finding(&self, group: FindingGroup, is_printed: bool) -> Option<Finding> {
        let active = self.scanner.active.get(usize::from(group.active))?;
        let segment = self.body.segment(group.segment)?;
        let printed = group.values().take(if is_printed { MAX_PRINTS } else { 0 });
        let prints = printed.map(|value| self.print(active, &value.range));
        Some(Finding {
            detector: active.detector.name.clone(),
            category: active.detector.category,
            normal_form: active.detector.normal_form,
            pointer: String::new(),
            place: group.segment,
            in_key: segment.kind == SegmentKind::Key,
            count: group.count,
            likelihood: group.likelihood,
            fingerprints: prints.collect(),
            spans: group.spans,
        })
    }
}

/// Gives findings their pointers. Keys that matched are masked in them.
pub(crate) fn point(body: &Body, findings: &mut [Finding]) {
    let masked = masked_keys(body, findings);
    let mut pointers = Pointers::new(body, |node, key| {
        masked.get(&node).map_or(key, |key| Cow::Borrowed(key.as_bytes()))
    });
    for finding in findings {
        let Some(segment) = body.segment(finding.place) else { continue };
        finding.pointer = pointers.of(segment.node);
    }
}

/// The keys that matched, by node, with their matches masked.
fn masked_keys(body: &Body, findings: &[Finding]) -> HashMap<u32, String> {
    let mut spans: HashMap<u32, Vec<stretches::Replacement<'_>>> = HashMap::new();
    for finding in findings.iter().filter(|finding| finding.in_key) {
        let replacements = finding.spans.iter().map(|span| stretches::Replacement {
            span: span.range.clone(),
            detector: &finding.detector,
            text: replacement::placeholder(&finding.detector),
        });
        spans.entry(finding.place).or_default().extend(replacements);
    }
    let mask = |(place, spans)| {
        let segment = body.segment(place)?;
        let key = body.written(segment.range());
        Some((segment.node, stretches::replace(&String::from_utf8_lossy(&key), spans)))
    };
    spans.into_iter().filter_map(mask).collect()
}

/// The hash of a value's normal form; short ones are written to the stack.
fn hash_of(hasher: &RandomState, normal_form: NormalForm, value: &[u8]) -> u64 {
    const SHORT: usize = 64;
    let mut short = [0; SHORT];
    let kept: fn(&u8) -> bool = match normal_form {
        NormalForm::Verbatim => return hasher.hash_one(value),
        NormalForm::LowerCase => |_| true,
        NormalForm::Alphanumeric => u8::is_ascii_alphanumeric,
    };
    if value.len() > SHORT {
        return hasher.hash_one(normal_form.apply(value).as_slice());
    }
    let mut length = 0;
    for (into, byte) in short.iter_mut().zip(value.iter().filter(|byte| kept(byte))) {
        *into = byte.to_ascii_lowercase();
        length += 1;
    }
    hasher.hash_one(short.get(..length).unwrap_or_default())
}

fn may_be_cut(active: &Active, found: &Match) -> bool {
    active.detector.category.may_be_cut() && found.likelihood == Likelihood::VeryLikely
}

impl Groups {
    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        self.list.clear();
        self.heads.clear();
    }

    /// Memory that is allocated, in bytes.
    pub(super) fn room(&self) -> usize {
        self.list.capacity() * size_of::<FindingGroup>() + self.heads.capacity() * size_of::<u32>()
    }

    /// The group of a detector and a place.
    fn of(&mut self, valued: &Valued<'_>, segment: u32) -> &mut FindingGroup {
        let found = valued.found;
        let at = segment as usize;
        if self.heads.len() <= at {
            self.heads.resize(at + 1, 0);
        }
        let head = self.heads.get(at).copied().unwrap_or_default();
        let mut place = head;
        while let Some(group) = place.checked_sub(1).and_then(|at| self.list.get(at as usize)) {
            if group.active == found.active {
                break;
            }
            place = group.before;
        }
        if place == 0 {
            self.list.push(FindingGroup::new(valued, segment, head));
            place = small(self.list.len());
            if let Some(head) = self.heads.get_mut(at) {
                *head = place;
            }
        }
        #[expect(clippy::indexing_slicing, reason = "the place was found or made just now")]
        &mut self.list[place as usize - 1]
    }
}

impl FindingGroup {
    /// A group of a match that is yet to be counted.
    fn new(valued: &Valued<'_>, segment: u32, before: u32) -> FindingGroup {
        let Valued { found, hash, .. } = valued;
        FindingGroup {
            active: found.active,
            segment,
            before,
            count: 0,
            likelihood: found.likelihood,
            // Most have one match, and places may be many.
            spans: Vec::with_capacity(1),
            first: Value { hash: *hash, range: found.range.clone() },
            others: Vec::new(),
            seen: None,
        }
    }

    /// The first distinct values.
    fn values(&self) -> impl Iterator<Item = &Value> {
        std::iter::once(&self.first).chain(&self.others)
    }

    /// Counts a match, unless it is one that was seen already, read another way.
    fn add(&mut self, valued: &Valued<'_>, origin: &Origin, pseudonym: impl FnOnce() -> Pseudonym) {
        let range = small(origin.inside.start)..small(origin.inside.end);
        let Valued { found, hash, .. } = valued;
        self.likelihood = self.likelihood.max(found.likelihood);
        let mut how = How::Plainly;
        if origin.is_read_otherwise {
            let known = || self.spans.iter().map(|span| (span.range.start, span.hash)).collect();
            if !self.seen.get_or_insert_with(known).insert((range.start, *hash)) {
                return;
            }
            how = How::Otherwise((self.spans.len() < MAX_PSEUDONYMS).then(pseudonym));
        }
        self.count += 1;
        self.spans.push(Span { range, hash: *hash, how });
        if self.others.len() + 1 < MAX_PRINTS && self.values().all(|known| known.hash != *hash) {
            self.others.push(Value { hash: *hash, range: found.range.clone() });
        }
    }
}

/// Drops numbers that are a piece of a longer number that matched, such as four groups of an
/// IBAN that happen to make a card.
fn drop_contained(scanner: &Scanner, matches: &mut Vec<Match>) {
    let is_number = |found: &Match| {
        scanner.active.get(usize::from(found.active)).is_some_and(Active::is_number)
    };
    let numbers: Vec<(u32, Range<usize>)> = matches
        .iter()
        .filter(|found| is_number(found))
        .map(|found| (found.segment, found.range.clone()))
        .collect();
    let mut at = 0_usize;
    matches.retain(|found| {
        if !is_number(found) {
            return true;
        }
        // Digit runs are found in order: what contains a match stands next to it.
        let near = numbers.get(at.saturating_sub(4)..numbers.len().min(at + 5));
        at += 1;
        !near.unwrap_or_default().iter().any(|(segment, range)| {
            *segment == found.segment
                && range.len() > found.range.len()
                && range.start <= found.range.start
                && found.range.end <= range.end
        })
    });
}
