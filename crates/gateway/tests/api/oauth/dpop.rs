//! Tokens that are bound to a key (DPoP, RFC 9449): at `POST /oauth/token`, `POST /v1/auth/token`,
//! `POST /v1/auth/refresh`, and on use; and what a thief makes of them who has the token alone.

mod lenience;

use aws_lc_rs::{
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair},
};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use portcullis_core::{oauth::digest, trust::PublicKey};

use super::{
    Site,
    client::{Fields, Tokens, encoded},
    error,
    grants::{now, unique, with},
};
use crate::prelude::*;

const APP: &str = "https://app.example/cb";
const FORM: &str = "application/x-www-form-urlencoded";

/// A key whose possession is proved.
pub(crate) struct Prover(EcdsaKeyPair);

impl Prover {
    pub(crate) fn new() -> Self {
        Self(EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap())
    }

    pub(crate) fn jwk(&self) -> Value {
        let point = self.0.public_key().as_ref();
        let part = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        json!({ "kty": "EC", "crv": "P-256", "x": part(&point[1..33]), "y": part(&point[33..]) })
    }

    pub(crate) fn thumbprint(&self) -> String {
        PublicKey::of_jwk(&self.jwk()).unwrap().thumbprint().to_owned()
    }

    pub(crate) fn header(&self) -> Value {
        json!({ "typ": "dpop+jwt", "alg": "ES256", "jwk": self.jwk() })
    }

    pub(crate) fn sign(&self, header: &Value, claims: &Value) -> String {
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", part(header), part(claims));
        let signature = self.0.sign(&SystemRandom::new(), signed.as_bytes()).unwrap();
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
    }

    /// A proof for a request that brings no token.
    pub(crate) fn proof(&self, address: &str) -> String {
        self.sign(&self.header(), &claims("POST", address))
    }

    /// A proof for a request with this token.
    pub(crate) fn proof_of(&self, method: &str, address: &str, token: &str) -> String {
        self.sign(&self.header(), &claims_of(method, address, token))
    }
}

fn claims(method: &str, address: &str) -> Value {
    json!({ "jti": unique(), "htm": method, "htu": address, "iat": now() })
}

pub(crate) fn claims_of(method: &str, address: &str, token: &str) -> Value {
    let ath = URL_SAFE_NO_PAD.encode(digest(token));
    with(claims(method, address), &json!({ "ath": ath }))
}

