//! Grants without a browser at `POST /oauth/token`: ID-JAGs, workloads and keys of service accounts, with real
//! keys, and what attackers make of them.

mod accounts;
mod bound;
mod id_jags;
mod optional;
mod sdks;
mod workloads;

use std::{
    sync::atomic::{AtomicU32, Ordering},
    time::{SystemTime, UNIX_EPOCH},
};

use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair};
use base64::{
    Engine,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};

use super::client::encoded;
use crate::prelude::*;

/// `server.public_url` of these gateways, which is their issuer.
const PUBLIC: &str = "https://gateway.acme.example";
/// An identity provider whose keys the configuration holds.
const IDP: &str = "https://login.acme.example";
const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";
pub(super) const CLIENT_ASSERTION: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
/// A client of the configuration that has a key.
const AGENT: &str = "agent";

/// A key that signs.
pub(super) struct Signer(Ed25519KeyPair);

impl Signer {
    pub(super) fn new() -> Self {
        Self(Ed25519KeyPair::generate().unwrap())
    }

    pub(super) fn jwk(&self) -> Value {
        let x = URL_SAFE_NO_PAD.encode(self.0.public_key().as_ref());
        json!({ "kty": "OKP", "crv": "Ed25519", "x": x })
    }

    /// The key as an inline JWK Set in TOML.
    fn jwks(&self) -> String {
        let x = URL_SAFE_NO_PAD.encode(self.0.public_key().as_ref());
        format!("{{ keys = [{{ kty = \"OKP\", crv = \"Ed25519\", x = \"{x}\" }}] }}")
    }

    /// The private key as programs read it.
    fn pem(&self) -> String {
        let key = STANDARD.encode(self.0.to_pkcs8v1().unwrap().as_ref());
        format!("-----BEGIN PRIVATE KEY-----\n{key}\n-----END PRIVATE KEY-----\n")
    }

    pub(super) fn sign(&self, typ: &str, claims: &Value) -> String {
        let header = json!({ "alg": "EdDSA", "typ": typ });
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", part(&header), part(claims));
        let signature = URL_SAFE_NO_PAD.encode(self.0.sign(signed.as_bytes()));
        format!("{signed}.{signature}")
    }
}

/// The present moment, which JWTs are held against.
#[expect(clippy::disallowed_methods, reason = "the issuer of these JWTs is not the gateway")]
pub(super) fn now() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    i64::try_from(now.as_secs()).unwrap()
}

/// A `jti` that no other JWT has.
pub(super) fn unique() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("jti-{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Claims with others in their place; `null` removes one.
pub(crate) fn with(mut claims: Value, changes: &Value) -> Value {
    for (name, value) in changes.as_object().unwrap() {
        if value.is_null() {
            claims.as_object_mut().unwrap().remove(name);
        } else {
            claims[name] = value.clone();
        }
    }
    claims
}

/// The assertion by which a client or a service account proves itself.
fn proof(client: &str) -> Value {
    proof_for(client, PUBLIC)
}

/// The same for the gateway at this address.
pub(super) fn proof_for(client: &str, issuer: &str) -> Value {
    json!({
        "iss": client, "sub": client, "aud": issuer, "jti": unique(),
        "iat": now(), "exp": now() + 60,
    })
}

/// A gateway with an identity provider, a client with a key, an admin and a service account.
struct Site {
    gateway: Gateway,
    idp: Arc<Signer>,
    agent: Signer,
    admin: Principal,
    ci: Principal,
}

impl Site {
    fn start() -> Self {
        Self::at(PUBLIC, Gateway::start)
    }

    /// A site with this public address.
    fn at(public: &str, start: impl FnOnce(&mut Gateway)) -> Self {
        let idp = Arc::new(Signer::new());
        let agent = Signer::new();
        let config = format!(
            "[server]\npublic_url = \"{public}\"\n{}\n[[oauth.client]]\nid = \"{AGENT}\"\n\
             name = \"Agent\"\njwks = {}\n[[oauth.client]]\nid = \"public\"\n\
             redirect_uris = [\"https://app.example/cb\"]",
            super::LINKS,
            agent.jwks(),
        );
        let mut gateway = gateway().config(&config).sample().prepare();
        let org = gateway.org("acme", &ENOUGH);
        let admin = gateway.user(&org, "admin", ALL_SCOPES);
        let ci = gateway.service(&org, "mcps:read mcps:invoke");
        let rule = |name: &str, more: &str| {
            format!(
                "[[trust]]\nname = \"{name}\"\norg = \"{org}\"\nissuer = \"{IDP}\"\n\
                 jwks = {}\naudience = \"{public}\"\n{more}",
                idp.jwks()
            )
        };
        let people = "user_from = \"sub\"\nroles = { \"*\" = \"member\" }";
        gateway.configure(&rule(
            "apps",
            &format!(
                "match = {{ groups = \"eng\" }}\n{people}\nid_jag = true\n\
                 scopes = [\"mcps:read\", \"mcps:invoke\", \"providers:read\"]"
            ),
        ));
        gateway.configure(&rule(
            "operators",
            "match = { groups = \"ops\" }\nuser_from = \"sub\"\nroles = { \"*\" = \"admin\" }\n\
             id_jag = true\nscopes = [\"mcps:read\", \"mcps:invoke\", \"admin\"]",
        ));
        gateway.configure(&rule("people", &format!("match = {{ groups = \"eng\" }}\n{people}")));
        gateway.configure(&rule(
            "jobs",
            &format!(
                "match = {{ repository_id = \"821093847\" }}\nprincipal = \"{}\"\n\
                 single_use = true",
                ci.id
            ),
        ));
        start(&mut gateway);
        Self { gateway, idp, agent, admin, ci }
    }

    /// `POST /oauth/token` with these fields.
    async fn token(&self, fields: &[(&'static str, &str)]) -> Answer {
        let fields = fields.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        let form = "application/x-www-form-urlencoded";
        let request = self.gateway.request(Method::POST, "/oauth/token");
        self.gateway.send(request.header("content-type", form).body(encoded(&fields))).await
    }

    fn with_token(&self, token: &Answer) -> Principal {
        assert_eq!(token.status, 200, "{}", token.text);
        let token = token.at("/access_token").as_str().unwrap().to_owned();
        Principal { token, ..self.ci.clone() }
    }

    /// The events of one type, the newest first.
    async fn events(&self, kind: &str) -> Vec<Value> {
        let path = format!("/v1/audit/events?type={kind}");
        let answer = self.gateway.get(&self.admin, &path).await.ok();
        answer.at("/data/items").as_array().unwrap().clone()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn metadata_names_the_grants_the_methods_and_the_profile() {
    let site = Site::start();
    let path = "/.well-known/oauth-authorization-server";

    let metadata = site.gateway.send(site.gateway.request(Method::GET, path)).await.ok();

    has!(metadata,
        "/grant_types_supported":
            ["authorization_code", "refresh_token", "client_credentials", JWT_BEARER],
        "/token_endpoint_auth_methods_supported": ["none", "private_key_jwt"],
        "/token_endpoint_auth_signing_alg_values_supported": ["RS256", "PS256", "ES256", "EdDSA"],
        "/authorization_grant_profiles_supported": ["urn:ietf:params:oauth:grant-profile:id-jag"]);
}
