//! The clients of the official SDKs that need no browser: cross-app access by an ID-JAG, and service accounts by
//! their key.

use std::net::TcpListener;

use axum::{
    Router,
    extract::State,
    http::{HeaderName, header::CONTENT_TYPE},
    routing::post,
};
use tokio::process::Command;

use super::{AGENT, IDP, Signer, Site, id_jags::ID_JAG, now, unique};
use crate::{
    mcp::clients::{PATIENCE, node, script},
    prelude::*,
};

/// A site whose public address is its own, so that clients find it, and an identity provider beside it that
/// exchanges the ID token of its client for ID-JAGs.
struct Enterprise {
    site: Site,
    exchange: String,
    _serving: JoinSet<()>,
}

/// Answers the token exchange (RFC 8693) of an ID token for an ID-JAG.
async fn exchanged(
    State(idp): State<Arc<Signer>>,
    body: String,
) -> ([(HeaderName, &'static str); 1], String) {
    let url = reqwest::Url::parse(&format!("x:x?{body}")).unwrap();
    let form: BTreeMap<_, _> = url.query_pairs().into_owned().collect();
    assert_eq!(form["grant_type"], "urn:ietf:params:oauth:grant-type:token-exchange");
    assert_eq!(form["requested_token_type"], "urn:ietf:params:oauth:token-type:id-jag");
    assert_eq!(form["subject_token"], "an-id-token");
    let claims = json!({
        "iss": IDP, "sub": "U019488227", "aud": form["audience"], "resource": form["resource"],
        "client_id": AGENT, "scope": form["scope"], "groups": ["eng"],
        "jti": unique(), "iat": now(), "exp": now() + 300,
    });
    let answer = json!({
        "issued_token_type": form["requested_token_type"], "token_type": "N_A",
        "access_token": idp.sign(ID_JAG, &claims), "expires_in": 300,
    });
    ([(CONTENT_TYPE, "application/json")], answer.to_string())
}

impl Enterprise {
    async fn start() -> Self {
        let free = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr());
        let port = free.unwrap().port();
        let site = Site::at(&format!("http://127.0.0.1:{port}"), |gateway| gateway.start_at(port));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let exchange = format!("http://{}/token", listener.local_addr().unwrap());
        let router =
            Router::new().route("/token", post(exchanged)).with_state(Arc::clone(&site.idp));
        let mut serving = JoinSet::new();
        serving.spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { site, exchange, _serving: serving }
    }

    /// Output of a program that gets in as this client with its key, by each of the SDKs.
    async fn run_sdks(&self, mode: &str, client: &str, key: &Signer) -> [(&'static str, Value); 2] {
        let mut typescript = Command::new(node());
        typescript.arg(script("keyed.mjs"));
        let mut python = Command::new(servers().join("venv/bin/python"));
        python.arg(script("keyed.py"));
        let run = async |language: &'static str, mut command: Command| {
            let url = self.site.gateway.url();
            command
                .arg(mode)
                .arg(format!("{url}/mcp"))
                .args(["sample__list_items", "{}"])
                .env("PORTCULLIS_TEST_SERVERS", servers())
                .envs([("ISSUER", url), ("CLIENT", client), ("IDP", &self.exchange)])
                .env("KEY", key.pem())
                .kill_on_drop(true);
            let output =
                timeout(PATIENCE, command.output()).await.expect("an end in time").unwrap();
            let failed = String::from_utf8_lossy(&output.stderr);
            let said = serde_json::from_slice(&output.stdout);
            (language, said.unwrap_or_else(|error| panic!("{language}: {error}\n{failed}")))
        };
        [run("TypeScript", typescript).await, run("Python", python).await]
    }
}

fn assert_called(language: &str, said: &Value) {
    let tools = said["tools"].as_array().expect("a list");
    assert!(tools.iter().any(|it| it == "sample__list_items"), "{language}: {said}");
    assert!(said["result"]["structuredContent"].is_object(), "{language}: {said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_cross_app_clients_of_the_sdks_act_for_a_person_by_an_id_jag() {
    let enterprise = Enterprise::start().await;

    for (language, said) in enterprise.run_sdks("id-jag", AGENT, &enterprise.site.agent).await {
        assert_called(language, &said);
    }

    let calls = enterprise.site.events("mcp.invocation").await;
    assert_eq!(calls.len(), 2, "{calls:?}");
    for call in calls {
        has!(call, "/actor/type": "user", "/actor/client/id": AGENT, "/actor/auth/trust": "apps");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn service_accounts_get_in_with_the_key_clients_of_the_sdks() {
    let enterprise = Enterprise::start().await;
    let key = Signer::new();
    let site = &enterprise.site;
    let path = format!("/v1/principals/{}/keys", site.ci.id);
    site.gateway.post(&site.admin, &path, &json!({"jwk": key.jwk()}).to_string()).await.ok();

    for (language, said) in enterprise.run_sdks("account", &site.ci.id, &key).await {
        assert_called(language, &said);
    }

    for call in site.events("mcp.invocation").await {
        has!(call, "/actor/id": site.ci.id, "/actor/auth/method": "key");
    }
}
