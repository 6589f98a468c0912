//! Server cards (SEP-2127) and the catalogue of them (AI Catalog 0.9), which anybody may read before connecting.
//!
//! **Invariant:** all of it is from the configuration and the version of the gateway, nothing from a provider.

use std::{net::IpAddr, sync::Arc};

use axum::{
    body::Body,
    extract::State,
    http::{HeaderMap, StatusCode, header, request::Parts},
    response::Response,
};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use portcullis_core::{
    mcp::OFFERED,
    oauth::{PublicUrl, digest},
    refusal::Refusal,
};
use serde_json::{Value, json};

use crate::{
    exchange::{ErrorAnswer, Outcome, Segment, outcome::insert, precondition::is_known, segment},
    gateway::Gateway,
};

/// Media types of a card and of the catalogue.
const CARD: &str = "application/mcp-server-card+json";
const CATALOGUE: &str = "application/ai-catalog+json";
/// The schema that cards name.
const SCHEMA: &str = "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json";
/// Version of the AI Catalog.
const CATALOGUE_VERSION: &str = "0.9";
/// Most characters of the title and of the description of a card.
const LONGEST: usize = 100;
/// End of the description of a provider, behind its name.
const GOVERNED: &str = ", governed by Portcullis.";

/// The server card of the gateway.
#[utoipa::path(
    get, path = "/mcp/server-card", tag = "mcp", operation_id = "server_card",
    responses(
        (status = 200, description = "the card of the gateway (SEP-2127)", body = Object, content_type = "application/mcp-server-card+json"),
        (status = 304, description = "the version that `If-None-Match` names"),
        (status = 404, description = "the gateway has no public address", body = ErrorAnswer),
    )
)]
pub(crate) async fn show_all(
    State(gateway): State<Arc<Gateway>>,
    asked: Parts,
) -> Result<Response, Outcome> {
    let address = PublicAddress::of(&gateway, &asked)?;
    Ok(document(&asked.headers, CARD, &address.card(&CardedServer::All)))
}

/// The server card of one provider.
#[utoipa::path(
    get, path = "/mcp/{slug}/server-card", tag = "mcp", operation_id = "server_card_provider",
    params(("slug" = String, Path, description = "slug of a provider")),
    responses(
        (status = 200, description = "the card of the provider (SEP-2127)", body = Object, content_type = "application/mcp-server-card+json"),
        (status = 304, description = "the version that `If-None-Match` names"),
        (status = 404, description = "there is no provider with a card", body = ErrorAnswer),
    )
)]
pub(crate) async fn show_one(
    State(gateway): State<Arc<Gateway>>,
    slug: Segment,
    asked: Parts,
) -> Result<Response, Outcome> {
    let slug = segment(slug);
    let server = CardedServer::providers(&gateway).find(|it| it.slug() == Some(&slug));
    let server = server.ok_or_else(|| absent(&asked))?;
    let address = PublicAddress::of(&gateway, &asked)?;
    Ok(document(&asked.headers, CARD, &address.card(&server)))
}

/// The catalogue of the cards.
#[utoipa::path(
    get, path = "/.well-known/ai-catalog.json", tag = "mcp", operation_id = "ai_catalog",
    responses(
        (status = 200, description = "the cards of the gateway and of its providers (AI Catalog)", body = Object, content_type = "application/ai-catalog+json"),
        (status = 304, description = "the version that `If-None-Match` names"),
        (status = 404, description = "the gateway has no public address", body = ErrorAnswer),
    )
)]
pub(crate) async fn list(
    State(gateway): State<Arc<Gateway>>,
    asked: Parts,
) -> Result<Response, Outcome> {
    let address = PublicAddress::of(&gateway, &asked)?;
    let servers = [CardedServer::All].into_iter().chain(CardedServer::providers(&gateway));
    let entries: Vec<Value> = servers.map(|server| address.entry(&server)).collect();
    let catalogue = json!({
        "specVersion": CATALOGUE_VERSION,
        "host": {"displayName": address.domain.as_deref().unwrap_or("Portcullis")},
        "entries": entries,
    });
    Ok(document(&asked.headers, CATALOGUE, &catalogue))
}

/// The refusal of a path where nothing is: the same as of a path that is no route.
fn absent(asked: &Parts) -> Refusal {
    Refusal::not_found("path", asked.uri.path())
}

