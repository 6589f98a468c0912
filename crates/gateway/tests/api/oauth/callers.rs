//! Every route by every kind of caller: what opens to a token in other hands than its person's, at `/v1`, `/scim`,
//! `/oauth`, `/console` and `/mcp`.

use std::{cell::Cell, fmt::Write as _};

use portcullis_core::{
    authorization::{ClientKind, ClientRef, Face},
    principal::{AuthMethod, ScopeSet},
};
use portcullis_store::{BrowserSession, Consent, Store};
use portcullis_testkit::tool;

use super::{
    Site,
    client::{Client, Tokens},
};
use crate::prelude::*;

const APP: &str = "https://app.example/cb";
/// A provider that takes a key, which the client at `/mcp/sample` must not reach.
const KEYED: &str = "protocol = \"legacy\"\nauth = \"api_key\"\napi_key_header = \"X-Key\"";
const KEY: &str = "{\"api_key\": \"a-key-0123456789\"}";
/// Scopes that are handed on to programs.
const HANDED: &str = "mcps:read mcps:invoke providers:read providers:write";
/// The statuses of all routes, a line for each, a column for each kind of caller.
const STATUSES: &str = include_str!("callers.txt");
const KINDS: [&str; 8] =
    ["browser", "operator", "narrowed", "/mcp", "/mcp/sample", "acting", "service", "scim"];

/// Ana, who is a member, and everybody to whom something of hers was handed on.
struct Callers<'a> {
    site: &'a Site,
    store: Store,
    cookie: String,
    /// By the kinds after the browser.
    tokens: [Principal; 7],
    event: String,
    now: Timestamp,
    number: Cell<u32>,
}

fn site(server: &McpServer) -> Site {
    let config = format!("[server]\ntrusted_proxies = [\"127.0.0.0/8\"]\n{}", super::LINKS);
    Site::built(gateway().config(&config).sample().http("keyed", &server.url(), KEYED))
}

impl Site {
    /// A token that the operator makes for Ana.
    fn of_operator(&self, scopes: &str) -> Principal {
        let made =
            self.gateway.admin(&["token", "create", "--principal", &self.ana, "--scopes", scopes]);
        let text = |name: &str| made[name].as_str().unwrap().to_owned();
        Principal { token_id: text("id"), ..self.ana_with(&text("token")) }
    }

    /// A token made from one, by its bearer or through another caller.
    async fn exchanged(&self, bearer: &Principal, body: Value) -> Principal {
        let answer = self.gateway.post(bearer, "/v1/auth/token", &body.to_string()).await.ok();
        let text = |name: &str| answer.at(name).as_str().unwrap().to_owned();
        Principal { token_id: text("/data/token_id"), ..self.ana_with(&text("/data/access_token")) }
    }
}

impl<'a> Callers<'a> {
    async fn of(site: &'a Site) -> Self {
        let browser = site.browser().await;
        let client = site.client(APP).await;
        let consented = async |endpoint: &str| {
            let mut request = client.request();
            request.insert("scope", HANDED.to_owned());
            request.insert("resource", format!("{}{endpoint}", site.gateway.url()));
            site.ana_with(&client.tokens(&browser, &request).await.access)
        };
        let operator = site.of_operator(&format!("{HANDED} approvals:read approvals:decide"));
        let service = site.gateway.service(&site.org, &format!("{ALL_SCOPES} tokens:introspect"));
        let acting = json!({ "subject_token": operator.token, "scope": HANDED });
        let call = site.gateway.invoke(&operator, "sample:list_items", json!({})).await.ok();
        Self {
            site,
            store: store(&site.gateway).await,
            cookie: format!("portcullis-session={}", browser.cookie("portcullis-session").unwrap()),
            event: call.event_id().to_owned(),
            now: now(&site.gateway).await,
            number: Cell::new(0),
            tokens: [
                operator.clone(),
                site.exchanged(&operator, json!({ "scope": HANDED })).await,
                consented("/mcp").await,
                consented("/mcp/sample").await,
                site.exchanged(&service, acting).await,
                service,
                site.gateway.service(&site.org, "scim"),
            ],
        }
    }

    fn next(&self) -> u32 {
        self.number.set(self.number.get() + 1);
        self.number.get()
    }

