//! Taking findings out of a value and leaving valid JSON behind.

use std::{collections::BTreeMap, ops::Range};

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
    let mut keys: Vec<(&str, Vec<&Finding>)> = keys.into_iter().collect();
    keys.sort_by_key(|(pointer, _)| std::cmp::Reverse(pointer.matches('/').count()));
    for (pointer, found) in keys {
        rename_key(&mut value, pointer, &found, extent);
    }
    value
}

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

/// Renames one member in its place, to a name that no sibling has.
fn rename_key(value: &mut Value, pointer: &str, found: &[&Finding], extent: Extent) {
    let Some((parent, token)) = pointer.rsplit_once('/') else { return };
    let old = token.replace("~1", "/").replace("~0", "~");
    let Some(Value::Object(members)) = value.pointer_mut(parent) else { return };
    if !members.contains_key(&old) {
        return;
    }
    let name = unused(members, masked(&old, found, extent));
    let renamed = std::mem::take(members).into_iter().map(|(key, member)| {
        let key = if key == old { name.clone() } else { key };
        (key, member)
    });
    *members = renamed.collect();
}

fn unused(members: &Map<String, Value>, wanted: String) -> String {
    if !members.contains_key(&wanted) {
        return wanted;
    }
    let numbered = (2_u64..).map(|number| format!("{wanted}#{number}"));
    numbered.into_iter().find(|name| !members.contains_key(name)).unwrap_or(wanted)
}
