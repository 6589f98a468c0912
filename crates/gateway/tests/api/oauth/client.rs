//! A client of the authorization server, and what it keeps between its steps.

use std::cell::Cell;

use portcullis_core::{oauth::PkceVerifier, secret::Secret};
use reqwest::Url;

use crate::{login::browser::Browser, prelude::*};

/// The secret behind the challenges of all these clients.
pub(super) const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";

/// A client that is known to a gateway.
#[derive(Clone)]
pub(super) struct Client<'a> {
    pub(super) gateway: &'a Gateway,
    pub(super) id: String,
    pub(super) redirect_uri: String,
}

/// Parameters or fields by their names.
pub(super) type Fields = BTreeMap<&'static str, String>;

/// Fields in form encoding.
pub(super) fn encoded(fields: &Fields) -> String {
    let mut url = Url::parse("x:x").unwrap();
    url.query_pairs_mut().extend_pairs(fields.iter());
    url.query().unwrap_or_default().to_owned()
}

pub(super) fn challenge(verifier: &str) -> String {
    PkceVerifier::from_stored(Secret::new(verifier.to_owned())).challenge()
}

impl<'a> Client<'a> {
    pub(super) async fn registered(gateway: &'a Gateway, name: &str, redirect_uri: &str) -> Self {
        let metadata = json!({"client_name": name, "redirect_uris": [redirect_uri]});
        let request = gateway.request(Method::POST, "/oauth/register").json(&metadata);
        let answer = gateway.send(request).await;
        assert_eq!(answer.status, 201, "{}", answer.text);
        let id = answer.at("/client_id").as_str().unwrap().to_owned();
        Self { gateway, id, redirect_uri: redirect_uri.to_owned() }
    }

    /// The parameters of its request for a code.
    pub(super) fn request(&self) -> Fields {
        Fields::from([
            ("response_type", "code".to_owned()),
            ("client_id", self.id.clone()),
            ("redirect_uri", self.redirect_uri.clone()),
            ("code_challenge", challenge(VERIFIER)),
            ("code_challenge_method", "S256".to_owned()),
            ("state", "a state & more".to_owned()),
        ])
    }

    /// The page that a browser is shown for a request.
    pub(super) async fn asks(&self, browser: &Browser<'_>, request: &Fields) -> Answer {
        browser.open(&format!("/oauth/authorize?{}", encoded(request))).await
    }

    /// Choice of a person on the page that it is shown.
    pub(super) async fn decides(
        browser: &Browser<'_>,
        page: &Answer,
        decision: &str,
        remember: bool,
    ) -> Answer {
        assert_eq!(page.status, 200, "{}", page.text);
        let field = |name| hidden(page, name);
        let token = field("form_token");
        let request = field("request");
        let shown = field("shown");
        let mut fields = vec![
            ("form_token", token.as_str()),
            ("request", &request),
            ("shown", &shown),
            ("decision", decision),
        ];
        if remember {
            fields.push(("remember", "1"));
        }
        browser.submit("/oauth/authorize", &fields).await
    }

    /// A code for what Ana is asked and allows.
    pub(super) async fn code(&self, browser: &Browser<'_>, request: &Fields) -> String {
        let page = self.asks(browser, request).await;
        let back = returned(&Self::decides(browser, &page, "allow", false).await);
        back.get("code").unwrap_or_else(|| panic!("{back:?}")).clone()
    }

    /// The fields of its token request for this code.
    pub(super) fn exchange(&self, code: &str) -> Fields {
        Fields::from([
            ("grant_type", "authorization_code".to_owned()),
            ("client_id", self.id.clone()),
            ("redirect_uri", self.redirect_uri.clone()),
            ("code", code.to_owned()),
            ("code_verifier", VERIFIER.to_owned()),
        ])
    }

    /// The fields of its token request for this refresh token.
    pub(super) fn refresh(&self, token: &str) -> Fields {
        Fields::from([
            ("grant_type", "refresh_token".to_owned()),
            ("client_id", self.id.clone()),
            ("refresh_token", token.to_owned()),
        ])
    }

    /// The answer to a form at `/oauth/…`.
    pub(super) async fn posts(&self, path: &str, fields: &Fields) -> Answer {
        let request = self.gateway.request(Method::POST, path).body(encoded(fields));
        let form = "application/x-www-form-urlencoded";
        self.gateway.send(request.header("content-type", form)).await
    }

    pub(super) async fn token(&self, fields: &Fields) -> Answer {
        self.posts("/oauth/token", fields).await
    }

    /// Access and refresh token for what Ana allows.
    pub(super) async fn tokens(&self, browser: &Browser<'_>, request: &Fields) -> Tokens {
        let code = self.code(browser, request).await;
        Tokens::of(&self.token(&self.exchange(&code)).await)
    }
}

/// Tokens as they are given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Tokens {
    pub(super) access: String,
    pub(super) refresh: String,
}

impl Tokens {
    #[track_caller]
    pub(super) fn of(answer: &Answer) -> Self {
        assert_eq!(answer.status, 200, "{}", answer.text);
        let text = |name: &str| answer.at(name).as_str().unwrap().to_owned();
        Self { access: text("/access_token"), refresh: text("/refresh_token") }
    }
}

/// The address that a browser comes back to: by a redirect, or by a page after a person decided.
#[track_caller]
pub(super) fn led_to(answer: &Answer) -> Url {
    let to = match answer.status.as_u16() {
        302 => answer.header("location").to_owned(),
        _ => attribute(answer, "http-equiv=\"refresh\" content=\"0; url="),
    };
    Url::parse(&to).unwrap()
}

/// The parameters that it comes back with.
#[track_caller]
pub(super) fn returned(answer: &Answer) -> BTreeMap<String, String> {
    led_to(answer).query_pairs().into_owned().collect()
}

/// The value of a hidden field of a page.
#[track_caller]
pub(super) fn hidden(page: &Answer, name: &str) -> String {
    attribute(page, &format!("name=\"{name}\" value=\""))
}

/// Text that follows in a page up to the end of the attribute.
#[track_caller]
fn attribute(page: &Answer, before: &str) -> String {
    let (_, rest) = page.text.split_once(before).unwrap_or_else(|| panic!("{}", page.text));
    let value = rest.split_once('"').unwrap().0;
    let marks = [("&quot;", "\""), ("&#39;", "'"), ("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&")];
    marks.iter().fold(value.to_owned(), |text, (mark, letter)| text.replace(mark, letter))
}

thread_local! {
    static NUMBER: Cell<u32> = const { Cell::new(0) };
}

/// A verifier that no other client of the test has.
pub(super) fn another_verifier() -> String {
    let number = NUMBER.get() + 1;
    NUMBER.set(number);
    format!("{VERIFIER}-{number}")
}
