//! Lists: their filters, their columns, and where they go on.

use std::collections::BTreeMap;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use super::json::Json;
use crate::form;

/// The filters of a list as the address of its page has them.
#[derive(Debug, Default)]
pub(super) struct Filters(BTreeMap<String, String>);

impl Filters {
    /// Reads a query; forms send fields that nobody filled in, which say nothing.
    pub(super) fn read(raw: Option<&str>) -> Self {
        let mut fields = raw.and_then(form::fields).unwrap_or_default();
        fields.retain(|_, value| !value.trim().is_empty());
        Self(fields)
    }

    /// The text of a filter; empty if it is not set.
    pub(super) fn text(&self, name: &str) -> &str {
        self.0.get(name).map_or("", String::as_str)
    }

    /// Returns true if the filter has this text.
    pub(super) fn is(&self, name: &str, text: &str) -> bool {
        self.text(name) == text
    }

    /// Returns true if no filter is set.
    pub(super) fn is_empty(&self) -> bool {
        self.0.keys().all(|name| name == "cursor")
    }

    /// The query that the API is asked with.
    pub(super) fn query(&self) -> Option<String> {
        let pairs = self.0.iter().map(|(name, value)| pair(name, value));
        Some(pairs.collect::<Vec<_>>().join("&")).filter(|query| !query.is_empty())
    }

    fn with_cursor(&self, cursor: &str) -> String {
        let others = self.0.iter().filter(|(name, _)| *name != "cursor");
        let pairs = others.map(|(name, value)| pair(name, value));
        pairs.chain([pair("cursor", cursor)]).collect::<Vec<_>>().join("&")
    }
}

fn pair(name: &str, value: &str) -> String {
    let encode = |text| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
    format!("{}={}", encode(name), encode(value))
}

/// The address of the next page.
pub(super) fn more(path: &str, filters: &Filters, next: Option<&str>) -> Option<String> {
    Some(format!("{path}?{}", filters.with_cursor(next?)))
}

/// The look of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Look {
    Text,
    /// An id, in letters of one width.
    Code,
    /// A moment.
    Time,
    /// A state, with a colour of its own.
    Badge,
}

/// A column of a list.
#[derive(Debug, Clone, Copy)]
pub(super) struct Column {
    pub(super) name: &'static str,
    pub(super) pointer: &'static str,
    pub(super) look: Look,
}

impl Column {
    pub(super) const fn new(name: &'static str, pointer: &'static str, look: Look) -> Self {
        Self { name, pointer, look }
    }
}

/// A cell of a row.
#[derive(Debug)]
pub(super) struct Cell {
    pub(super) text: String,
    /// The moment as machines read it.
    pub(super) datetime: String,
    pub(super) look: Look,
}

/// The button at the end of a row, which sends a form.
#[derive(Debug)]
pub(super) struct Action {
    pub(super) path: String,
    pub(super) label: &'static str,
    /// Question that the browser asks before.
    pub(super) question: &'static str,
}

/// A row of a list.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) cells: Vec<Cell>,
    pub(super) action: Option<Action>,
}

impl Row {
    pub(super) fn of(item: &Json, columns: &[Column], action: Option<Action>) -> Self {
        let cell = |column: &Column| match column.look {
            Look::Time => Cell {
                text: item.moment(column.pointer),
                datetime: item.text(column.pointer),
                look: Look::Time,
            },
            look @ (Look::Text | Look::Code | Look::Badge) => {
                let list = item.joined(column.pointer);
                let text = if list.is_empty() { item.text(column.pointer) } else { list };
                Cell { text, datetime: String::new(), look }
            }
        };
        Self { cells: columns.iter().map(cell).collect(), action }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_fields_of_a_form_are_no_filters() {
        let filters = Filters::read(Some("type=&decision=deny&q=a+b&cursor=x"));

        assert_eq!(filters.query().as_deref(), Some("cursor=x&decision=deny&q=a%20b"));
        assert_eq!(
            more("/console/events", &filters, Some("c1.y")).as_deref(),
            Some("/console/events?decision=deny&q=a%20b&cursor=c1%2Ey")
        );
        assert!(Filters::read(Some("cursor=x&type=")).is_empty());
        assert_eq!(Filters::read(None).query(), None);
    }
}