/// A document with its version, unless the client has it.
fn document(headers: &HeaderMap, media_type: &str, content: &Value) -> Response {
    let text = content.to_string();
    let etag = format!("\"{}\"", URL_SAFE_NO_PAD.encode(digest(&text)));
    let mut response = if is_known(headers, &etag) {
        let mut known = Response::new(Body::empty());
        *known.status_mut() = StatusCode::NOT_MODIFIED;
        known
    } else {
        let mut whole = Response::new(Body::from(text));
        insert(whole.headers_mut(), header::CONTENT_TYPE, media_type);
        whole
    };
    insert(response.headers_mut(), header::ETAG, &etag);
    response
}

/// An MCP server that has a card.
enum CardedServer<'a> {
    /// `/mcp`: the gateway with all providers.
    All,
    /// `/mcp/{slug}`: a provider that says so.
    One { slug: &'a str, title: &'a str },
}

impl<'a> CardedServer<'a> {
    fn providers(gateway: &'a Gateway) -> impl Iterator<Item = Self> {
        gateway.app.providers.carded().map(|(slug, title)| Self::One { slug, title })
    }

    fn slug(&self) -> Option<&str> {
        match self {
            Self::All => None,
            Self::One { slug, .. } => Some(slug),
        }
    }

    /// Path of its endpoint.
    fn path(&self) -> String {
        self.slug().map_or_else(|| "/mcp".to_owned(), |slug| format!("/mcp/{slug}"))
    }

    /// Its name below that of the host. No slug has a dot, so that no provider has the name of the gateway.
    fn name(&self) -> String {
        self.slug().map_or_else(|| "portcullis".to_owned(), |slug| format!("portcullis.{slug}"))
    }

    fn title(&self) -> String {
        match self {
            Self::All => "Portcullis".to_owned(),
            Self::One { title, .. } => title.chars().take(LONGEST).collect(),
        }
    }

    fn description(&self) -> String {
        match self {
            Self::All => {
                "Tools behind one gateway, under authentication, policy and audit.".to_owned()
            }
            Self::One { title, .. } => {
                title.chars().take(LONGEST - GOVERNED.len()).chain(GOVERNED.chars()).collect()
            }
        }
    }
}

/// The address under which everybody finds the gateway.
struct PublicAddress {
    url: String,
    /// Its host, if that is a name.
    domain: Option<String>,
    /// Clients cannot obtain a token by themselves.
    needs_token: bool,
}

impl PublicAddress {
    /// The public address, whatever host was asked: answers are cached. Plain HTTP is told of the machine itself only,
    /// for any other such address is one within a network.
    fn of(gateway: &Gateway, asked: &Parts) -> Result<Self, Refusal> {
        let url = gateway.app.providers.public_url().and_then(PublicUrl::parse);
        let url = url.ok_or_else(|| absent(asked))?;
        let is_name = |host: &String| !host.starts_with('[') && host.parse::<IpAddr>().is_err();
        Ok(Self {
            url: url.ascii(),
            domain: url.origin().host().filter(is_name),
            needs_token: gateway.app.authorization.issuer().is_none(),
        })
    }

    fn card(&self, server: &CardedServer<'_>) -> Value {
        let namespace = self.domain.as_ref().map_or_else(
            || "dev.portcullis".to_owned(),
            |domain| {
                domain.split('.').rev().filter(|it| !it.is_empty()).collect::<Vec<_>>().join(".")
            },
        );
        json!({
            "$schema": SCHEMA,
            "name": format!("{namespace}/{}", server.name()),
            "title": server.title(),
            "description": server.description(),
            "version": env!("CARGO_PKG_VERSION"),
            "remotes": [{
                "type": "streamable-http",
                "url": format!("{}{}", self.url, server.path()),
                "supportedProtocolVersions": OFFERED,
                "headers": [{
                    "name": "Authorization",
                    "description": "`Bearer` and a token of the gateway; with OAuth, clients obtain one by themselves.",
                    "isRequired": self.needs_token,
                    "isSecret": true,
                }],
            }],
        })
    }

    fn entry(&self, server: &CardedServer<'_>) -> Value {
        let url = format!("{}{}/server-card", self.url, server.path());
        let identifier = match &self.domain {
            Some(domain) => format!("urn:air:{domain}:mcp:{}", server.name()),
            None => url.clone(),
        };
        json!({"identifier": identifier, "type": CARD, "url": url})
    }
}
