//! Masks in JSON that stands in a text: numbers become texts and names of siblings stay apart, so that it
//! stays JSON, and whatever is not masked keeps its bytes.

use std::{
    collections::{HashMap, HashSet},
    iter::Peekable,
    ops::Range,
};

use portcullis_json::{JsonValue, Kind, Leaf, Members, Node, write_string};

use crate::{
    body::{
        embedded::{self, Part},
        segment::small,
    },
    mask::stretches::{self, Extent, Replacement, unused},
};

/// The text with stretches replaced. Gives the replacements back where the text holds no JSON, or one of
/// them is no part of a name, text or number in it, nor of the prose around it.
pub(super) fn replace<'a>(
    text: &str,
    replacements: Vec<Replacement<'a>>,
    extent: Extent,
) -> Result<String, Vec<Replacement<'a>>> {
    replace_at(text, replacements, extent, 0)
}

fn replace_at<'a>(
    text: &str,
    mut replacements: Vec<Replacement<'a>>,
    extent: Extent,
    level: usize,
) -> Result<String, Vec<Replacement<'a>>> {
    if level == embedded::DEPTH || replacements.is_empty() || !embedded::may_hold(text) {
        return Err(replacements);
    }
    let parts: Vec<Places> =
        embedded::parts(text, usize::MAX).into_iter().map(Places::of).collect();
    if parts.is_empty() || !replacements.iter().all(|it| has_a_place(&parts, &it.span)) {
        return Err(replacements);
    }
    let mut masked = String::with_capacity(text.len());
    let mut done = 0;
    replacements.sort_by_key(|it| it.span.start);
    let mut rest = replacements.into_iter().peekable();
    let mut until = |end: usize| -> Vec<Replacement<'a>> {
        std::iter::from_fn(|| rest.next_if(|it| (it.span.start as usize) < end)).collect()
    };
    for Places { part: Part { range, document }, .. } in parts {
        let prose = text.get(done..range.start).unwrap_or_default();
        masked.push_str(&in_text(prose, moved(until(range.start), done), extent));
        let json = text.get(range.clone()).unwrap_or_default();
        let inside = moved(until(range.end), range.start);
        if inside.is_empty() {
            masked.push_str(json);
        } else {
            let leaves = document.leaves();
            let inside = inside.into_iter().peekable();
            let mut walk = LeafWalk { json, leaves, inside, extent, level, edits: Vec::new() };
            walk.value(document.root());
            masked.push_str(&walk.edited());
        }
        done = range.end;
    }
    let prose = text.get(done..).unwrap_or_default();
    masked.push_str(&in_text(prose, moved(until(usize::MAX), done), extent));
    Ok(masked)
}

/// JSON in a text, and where its names, texts and numbers stand in it.
struct Places {
    part: Part,
    leaves: Vec<Range<usize>>,
}

impl Places {
    fn of(part: Part) -> Self {
        let leaves = part.document.leaves().map(|leaf| leaf.range).collect();
        Self { part, leaves }
    }

    /// Returns true if a stretch of the JSON lies in one of them.
    fn hold(&self, start: usize, end: usize) -> bool {
        let after = self.leaves.partition_point(|leaf| leaf.start <= start);
        let leaf = after.checked_sub(1).and_then(|at| self.leaves.get(at));
        leaf.is_some_and(|leaf| end <= leaf.end)
    }
}

/// Returns true if a stretch of a text lies in one leaf of its JSON, or outside of all.
fn has_a_place(parts: &[Places], span: &Range<u32>) -> bool {
    let (start, end) = (span.start as usize, span.end as usize);
    let at = parts.partition_point(|places| places.part.range.end <= start);
    let Some(places) = parts.get(at) else { return true };
    let begin = places.part.range.start;
    end <= begin || start >= begin && places.hold(start - begin, end - begin)
}

/// A text without JSON, masked.
fn in_text(text: &str, replacements: Vec<Replacement<'_>>, extent: Extent) -> String {
    match (extent, replacements.first()) {
        (Extent::Matches, _) | (_, None) => stretches::replace(text, replacements),
        (Extent::Leaves | Extent::Everything, Some(first)) => first.whole(),
    }
}

/// The replacements by offsets from another start.
fn moved<'r>(replacements: Vec<Replacement<'r>>, start: usize) -> Vec<Replacement<'r>> {
    let start = small(start);
    let less = |at: u32| at.saturating_sub(start);
    let moved = |it: Replacement<'r>| {
        let span = less(it.span.start)..less(it.span.end);
        Replacement { span, ..it }
    };
    replacements.into_iter().map(moved).collect()
}

