//! Documents that are put together.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{
    canonical::{JsonValue, Kind, by_utf16},
    document::{Document, Node},
    table::{EntryKind, Table},
};

/// Writes a value at the end of a table; returns true if it is written in canonical form.
fn write<'a, T: JsonValue<'a>>(table: &mut Table, value: T) -> bool {
    match value.kind() {
        Kind::Null => table.write_literal(EntryKind::Null, "null"),
        Kind::Bool(true) => table.write_literal(EntryKind::True, "true"),
        Kind::Bool(false) => table.write_literal(EntryKind::False, "false"),
        Kind::Number(literal) => table.write_literal(EntryKind::Number, literal),
        Kind::Text(text) => table.write_text(EntryKind::Text, text),
        Kind::Array(items) => {
            let mut list = Container::open(table, EntryKind::Array, "[");
            for item in items {
                list.comma(table);
                list.canonical &= write(table, item);
            }
            return list.close(table, "]");
        }
        Kind::Object(members) => {
            let mut object = Container::open(table, EntryKind::Object, "{");
            let mut last = None;
            for (name, member) in members {
                object.name(table, &mut last, name);
                object.canonical &= write(table, member);
                last = Some(name);
            }
            return object.close(table, "}");
        }
    }
    table.entries.last().is_some_and(|entry| entry.is_canonical)
}

/// Replacements in a document, by the positions of the values and names that they stand for.
#[derive(Default)]
pub struct Edits(BTreeMap<u32, Value>);

impl Edits {
    /// Replaces a value.
    pub fn value(&mut self, node: Node<'_>, instead: Value) {
        self.0.insert(node.source().1, instead);
    }

    /// Replaces the name of a member.
    pub fn name(&mut self, member: Node<'_>, instead: String) {
        self.0.insert(name_of(member), Value::String(instead));
    }

    fn of_name(&self, member: Node<'_>) -> Option<&str> {
        self.0.get(&name_of(member))?.as_str()
    }
}

/// A name stands right before its member.
fn name_of(member: Node<'_>) -> u32 {
    member.source().1.saturating_sub(1)
}

impl Document {
    /// The document of a value.
    #[must_use]
    pub fn of<'a>(value: impl JsonValue<'a>) -> Self {
        let mut table = Table::default();
        write(&mut table, value);
        Self::new(table)
    }

    /// The document with these edits. Whatever holds none of them is copied as it is.
    #[must_use]
    pub fn edited(&self, edits: &Edits) -> Self {
        let mut table = Table::default();
        write_edited(&mut table, self.root(), edits);
        Self::new(table)
    }
}

/// Writes a value with its edits at the end of a table; returns true if it is written in canonical
/// form.
fn write_edited(table: &mut Table, node: Node<'_>, edits: &Edits) -> bool {
    let (from, at) = node.source();
    if let Some(instead) = edits.0.get(&at) {
        return write(table, instead);
    }
    let Some(entry) = from.entry(at) else { return false };
    if edits.0.range(at..entry.next).next().is_none() {
        table.copy(from, at);
        return entry.is_canonical;
    }
    match node.kind() {
        Kind::Array(items) => {
            let mut list = Container::open(table, EntryKind::Array, "[");
            for item in items {
                list.comma(table);
                list.canonical &= write_edited(table, item, edits);
            }
            list.close(table, "]")
        }
        Kind::Object(members) => {
            let mut object = Container::open(table, EntryKind::Object, "{");
            let mut last = None;
            for (name, member) in members {
                let name = edits.of_name(member).unwrap_or(name);
                object.name(table, &mut last, name);
                object.canonical &= write_edited(table, member, edits);
                last = Some(name);
            }
            object.close(table, "}")
        }
        // Of one entry, which no edit is about.
        Kind::Null | Kind::Bool(_) | Kind::Number(_) | Kind::Text(_) => false,
    }
}

/// An array or object that is being written.
#[derive(Debug)]
struct Container {
    at: u32,
    count: u32,
    canonical: bool,
}

impl Container {
    fn open(table: &mut Table, kind: EntryKind, bracket: &str) -> Self {
        let at = table.len();
        table.push(kind, table.text.len(), 0, true);
        table.text.push_str(bracket);
        Self { at, count: 0, canonical: true }
    }

    fn comma(&mut self, table: &mut Table) {
        if self.count > 0 {
            table.text.push(',');
        }
        self.count += 1;
    }

    fn name(&mut self, table: &mut Table, last: &mut Option<&str>, name: &str) {
        self.comma(table);
        self.canonical &= last.is_none_or(|last| by_utf16(last, name).is_lt());
        table.write_text(EntryKind::Name, name);
        table.text.push(':');
    }

