//! Lists: their filters, their columns, and where they go on.

use std::convert::Infallible;

use axum::{extract::FromRequestParts, http::request::Parts, response::Response};
use portcullis_core::{authorization::OAuthForm, principal::Scope};

use super::{
    api::ApiReply,
    form::{Choices, Control, Field},
    json::Json,
    signed_in::Guest,
};
use crate::{
    exchange::{HandlerResult, WithQuery},
    pages::{
        form,
        html::{Html, html},
    },
};

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

    pub(super) fn is(&self, name: &str, text: &str) -> bool {
        self.text(name) == text
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0 == OAuthForm::default()
    }

    /// The same without one filter.
    pub(super) fn without(&self, name: &str) -> Self {
        Self(self.0.clone().without(name))
    }

    /// The query that the API is asked with.
    pub(super) fn query(&self) -> Option<String> {
        Some(self.0.encoded()).filter(|query| !query.is_empty())
    }

    /// A filter that is written.
    pub(super) fn line(&self, name: &'static str, label: &'static str) -> Field<'_> {
        Field::new(name, label, Control::Line, Some(self.text(name))).inline()
    }

    /// A filter that is chosen; the first choice is any.
    pub(super) fn choice(
        &self,
        name: &'static str,
        label: &'static str,
        all: Choices,
    ) -> Field<'_> {
        Field::new(name, label, Control::Choice(all), Some(self.text(name))).inline()
    }

    /// The link that drops the filters of the page at this path, if there are any.
    pub(super) fn clear(&self, path: &str) -> Html {
        if self.is_empty() { Html::default() } else { html(" <a href=\"{}\">Clear</a>", &[&path]) }
    }
}

impl Guest {
    /// A list under the filters of its page, or the page that says why there is none.
    pub(super) async fn list<F>(
        &self,
        scope: Option<Scope>,
        filters: &Filters,
        list: impl FnOnce(WithQuery) -> F,
    ) -> Result<ApiReply, Response>
    where
        F: Future<Output = HandlerResult>,
    {
        let listed = self.read(scope, filters.query(), list).await;
        listed.map_err(|problem| problem.page(self))
    }
}

impl ApiReply {
    /// The link to the next page of the list at this path, if there is one.
    pub(super) fn more(&self, path: &str, filters: &Filters, label: &str) -> Html {
        let Some(cursor) = &self.next else { return Html::default() };
        let to = format!("{path}?{}", filters.0.clone().with("cursor", cursor).encoded());
        html("<p><a class=\"more\" href=\"{}\">{}</a></p>", &[&to, &label])
    }
}

/// Content of a cell: the pointer of its text, and how it looks.
#[derive(Debug, Clone, Copy)]
pub(super) enum Cell {
    /// A text, or a list of texts.
    Text(&'static str),
    /// An id, in letters of one width.
    Code(&'static str),
    Time(&'static str),
    Badge(&'static str),
    /// A name, behind which stands the id at the second pointer.
    Named(&'static str, &'static str),
}

/// A column of a list.
pub(super) type Column = (&'static str, Cell);

impl Cell {
    pub(super) fn show(self, item: &Json) -> Html {
        match self {
            Self::Text(at) if item.has(at) && !item.items(at).is_empty() => {
                html("<td class=\"wide\">{}</td>", &[&item.joined(at)])
            }
            Self::Text(at) => html("<td class=\"wide\">{}</td>", &[&item.text(at)]),
            Self::Time(at) => html("<td>{}</td>", &[&item.time(at)]),
            Self::Badge(at) => html("<td>{}</td>", &[&item.badge(at)]),
            Self::Code(at) => {
                let id = item.text(at);
                let code = html("<code title=\"{}\">{}</code>", &[&id, &id]);
                let link = |page| html("<a href=\"{}\">{}</a>", &[&page, &code]);
                html("<td class=\"cut\">{}</td>", &[&page_of(&id).map_or(code.clone(), link)])
            }
            Self::Named(name, at) => {
                let (name, id) = (item.first(&[name, at]), item.text(at));
                let cell = match page_of(&id) {
                    Some(page) => html("<a href=\"{}\" title=\"{}\">{}</a>", &[&page, &id, &name]),
                    None => html("<span title=\"{}\">{}</span>", &[&id, &name]),
                };
                html("<td class=\"wide\">{}</td>", &[&cell])
            }
        }
    }
}

/// The page of what an id names.
fn page_of(id: &str) -> Option<String> {
    match id.split_once('_')?.0 {
        "usr" | "sa" => Some(format!("/console/events?actor={id}")),
        "evt" => Some(format!("/console/events/{id}")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_name_leads_to_what_its_id_leads_to_and_an_id_stands_for_none() {
        let link = "<a href=\"/console/events?actor=usr_1\" title=\"usr_1\">";
        for (item, shown) in [
            (json!({"id": "usr_1", "name": "Ana"}), format!("{link}Ana</a>")),
            (json!({"id": "usr_1"}), format!("{link}usr_1</a>")),
            (
                json!({"id": "https://a.example/", "name": "usr_2"}),
                "<span title=\"https://a.example/\">usr_2</span>".to_owned(),
            ),
        ] {
            let cell = Cell::Named("/name", "/id").show(&Json(item));

            assert_eq!(cell.into_visible(), format!("<td class=\"wide\">{shown}</td>"));
        }
    }

    #[test]
    fn empty_fields_of_a_form_are_no_filters() {
        let filters = Filters::read(Some("type=&decision=deny&q=a+b&cursor=x"));

        assert_eq!(filters.query().as_deref(), Some("cursor=x&decision=deny&q=a+b"));
        let reply = ApiReply { next: Some("c1.y".to_owned()), ..ApiReply::default() };
        let more = reply.more("/console/events", &filters, "Older").into_visible();
        let address = "/console/events?cursor=c1.y&amp;decision=deny&amp;q=a+b";
        let link = format!("<p><a class=\"more\" href=\"{address}\">Older</a></p>");
        assert_eq!(more, link);
        assert!(Filters::read(Some("type=")).is_empty());
        assert_eq!(Filters::read(None).query(), None);
    }
}