/// The answer to a request with these headers.
async fn ask(
    gateway: &Gateway,
    method: Method,
    path: &str,
    headers: &[(&str, &str)],
    body: Option<Value>,
) -> Answer {
    let mut request = gateway.request(method, path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    gateway
        .send(match body {
            Some(body) => request.json(&body),
            None => request,
        })
        .await
}

/// `GET /v1/mcps` with a token and proofs, as `scheme`.
pub(crate) async fn tools(gateway: &Gateway, scheme: &str, token: &str, proofs: &[&str]) -> Answer {
    let authorization = format!("{scheme} {token}");
    let mut headers = vec![("authorization", authorization.as_str())];
    headers.extend(proofs.iter().map(|proof| ("dpop", *proof)));
    ask(gateway, Method::GET, "/v1/mcps", &headers, None).await
}

/// `POST /oauth/token` with these fields and this proof.
async fn token(gateway: &Gateway, fields: &Fields, proof: Option<&str>) -> Answer {
    let mut request = gateway.request(Method::POST, "/oauth/token").header("content-type", FORM);
    if let Some(proof) = proof {
        request = request.header("dpop", proof);
    }
    gateway.send(request.body(encoded(fields))).await
}

/// A gateway with a service account whose token is bound to a key.
struct Bound {
    gateway: Gateway,
    key: Prover,
    token: String,
    /// The address of `GET /v1/mcps`.
    address: String,
}

impl Bound {
    fn start() -> Self {
        let gateway = gateway().sample().start();
        let org = gateway.org("acme", &ENOUGH);
        Self::of(gateway, &org)
    }

    fn of(gateway: Gateway, org: &str) -> Self {
        let key = Prover::new();
        let ci = gateway.service(org, "mcps:read mcps:invoke");
        let jwk = key.jwk().to_string();
        let made = gateway.admin(&["token", "create", "--principal", &ci.id, "--dpop-key", &jwk]);
        assert_eq!(made["dpop_jkt"], key.thumbprint());
        let token = made["token"].as_str().unwrap().to_owned();
        let address = format!("{}/v1/mcps", gateway.url());
        Self { gateway, key, token, address }
    }

    async fn sent(&self, header: &Value, claims: &Value) -> Answer {
        let proof = self.key.sign(header, claims);
        tools(&self.gateway, "DPoP", &self.token, &[&proof]).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_used_with_its_key_only_and_so_is_what_is_made_from_it() {
    // A token of the operator is used with its key only.
    let bound = Bound::start();
    let Bound { gateway, key, token, address } = &bound;

    tools(gateway, "DPoP", token, &[&key.proof_of("GET", address, token)]).await.ok();
    let bare = tools(gateway, "Bearer", token, &[]).await;
    let bearer = tools(gateway, "Bearer", token, &[&key.proof_of("GET", address, token)]).await;
    let unproved = tools(gateway, "DPoP", token, &[]).await;
    let other = Prover::new().proof_of("GET", address, token);
    let other = tools(gateway, "DPoP", token, &[&other]).await;

    for refused in [bare, bearer] {
        assert_eq!(refused.refusal(), (401, "invalid_token"));
        let challenge = refused.header("www-authenticate");
        assert!(challenge.contains("error=\"invalid_token\""), "{challenge}");
        let told = "it is bound to a key: send it as `Authorization: DPoP`, with a proof";
        assert!(challenge.contains(told) && refused.text.contains(told), "{challenge}");
    }
    for refused in [unproved, other] {
        assert_eq!(refused.refusal(), (401, "invalid_dpop_proof"));
        let challenge = refused.header("www-authenticate");
        assert!(challenge.starts_with("DPoP algs=\"RS256 PS256 ES256 EdDSA\""), "{challenge}");
        assert!(challenge.contains("error_description=\"The DPoP proof is wrong: "), "{challenge}");
    }

    // What is made from a bound token is bound to the same key.
    let address = format!("{}/v1/auth/token", gateway.url());
    let exchange = async |scheme: &str, proof: Option<String>, body: Value| {
        let authorization = format!("{scheme} {token}");
        let mut headers = vec![("authorization", authorization.as_str())];
        headers.extend(proof.as_deref().map(|proof| ("dpop", proof)));
        ask(gateway, Method::POST, "/v1/auth/token", &headers, Some(body)).await
    };

    let proof = key.proof_of("POST", &address, token);
    let made = exchange("DPoP", Some(proof.clone()), json!({})).await.ok();
    has!(exchange("DPoP", Some(proof), json!({})).await, "/error/details/check": "replay");
    has!(exchange("Bearer", None, json!({})).await, 401 "invalid_token");
    let other = Prover::new().proof_of("POST", &address, token);
    has!(exchange("DPoP", Some(other), json!({})).await, "/error/details/check": "key");
    let unhashed = exchange("DPoP", Some(key.proof(&address)), json!({})).await;

    assert_eq!(made.at("/data/token_type"), "DPoP");
    let child = made.at("/data/access_token").as_str().unwrap();
    assert_eq!(tools(gateway, "Bearer", child, &[]).await.refusal(), (401, "invalid_token"));
    let proof = key.proof_of("GET", &bound.address, child);
    assert_eq!(tools(gateway, "DPoP", child, &[&proof]).await.status, 200);
    assert_eq!(unhashed.at("/error/details/check"), "ath", "{}", unhashed.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proof_that_is_not_right_in_all_parts_is_refused() {
    let bound = Bound::start();
    let Bound { gateway, key, token, address } = &bound;
    let good = || claims_of("GET", address, token);
    for (changes, check) in [
        (json!({ "htm": "POST" }), "htm"),
        (json!({ "htu": format!("{address}/x") }), "htu"),
        (json!({ "ath": null }), "ath"),
        (json!({ "jti": null }), "form"),
    ] {
        let refused = bound.sent(&key.header(), &with(good(), &changes)).await;
        has!("{changes}"; refused, 401 "invalid_dpop_proof", "/error/details/check": check);
        let message = refused.at("/error/message").as_str().unwrap();
        assert!(message.ends_with("No nonce is wanted."), "{message}");
        assert_eq!(message.contains(&format!("`{address}`")), check == "htu", "{message}");
        assert!(!refused.headers.contains_key("dpop-nonce"), "{changes}");
    }
    let mut private = key.jwk();
    private["d"] = json!("c2VjcmV0");
    for (changes, check) in [
        (json!({ "jwk": private }), "jwk"),
        (json!({ "typ": "JWT" }), "form"),
        (json!({ "jwk": Prover::new().jwk() }), "signature"),
    ] {
        let refused = bound.sent(&with(key.header(), &changes), &good()).await;
        assert_eq!(refused.at("/error/details/check"), check, "{changes}: {}", refused.text);
    }
    let name = address.replace("127.0.0.1", "localhost");
    let host = name.split('/').nth(2).unwrap();
    for htu in [&name, address] {
        let authorization = format!("DPoP {token}");
        let proof = key.proof_of("GET", htu, token);
        let headers = [("host", host), ("authorization", &*authorization), ("dpop", &*proof)];
        ask(gateway, Method::GET, "/v1/mcps", &headers, None).await.ok();
    }
    let two = [key.proof_of("GET", address, token), key.proof_of("GET", address, token)];
    let several = tools(gateway, "DPoP", token, &[&two[0], &two[1]]).await;
    assert_eq!(several.at("/error/details/check"), "several", "{}", several.text);
    let huge = tools(gateway, "DPoP", token, &[&"x".repeat(12_000)]).await;
    assert!(huge.status.is_client_error(), "{}", huge.text);
    let scheme = tools(gateway, "DPoP", &unbound(gateway).await, &[&two[0]]).await;
    assert_eq!(scheme.refusal(), (401, "invalid_token"), "an unbound token");
}

/// A token that is bound to no key.
async fn unbound(gateway: &Gateway) -> String {
    let org = gateway.org("other", &ENOUGH);
    let who = gateway.service(&org, "mcps:read");
    let bearer = tools(gateway, "Bearer", &who.token, &["nonsense"]).await;
    assert_eq!(bearer.status, 200, "a header `DPoP` beside it means nothing: {}", bearer.text);
    who.token
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proof_is_used_once_with_and_without_a_nonce_and_at_the_same_moment() {
    let bound = Bound::start();
    let Bound { gateway, key, token, address } = &bound;
    let once = key.proof_of("GET", address, token);

    let first = tools(gateway, "DPoP", token, &[&once]).await.ok();
    has!(tools(gateway, "DPoP", token, &[&once]).await, "/error/details/check": "replay");

    let nonce = first.header("dpop-nonce").to_owned();
    let claims = with(claims_of("GET", address, token), &json!({ "nonce": nonce }));
    let with_nonce = key.sign(&key.header(), &claims);
    for proof in [key.proof_of("GET", address, token), with_nonce] {
        let race = (0..8).map(|_| async { tools(gateway, "DPoP", token, &[&proof]).await.status });
        let race = join_all(race).await;
        assert_eq!(race.iter().filter(|status| **status == 200).count(), 1, "{race:?}");
    }
    let unknown = with(claims_of("GET", address, token), &json!({ "nonce": "unknown" }));
    let refused = bound.sent(&key.header(), &unknown).await;
    assert_eq!(refused.refusal(), (401, "use_dpop_nonce"));
    assert!(refused.header("www-authenticate").contains("error=\"use_dpop_nonce\""));
    let nonce = refused.header("dpop-nonce").to_owned();
    let retried = with(claims_of("GET", address, token), &json!({ "nonce": nonce }));
    assert_eq!(bound.sent(&key.header(), &retried).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_gets_bound_tokens_and_refreshes_them_with_its_key() {
    let site = Site::sampled();
    let gateway = &site.gateway;
    let browser = site.browser().await;
    let client = site.client(APP).await;
    let key = Prover::new();
    let address = format!("{}/oauth/token", gateway.url());
    let code = client.code(&browser, &client.request()).await;

    let granted = token(gateway, &client.exchange(&code), Some(&key.proof(&address))).await;

    let first = Tokens::of(&granted);
    assert_eq!(granted.at("/token_type"), "DPoP");
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}});
    let mcp = format!("{}/mcp", gateway.url());
    let proof = key.proof_of("POST", &mcp, &first.access);
    let authorization = format!("DPoP {}", first.access);
    let headers = [("authorization", authorization.as_str()), ("dpop", &proof)];
    ask(gateway, Method::POST, "/mcp", &headers, Some(message.clone())).await.ok();
    let again = ask(gateway, Method::POST, "/mcp", &headers, Some(message.clone())).await;
    assert_eq!(again.status, 401, "{}", again.text);
    let challenge = again.header("www-authenticate");
    assert!(challenge.starts_with("DPoP resource_metadata=\""), "{challenge}");
    let bearer = format!("Bearer {}", first.access);
    let stolen = [("authorization", bearer.as_str())];
    let stolen = ask(gateway, Method::POST, "/mcp", &stolen, Some(message)).await;
    assert_eq!(stolen.status, 401, "{}", stolen.text);
    assert!(stolen.header("www-authenticate").contains("error=\"invalid_token\""));

    let fields = client.refresh(&first.refresh);
    let other = Prover::new();
    let refused = token(gateway, &fields, None).await;
    assert_eq!(error(&refused), (400, "invalid_grant"), "{}", refused.text);
    let refused = token(gateway, &fields, Some(&other.proof(&address))).await;
    assert_eq!(error(&refused), (400, "invalid_dpop_proof"), "{}", refused.text);
    let next = token(gateway, &fields, Some(&key.proof(&address))).await;
    assert_eq!(next.at("/token_type"), "DPoP", "{}", next.text);
    let next = Tokens::of(&next);
    let unproved = token(gateway, &client.refresh(&next.refresh), None).await;
    assert_eq!(error(&unproved), (400, "invalid_grant"));

    let server = gateway.service(&site.org, "tokens:introspect");
    let request = gateway.request(Method::POST, "/oauth/introspect").bearer_auth(&server.token);
    let body = format!("token={}", next.access);
    let told = gateway.send(request.header("content-type", FORM).body(body)).await.ok();
    has!(told, "/cnf/jkt": key.thumbprint(), "/token_type": "DPoP");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_code_is_bound_to_the_key_that_its_request_names_where_a_client_wants_it() {
    // A code is bound to the key that its request names.
    let site = Site::sampled();
    let gateway = &site.gateway;
    let browser = site.browser().await;
    let client = site.client(APP).await;
    let key = Prover::new();
    let address = format!("{}/oauth/token", gateway.url());
    let mut request = client.request();
    request.insert("dpop_jkt", key.thumbprint());
    let code = client.code(&browser, &request).await;
    let fields = client.exchange(&code);

    for proof in [None, Some(Prover::new().proof(&address))] {
        let refused = token(gateway, &fields, proof.as_deref()).await;
        assert_eq!(error(&refused), (400, "invalid_grant"), "{}", refused.text);
    }
    let mut nonce = Value::Null;
    for (claims, code) in [
        (claims("GET", &address), "invalid_dpop_proof"),
        (claims("POST", &format!("{}/mcp", gateway.url())), "invalid_dpop_proof"),
        (with(claims("POST", &address), &json!({ "nonce": "old" })), "use_dpop_nonce"),
        (with(claims("POST", &address), &json!({ "iat": now() - 86_400 })), "use_dpop_nonce"),
    ] {
        let proof = key.sign(&key.header(), &claims);
        let refused = token(gateway, &fields, Some(&proof)).await;
        assert_eq!(error(&refused), (400, code), "{}", refused.text);
        assert_eq!(refused.headers.contains_key("dpop-nonce"), code == "use_dpop_nonce");
        nonce = json!(refused.header("dpop-nonce"));
    }
    // A client whose clock is off gets tokens with the nonce that it was given.
    let off = with(claims("POST", &address), &json!({ "iat": now() - 86_400, "nonce": nonce }));
    let granted = token(gateway, &fields, Some(&key.sign(&key.header(), &off))).await;
    Tokens::of(&granted);
    assert_eq!(granted.at("/token_type"), "DPoP");
    request.insert("dpop_jkt", "short".to_owned());
    let answer = client.asks(&browser, &request).await;
    assert_eq!(super::client::returned(&answer)["error"], "invalid_request");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_admin_makes_bound_tokens_over_the_api() {
    let (gateway, admin) = serve_admin(gateway().sample());
    let ci = gateway.service(&admin.org, "mcps:read mcps:invoke");
    let key = Prover::new();
    let body = json!({ "principal_id": ci.id, "dpop_jkt": key.thumbprint() });

    let made = gateway.post(&admin, "/v1/tokens", &body.to_string()).await;

    has!(made, 201, "/data/dpop_jkt": key.thumbprint());
    let token = made.at("/data/token").as_str().unwrap();
    let address = format!("{}/v1/mcps", gateway.url());
    assert_eq!(tools(&gateway, "Bearer", token, &[]).await.refusal(), (401, "invalid_token"));
    let proof = key.proof_of("GET", &address, token);
    assert_eq!(tools(&gateway, "DPoP", token, &[&proof]).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn proofs_of_requests_beyond_the_plan_are_not_remembered() {
    let gateway = gateway().sample().start();
    let org = org_with_time_left(&gateway, &plan("3", "3")).await;
    let bound = Bound::of(gateway, &org);
    let fresh = async || {
        bound.sent(&bound.key.header(), &claims_of("GET", &bound.address, &bound.token)).await
    };
    let remembered = || bound.gateway.ask("SELECT count(*) FROM used_assertions");
    for _ in 0..3 {
        assert_eq!(fresh().await.status, 200);
    }
    let before = remembered();

    for _ in 0..10 {
        let refused = fresh().await;
        assert_eq!(refused.refusal(), (429, "rate_limited"), "{}", refused.text);
        assert_framed(&refused, "beyond the plan");
        assert_eq!(refused.header("x-ratelimit-resource"), "requests");
    }

    assert_eq!((before.as_str(), remembered().as_str()), ("3", "3"));
    // One who has the token without its key is told nothing of the plan, and pays like any stranger.
    let stolen = Prover::new().proof_of("GET", &bound.address, &bound.token);
    let refused = tools(&bound.gateway, "DPoP", &bound.token, &[&stolen]).await;
    assert_eq!(refused.refusal(), (401, "invalid_dpop_proof"), "{}", refused.text);
    assert_eq!(refused.header("x-ratelimit-resource"), "unauthenticated");
}
