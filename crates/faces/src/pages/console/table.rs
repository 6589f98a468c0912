//! Lists: their filters, their columns, and where they go on.

use std::convert::Infallible;

use axum::{extract::FromRequestParts, http::request::Parts};
use portcullis_core::authorization::OAuthForm;

use super::json::Json;
use crate::pages::form;

/// The filters of a list as the address of its page has them.
#[derive(Debug, Default)]
pub(crate) struct Filters(OAuthForm);

impl<S: Sync> FromRequestParts<S> for Filters {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self::read(parts.uri.query()))
    }
}

impl Filters {
    /// Reads a query; forms send fields that the person left empty, which say nothing.
    pub(super) fn read(raw: Option<&str>) -> Self {
        Self(form::fields(raw))
    }

    /// One filter.
    pub(super) fn of(name: &str, text: &str) -> Self {
        Self(OAuthForm::default().with(name, text))
    }

    /// The text of a filter; empty if it is not set.
    pub(super) fn text(&self, name: &str) -> &str {
        self.0.get(name).unwrap_or_default()
    }

    /// Returns true if the filter has this text.
    pub(super) fn is(&self, name: &str, text: &str) -> bool {
        self.text(name) == text
    }

    /// Returns true if no filter is set.
    pub(super) fn is_empty(&self) -> bool {
        self.0 == OAuthForm::default()
    }

    /// The query that the API is asked with.
    pub(super) fn query(&self) -> Option<String> {
        Some(self.0.encoded()).filter(|query| !query.is_empty())
    }
}

/// The address of the next page.
pub(super) fn more(path: &str, filters: &Filters, next: Option<&str>) -> Option<String> {
    Some(format!("{path}?{}", filters.0.clone().with("cursor", next?).encoded()))
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
    /// A name, behind which stands the id at this pointer.
    Named(&'static str),
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
    /// The moment as machines read it, or the id of what the text names.
    pub(super) exact: String,
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
pub(super) struct TableRow {
    pub(super) cells: Vec<Cell>,
    pub(super) action: Option<Action>,
}

impl Cell {
    /// The page of what this is the id or the name of.
    pub(super) fn href(&self) -> Option<String> {
        let id = if self.exact.is_empty() { &self.text } else { &self.exact };
        let (kind, _) = id.split_once('_')?;
        match kind {
            "usr" | "sa" => Some(format!("/console/events?actor={id}")),
            "evt" => Some(format!("/console/events/{id}")),
            _ => None,
        }
    }
}

impl TableRow {
    pub(super) fn of(item: &Json, columns: &[Column], action: Option<Action>) -> Self {
        let cell = |column: &Column| match column.look {
            Look::Time => Cell {
                text: item.moment(column.pointer),
                exact: item.text(column.pointer),
                look: Look::Time,
            },
            Look::Named(id) => {
                let (name, exact) = (item.text(column.pointer), item.text(id));
                let text = if name.is_empty() { exact.clone() } else { name };
                Cell { text, exact, look: column.look }
            }
            look @ (Look::Text | Look::Code | Look::Badge) => {
                let list = item.joined(column.pointer);
                let text = if list.is_empty() { item.text(column.pointer) } else { list };
                Cell { text, exact: String::new(), look }
            }
        };
        Self { cells: columns.iter().map(cell).collect(), action }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_name_leads_to_what_its_id_leads_to_and_an_id_stands_for_none() {
        let column = [Column::new("Person", "/name", Look::Named("/id"))];
        for (item, text, href) in [
            (json!({"id": "usr_1", "name": "Ana"}), "Ana", Some("/console/events?actor=usr_1")),
            (json!({"id": "usr_1"}), "usr_1", Some("/console/events?actor=usr_1")),
            (json!({"id": "https://a.example/", "name": "usr_2"}), "usr_2", None),
        ] {
            let row = TableRow::of(&Json(item), &column, None);

            assert_eq!(row.cells[0].text, text);
            assert_eq!(row.cells[0].href().as_deref(), href, "{text}");
        }
    }

    #[test]
    fn empty_fields_of_a_form_are_no_filters() {
        let filters = Filters::read(Some("type=&decision=deny&q=a+b&cursor=x"));

        assert_eq!(filters.query().as_deref(), Some("cursor=x&decision=deny&q=a+b"));
        assert_eq!(
            more("/console/events", &filters, Some("c1.y")).as_deref(),
            Some("/console/events?cursor=c1.y&decision=deny&q=a+b")
        );
        assert!(Filters::read(Some("type=")).is_empty());
        assert_eq!(Filters::read(None).query(), None);
    }
}
