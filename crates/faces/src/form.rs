//! Forms of pages: `application/x-www-form-urlencoded`, each field once.

use std::{collections::BTreeMap, sync::Arc};

use axum::extract::{FromRequest, Request};
use percent_encoding::percent_decode_str;
use portcullis_core::refusal::Refusal;

use super::{Gateway, body::RequestBody, outcome::Outcome};

/// The fields of a form.
#[derive(Debug)]
pub(crate) struct Form(BTreeMap<String, String>);

impl FromRequest<Arc<Gateway>> for Form {
    type Rejection = Outcome;

    async fn from_request(request: Request, gateway: &Arc<Gateway>) -> Result<Self, Outcome> {
        let body = RequestBody::from_request(request, gateway).await?.read_form().await?;
        let text = str::from_utf8(&body).ok();
        let fields = text.and_then(fields);
        let malformed = || Refusal::bad_request("The form has a field twice, or is not UTF-8.");
        Ok(Self(fields.ok_or_else(malformed)?))
    }
}

impl Form {
    /// A form with these fields.
    #[cfg(test)]
    pub(crate) fn of<const N: usize>(fields: [(&str, &str); N]) -> Self {
        Self(fields.map(|(name, text)| (name.to_owned(), text.to_owned())).into())
    }

    /// The text in a field, if the form has it.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }
}

/// The fields of a query or a form by their names. `None` if one stands there twice or is not UTF-8.
pub(crate) fn fields(text: &str) -> Option<BTreeMap<String, String>> {
    let mut fields = BTreeMap::new();
    for pair in text.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let decoded = |part: &str| {
            let part = part.replace('+', " ");
            Some(percent_decode_str(&part).decode_utf8().ok()?.into_owned())
        };
        if fields.insert(decoded(name)?, decoded(value)?).is_some() {
            return None;
        }
    }
    Some(fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_that_stands_twice_makes_no_form() {
        let read = fields("a=1&b=x+y%2Fz&c").unwrap();

        assert_eq!(read["b"], "x y/z");
        assert_eq!(read["c"], "");
        assert_eq!(fields("a=1&a=2"), None);
        assert_eq!(fields("a=1&%61=2"), None);
        assert_eq!(fields("a=%ff"), None);
        assert!(fields("").is_some_and(|none| none.is_empty()));
    }
}
