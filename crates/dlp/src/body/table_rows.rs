//! Tables whose rows and column names are members of one object, and values that a label beside
//! them names: `{"name": "DB_PASSWORD", "value": …}`.

use portcullis_json::{JsonValue, Kind};

use crate::{
    body::{
        buffer::Body,
        segment::{Laid, Segment, SegmentKind, small},
    },
    text::labels,
};

/// The members that name columns.
const COLUMNS: [&str; 8] =
    ["columns", "cols", "column_names", "columnNames", "fields", "headers", "header", "schema"];
/// Members that hold the name of a column where a column is an object.
const NAMES: [&str; 5] = ["name", "field", "label", "title", "key"];
/// Members of one object that are looked at as labels.
const MANY: usize = 4;

/// Rows and column names among the members of one object.
#[derive(Default)]
pub(super) struct ObjectTables {
    heads: Vec<u32>,
    rows: Vec<u32>,
    /// Members that a label may name, and the rank from which on it may not.
    values: Vec<(u32, usize)>,
    /// The segment of the name `kty`, which only a JSON Web Key has.
    key_type: Option<u32>,
    /// Members of such a key that are secret.
    private: Vec<u32>,
    /// A number that a type may name, with the segment of its key.
    number: Option<(u32, u32)>,
    /// The segment of a type.
    kind: Option<u32>,
}

impl ObjectTables {
    /// Looks at a member, which is the node `node` and the segments from `first` on.
    #[inline]
    pub(super) fn look<'a, T: JsonValue<'a>>(
        &mut self,
        body: &Body,
        key: &str,
        laid: Laid,
        member: T,
        node: u32,
        first: usize,
    ) {
        match key {
            "kty" => self.key_type = first.checked_sub(1).map(small),
            "d" | "k" | "p" | "q" | "dp" | "dq" | "qi" if laid == Laid::Text => {
                self.private.push(node);
            }
            _ => {}
        }
        let is_number = matches!(laid, Laid::Text | Laid::Number)
            && labels::may_be_typed(key.as_bytes())
            && (self.number.is_none() || !key.eq_ignore_ascii_case("id"));
        let is_kind = laid == Laid::Text
            && labels::typed(key.as_bytes()).is_some()
            && (self.kind.is_none() || key.len() > 4);
        if is_number {
            self.number = first.checked_sub(1).map(|key| (node, small(key)));
        } else if is_kind {
            self.kind = Some(small(first));
        }
        // Most members are neither.
        if laid == Laid::Array || labels::may_be_named(key.as_bytes()) {
            self.note_member(body, key, laid, member, node, first);
        }
    }

    #[inline(never)]
    fn note_member<'a, T: JsonValue<'a>>(
        &mut self,
        body: &Body,
        key: &str,
        laid: Laid,
        member: T,
        node: u32,
        first: usize,
    ) {
        if let Some(last) = labels::last_rank(key.as_bytes())
            && (laid != Laid::Text || labels::rank(key.as_bytes()).is_none())
        {
            self.values.push((node, last));
        }
        if laid != Laid::Array {
            return;
        }
        let Kind::Array(mut elements) = member.kind() else { return };
        match elements.next().map(T::kind) {
            Some(Kind::Array(_)) => self.rows.push(node),
            Some(Kind::Text(_) | Kind::Object(_)) if COLUMNS.contains(&key) => {
                self.heads = heads(body, node, first);
            }
            _ => {}
        }
    }

    /// Notes the tables and labels in the object `node`, which is the segments from `start` on.
    pub(super) fn note(self, body: &mut Body, node: u32, start: usize) {
        // Most objects have no member that a label would name.
        if !self.values.is_empty()
            && let Some((rank, label)) = label(body, node, start)
        {
            for (value, _) in self.values.iter().filter(|(_, last)| rank < *last) {
                body.label(Some(*value), label);
            }
        }
        if let Some(key_type) = self.key_type {
            for member in &self.private {
                body.label(Some(*member), key_type);
            }
        }
        if let Some(kind) = self.kind {
            self.note_kind(body, kind, start);
        }
        if self.heads.is_empty() {
            return;
        }
        for rows in self.rows {
            body.tables.add(rows, self.heads.clone());
        }
    }
}