    /// The status of a route for a kind of caller. Every request comes from another address.
    async fn status(&self, method: &Method, template: &str, kind: usize) -> u16 {
        let path = self.path(method, template).await;
        let n = self.next();
        let request = self.site.gateway.request(method.clone(), &path);
        let request =
            request.header("x-forwarded-for", format!("10.0.{}.{}", n / 250, n % 250 + 1));
        let request = match kind.checked_sub(1) {
            None => request.header("cookie", &self.cookie),
            Some(token) => request.bearer_auth(&self.tokens[token].token),
        };
        let (media, body) = match template {
            _ if [Method::GET, Method::DELETE].contains(method) => ("", ""),
            "/v1/mcps/{id}/invoke" => ("application/json", "{\"input\": {}}"),
            "/v1/providers/{slug}/connect" => ("application/json", KEY),
            "/v1/providers/{id}/refresh" | "/v1/providers/{id}/test" => ("", ""),
            "/v1/auth/token" => ("application/json", "{}"),
            _ if template.starts_with("/mcp") => {
                ("application/json", "{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"ping\"}")
            }
            _ if template.starts_with("/v1") => ("application/json", "[]"),
            _ if template.starts_with("/scim") => ("application/scim+json", "[]"),
            _ => ("application/x-www-form-urlencoded", "x=y"),
        };
        let request =
            if media.is_empty() { request } else { request.header("content-type", media) };
        // Only the head is read: one of them streams.
        request.body(body).send().await.unwrap().status().as_u16()
    }

    /// The address of something of Ana's, which is made for the request where that may end it; of nothing where
    /// the route has no such thing.
    async fn path(&self, method: &Method, template: &str) -> String {
        let ends = method == Method::DELETE;
        let id = match template {
            "/v1/auth/token" if ends => {
                let made = self.site.exchanged(&self.tokens[0], json!({ "scope": HANDED })).await;
                return format!("{template}?token_id={}", made.token_id);
            }
            "/v1/sessions/{id}" => self.session().await,
            "/v1/consents/{id}" => self.consent().await,
            _ if template.starts_with("/v1/audit/events/") => self.event.clone(),
            _ if template.starts_with("/v1/mcps/") || template.starts_with("/v1/providers/") => {
                let path = "/v1/providers/keyed/connect";
                let connected = self.site.gateway.post(&self.tokens[0], path, KEY).await.ok();
                let id = connected.at("/data/id").as_str().unwrap().to_owned();
                if template.starts_with("/v1/mcps/") { "keyed:a".to_owned() } else { id }
            }
            _ => "none".to_owned(),
        };
        let slug = if template.starts_with("/v1/providers/") { "keyed" } else { "sample" };
        let path = template.replace("{id}", &id).replace("{slug}", slug);
        ["{name}", "{urn}", "{client_id}"]
            .iter()
            .fold(path, |path, name| path.replace(name, "none"))
    }

    /// A browser session of Ana.
    async fn session(&self) -> String {
        let n = self.next();
        let session = BrowserSession {
            id: format!("ses_01M754BKTKX1YB8Q05NMW9{n:04}").parse().unwrap(),
            org_id: self.site.org.parse().unwrap(),
            principal_id: self.site.ana.parse().unwrap(),
            method: AuthMethod::Operator,
            issuer: None,
            login: None,
            acr: None,
            amr: [].into(),
            auth_time: self.now,
            created_at: self.now,
            last_seen_at: self.now,
            ends_at: self.now.plus_seconds(3_600),
            ended_at: None,
        };
        let mut hash = [0; 32];
        hash[..4].copy_from_slice(&n.to_be_bytes());
        assert!(self.store.open_session(&session, &hash, &[]).await.unwrap());
        session.id.to_string()
    }

