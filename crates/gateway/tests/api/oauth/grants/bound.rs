//! A login by the JWT of a person with a proof of a key (DPoP, RFC 9449): at `POST /v1/auth/token`, on use, and at
//! `POST /v1/auth/refresh`.

use super::{IDP, PUBLIC, Site, now};
use crate::{
    oauth::dpop::{Prover, claims_of, tools},
    prelude::*,
};

/// A path at which a token is given for a credential.
#[derive(Debug, Clone, Copy)]
struct TokenDesk(&'static str);

const LOGIN: TokenDesk = TokenDesk("/v1/auth/token");
const REFRESH: TokenDesk = TokenDesk("/v1/auth/refresh");

impl TokenDesk {
    /// A proof for a request there.
    fn proof(self, key: &Prover) -> String {
        key.proof(&format!("{PUBLIC}{}", self.0))
    }

    async fn ask(self, site: &Site, credential: &str, proof: Option<&str>) -> Answer {
        let mut request = site.gateway.request(Method::POST, self.0).bearer_auth(credential);
        if let Some(proof) = proof {
            request = request.header("dpop", proof);
        }
        site.gateway.send(request).await
    }
}

/// The members `access_token` and `refresh_token` of tokens that are bound.
#[track_caller]
fn pair(answer: &Answer) -> (String, String) {
    has!(answer, 200, "/data/token_type": "DPoP");
    let text = |name: &str| answer.at(name).as_str().unwrap().to_owned();
    (text("/data/access_token"), text("/data/refresh_token"))
}

/// Fails unless an access token is good with the key, and for nothing without it.
async fn assert_bound(site: &Site, key: &Prover, access: &str) {
    let address = format!("{PUBLIC}/v1/mcps");
    let thief = Prover::new().proof_of("GET", &address, access);

    let good =
        tools(&site.gateway, "DPoP", access, &[&key.proof_of("GET", &address, access)]).await;
    has!(tools(&site.gateway, "Bearer", access, &[]).await, 401 "invalid_token");
    has!(tools(&site.gateway, "DPoP", access, &[&thief]).await, 401 "invalid_dpop_proof");

    assert_eq!(good.status, 200, "{}", good.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_login_with_a_proof_gives_is_worth_nothing_without_the_key() {
    let site = Site::start();
    let key = Prover::new();
    let other = Prover::new();
    let jwt = site.idp.sign(
        "JWT",
        &json!({
            "iss": IDP, "sub": "ana", "aud": PUBLIC, "groups": ["eng"],
            "iat": now(), "exp": now() + 300,
        }),
    );
    has!(LOGIN.ask(&site, &jwt, Some(&REFRESH.proof(&key))).await, "/error/details/check": "htu");

    let proof = LOGIN.proof(&key);
    let (access, refresh) = pair(&LOGIN.ask(&site, &jwt, Some(&proof)).await);

    has!(LOGIN.ask(&site, &jwt, Some(&proof)).await, "/error/details/check": "replay");
    assert_bound(&site, &key, &access).await;
    has!(REFRESH.ask(&site, &refresh, None).await, 401 "invalid_token");
    let stolen = REFRESH.ask(&site, &refresh, Some(&REFRESH.proof(&other))).await;
    has!(stolen, 401 "invalid_dpop_proof", "/error/details/check": "key");
    let hashed =
        key.sign(&key.header(), &claims_of("GET", &format!("{PUBLIC}{}", REFRESH.0), &refresh));
    has!(REFRESH.ask(&site, &refresh, Some(&hashed)).await, "/error/details/check": "htm");
    // None of these has spent it.
    let (next, last) = pair(&REFRESH.ask(&site, &refresh, Some(&REFRESH.proof(&key))).await);
    assert_bound(&site, &key, &next).await;
    assert_eq!(REFRESH.ask(&site, &last, None).await.refusal(), (401, "invalid_token"));
}
