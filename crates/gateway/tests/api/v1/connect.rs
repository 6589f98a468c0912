//! `POST /v1/providers/{slug}/connect`, `GET /oauth/callback`, `DELETE /v1/providers/{id}`,
//! `POST /v1/providers/{id}/refresh`, `POST /v1/providers/{id}/test`.

mod attacks;
mod canary;
mod deployed;
mod discovery;
mod issuers;
mod keys;
mod oauth;
mod real;
mod refresh;

use portcullis_testkit::CLIENT_SECRET;

use crate::prelude::*;

pub(crate) const USER: &str = "mcps:read mcps:invoke providers:read providers:write";

/// A service, a gateway that knows it as `slug`, and a user.
struct Scene {
    saas: Saas,
    gateway: Gateway,
    who: Principal,
    slug: &'static str,
}

async fn scene(habits: Habits) -> Scene {
    scene_with(habits, |builder| builder).await
}

async fn scene_with(habits: Habits, change: impl FnOnce(Builder) -> Builder) -> Scene {
    let saas = Saas::start(habits).await;
    let builder = gateway().http("saas", &saas.mcp(), &saas.oauth());
    Scene::of(saas, "saas", change(builder))
}

/// A provider whose service has to be found out about.
const UNKNOWN: &str = "auth = \"oauth2\"\nprotocol = \"legacy\"";

/// A scene whose gateway has to find out about the service.
fn finding(saas: Saas) -> Scene {
    let builder = gateway().http("found", &saas.mcp(), UNKNOWN);
    Scene::of(saas, "found", builder)
}

pub(crate) async fn connect(
    gateway: &Gateway,
    who: &Principal,
    slug: &str,
    body: &Value,
) -> Answer {
    gateway.post(who, &format!("/v1/providers/{slug}/connect"), &body.to_string()).await
}

async fn delete(gateway: &Gateway, who: &Principal, id: &str) -> Answer {
    gateway.delete(who, &format!("/v1/providers/{id}")).await
}

/// Follows a browser's way back to the gateway; gives what it is shown.
pub(crate) async fn come_back(location: &str) -> reqwest::Response {
    let client = reqwest::Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .build()
        .unwrap();
    client.get(location).send().await.unwrap()
}

/// The code on the page that a browser is shown.
pub(crate) fn code_on(page: &str) -> String {
    let code = page.split("<code>").nth(1).unwrap_or_else(|| panic!("no code on {page}"));
    code.split("</code>").next().unwrap().to_owned()
}

pub(crate) fn text(answer: &Answer, pointer: &str) -> String {
    let found = answer.at(pointer).as_str();
    found.unwrap_or_else(|| panic!("no {pointer} in {}", answer.text)).to_owned()
}

impl Scene {
    fn of(saas: Saas, slug: &'static str, builder: Builder) -> Self {
        let gateway = builder.env("SAAS_SECRET", CLIENT_SECRET).start();
        let who = gateway.user(&gateway.org("acme", &ENOUGH), "member", USER);
        Self { saas, gateway, who, slug }
    }

    async fn connect(&self, who: &Principal, body: &Value) -> Answer {
        connect(&self.gateway, who, self.slug, body).await
    }

    /// Consents as `account` to what was begun; gives the browser's way back.
    async fn consent(&self, begun: &Answer, account: &str) -> String {
        self.saas.consent(&text(begun, "/data/authorization_url"), account).await
    }

    /// Begins, consents as `account`, and gives the page that the browser is shown.
    async fn page(&self, account: &str) -> String {
        let begun = self.connect(&self.who, &json!({})).await;
        assert_eq!(begun.status, 202, "{}", begun.text);
        come_back(&self.consent(&begun, account).await).await.text().await.unwrap()
    }

    /// Begins, consents as `account`, and gives the code that the browser was shown.
    async fn consented(&self, who: &Principal, body: &Value, account: &str) -> (Answer, String) {
        let begun = self.connect(who, body).await;
        assert_eq!(begun.status, 202, "{}", begun.text);
        let shown = come_back(&self.consent(&begun, account).await).await;
        assert_eq!(shown.status(), 200);
        let page = shown.text().await.unwrap();
        (begun, code_on(&page))
    }

    /// Connects as `account`, to the end.
    async fn connected(&self, who: &Principal, body: &Value, account: &str) -> Answer {
        let (_, code) = self.consented(who, body, account).await;
        let mut confirm = json!({ "confirm": code });
        if let Some(owner) = body.get("owner") {
            confirm["owner"] = owner.clone();
        }
        self.connect(who, &confirm).await.ok()
    }

    async fn whoami(&self, who: &Principal) -> Answer {
        self.gateway.invoke(who, &format!("{}:whoami", self.slug), json!({})).await
    }

    /// Connects the user, and calls as them.
    async fn connected_and_called(&self) {
        self.connected(&self.who, &json!({}), "octocat").await;
        has!(self.whoami(&self.who).await, "/result/account": "octocat");
    }

    /// Types and details of the connection events of the org, in order.
    async fn events(&self, who: &Principal) -> Vec<Value> {
        let auditor = self.gateway.principal(
            &who.org,
            &format!("auditor {}", self.saas.calls().len()),
            &["--role", "auditor"],
            &["--scopes", "audit:read"],
        );
        let types = "provider.connect_failed,provider.connect_started,provider.connected,\
                     provider.disconnected,provider.needs_auth,provider.refreshed";
        list_of(&self.gateway, &auditor, types, "").await
    }
}

/// The types of these events.
fn types(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["type"].as_str().unwrap()).collect()
}