/// Replacements in a text that was read without the escapes with which it is written.
fn unescaped<'r>(marks: Vec<Replacement<'r>>, written: &str) -> Vec<Replacement<'r>> {
    let from = embedded::offsets(written.as_bytes());
    let place = |at: u32| small(from.partition_point(|offset| *offset < at as usize));
    let moved = |it: Replacement<'r>| {
        let span = place(it.span.start)..place(it.span.end);
        Replacement { span, ..it }
    };
    marks.into_iter().map(moved).collect()
}

/// A text as JSON writes it.
fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    write_string(text, &mut quoted);
    quoted
}

/// The same without the quotation marks.
fn inside_of(text: &str) -> String {
    let quoted = quoted(text);
    quoted.get(1..quoted.len() - 1).unwrap_or_default().to_owned()
}

/// Goes through JSON in the order of its text.
struct LeafWalk<'a, 'r, L> {
    json: &'a str,
    leaves: L,
    /// Replacements that are still to be made, in order.
    inside: Peekable<std::vec::IntoIter<Replacement<'r>>>,
    extent: Extent,
    level: usize,
    /// Stretches of the JSON and what stands there instead, in order but for names.
    edits: Vec<(Range<usize>, String)>,
}

impl<'a, L: Iterator<Item = Leaf<'a>>> LeafWalk<'a, '_, L> {
    fn value(&mut self, node: Node<'a>) {
        match node.kind() {
            Kind::Null | Kind::Bool(_) => {}
            Kind::Text(_) => {
                if let Some((range, masked)) = self.leaf() {
                    self.edits.push((range, inside_of(&masked)));
                }
            }
            Kind::Number(_) => {
                if let Some((range, masked)) = self.leaf() {
                    self.edits.push((range, quoted(&masked)));
                }
            }
            Kind::Array(items) => items.for_each(|item| self.value(item)),
            Kind::Object(members) => self.object(members),
        }
    }

    fn object(&mut self, members: Members<'a>) {
        let mut renamed = Vec::new();
        for (key, member) in members.clone() {
            renamed.extend(self.leaf().map(|(range, wanted)| (key, range, wanted)));
            self.value(member);
        }
        if renamed.is_empty() {
            return;
        }
        let old: HashSet<&str> = renamed.iter().map(|(key, ..)| *key).collect();
        let kept = members.map(|(key, _)| key).filter(|key| !old.contains(key));
        let mut taken: HashSet<String> = kept.map(str::to_owned).collect();
        let mut uses = HashMap::new();
        for (_, range, wanted) in renamed {
            let name = unused(&mut taken, &mut uses, &wanted);
            self.edits.push((range, inside_of(&name)));
        }
    }

    /// The next leaf masked, if something in it is.
    fn leaf(&mut self) -> Option<(Range<usize>, String)> {
        let leaf = self.leaves.next()?;
        let is_inside = |it: &Replacement<'_>| (it.span.start as usize) < leaf.range.end;
        let mut marks = Vec::new();
        while let Some(mark) = self.inside.next_if(is_inside) {
            marks.push(mark);
        }
        let first = marks.first()?;
        let masked = if leaf.is_number {
            let is_all = marks.len() == 1 && first.span.len() == leaf.range.len();
            if is_all { first.text.clone().into_owned() } else { first.whole() }
        } else {
            let written = self.json.get(leaf.range.clone()).unwrap_or_default();
            let marks = moved(marks, leaf.range.start);
            let marks = if leaf.is_escaped { unescaped(marks, written) } else { marks };
            replace_at(leaf.text, marks, self.extent, self.level + 1)
                .unwrap_or_else(|marks| in_text(leaf.text, marks, self.extent))
        };
        Some((leaf.range, masked))
    }

    /// The JSON with the edits.
    fn edited(mut self) -> String {
        let json = self.json;
        self.edits.sort_by_key(|(range, _)| range.start);
        let mut edited = String::with_capacity(json.len());
        let mut done = 0;
        for (Range { start, end }, instead) in self.edits {
            edited.push_str(json.get(done..start).unwrap_or_default());
            edited.push_str(&instead);
            done = end;
        }
        edited.push_str(json.get(done..).unwrap_or_default());
        edited
    }
}
