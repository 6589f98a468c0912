//! Documents: a JSON text that is read once, and the values in it.

use std::{borrow::Cow, fmt, ops::Range, sync::Arc};

use serde::{Serialize, Serializer, ser::Error as _};
use serde_json::{Map, Number, Value};

use super::{
    canonical::{Form, JsonValue, Kind, write_text},
    number::short_integer,
    table::{Entry, EntryKind, Table},
};

/// A JSON text as it came, with a flat table of its values, made in one strict pass. Nothing of the
/// text is copied but texts that have escapes. Cheap to clone.
#[derive(Clone)]
pub struct Document {
    table: Arc<Table>,
    root: u32,
}

/// A value in a document.
#[derive(Clone, Copy)]
pub struct Node<'a> {
    table: &'a Table,
    at: u32,
}

impl Document {
    pub(super) fn new(table: Table) -> Self {
        Self { table: Arc::new(table), root: 0 }
    }

    /// The whole value.
    #[must_use]
    pub fn root(&self) -> Node<'_> {
        Node { table: &self.table, at: self.root }
    }

    /// A part of this document as a document.
    #[must_use]
    pub fn part(&self, node: Node<'_>) -> Self {
        if std::ptr::eq(node.table, &raw const *self.table) {
            return Self { table: Arc::clone(&self.table), root: node.at };
        }
        Self::of(node)
    }

    /// The member of this name, if this is an object that has one.
    #[must_use]
    pub fn member(&self, name: &str) -> Option<Self> {
        self.root().get(name).map(|member| self.part(member))
    }
}

/// A name, a text or a number, and where it stands in the text of its document.
#[derive(Debug, Clone)]
pub struct Leaf<'a> {
    /// Without escapes.
    pub text: &'a str,
    /// Bytes of the text of the document, without quotation marks.
    pub range: Range<usize>,
    pub is_escaped: bool,
    pub is_number: bool,
}

impl Document {
    /// The names, texts and numbers in the order in which they stand in a text that was parsed.
    pub fn leaves(&self) -> impl Iterator<Item = Leaf<'_>> {
        self.table.entries.iter().filter_map(|entry| match entry.kind {
            EntryKind::Number | EntryKind::Text | EntryKind::Name => Some(Leaf {
                text: self.table.text_of(entry),
                range: entry.start as usize..entry.end as usize,
                is_escaped: entry.is_escaped,
                is_number: entry.kind == EntryKind::Number,
            }),
            EntryKind::Null
            | EntryKind::False
            | EntryKind::True
            | EntryKind::Array
            | EntryKind::Object => None,
        })
    }

    /// Number of values and names.
    #[must_use]
    pub fn entries(&self) -> usize {
        self.table.entries.len()
    }
}

impl Default for Document {
    /// `null`
    fn default() -> Self {
        Self::of(&Value::Null)
    }
}

/// The size alone: nothing prints what was sent.
impl fmt::Debug for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.root().fmt(f)
    }
}

impl fmt::Debug for Node<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JSON of {} bytes", self.raw().len())
    }
}

impl PartialEq for Document {
    fn eq(&self, other: &Self) -> bool {
        self.root().canonical() == other.root().canonical()
    }
}

impl Serialize for Document {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.root().serialize(serializer)
    }
}

impl<'a> Node<'a> {
    #[inline]
    fn entry(self) -> Option<&'a Entry> {
        self.table.entry(self.at)
    }

    #[inline]
    fn is(self, kind: EntryKind) -> bool {
        self.entry().is_some_and(|entry| entry.kind == kind)
    }

    /// Returns true for an object.
    #[must_use]
    pub fn is_object(self) -> bool {
        self.is(EntryKind::Object)
    }

    /// Returns true for an array.
    #[must_use]
    pub fn is_array(self) -> bool {
        self.is(EntryKind::Array)
    }

    /// Returns true for a text.
    #[must_use]
    pub fn is_text(self) -> bool {
        self.is(EntryKind::Text)
    }

    /// Returns true for `null`.
    #[must_use]
    pub fn is_null(self) -> bool {
        self.is(EntryKind::Null)
    }

    /// The literal, if it is a number.
    #[must_use]
    pub fn number(self) -> Option<&'a str> {
        let entry = self.entry().filter(|entry| entry.kind == EntryKind::Number)?;
        Some(self.table.text_of(entry))
    }

    /// The truth value, if it is one.
    #[must_use]
    pub fn as_bool(self) -> Option<bool> {
        match self.entry()?.kind {
            EntryKind::True => Some(true),
            EntryKind::False => Some(false),
            EntryKind::Null
            | EntryKind::Number
            | EntryKind::Text
            | EntryKind::Array
            | EntryKind::Object
            | EntryKind::Name => None,
        }
    }

    /// The items, if it is an array.
    #[must_use]
    pub fn items(self) -> Option<Items<'a>> {
        match self.kind() {
            Kind::Array(items) => Some(items),
            Kind::Null | Kind::Bool(_) | Kind::Number(_) | Kind::Text(_) | Kind::Object(_) => None,
        }
    }

    /// The members, if it is an object.
    #[must_use]
    pub fn members(self) -> Option<Members<'a>> {
        match self.kind() {
            Kind::Object(members) => Some(members),
            Kind::Null | Kind::Bool(_) | Kind::Number(_) | Kind::Text(_) | Kind::Array(_) => None,
        }
    }

    /// Number of items or members.
    #[must_use]
    pub fn len(self) -> usize {
        let counted = |entry: &&Entry| matches!(entry.kind, EntryKind::Array | EntryKind::Object);
        self.entry().filter(counted).map_or(0, |entry| entry.extra as usize)
    }

    /// Returns true without items or members.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The value as it stands in the text.
    #[must_use]
    pub fn raw(self) -> &'a str {
        self.entry().map(|entry| self.table.raw(entry)).unwrap_or_default()
    }

    /// The value as text without line breaks: as it came, if it came without.
    #[must_use]
    pub fn line(self) -> Cow<'a, str> {
        if self.table.has_breaks {
            return Cow::Owned(write_text(self, Form::Compact));
        }
        Cow::Borrowed(self.raw())
    }

    /// The position of the value among those of its document.
    #[must_use]
    pub const fn position(self) -> usize {
        self.at as usize
    }

    /// The table and entry, to be copied.
    pub(super) const fn source(self) -> (&'a Table, u32) {
        (self.table, self.at)
    }

    /// The value as a tree.
    #[must_use]
    pub fn to_value(self) -> Value {
        match self.kind() {
            Kind::Null => Value::Null,
            Kind::Bool(flag) => Value::Bool(flag),
            Kind::Number(literal) => number(literal).map_or(Value::Null, Value::Number),
            Kind::Text(text) => Value::String(text.to_owned()),
            Kind::Array(items) => Value::Array(items.map(Node::to_value).collect()),
            Kind::Object(members) => {
                let members = members.map(|(name, it)| (name.to_owned(), it.to_value()));
                Value::Object(members.collect::<Map<_, _>>())
            }
        }
    }
}

