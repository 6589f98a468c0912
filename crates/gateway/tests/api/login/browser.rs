//! A browser as far as logins need one: it keeps cookies and says where its forms come from.

use std::cell::RefCell;

use crate::prelude::*;

pub(crate) type Page = Answer;

/// A browser at a gateway.
pub(crate) struct Browser<'a> {
    gateway: &'a Gateway,
    /// Address of the gateway; its own address if this is absent.
    public: Option<&'static str>,
    cookies: RefCell<BTreeMap<String, String>>,
}

impl<'a> Browser<'a> {
    pub(crate) fn new(gateway: &'a Gateway) -> Self {
        Self { gateway, public: None, cookies: RefCell::default() }
    }

    /// A browser that finds the node at the public address of its installation.
    pub(crate) fn behind(gateway: &'a Gateway, public: &'static str) -> Self {
        Self { public: Some(public), ..Self::new(gateway) }
    }

    /// The same browser, whose next requests come to another node.
    pub(crate) fn at<'b>(&self, gateway: &'b Gateway) -> Browser<'b> {
        Browser { gateway, public: self.public, cookies: self.cookies.clone() }
    }

    /// The same cookies in another browser, as a thief has them.
    pub(crate) fn stolen(&self) -> Self {
        self.at(self.gateway)
    }

    /// The value of a cookie.
    pub(crate) fn cookie(&self, name: &str) -> Option<String> {
        self.cookies.borrow().get(name).cloned()
    }

    /// Name and value of each cookie whose name begins so, in their order.
    pub(crate) fn cookies_of(&self, prefix: &str) -> Vec<(String, String)> {
        let cookies = self.cookies.borrow();
        let found = cookies.iter().filter(|(name, _)| name.starts_with(prefix));
        found.map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    /// Sets a cookie, as who is beside the browser could.
    pub(crate) fn plant(&self, name: &str, value: &str) {
        self.cookies.borrow_mut().insert(name.to_owned(), value.to_owned());
    }

    pub(crate) async fn open(&self, path: &str) -> Page {
        self.send(self.gateway.request(Method::GET, path)).await
    }

    /// A form that a page of this gateway sends.
    pub(crate) async fn submit(&self, path: &str, fields: &[(&str, &str)]) -> Page {
        let origin = self.public.unwrap_or_else(|| self.gateway.url());
        let request = self.form(path, fields).header("origin", origin);
        self.send(request.header("sec-fetch-site", "same-origin")).await
    }

    /// A form, to be completed and sent.
    pub(crate) fn form(&self, path: &str, fields: &[(&str, &str)]) -> RequestBuilder {
        let encode = |text: &str| -> String {
            let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
            let letter = |byte: u8| {
                if plain(&byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }
            };
            text.bytes().map(letter).collect()
        };
        let pairs: Vec<String> =
            fields.iter().map(|(name, value)| format!("{name}={}", encode(value))).collect();
        let request = self.gateway.request(Method::POST, path).body(pairs.join("&"));
        request.header("content-type", "application/x-www-form-urlencoded")
    }

    /// The cookies of the browser, as a request carries them.
    fn cookies(&self) -> String {
        let cookies = self.cookies.borrow();
        let pairs: Vec<_> = cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
        pairs.join("; ")
    }

    /// A stream, of which only the head was read.
    pub(crate) async fn listen(&self, path: &str) -> reqwest::Response {
        let request = self.gateway.request(Method::GET, path).header("cookie", self.cookies());
        request.send().await.expect("a stream")
    }

    /// Sends a request with the cookies of the browser, and keeps those that come back.
    pub(crate) async fn send(&self, request: RequestBuilder) -> Page {
        let cookies = self.cookies();
        let request = if cookies.is_empty() { request } else { request.header("cookie", cookies) };
        let request = match self.public.and_then(|public| public.split_once("://")) {
            Some((_, host)) => request.header("host", host),
            None => request,
        };
        let answer = self.gateway.send(request).await;
        for set in answer.headers.get_all("set-cookie") {
            let set = set.to_str().unwrap();
            let (pair, attributes) = set.split_once(';').unwrap();
            let (name, value) = pair.split_once('=').unwrap();
            for needed in ["Path=/", "HttpOnly", "SameSite=Lax"] {
                assert!(attributes.contains(needed), "{set}");
            }
            let mut cookies = self.cookies.borrow_mut();
            if attributes.contains("Max-Age=0;") {
                cookies.remove(name);
            } else {
                cookies.insert(name.to_owned(), value.to_owned());
            }
        }
        answer
    }
}
