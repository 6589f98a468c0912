//! The authorization server for MCP clients, as a client and a browser meet it.

mod abuse;
mod callers;
mod client;
mod clients;
mod command_line;
mod conformance;
mod consents;
mod discovery;
mod documents;
pub(crate) mod dpop;
mod flow;
pub(crate) mod grants;
mod law;
mod misuse;
mod nodes;
mod prefix;
mod registration;

use self::client::Client;
use crate::{login::browser::Browser, prelude::*};

/// A configuration by which links log people in.
const LINKS: &str = "[login]\nlinks = true";

/// A gateway at which people log in by links, with an org and a person.
struct Site {
    gateway: Gateway,
    org: String,
    ana: String,
}

impl Site {
    fn start() -> Self {
        Self::of(gateway().config(LINKS).sample())
    }

    fn of(builder: Builder) -> Self {
        let gateway = builder.start();
        let org = gateway.org("acme", &ENOUGH);
        let ana = gateway.admin(&["principal", "create", "Ana", "--org", &org]);
        let ana = ana["id"].as_str().unwrap().to_owned();
        Self { gateway, org, ana }
    }

    /// A browser in which Ana is signed in.
    async fn browser(&self) -> Browser<'_> {
        let browser = Browser::new(&self.gateway);
        self.log_in(&browser, &self.ana).await;
        browser
    }

    /// Logs a person in, in the place of who is signed in.
    async fn log_in(&self, browser: &Browser<'_>, principal: &str) -> Answer {
        let made = self.gateway.admin(&["login-link", "--principal", principal]);
        let url = made["url"].as_str().unwrap();
        let (_, code) = url.split_once("code=").unwrap();
        browser.submit("/login/link", &[("code", code)]).await.ok()
    }

    /// A client that registered itself, to return to this address.
    async fn client(&self, redirect_uri: &str) -> Client<'_> {
        Client::registered(&self.gateway, "App", redirect_uri).await
    }

    /// The events of these types, the oldest first, once there are so many.
    async fn events(&self, types: &str, count: usize) -> Vec<Value> {
        let scopes = ["--scopes", "audit:read"];
        let name = format!("auditor of {types} {count}");
        let kind = ["--type", "service", "--scopes", "audit:read"];
        let auditor = self.gateway.principal(&self.org, &name, &kind, &scopes);
        let path = format!("/v1/audit/events?type={types}&order=asc");
        let found = until(
            || self.gateway.get(&auditor, &path),
            |answer| answer.at("/data/items").as_array().is_some_and(|all| all.len() >= count),
        );
        let found = tokio::time::timeout(PATIENCE, found).await.expect("events in time");
        items(&found).clone()
    }

    fn ana_with(&self, token: &str) -> Principal {
        Principal {
            org: self.org.clone(),
            id: self.ana.clone(),
            token_id: String::new(),
            token: token.to_owned(),
        }
    }
}

/// The `error` of an answer in the words of OAuth, and its status.
fn error(answer: &Answer) -> (u16, &str) {
    (answer.status.as_u16(), answer.at("/error").as_str().unwrap_or_default())
}