/// A literal as a number of a tree. Short integers need no text.
pub(super) fn number(literal: &str) -> Option<Number> {
    let short = short_integer(literal).filter(|_| literal != "-0").map(Number::from);
    short.or_else(|| literal.parse().ok())
}

impl<'a> JsonValue<'a> for Node<'a> {
    type Items = Items<'a>;
    type Members = Members<'a>;

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "a reader matches on it at once")]
    fn kind(self) -> Kind<'a, Self> {
        let Some(entry) = self.entry() else { return Kind::Null };
        let parts = Parts { table: self.table, at: self.at.saturating_add(1), end: entry.next };
        match entry.kind {
            EntryKind::Null => Kind::Null,
            EntryKind::False => Kind::Bool(false),
            EntryKind::True => Kind::Bool(true),
            EntryKind::Number => Kind::Number(self.table.text_of(entry)),
            EntryKind::Text | EntryKind::Name => Kind::Text(self.table.text_of(entry)),
            EntryKind::Array => Kind::Array(Items(parts)),
            EntryKind::Object => Kind::Object(Members(parts)),
        }
    }

    #[inline]
    fn get(self, name: &str) -> Option<Self> {
        if !self.is_object() {
            return None;
        }
        self.table.find(self.at, name).map(|at| Self { table: self.table, at })
    }

    #[inline]
    fn known_canonical(self) -> Option<&'a str> {
        let entry = self.entry().filter(|entry| entry.is_canonical)?;
        Some(self.table.raw(entry))
    }

    #[inline]
    fn known_member(self) -> Option<&'a str> {
        self.table.canonical_member(self.at)
    }
}

impl Serialize for Node<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.kind() {
            Kind::Null => serializer.serialize_unit(),
            Kind::Bool(flag) => serializer.serialize_bool(flag),
            Kind::Number(literal) => number(literal)
                .ok_or_else(|| S::Error::custom("not a number"))?
                .serialize(serializer),
            Kind::Text(text) => serializer.serialize_str(text),
            Kind::Array(items) => serializer.collect_seq(items),
            Kind::Object(members) => serializer.collect_map(members),
        }
    }
}

/// Entries of a container.
#[derive(Clone)]
struct Parts<'a> {
    table: &'a Table,
    at: u32,
    end: u32,
}

impl<'a> Parts<'a> {
    /// The next entry, if there is one; goes on behind everything in it.
    #[inline]
    fn step(&mut self) -> Option<(Node<'a>, &'a Entry)> {
        let entry = self.table.entry(self.at).filter(|_| self.at < self.end)?;
        let node = Node { table: self.table, at: self.at };
        self.at = entry.next;
        Some((node, entry))
    }
}

/// The items of an array.
#[derive(Clone)]
pub struct Items<'a>(Parts<'a>);

impl<'a> Iterator for Items<'a> {
    type Item = Node<'a>;

    #[inline]
    fn next(&mut self) -> Option<Node<'a>> {
        self.0.step().map(|(node, _)| node)
    }
}

/// The members of an object, in the order of the text.
#[derive(Clone)]
pub struct Members<'a>(Parts<'a>);

impl<'a> Iterator for Members<'a> {
    type Item = (&'a str, Node<'a>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let (_, name) = self.0.step()?;
        let (member, _) = self.0.step()?;
        Some((self.0.table.text_of(name), member))
    }
}

#[cfg(test)]
mod tests;
