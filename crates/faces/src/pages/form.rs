//! Forms of pages: `application/x-www-form-urlencoded`, each field once.

use std::sync::Arc;

use axum::extract::{FromRequest, Request};
use portcullis_core::{authorization::OAuthForm, refusal::Refusal};
use serde_json::{Map, Value};

use crate::{
    exchange::{Outcome, RequestBody},
    gateway::Gateway,
};

/// The fields of a form.
#[derive(Debug)]
pub(crate) struct Form(pub(crate) OAuthForm);

impl FromRequest<Arc<Gateway>> for Form {
    type Rejection = Outcome;

    async fn from_request(request: Request, gateway: &Arc<Gateway>) -> Result<Self, Outcome> {
        Ok(Self::read(RequestBody::from_request(request, gateway).await?).await?)
    }
}

impl Form {
    /// Reads a body.
    pub(crate) async fn read(request: RequestBody) -> Result<Self, Refusal> {
        let malformed = |error| Refusal::bad_request(format!("The form cannot be read: {error}."));
        Ok(Self(OAuthForm::parse(&request.read_form().await?).map_err(malformed)?))
    }

    /// A form with these fields.
    #[cfg(test)]
    pub(crate) fn of<const N: usize>(fields: [(&str, &str); N]) -> Self {
        let form = OAuthForm::default();
        Self(fields.into_iter().fold(form, |form, (name, text)| form.with(name, text)))
    }

    /// The fields of these names that are not empty, as members of a body.
    pub(crate) fn texts(&self, names: &[&str]) -> Map<String, Value> {
        let filled = names.iter().filter_map(|name| {
            let text = self.field(name)?.trim();
            (!text.is_empty()).then(|| ((*name).to_owned(), text.into()))
        });
        filled.collect()
    }

    /// The text in a field, if the form has it.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        self.0.get(name)
    }
}

/// The fields of a query; none if it cannot be read.
pub(crate) fn fields(query: Option<&str>) -> OAuthForm {
    query.and_then(|query| OAuthForm::parse(query.as_bytes()).ok()).unwrap_or_default()
}
