//! Logins of people in browsers: `GET /login`, `GET /login/link`, `POST /login/link`, `POST /logout`.

pub(crate) mod browser;
pub(crate) mod issuers;
mod links;

use self::browser::{Browser, Page};
use crate::prelude::*;

/// A configuration by which links log people in.
pub(crate) const LINKS: &str = "[login]\nlinks = true";

/// A gateway at which people log in by links, with an org and a person.
pub(crate) struct Site {
    pub(crate) gateway: Gateway,
    pub(crate) org: String,
    pub(crate) ana: String,
}

impl Site {
    pub(crate) fn start() -> Self {
        Self::of(gateway().config(LINKS).start())
    }

    fn of(gateway: Gateway) -> Self {
        Self::with("Ana <b>", gateway)
    }

    /// With the name of the person.
    pub(crate) fn with(name: &str, gateway: Gateway) -> Self {
        let org = gateway.org("acme", &ENOUGH);
        let ana = gateway.admin(&["principal", "create", name, "--org", &org]);
        let ana = ana["id"].as_str().unwrap().to_owned();
        Self { gateway, org, ana }
    }

    /// The path and the code of a new link for Ana.
    fn link(&self) -> (String, String) {
        let made = self.gateway.admin(&["login-link", "--principal", &self.ana]);
        let url = made["url"].as_str().unwrap();
        let path = &url[url.find("/login").unwrap()..];
        (path.to_owned(), path.split_once("code=").unwrap().1.to_owned())
    }

    /// A browser in which Ana has logged in.
    pub(crate) async fn browser(&self) -> Browser<'_> {
        let browser = Browser::new(&self.gateway);
        let (_, code) = self.link();
        browser.submit("/login/link", &[("code", &code)]).await.ok();
        browser
    }

    /// The events of these types, the oldest first, once there are so many.
    pub(crate) async fn events(&self, types: &str, count: usize) -> Vec<Value> {
        let name = format!("auditor of {types} {count}");
        let kind = ["--type", "service", "--scopes", "audit:read"];
        let auditor = self.gateway.principal(&self.org, &name, &kind, &kind[2..]);
        let path = format!("/v1/audit/events?type={types}&order=asc");
        let found = until(
            || self.gateway.get(&auditor, &path),
            |answer| answer.at("/data/items").as_array().is_some_and(|all| all.len() >= count),
        );
        let found = timeout(PATIENCE, found).await.expect("events");
        items(&found).clone()
    }
}

/// The value of the hidden field `name` of a page.
fn hidden(page: &Page, name: &str) -> String {
    let (_, rest) = page.text.split_once(&format!("name=\"{name}\" value=\"")).expect("a field");
    rest.split_once('"').unwrap().0.to_owned()
}