/// A type of which all that is called `result` inside an object is one, as Terraform keeps it.
const RESULTS: &[u8] = b"random_password";

impl ObjectTables {
    /// Names the members of an object whose type a text is.
    fn note_kind(&self, body: &mut Body, text: u32, start: usize) {
        let slice = |at: u32| body.segment(at).map(|it| body.slice(it.range())).unwrap_or_default();
        let label = slice(text);
        let Some(stem) = text.checked_sub(1).and_then(|key| labels::typed(slice(key))) else {
            return;
        };
        let is_named = |key: &[u8]| {
            let begin = key.get(..stem.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(stem));
            begin && (!stem.is_empty() || key.len() > 2)
        };
        let mut named: Vec<u32> = Vec::new();
        if labels::may_label(label) {
            named
                .extend(self.number.filter(|(_, key)| is_named(slice(*key))).map(|(node, _)| node));
        }
        if label == RESULTS {
            let inside = body.segments.iter().skip(start);
            let results = inside
                .filter(|it| it.kind == SegmentKind::Key && body.slice(it.range()) == b"result");
            named.extend(results.map(|key| key.node));
        }
        for node in named {
            body.label(Some(node), text);
        }
    }
}

/// The label among the members of an object that comes first in the order of labels, with its rank and
/// its segment. It may be an object itself, as a type that is coded is.
fn label(body: &Body, object: u32, start: usize) -> Option<(usize, u32)> {
    let segments = body.segments.get(start..)?;
    let pairs = (start + 1..).zip(segments.array_windows());
    let members = pairs.filter(|(_, [key, value])| {
        key.kind == SegmentKind::Key && value.kind == SegmentKind::Text && key.node == value.node
    });
    let ranked = members
        .filter_map(|(at, [key, value])| rank(body, object, key).map(|rank| (rank, at, value)));
    let labels =
        ranked.take(MANY).filter(|(_, _, value)| labels::may_label(body.slice(value.range())));
    labels.min_by_key(|(rank, ..)| *rank).map(|((rank, _), at, _)| (rank, small(at)))
}

/// Rank of a text as a label in an object, by its key, or by that of the member of the object that it
/// names; then also its place there.
fn rank(body: &Body, object: u32, key: &Segment) -> Option<(usize, usize)> {
    let own = body.slice(key.range());
    if body.is_in(key.node, object) {
        return labels::rank(own).map(|rank| (rank, 0));
    }
    let inside = labels::rank_inside(own)?;
    let mut above = body.member_above(key.node)?.1;
    for _ in 0..CODED {
        match body.member_above(above) {
            Some((named, holder)) if holder == object => {
                return labels::rank(named).map(|rank| (rank, inside + 1));
            }
            Some((_, holder)) => above = holder,
            None => above = body.parent(above)?,
        }
    }
    None
}

/// Steps from a text up to the member that it names: `type`, `coding`, an element.
const CODED: usize = 3;

/// The segments that name the columns in the array `node`: its texts, or the names of its objects,
/// as far as each has one.
fn heads(body: &Body, node: u32, first: usize) -> Vec<u32> {
    let mut heads = Vec::new();
    for (index, segment) in (first..).zip(body.segments.iter().skip(first)) {
        if segment.kind != SegmentKind::Text {
            continue;
        }
        let column = match body.element_of(segment.node, node) {
            Some(column) => Some(column),
            None => body.member_above(segment.node).and_then(|(key, above)| {
                let is_name = NAMES.iter().any(|name| name.as_bytes() == key);
                body.element_of(above, node).filter(|_| is_name)
            }),
        };
        // Of several names in one object the first counts.
        if column.is_some_and(|column| column as usize == heads.len()) {
            heads.push(small(index));
        }
    }
    heads
}
