//! Taking findings out of a value and leaving valid JSON behind.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    ops::Range,
};

use serde_json::{Map, Value};

use super::finding::{Finding, Findings};

/// What stands where a match stood.
fn placeholder(detector: &str) -> String {
    format!("[REDACTED:{detector}]")
}

/// A text with the spans replaced; overlapping ones become one placeholder. A span that is no
/// part of the text masks all of it.
pub(super) fn mask(text: &str, spans: &[(Range<usize>, &str)]) -> String {
    let mut spans: Vec<&(Range<usize>, &str)> = spans.iter().collect();
    spans.sort_by_key(|(span, _)| (span.start, std::cmp::Reverse(span.end)));
    let mut masked = String::with_capacity(text.len());
    let mut done = 0;
    for (span, detector) in spans {
        if span.end <= done {
            continue;
        }
        let end = ceil_char(text, span.end);
        let start = floor_char(text, span.start);
        if start >= done {
            masked.push_str(text.get(done..start).unwrap_or_default());
            masked.push_str(&placeholder(detector));
        }
        done = end;
    }
    masked.push_str(text.get(done..).unwrap_or_default());
    masked
}

fn floor_char(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

fn ceil_char(text: &str, at: usize) -> usize {
    (at..text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len())
}

/// How much of a string that matched is masked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    /// The matches.
    Matches,
    /// All of it.
    Everything,
}

/// Masks the selected findings: values first, then keys from the deepest up, since renaming a
/// key changes the pointers below it.
pub(super) fn apply(
    mut value: Value,
    findings: &Findings,
    extent: Extent,
    select: impl Fn(&Finding) -> bool,
) -> Value {
    let mut values: BTreeMap<&str, Vec<&Finding>> = BTreeMap::new();
    let mut keys: BTreeMap<&str, Vec<&Finding>> = BTreeMap::new();
    for finding in findings.iter().filter(|finding| select(finding)) {
        let of_kind = if finding.in_key { &mut keys } else { &mut values };
        of_kind.entry(&finding.target).or_default().push(finding);
    }
    for (pointer, found) in values {
        if let Some(place) = value.pointer_mut(pointer) {
            mask_value(place, &found, extent);
        }
    }
    let mut parents: BTreeMap<&str, Members<'_>> = BTreeMap::new();
    for (pointer, found) in keys {
        if let Some((parent, token)) = pointer.rsplit_once('/') {
            parents.entry(parent).or_default().push((token, found));
        }
    }
    let mut parents: Vec<(&str, Members<'_>)> = parents.into_iter().collect();
    parents.sort_by_key(|(parent, _)| std::cmp::Reverse(parent.matches('/').count()));
    for (parent, members) in parents {
        if let Some(Value::Object(object)) = value.pointer_mut(parent) {
            rename_keys(object, &members, extent);
        }
    }
    value
}

/// Members of one object whose keys matched, by their tokens in the pointer.
type Members<'a> = Vec<(&'a str, Vec<&'a Finding>)>;

fn mask_value(place: &mut Value, found: &[&Finding], extent: Extent) {
    match place {
        Value::String(text) => *text = masked(text, found, extent),
        Value::Number(_) => *place = Value::String(first_placeholder(found)),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => {}
    }
}

fn masked(text: &str, found: &[&Finding], extent: Extent) -> String {
    let spans: Vec<(Range<usize>, &str)> = found
        .iter()
        .flat_map(|finding| finding.spans.iter().map(|span| (span.clone(), finding.detector)))
        .collect();
    let is_elsewhere = spans.iter().any(|(span, _)| span.end > text.len());
    match extent {
        Extent::Matches if !is_elsewhere => mask(text, &spans),
        Extent::Matches | Extent::Everything => first_placeholder(found),
    }
}

fn first_placeholder(found: &[&Finding]) -> String {
    placeholder(found.first().map_or("match", |finding| finding.detector))
}

/// Renames members in their places, each to a name that no sibling has.
fn rename_keys(object: &mut Map<String, Value>, matched: &[(&str, Vec<&Finding>)], extent: Extent) {
    let mut names: HashMap<String, String> = HashMap::new();
    for (token, found) in matched {
        let old = token.replace("~1", "/").replace("~0", "~");
        let new = masked(&old, found, extent);
        names.insert(old, new);
    }
    let mut taken: HashSet<String> =
        object.keys().filter(|key| !names.contains_key(*key)).cloned().collect();
    let mut uses: HashMap<String, u64> = HashMap::new();
    let renamed = std::mem::take(object).into_iter().map(|(key, member)| {
        let name = match names.remove(&key) {
            Some(wanted) => unused(&mut taken, &mut uses, &wanted),
            None => key,
        };
        (name, member)
    });
    *object = renamed.collect();
}

/// The wanted name, or the first of `wanted#2`, `wanted#3`, … that is free.
fn unused(taken: &mut HashSet<String>, uses: &mut HashMap<String, u64>, wanted: &str) -> String {
    let count = uses.entry(wanted.to_owned()).or_default();
    let mut name = wanted.to_owned();
    loop {
        *count += 1;
        if *count > 1 {
            name = format!("{wanted}#{count}");
        }
        if taken.insert(name.clone()) {
            return name;
        }
    }
}
