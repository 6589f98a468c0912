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
use crate::{
    login::{LINKS, Site, browser::Browser},
    prelude::*,
};

impl Site {
    /// With the sample server.
    fn sampled() -> Self {
        Self::built(gateway().config(LINKS).sample())
    }

    fn built(builder: Builder) -> Self {
        Self::with("Ana", builder.start())
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
