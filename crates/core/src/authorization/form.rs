//! Parameters of OAuth requests (`application/x-www-form-urlencoded`).

use std::collections::BTreeMap;

use percent_encoding::percent_decode_str;

use super::OAuthError;
use crate::principal::ScopeSet;

/// The most parameters that are read.
const MOST: usize = 64;

/// Parameters, each at most once. Empty ones count as absent (RFC 6749 §3.1).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OAuthForm(BTreeMap<String, String>);

impl OAuthForm {
    /// Reads a query or a body. Rejects broken encodings, repeated parameters and too many of them.
    ///
    /// # Errors
    /// `invalid_request`.
    pub fn parse(text: &[u8]) -> Result<Self, OAuthError> {
        let wrong = || OAuthError::request("the parameters are not UTF-8 text in form encoding");
        let text = std::str::from_utf8(text).map_err(|_| wrong())?;
        let mut parameters = BTreeMap::new();
        for pair in text.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let name = decoded(name).ok_or_else(wrong)?;
            let value = decoded(value).ok_or_else(wrong)?;
            if parameters.insert(name, value).is_some() {
                return Err(OAuthError::request("a parameter is given twice"));
            }
            if parameters.len() > MOST {
                return Err(OAuthError::request("there are too many parameters"));
            }
        }
        parameters.retain(|_, value| !value.is_empty());
        Ok(Self(parameters))
    }

    /// The parameter of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// A text without the encoding of forms; `None` if that is broken.
    #[must_use]
    pub fn decoded(text: &str) -> Option<String> {
        decoded(text)
    }

    /// The scopes that it names; `None` if it asks for none. Names that are no scope here, such as `offline_access`,
    /// are left out (RFC 6749 §3.3).
    #[must_use]
    pub fn scopes(&self) -> Option<ScopeSet> {
        let names = self.get("scope")?.split(' ');
        Some(names.filter_map(|name| name.parse().ok()).collect())
    }

    /// The same with this parameter in place of one of its name.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.0.insert(name.to_owned(), value.to_owned());
        self
    }

    /// The same without this parameter.
    #[must_use]
    pub fn without(mut self, name: &str) -> Self {
        self.0.remove(name);
        self
    }

    /// The parameters as a query.
    #[must_use]
    pub fn encoded(&self) -> String {
        url::form_urlencoded::Serializer::new(String::new()).extend_pairs(&self.0).finish()
    }

    /// The parameter of this name, which has to be there.
    ///
    /// # Errors
    /// `invalid_request` without it.
    pub fn required(&self, name: &'static str) -> Result<&str, OAuthError> {
        self.get(name).ok_or_else(|| OAuthError::request(format!("{name} is missing")))
    }
}

fn decoded(text: &str) -> Option<String> {
    // The library leaves a broken escape as it is.
    let is_escape = |rest: &str| {
        rest.get(..2).is_some_and(|code| code.bytes().all(|byte| byte.is_ascii_hexdigit()))
    };
    let spaced = text.replace('+', " ");
    let decoded = percent_decode_str(&spaced).decode_utf8().ok()?;
    let is_whole = text.split('%').skip(1).all(is_escape) && !decoded.contains('\0');
    is_whole.then(|| decoded.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_decoded_once_and_told_once() {
        let form = OAuthForm::parse(b"a=x%20y+z&b=%2541&c=&d").unwrap();

        assert_eq!(form.get("a"), Some("x y z"));
        assert_eq!(form.get("b"), Some("%41"));
        assert_eq!(form.encoded(), "a=x+y+z&b=%2541");
        assert_eq!((form.get("c"), form.get("d")), (None, None));
        assert_eq!(form.clone().with("b", "&").encoded(), "a=x+y+z&b=%26");
        assert_eq!(form.without("a").without("x").encoded(), "b=%2541");
        for bad in ["a=1&a=2", "a=1&%61=2", "a=%f", "a=%", "a=%zz", "a=%é1", "a=%ff", "a=%00"] {
            assert!(OAuthForm::parse(bad.as_bytes()).is_err(), "{bad}");
        }
        let many = (0..100).map(|n| format!("p{n}=1")).collect::<Vec<_>>().join("&");
        assert!(OAuthForm::parse(many.as_bytes()).is_err());
    }
}
