//! Members that a grant may leave out: without one, nothing opens that would not open with it.

use super::{
    AGENT, JWT_BEARER, PUBLIC, Signer, Site,
    id_jags::{ID_JAG, id_jag},
    proof, with,
    workloads::job,
};
use crate::prelude::*;

/// Everything that a token opens: its scopes, the endpoints that take it, and whether policies see no client.
async fn opened(site: &Site, token: &Answer) -> BTreeSet<String> {
    let who = site.with_token(token);
    let scopes = token.at("/scope").as_str().unwrap().split(' ').map(str::to_owned);
    let mut opened: BTreeSet<String> = scopes.collect();
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}).to_string();
    for path in ["/v1/mcps", "/v1/org", "/mcp", "/mcp/sample"] {
        let answer = if path.starts_with("/v1") {
            site.gateway.get(&who, path).await
        } else {
            site.gateway.post(&who, path, &ping).await
        };
        if answer.status == 200 {
            opened.insert(path.to_owned());
        }
    }
    let issued = &site.events("token.issued").await[0];
    if issued["actor"]["client"].is_null() {
        opened.insert("no client".to_owned());
    }
    opened
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_left_out_of_a_grant_gives_no_more_than_what_is_named() {
    let site = Site::start();
    let key = Signer::new();
    let root = site.gateway.service(&site.ci.org, "mcps:read mcps:invoke admin");
    let root = Principal { org: site.ci.org.clone(), ..root };
    let path = format!("/v1/principals/{}/keys", root.id);
    let jwk = json!({ "jwk": key.jwk() }).to_string();
    site.gateway.post(&site.admin, &path, &jwk).await.ok();
    let mcp = format!("{PUBLIC}/mcp");
    let every = "mcps:read mcps:invoke admin";
    let named = [("resource", mcp.as_str()), ("scope", every)];
    let person = |changes: Value| {
        let claims = with(id_jag(), &json!({ "groups": ["ops"], "scope": every, "resource": mcp }));
        site.idp.sign(ID_JAG, &with(claims, &changes))
    };

    for left_out in ["resource", "scope", ""] {
        let rest: Vec<_> = named.into_iter().filter(|(name, _)| *name != left_out).collect();
        let claims = if left_out.is_empty() { json!({}) } else { json!({ (left_out): null }) };
        let grants = [
            ("an ID-JAG", "a claim", site.presented(&person(claims), &[]).await),
            ("an ID-JAG", "a field", site.presented(&person(json!({})), &rest).await),
            ("a key", "a field", site.by_key(&key.sign("JWT", &proof(&root.id)), &rest).await),
            ("a workload", "a field", {
                let assertion = site.idp.sign("JWT", &job());
                let mut fields = vec![("grant_type", JWT_BEARER), ("assertion", &*assertion)];
                fields.extend(&rest);
                site.token(&fields).await
            }),
        ];
        for (grant, place, token) in grants {
            let mut more = opened(&site, &token).await;
            more.retain(|it| !["mcps:read", "mcps:invoke", "/v1/mcps", "/mcp"].contains(&&**it));
            assert!(more.is_empty(), "{grant} without {place} {left_out:?}: {more:?}");
            assert_eq!(token.at("/resource"), &json!(mcp), "{grant} without {left_out:?}");
        }
    }
    let neither = with(id_jag(), &json!({ "groups": ["ops"], "scope": every, "resource": null }));
    let token = site.presented(&site.idp.sign(ID_JAG, &neither), &[]).await;
    assert_eq!(token.at("/scope"), "mcps:invoke mcps:read", "exactly what the token has");
    assert_eq!(site.events("token.issued").await[0]["actor"]["client"]["id"], AGENT);
    let who = site.with_token(&token);
    let body = json!({ "ttl": "1h", "reason": "x" });
    let lifts = site.gateway.request_of(&who, Method::PUT, "/v1/policies/x/override").json(&body);
    assert_eq!(site.gateway.send(lifts).await.status, 403);
    // A program that administers says so.
    let rest = [("resource", "https://gateway.acme.example/v1"), ("scope", "admin")];
    let token = site.by_key(&key.sign("JWT", &proof(&root.id)), &rest).await;
    assert_eq!(site.gateway.get(&site.with_token(&token), "/v1/org").await.status, 200);
    let refused = site.presented(&person(json!({ "resource": null })), &rest).await;
    assert_eq!(crate::oauth::error(&refused), (400, "invalid_target"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_left_out_of_an_exchange_gives_no_more_than_what_is_named() {
    let site = Site::start();
    let subject = site.gateway.service(&site.ci.org, "audit:export approvals:read mcps:read");
    let all = "audit:export approvals:read mcps:read";
    let exchange = async |body: Value| {
        let answer = site.gateway.post(&subject, "/v1/auth/token", &body.to_string()).await.ok();
        let life = answer.at("/data/expires_in").as_i64().unwrap();
        let scopes: BTreeSet<String> =
            answer.at("/data/scope").as_str().unwrap().split(' ').map(str::to_owned).collect();
        (life, scopes)
    };

    let (longest, widest) = exchange(json!({ "scope": all, "expires_in": 7_776_000 })).await;
    for left_out in ["scope", "expires_in"] {
        let body =
            with(json!({ "scope": all, "expires_in": 7_776_000 }), &json!({ (left_out): null }));
        let (life, scopes) = exchange(body).await;
        assert!(life <= longest && scopes.is_subset(&widest), "{left_out}: {life} {scopes:?}");
    }
}
