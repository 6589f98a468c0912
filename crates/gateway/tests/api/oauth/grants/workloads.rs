//! `jwt-bearer` with the JWT of a workload.

use super::{IDP, JWT_BEARER, PUBLIC, Site, now, unique, with};
use crate::{oauth::error, prelude::*};

pub(super) fn job() -> Value {
    json!({
        "iss": IDP, "sub": "repo:acme/api", "aud": PUBLIC, "jti": unique(),
        "iat": now(), "exp": now() + 300, "repository_id": "821093847",
    })
}

impl Site {
    async fn by_workload(&self, typ: &str, claims: &Value) -> Answer {
        let assertion = self.idp.sign(typ, claims);
        self.token(&[("grant_type", JWT_BEARER), ("assertion", &assertion)]).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_workload_is_its_service_account_and_other_jwts_are_none() {
    // A workload is its service account.
    let site = Site::start();
    for audience in [json!(PUBLIC), json!([PUBLIC, format!("{PUBLIC}/oauth/token")])] {
        let token = site.by_workload("JWT", &with(job(), &json!({ "aud": audience }))).await;

        has!(token, "/scope": "mcps:invoke mcps:read", "/refresh_token": null);
        let ci = site.with_token(&token);
        site.gateway.invoke(&ci, "sample:list_items", json!({})).await.ok();
    }
    let issued = site.events("token.issued").await;
    assert_eq!(issued[0]["actor"]["auth"], json!({ "method": "oidc", "trust": "jobs" }));
    assert_eq!(issued[0]["actor"]["id"], json!(site.ci.id));

    // Other jwts are no workload.
    let used = job();
    assert_eq!(site.by_workload("JWT", &used).await.status, 200);
    assert_eq!(error(&site.by_workload("JWT", &used).await), (400, "invalid_grant"), "once");

    // The ID token of a person, for this gateway, which a login would take.
    let person = with(job(), &json!({ "repository_id": null, "groups": ["eng"], "sub": "ana" }));
    assert_eq!(error(&site.by_workload("JWT", &person).await), (400, "invalid_grant"));
    let bearer = site.idp.sign("JWT", &person);
    let request = site.gateway.request(Method::POST, "/v1/auth/token").bearer_auth(bearer);
    assert_eq!(site.gateway.send(request).await.status, 200, "there it is a login");
    for changes in [
        json!({ "aud": "https://other.example" }),
        json!({ "repository_id": "1" }),
        json!({ "jti": null }),
    ] {
        let refused = site.by_workload("JWT", &with(job(), &changes)).await;
        assert_eq!(error(&refused), (400, "invalid_grant"), "{changes}");
    }
    let missing = site.token(&[("grant_type", JWT_BEARER)]).await;
    assert_eq!(error(&missing), (400, "invalid_request"));
}
