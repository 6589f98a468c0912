//! Documents that are put together.

use super::{
    canonical::by_utf16,
    document::{Document, Node},
    table::{EntryKind, Table},
    value::{JsonValue, Kind},
};

/// The table of a value, with its text.
pub(super) fn table_of<'a>(value: impl JsonValue<'a>) -> Table {
    let mut table = Table::default();
    write(&mut table, value);
    table
}

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
        table.push(kind, (table.text.len(), 0), true);
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

impl Member for &serde_json::Value {
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
