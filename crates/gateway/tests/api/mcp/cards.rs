//! Server cards and their catalogue: `GET /mcp/server-card`, `GET /mcp/{slug}/server-card`,
//! `GET /.well-known/ai-catalog.json`.

use portcullis_testkit::tool;

use crate::{login::LINKS, prelude::*};

const ALL: &str = "/mcp/server-card";
const ONE: &str = "/mcp/crm/server-card";
const CATALOGUE: &str = "/.well-known/ai-catalog.json";
const CARD_TYPE: &str = "application/mcp-server-card+json";

/// A gateway with a provider that has a card, and one that has none.
async fn carded(config: &str) -> (Gateway, McpServer) {
    let server = McpServer::start(vec![tool("secret_tool")]).await;
    let builder = gateway().config(config).http("inner", &server.url(), "name = \"Payroll\"");
    let named = format!("name = \"{}\"\ncard = true", "Customers ".repeat(20));
    (builder.http("crm", &server.url(), &named).start(), server)
}

async fn get(gateway: &Gateway, path: &str) -> Answer {
    gateway.send(gateway.request(Method::GET, path)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn cards_say_where_to_connect_and_nothing_of_what_is_behind() {
    let (gateway, server) = carded("[server]\npublic_url = \"https://Gw.Acme.example/\"").await;
    let own = "https://gw.acme.example";
    let schema = "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json";

    for (path, name, endpoint, title) in [
        (ALL, "example.acme.gw/portcullis", "/mcp", "Portcullis".to_owned()),
        (ONE, "example.acme.gw/portcullis.crm", "/mcp/crm", "Customers ".repeat(10)),
    ] {
        let card = get(&gateway, path).await.ok();

        has!("{path}"; card, "/$schema": schema, "/name": name, "/title": title,
            "/version": env!("CARGO_PKG_VERSION"),
            "/remotes/0/type": "streamable-http", "/remotes/0/url": format!("{own}{endpoint}"),
            "/remotes/0/supportedProtocolVersions": ["2026-07-28", "2025-11-25", "2025-06-18"],
            "/remotes/0/headers/0/name": "Authorization", "/remotes/0/headers/0/isRequired": true,
            "/remotes/0/headers/0/isSecret": true, "/remotes/1": null);
        let length = card.at("/description").as_str().unwrap().chars().count();
        assert!((1..=100).contains(&length), "{}", card.text);
        assert_eq!(card.header("content-type"), CARD_TYPE);
    }
    let catalogue = get(&gateway, CATALOGUE).await.ok();
    let entry = |name: &str, endpoint: &str| {
        json!({"identifier": format!("urn:air:gw.acme.example:mcp:{name}"), "type": CARD_TYPE,
            "url": format!("{own}{endpoint}/server-card")})
    };
    let entries = [entry("portcullis", "/mcp"), entry("portcullis.crm", "/mcp/crm")];
    let host = json!({"displayName": "gw.acme.example"});
    assert_eq!(catalogue.json, json!({"specVersion": "0.9", "host": host, "entries": entries}));
    assert_eq!(catalogue.header("content-type"), "application/ai-catalog+json");
    for path in [ALL, ONE, CATALOGUE] {
        let told = get(&gateway, path).await.ok().text;
        for hidden in [&*server.url(), "127.0.0.1", "inner", "Payroll", "secret_tool"] {
            assert!(!told.contains(hidden), "{path}: {told}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn at_an_address_without_a_name_the_catalogue_names_cards_by_their_urls() {
    let (gateway, _server) = carded(LINKS).await;
    let url = gateway.url();

    let card = get(&gateway, ALL).await.ok();
    let catalogue = get(&gateway, CATALOGUE).await.ok();

    has!("people can log in"; card, "/name": "dev.portcullis/portcullis",
        "/remotes/0/url": format!("{url}/mcp"), "/remotes/0/headers/0/isRequired": false);
    has!(catalogue, "/host/displayName": "Portcullis",
        "/entries/1/identifier": format!("{url}{ONE}"), "/entries/1/url": format!("{url}{ONE}"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_without_a_card_is_like_one_that_does_not_exist() {
    let (gateway, _server) = carded("").await;
    let shown = async |slug: &str| {
        let answer = get(&gateway, &format!("/mcp/{slug}/server-card")).await;
        has!("{slug}"; answer, 404 "not_found");
        assert_framed(&answer, slug);
        assert_eq!(answer.header("access-control-allow-origin"), "*", "{slug}");
        let names: Vec<String> = answer.headers.keys().map(ToString::to_string).collect();
        (answer.at("/error").to_string().replace(&format!("/{slug}/"), "/…/"), names)
    };

    let unknown = shown("nowhere").await;

    for slug in ["inner", "server-card", "CRM", "crm%2F"] {
        assert_eq!(shown(slug).await, unknown, "{slug}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn everybody_may_read_and_keep_cards_and_nobody_else_is_answered() {
    let (gateway, _server) = carded("").await;
    for path in [ALL, ONE, CATALOGUE] {
        let ask = |method: Method, header: &'static str, value: &str| {
            gateway.send(gateway.request(method, path).header(header, value))
        };
        let read = ask(Method::GET, "origin", "https://page.example").await.ok();
        let etag = read.header("etag").to_owned();
        assert!(etag.len() == 45 && etag.starts_with('"'), "{etag}");
        let weak = format!("\"x\", W/{etag}");

        for (method, header, value, status, kept) in [
            (Method::GET, "origin", "https://page.example", 200, true),
            (Method::HEAD, "origin", "https://page.example", 200, true),
            (Method::GET, "if-none-match", &etag, 304, true),
            (Method::GET, "if-none-match", &weak, 304, true),
            (Method::GET, "if-none-match", "\"x\"", 200, true),
            (Method::OPTIONS, "access-control-request-method", "GET", 204, false),
            (Method::POST, "origin", "https://page.example", 405, false),
            (Method::DELETE, "origin", "https://page.example", 405, false),
        ] {
            let answer = ask(method.clone(), header, value).await;

            let what = format!("{method} {path}, {header}: {value}");
            assert_eq!(answer.status.as_u16(), status, "{what}");
            let text = match (&method, status) {
                (&Method::GET, 200) => read.text.as_str(),
                (_, 405) => answer.text.as_str(),
                _ => "",
            };
            assert_eq!(answer.text, text, "{what}");
            let cached = if kept { "public, max-age=3600" } else { "no-store" };
            for (name, wanted) in [
                ("access-control-allow-origin", "*"),
                ("access-control-allow-methods", "GET"),
                ("access-control-allow-headers", "Content-Type, If-None-Match"),
                ("access-control-expose-headers", "ETag"),
                ("cache-control", cached),
            ] {
                assert_eq!(answer.header(name), wanted, "{what}");
            }
            let tag = answer.headers.get("etag").map(|it| it.to_str().unwrap());
            assert_eq!(tag, kept.then_some(&*etag), "{what}");
        }
    }
}