    /// A consent of Ana to another client.
    async fn consent(&self) -> String {
        let n = self.next();
        let consent = Consent {
            id: format!("con_01M754BKTKX1YB8Q05NMW9{n:04}").parse().unwrap(),
            org_id: self.site.org.parse().unwrap(),
            principal_id: self.site.ana.parse().unwrap(),
            client: ClientRef {
                id: format!("other-{n}"),
                kind: ClientKind::Declared,
                name: "Other".to_owned(),
            },
            face: Face::All,
            scopes: ScopeSet::ALL,
            returns_to: APP.to_owned(),
            remembered: false,
            created_at: self.now,
            renewed_at: self.now,
        };
        self.store.keep_consent(&consent).await.unwrap().to_string()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_route_opens_to_the_callers_that_the_table_says() {
    let server = McpServer::start(vec![tool("a")]).await;
    let site = site(&server);
    let callers = Callers::of(&site).await;
    let document: Value = serde_json::from_str(&site.gateway.run(&["openapi"])).unwrap();
    let mut routes: Vec<(String, Method)> =
        ["/mcp", "/mcp/sample", "/mcp/keyed"].map(|path| (path.to_owned(), Method::POST)).into();
    for (path, operations) in document["paths"].as_object().unwrap() {
        let methods = operations.as_object().unwrap().keys();
        routes.extend(methods.map(|it| (path.clone(), it.to_uppercase().parse().unwrap())));
    }

    let mut seen = format!("{:56}{}\n", "", KINDS.join("  "));
    for (path, method) in &routes {
        let _ = write!(seen, "{:56}", format!("{method} {path}"));
        for (kind, name) in KINDS.iter().enumerate() {
            let status = callers.status(method, path, kind).await;
            let width = if kind + 1 < KINDS.len() { name.len() + 2 } else { 0 };
            let _ = write!(seen, "{status:<width$}");
        }
        seen.push('\n');
    }

    assert!(seen == STATUSES, "the routes answer as follows:\n{seen}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_sees_and_ends_what_is_of_its_own_grant() {
    let server = McpServer::start(vec![tool("a")]).await;
    let site = site(&server);
    let browser = site.browser().await;
    let client = site.client(APP).await;
    let other = Client::registered(&site.gateway, "Other", APP).await;
    let mut request = client.request();
    request.insert("scope", HANDED.to_owned());
    request.insert("resource", format!("{}/mcp/sample", site.gateway.url()));
    let first = client.tokens(&browser, &request).await;
    let elsewhere = other.tokens(&browser, &other.request()).await;
    let ana = site.of_operator(HANDED);
    site.gateway.post(&ana, "/v1/providers/keyed/connect", KEY).await.ok();
    let call = async |who: &Principal| {
        let called = site.gateway.invoke(who, "sample:list_items", json!({})).await.ok();
        called.event_id().to_owned()
    };

    let before = call(&site.ana_with(&first.access)).await;
    let next = Tokens::of(&client.token(&client.refresh(&first.refresh)).await);
    let app = site.ana_with(&next.access);
    let made = site.exchanged(&app, json!({ "scope": "mcps:read mcps:invoke" })).await;
    let own = [before, call(&app).await, call(&made).await];
    let others = [call(&ana).await, call(&site.ana_with(&elsewhere.access)).await];

    let list = "/v1/audit/events?type=mcp.invocation&order=asc";
    let listed = async |who: &Principal| {
        let answer = site.gateway.get(who, list).await;
        members(&answer, "id").into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(listed(&app).await, own);
    assert_eq!(listed(&made).await, own[2..], "it sees less than what it was made from");
    assert_eq!(listed(&ana).await.len(), 5, "a person sees all of her own");
    for (event, status) in own.iter().map(|it| (it, 200)).chain(others.iter().map(|it| (it, 404))) {
        assert_eq!(site.gateway.event(&app, event).await.status, status);
    }
    let consents = site.gateway.get(&app, "/v1/consents").await;
    assert_eq!(items(&consents).len(), 1, "{}", consents.text);
    assert_eq!(consents.at("/data/items/0/client/name"), "App");
    let providers = site.gateway.get(&app, "/v1/providers?status=connected").await;
    assert_eq!(members(&providers, "slug"), ["sample"]);
    assert_eq!(
        members(&site.gateway.get(&ana, "/v1/providers").await, "slug"),
        ["keyed", "sample"]
    );
    let path = format!("/v1/auth/token?token_id={}", made.token_id);
    site.gateway.delete(&app, &path).await.ok();
    assert_eq!(site.gateway.get(&made, "/v1/mcps").await.status, 401);
    site.gateway.delete(&app, "/v1/auth/token").await.ok();
    assert_eq!(client.token(&client.refresh(&next.refresh)).await.status, 400);
    call(&ana).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idempotency_key_gives_other_hands_nothing_of_what_they_are_denied() {
    let policies = "@id(\"all\") permit (principal, action, resource);\n\
        @id(\"other\") forbid (principal, action, resource)\n\
        when { principal has client && principal.client.name == \"Other\" };\n\
        @id(\"weak\") forbid (principal, action, resource)\n\
        unless { principal in Mcp::Scope::\"mcps:read\" };";
    let site = Site::built(gateway().config(super::LINKS).sample().policies(policies));
    let browser = site.browser().await;
    let ana = site.of_operator(HANDED);
    let app = site.client(APP).await;
    let first = app.tokens(&browser, &app.request()).await;
    let other = Client::registered(&site.gateway, "Other", APP).await;
    let other = site.ana_with(&other.tokens(&browser, &other.request()).await.access);
    let narrowed = site.exchanged(&ana, json!({ "scope": "mcps:read mcps:invoke" })).await;
    let again = site.exchanged(&ana, json!({ "scope": "mcps:read mcps:invoke" })).await;
    let weak = site.exchanged(&ana, json!({ "scope": "mcps:invoke" })).await;
    let keyed = async |who: &Principal| {
        let input = json!({});
        let answer = site.gateway.invoke_keyed(who, "sample:list_items", "k", &input).await;
        let replayed = answer.header("idempotency-replayed") == "true";
        (answer.status.as_u16(), replayed)
    };

    assert_eq!(keyed(&ana).await, (200, false));
    assert_eq!(keyed(&other).await, (403, false), "a client that is denied");
    assert_eq!(keyed(&narrowed).await, (200, false), "narrowed from her token");
    assert_eq!(keyed(&weak).await, (403, false), "narrowed to what is denied");
    assert_eq!(keyed(&site.ana_with(&first.access)).await, (200, false), "another client");

    let next = Tokens::of(&app.token(&app.refresh(&first.refresh)).await);
    assert_eq!(keyed(&site.ana_with(&next.access)).await, (200, true), "refreshed");
    assert_eq!(keyed(&again).await, (200, true), "exchanged anew");
    assert_eq!(keyed(&site.of_operator(HANDED)).await, (200, true), "another token of hers");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_is_of_the_client_that_asked_for_it() {
    let policies = "@id(\"all\") permit (principal, action, resource);\n\
        @id(\"ask\") @require_approval(\"approvers=leads\")\n\
        forbid (principal, action == Mcp::Action::\"sample:list_items\", resource);";
    let site = Site::built(gateway().config(super::LINKS).sample().policies(policies));
    let browser = site.browser().await;
    let app = site.client(APP).await;
    let first = app.tokens(&browser, &app.request()).await;
    let other = Client::registered(&site.gateway, "Other", APP).await;
    let other = site.ana_with(&other.tokens(&browser, &other.request()).await.access);
    let ana = site.of_operator(HANDED);
    let call = async |who: &Principal| {
        let answer = site.gateway.invoke(who, "sample:list_items", json!({})).await;
        let asked = answer.at("/error/details/approval/id").as_str().map(str::to_owned);
        (answer.status.as_u16(), asked)
    };
    let asked = call(&site.ana_with(&first.access)).await.1.unwrap();
    site.gateway.admin(&["approval", "approve", &asked]);

    for who in [&other, &ana] {
        let (status, own) = call(who).await;

        assert_eq!(status, 403);
        assert_ne!(own.unwrap(), asked);
    }
    let next = Tokens::of(&app.token(&app.refresh(&first.refresh)).await);
    assert_eq!(call(&site.ana_with(&next.access)).await, (200, None));
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_gives_scopes_that_the_token_at_hand_lacks() {
    let declared = "[[oauth.client]]\nid = \"desk\"\nredirect_uris = [\"https://desk.example/cb\"]";
    let site = Site::built(gateway().config(&format!("{}\n{declared}", super::LINKS)).sample());
    site.gateway.admin(&["principal", "set-role", &site.ana, "--role", "admin"]);
    let desk = Client {
        gateway: &site.gateway,
        id: "desk".to_owned(),
        redirect_uri: "https://desk.example/cb".to_owned(),
    };
    let mut request = desk.request();
    request.insert("scope", "admin mcps:read".to_owned());
    request.insert("resource", format!("{}/v1", site.gateway.url()));
    let desk = site.ana_with(&desk.tokens(&site.browser().await, &request).await.access);
    let ana = site.of_operator("admin mcps:read");
    let service = site.gateway.service(&site.org, "admin mcps:read");
    let acting = json!({ "subject_token": ana.token, "scope": "admin mcps:read" });
    let acting = site.exchanged(&service, acting).await;
    let narrowed = site.exchanged(&ana, json!({ "scope": "admin" })).await;
    let wide = site.gateway.service(&site.org, "audit:export scim");
    let key = json!({ "jwk": super::grants::Signer::new().jwk() });

    for (who, status, name) in [
        (&ana, [201, 201, 200, 200], "a person"),
        (&narrowed, [400; 4], "a narrowed token"),
        (&desk, [400; 4], "a client that may administer"),
        (&acting, [400; 4], "a service that acts for an admin"),
        (&service, [400; 4], "a service"),
    ] {
        let scopes = "audit:export scim";
        let account = json!({"name": name, "kind": "service", "scopes": scopes});
        let of_wide = format!("/v1/principals/{}", wide.id);
        let member = site.gateway.principal(&site.org, &format!("of {name}"), &[], &[]);
        let given = [
            (Method::POST, "/v1/principals".to_owned(), account),
            (
                Method::POST,
                "/v1/tokens".to_owned(),
                json!({"principal_id": wide.id, "scopes": scopes}),
            ),
            (Method::POST, format!("{of_wide}/keys"), key.clone()),
            (Method::PATCH, format!("/v1/principals/{}", member.id), json!({"role": "auditor"})),
        ];
        for ((method, path, body), status) in given.into_iter().zip(status) {
            let request = site.gateway.request_of(who, method, &path).json(&body);
            let answer = site.gateway.send(request).await;
            let code = if status == 400 { "invalid_scope" } else { "" };
            let given = (answer.status.as_u16(), answer.code());
            assert_eq!(given, (status, code), "{name} {path}: {}", answer.text);
        }
    }
    let own = json!({"name": "reader", "kind": "service", "scopes": "mcps:read"}).to_string();
    assert_eq!(site.gateway.post(&desk, "/v1/principals", &own).await.status, 201);
}