    fn close(self, table: &mut Table, bracket: &str) -> bool {
        table.text.push_str(bracket);
        table.close(self.at, table.text.len(), self.count, self.canonical);
        if bracket == "}" {
            table.order(self.at, self.count);
        }
        self.canonical
    }
}

/// An object of members that are taken from elsewhere. Texts of documents are copied as they are.
#[derive(Debug)]
pub struct ObjectWriter {
    table: TableInMaking,
    object: Container,
    last: Option<String>,
}

/// Prints nothing.
struct TableInMaking(Table);

impl std::fmt::Debug for TableInMaking {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} bytes", self.0.text.len())
    }
}

impl Default for ObjectWriter {
    fn default() -> Self {
        let mut table = Table::default();
        let object = Container::open(&mut table, EntryKind::Object, "{");
        Self { table: TableInMaking(table), object, last: None }
    }
}

/// A value that can be a member.
pub trait Member {
    /// Writes it.
    #[doc(hidden)]
    fn add(self, object: &mut ObjectWriter) -> bool;
}

impl Member for &Value {
    fn add(self, object: &mut ObjectWriter) -> bool {
        write(&mut object.table.0, self)
    }
}

impl Member for Node<'_> {
    fn add(self, object: &mut ObjectWriter) -> bool {
        let (from, at) = self.source();
        object.table.0.copy(from, at);
        from.entry(at).is_some_and(|entry| entry.is_canonical)
    }
}

impl ObjectWriter {
    /// Adds a member. Its name may not stand in the object yet.
    pub fn member(&mut self, name: &str, value: impl Member) {
        self.object.name(&mut self.table.0, &mut self.last.as_deref(), name);
        let canonical = value.add(self);
        self.object.canonical &= canonical;
        self.last = Some(name.to_owned());
    }

    /// The object.
    #[must_use]
    pub fn finish(self) -> Document {
        let Self { mut table, object, .. } = self;
        object.close(&mut table.0, "}");
        Document::new(table.0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Map;

    use super::*;
    use crate::{Bounds, canonical, testing::any_json};

    /// Picks of the values and names of a document, in its order.
    struct Picks<'a> {
        picked: &'a [bool],
        next: usize,
        edits: Edits,
    }

    impl Picks<'_> {
        fn is_next(&mut self) -> bool {
            self.next += 1;
            self.picked.get(self.next % self.picked.len().max(1)).copied().unwrap_or_default()
        }

        /// Replaces what is picked, in the edits and in the tree that it gives.
        fn tree(&mut self, node: Node<'_>) -> Value {
            match node.kind() {
                Kind::Array(items) => items.map(|item| self.tree(item)).collect(),
                Kind::Object(members) => {
                    let mut tree = Map::new();
                    for (name, member) in members {
                        let renamed = self.is_next().then(|| format!("{name}\"{}", self.next));
                        if let Some(renamed) = &renamed {
                            self.edits.name(member, renamed.clone());
                        }
                        tree.insert(renamed.unwrap_or_else(|| name.to_owned()), self.tree(member));
                    }
                    Value::Object(tree)
                }
                Kind::Null | Kind::Bool(_) | Kind::Number(_) | Kind::Text(_) => {
                    if !self.is_next() {
                        return node.to_value();
                    }
                    let instead = [Value::Null, Value::from(7), Value::from("\"\u{e9}\n")];
                    let instead = instead.into_iter().nth(self.next % 3).unwrap_or_default();
                    self.edits.value(node, instead.clone());
                    instead
                }
            }
        }
    }

    proptest! {
        #[test]
        fn edits_of_a_document_are_those_of_a_tree(
            value in any_json(), picked in prop::collection::vec(prop::bool::weighted(0.2), 1..40),
        ) {
            for text in [value.to_string(), serde_json::to_string_pretty(&value).unwrap()] {
                let document = Document::parse(text.as_bytes(), Bounds::REQUEST).unwrap();
                let mut picks = Picks { picked: &picked, next: 0, edits: Edits::default() };
                let tree = picks.tree(document.root());

                let edited = document.edited(&picks.edits);

                prop_assert_eq!(edited.root().to_value(), tree.clone());
                prop_assert_eq!(edited.root().canonical(), canonical(&tree));
                let again = Document::parse(edited.root().raw().as_bytes(), Bounds::REQUEST).unwrap();
                prop_assert_eq!(&edited, &again);
                prop_assert_eq!(edited.root().line(), again.root().line());
            }
        }
    }
}
