//! `client_credentials`: service accounts that sign with registered keys.

use std::iter;

use portcullis_core::trust::PublicKey;

use super::{CLIENT_ASSERTION, PUBLIC, Signer, Site, proof, with};
use crate::{oauth::error, prelude::*};

/// Registers the key for the site's service account.
async fn register(site: &Site, key: &Signer) -> String {
    let path = format!("/v1/principals/{}/keys", site.ci.id);
    let body = json!({ "jwk": key.jwk() }).to_string();
    let added = site.gateway.post(&site.admin, &path, &body).await.ok();
    added.at("/data/id").as_str().unwrap().to_owned()
}

impl Site {
    pub(super) async fn by_key(&self, assertion: &str, more: &[(&'static str, &str)]) -> Answer {
        let mut fields = vec![
            ("grant_type", "client_credentials"),
            ("client_assertion_type", CLIENT_ASSERTION),
            ("client_assertion", assertion),
        ];
        fields.extend(more);
        self.token(&fields).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_account_gets_tokens_for_its_signature_until_the_key_is_removed() {
    // A service account gets tokens for its signature until the key is removed.
    let site = Site::start();
    let key = Signer::new();
    let id = register(&site, &key).await;

    let token = site.by_key(&key.sign("JWT", &proof(&site.ci.id)), &[]).await.ok();

    assert_eq!(token.header("cache-control"), "no-store");
    has!(token, "/token_type": "Bearer", "/scope": "mcps:invoke mcps:read");
    assert!(token.at("/expires_in").is_u64(), "{}", token.text);
    let absent = token.text.contains("null") || token.text.contains("refresh_token");
    assert!(!absent, "what is absent is left out: {}", token.text);
    assert_eq!(token.at("/expires_in"), 900);
    assert_eq!(token.at("").get("refresh_token"), None, "{}", token.text);
    let ci = site.with_token(&token);
    let call = site.gateway.invoke(&ci, "sample:list_items", json!({})).await.ok();
    let event = site.gateway.event(&site.admin, call.event_id()).await.ok();
    assert_eq!(event.at("/data/actor/auth/method"), "key");
    let issued = site.events("token.issued").await;
    assert_eq!(issued[0]["actor"]["auth"]["method"], "key", "{}", issued[0]);
    assert_eq!(issued[0]["actor"]["id"], json!(site.ci.id));
    let event = site.gateway.event(&site.admin, issued[0]["id"].as_str().unwrap()).await.ok();
    assert_eq!(event.at("/data/detached/key"), &json!(id), "{}", event.text);

    let path = format!("/v1/principals/{}/keys?key_id={id}", site.ci.id);
    has!(site.gateway.delete(&site.admin, &path).await.ok(), "/data/tokens_revoked": 1);
    has!(site.gateway.get(&ci, "/v1/mcps").await, 401 "token_revoked");
    let again = site.by_key(&key.sign("JWT", &proof(&site.ci.id)), &[]).await;
    assert_eq!(error(&again), (401, "invalid_client"));

    // Keys are rotated without a gap.
    // An id that begins with the sign of an option: one of 64 keys has such a one.
    let dashed = |key: &Signer| {
        let key = PublicKey::parse(&key.jwk().to_string()).unwrap();
        key.thumbprint().starts_with('-')
    };
    let old = iter::repeat_with(Signer::new).find(dashed).unwrap();
    let new = Signer::new();
    let id = register(&site, &old).await;
    register(&site, &new).await;

    for key in [&old, &new] {
        site.by_key(&key.sign("JWT", &proof(&site.ci.id)), &[]).await.ok();
    }
    let listed = site.gateway.admin(&["principal", "key", "list", &site.ci.id]);
    assert!(listed[0]["last_used_at"].is_string(), "{listed}");
    site.gateway.admin(&["principal", "key", "remove", &site.ci.id, "--key", &id]);

    let old = site.by_key(&old.sign("JWT", &proof(&site.ci.id)), &[]).await;
    site.by_key(&new.sign("JWT", &proof(&site.ci.id)), &[]).await.ok();
    assert_eq!(error(&old), (401, "invalid_client"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_has_what_was_asked_for_and_what_the_account_may() {
    // A token has what was asked for and what the account may.
    let site = Site::start();
    let key = Signer::new();
    register(&site, &key).await;
    let ask = |scope: &'static str| {
        let assertion = key.sign("JWT", &proof(&site.ci.id));
        let site = &site;
        async move { site.by_key(&assertion, &[("scope", scope)]).await }
    };

    assert_eq!(ask("mcps:read").await.at("/scope"), "mcps:read");
    assert_eq!(ask("mcps:read admin").await.at("/scope"), "mcps:read");
    for scope in ["admin", "openid", "MCPS:READ"] {
        assert_eq!(error(&ask(scope).await), (400, "invalid_scope"), "{scope}");
    }
    let assertion = key.sign("JWT", &proof(&site.ci.id));
    let resource = format!("{PUBLIC}/mcp/sample");
    has!(site.by_key(&assertion, &[("resource", &resource)]).await, "/resource": resource);
    let assertion = key.sign("JWT", &proof(&site.ci.id));
    let elsewhere = site.by_key(&assertion, &[("resource", "https://other.example/mcp")]).await;
    assert_eq!(error(&elsewhere), (400, "invalid_target"));

    // A disabled account gets nothing.
    site.gateway.admin(&["principal", "disable", &site.ci.id]);

    let refused = site.by_key(&key.sign("JWT", &proof(&site.ci.id)), &[]).await;

    assert_eq!(error(&refused), (401, "invalid_client"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_assertion_that_is_not_right_in_all_parts_is_refused() {
    let site = Site::start();
    let key = Signer::new();
    register(&site, &key).await;
    let good = proof(&site.ci.id);
    let once = key.sign("JWT", &good);
    assert_eq!(site.by_key(&once, &[]).await.status, 200);
    let twice = site.by_key(&once, &[]).await;
    assert_eq!(error(&twice), (401, "invalid_client"), "an assertion is used once");

    for changes in [
        json!({ "aud": "https://other.example" }),
        json!({ "exp": null }),
        json!({ "jti": null }),
        json!({ "iss": site.admin.id, "sub": site.admin.id }),
        json!({ "iss": "nobody", "sub": "nobody" }),
    ] {
        let assertion = key.sign("JWT", &with(proof(&site.ci.id), &changes));
        let refused = site.by_key(&assertion, &[]).await;
        assert_eq!(error(&refused), (401, "invalid_client"), "{changes}");
        assert!(!refused.text.contains("sa_"), "{}", refused.text);
    }
    let foreign = Signer::new().sign("JWT", &proof(&site.ci.id));
    assert_eq!(error(&site.by_key(&foreign, &[]).await), (401, "invalid_client"));
    let other = key.sign("JWT", &proof(&site.ci.id));
    let mismatched = site.by_key(&other, &[("client_id", "sa_01M754BKTK9KV856N96WMEHWY9")]).await;
    assert_eq!(error(&mismatched), (401, "invalid_client"));
    let bare =
        site.token(&[("grant_type", "client_credentials"), ("client_id", &site.ci.id)]).await;
    assert_eq!(error(&bare), (401, "invalid_client"));
    let fields = [
        ("grant_type", "client_credentials"),
        ("client_id", &site.ci.id),
        ("client_secret", "secret"),
    ];
    let secret = site.token(&fields).await;
    assert_eq!(error(&secret), (401, "invalid_client"));
    // A refusal of what its own key signed is in the log of the org.
    let of_account = async || {
        let rejected = site.events("auth.rejected").await;
        rejected.into_iter().find(|it| it["actor"]["id"] == json!(site.ci.id))
    };
    has!(eventually("the refusal in the log", of_account).await, "/actor/auth/method": "key");
}
