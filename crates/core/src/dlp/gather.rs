//! From matches to findings: one per detector and place, with pointers that hold no match.

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
    ops::Range,
};

use super::{
    body::{Body, Kind},
    detector::{Detector, Shape},
    finding::{Finding, Findings, Fingerprint, FingerprintKey},
    kinds::{Category, Likelihood},
    redact,
    scan::{Match, Scanner},
    views::{Origin, Views},
};

/// One finding in the making.
struct Group {
    active: u16,
    segment: u32,
    count: u32,
    likelihood: Likelihood,
    spans: Vec<(Range<usize>, Fingerprint)>,
    /// What stands where, once something was read another way and may have been seen before.
    seen: Option<HashSet<(usize, Fingerprint)>>,
}

/// Groups matches by detector and origin.
pub(super) fn findings(
    scanner: &Scanner,
    body: &Body,
    views: &Views,
    mut matches: Vec<Match>,
    key: &FingerprintKey,
) -> Findings {
    if matches.is_empty() {
        return Findings::default();
    }
    drop_contained(scanner, &mut matches);
    let mut groups: Vec<Group> = Vec::new();
    let mut index: HashMap<(u32, u16), usize> = HashMap::new();
    // Segments that hold something certain by themselves; their neighbours are no part of it.
    let mut certain: HashSet<u32> = HashSet::new();
    for found in matches {
        let Some(active) = scanner.active.get(usize::from(found.active)) else { continue };
        let origins = views.origins(body, found.segment, &found.range);
        if origins.iter().any(|origin| origin.is_cut) && !may_be_cut(active.detector, &found)
            || origins.iter().any(|origin| origin.is_cut && certain.contains(&origin.segment))
        {
            continue;
        }
        let value = active.detector.normal_form.apply(body.slice(found.range.clone()));
        let print = key.fingerprint(active.detector.name, &value);
        for origin in origins {
            if !origin.is_cut && found.likelihood == Likelihood::VeryLikely {
                certain.insert(origin.segment);
            }
            let place = *index.entry((origin.segment, found.active)).or_insert_with(|| {
                groups.push(Group::new(found.active, origin.segment, found.likelihood));
                groups.len() - 1
            });
            if let Some(group) = groups.get_mut(place) {
                group.add(origin, print, found.likelihood);
            }
        }
    }
    groups.sort_by_key(|group| (group.segment, group.active));
    let masked = masked_keys(scanner, body, &groups);
    Findings::new(
        groups.into_iter().filter_map(|group| group.finding(scanner, body, &masked)).collect(),
    )
}

/// Neighbours make words by chance; only what proves itself counts when it is cut.
fn may_be_cut(detector: &Detector, found: &Match) -> bool {
    let is_provable = match detector.category {
        Category::Secret | Category::Financial => true,
        Category::NationalId | Category::Contact | Category::Network | Category::Health => false,
    };
    is_provable && found.likelihood == Likelihood::VeryLikely
}

impl Group {
    fn new(active: u16, segment: u32, likelihood: Likelihood) -> Group {
        Group { active, segment, count: 0, likelihood, spans: Vec::new(), seen: None }
    }

    /// Counts a match, unless it is one that was seen already, read another way.
    fn add(&mut self, origin: Origin, print: Fingerprint, likelihood: Likelihood) {
        if origin.is_read_otherwise {
            let known = || self.spans.iter().map(|(span, print)| (span.start, *print)).collect();
            if !self.seen.get_or_insert_with(known).insert((origin.inside.start, print)) {
                return;
            }
        }
        self.count += 1;
        self.likelihood = self.likelihood.max(likelihood);
        self.spans.push((origin.inside, print));
    }

    fn finding(
        self,
        scanner: &Scanner,
        body: &Body,
        masked: &HashMap<u32, Vec<u8>>,
    ) -> Option<Finding> {
        let detector = scanner.active.get(usize::from(self.active))?.detector;
        let segment = body.segment(self.segment)?;
        let shown =
            |node, key| masked.get(&node).map_or(Cow::Borrowed(key), |m| Cow::Owned(m.clone()));
        let target = body.pointer(segment.node, |_, key| Cow::Borrowed(key));
        Some(Finding {
            detector: detector.name,
            category: detector.category,
            pointer: if masked.is_empty() {
                target.clone()
            } else {
                body.pointer(segment.node, shown)
            },
            target,
            in_key: segment.kind == Kind::Key,
            count: self.count,
            likelihood: self.likelihood,
            fingerprints: distinct(&self.spans),
            spans: self.spans.into_iter().map(|(span, _)| span).collect(),
        })
    }
}

/// Each fingerprint once, in order of discovery.
fn distinct(spans: &[(Range<usize>, Fingerprint)]) -> Vec<Fingerprint> {
    if let [(_, only)] = spans {
        return vec![*only];
    }
    let mut known = HashSet::with_capacity(spans.len());
    let prints = spans.iter().map(|(_, print)| *print);
    prints.filter(|print| known.insert(*print)).collect()
}

/// The keys that matched, by node, with their matches masked.
fn masked_keys(scanner: &Scanner, body: &Body, groups: &[Group]) -> HashMap<u32, Vec<u8>> {
    let mut spans: HashMap<u32, Vec<(Range<usize>, &str)>> = HashMap::new();
    for group in groups {
        let Some(active) = scanner.active.get(usize::from(group.active)) else { continue };
        if body.segment(group.segment).is_some_and(|segment| segment.kind == Kind::Key) {
            let found = group.spans.iter().map(|(span, _)| (span.clone(), active.detector.name));
            spans.entry(group.segment).or_default().extend(found);
        }
    }
    let mask = |(segment, spans): (u32, Vec<(Range<usize>, &str)>)| {
        let segment = body.segment(segment)?;
        let key = String::from_utf8_lossy(body.slice(segment.range()));
        Some((segment.node, redact::mask(&key, &spans).into_bytes()))
    };
    spans.into_iter().filter_map(mask).collect()
}

/// Drops numbers that are a piece of a longer number that matched, such as four groups of an
/// IBAN that happen to make a card.
fn drop_contained(scanner: &Scanner, matches: &mut Vec<Match>) {
    let is_number = |found: &Match| {
        let active = scanner.active.get(usize::from(found.active));
        active.is_some_and(|active| matches!(active.detector.shape, Shape::Digits(_)))
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
