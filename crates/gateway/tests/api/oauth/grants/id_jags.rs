//! `jwt-bearer` with an ID-JAG: enterprise-managed authorization.

use super::{
    AGENT, CLIENT_ASSERTION, IDP, JWT_BEARER, PUBLIC, Signer, Site, now, proof, unique, with,
};
use crate::{oauth::error, prelude::*};

pub(super) const ID_JAG: &str = "oauth-id-jag+jwt";

pub(super) fn id_jag() -> Value {
    json!({
        "iss": IDP, "sub": "U019488227", "aud": PUBLIC, "client_id": AGENT, "jti": unique(),
        "iat": now(), "exp": now() + 300, "groups": ["eng"], "amr": ["mfa"],
        "scope": "mcps:read mcps:invoke openid", "resource": format!("{PUBLIC}/mcp"),
    })
}

impl Site {
    /// The agent presents an assertion.
    pub(super) async fn presented(&self, assertion: &str, more: &[(&'static str, &str)]) -> Answer {
        let proof = self.agent.sign("JWT", &proof(AGENT));
        let mut fields = vec![
            ("grant_type", JWT_BEARER),
            ("assertion", assertion),
            ("client_assertion_type", CLIENT_ASSERTION),
            ("client_assertion", proof.as_str()),
        ];
        fields.extend(more);
        self.token(&fields).await
    }

    async fn by_id_jag(&self, changes: &Value) -> Answer {
        self.presented(&self.idp.sign(ID_JAG, &with(id_jag(), changes)), &[]).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_jag_lets_its_client_act_for_a_person() {
    // An id jag lets its client act for a person.
    let site = Site::start();

    let token = site.by_id_jag(&json!({})).await;

    has!(token, 200, "/token_type": "Bearer", "/scope": "mcps:invoke mcps:read",
        "/resource": format!("{PUBLIC}/mcp"));
    assert_eq!(token.at("/refresh_token"), &Value::Null, "the issuer is asked again instead");
    let person = site.with_token(&token);
    let call = site.gateway.invoke(&person, "sample:list_items", json!({})).await.ok();
    let event = site.gateway.event(&site.admin, call.event_id()).await.ok();
    has!(event, "/data/actor/client/id": AGENT,
        "/data/actor/auth": { "method": "oidc", "trust": "apps" }, "/data/actor/type": "user");
    let issued = site.events("token.issued").await;
    assert_eq!(issued[0]["actor"]["client"]["id"], AGENT, "{}", issued[0]);
    // The same person as at a login by the other rule of the issuer.
    let login = with(id_jag(), &json!({ "client_id": null }));
    let bearer = site.idp.sign("JWT", &login);
    let request = site.gateway.request(Method::POST, "/v1/auth/token").bearer_auth(bearer);
    let login = site.gateway.send(request).await.ok();
    assert_eq!(login.at("/data/principal/id"), event.at("/data/actor/id"));

    // An id jag is no credential at other endpoints.
    let assertion = site.idp.sign(ID_JAG, &id_jag());
    let request = site.gateway.request(Method::POST, "/v1/auth/token").bearer_auth(&assertion);
    has!(site.gateway.send(request).await, 401 "invalid_credential");
    let request = site.gateway.request(Method::GET, "/v1/mcps").bearer_auth(&assertion);
    assert_eq!(site.gateway.send(request).await.status, 401);
    assert_eq!(site.presented(&assertion, &[]).await.status, 200, "nothing was used up");

    // Of two that present it at once one gets a token.
    let assertion = site.idp.sign(ID_JAG, &id_jag());

    let race = (0..6).map(|_| site.presented(&assertion, &[]));
    let answers = join_all(race).await;

    let won = answers.iter().filter(|it| it.status == 200).count();
    assert_eq!(won, 1, "{answers:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn scopes_and_resources_are_cut_to_what_all_of_them_leave() {
    let site = Site::start();
    let ask = |changes: Value, more: &'static [(&'static str, &'static str)]| {
        let assertion = site.idp.sign(ID_JAG, &with(id_jag(), &changes));
        let site = &site;
        async move { site.presented(&assertion, more).await }
    };

    has!(ask(json!({}), &[("scope", "mcps:read admin")]).await, "/scope": "mcps:read");
    let ruled = ask(json!({ "scope": "mcps:read policies:read admin" }), &[]).await;
    assert_eq!(ruled.at("/scope"), "mcps:read", "{}", ruled.text);
    for scope in ["openid", "", "admin"] {
        let refused = ask(json!({ "scope": scope }), &[]).await;
        assert_eq!(error(&refused), (400, "invalid_scope"), "{scope}");
    }
    let apart = ask(json!({ "scope": "mcps:read" }), &[("scope", "mcps:invoke")]).await;
    assert_eq!(error(&apart), (400, "invalid_scope"));
    let one = json!({ "resource": format!("{PUBLIC}/mcp/sample") });
    assert_eq!(ask(one.clone(), &[]).await.at("/resource"), &one["resource"]);
    let wide = ask(one, &[("resource", "https://gateway.acme.example/mcp")]).await;
    assert_eq!(error(&wide), (400, "invalid_target"), "the ID-JAG leaves one provider");
    let within = ask(json!({}), &[("resource", "https://gateway.acme.example/mcp/sample")]).await;
    assert_eq!(within.at("/resource"), "https://gateway.acme.example/mcp/sample");
    let person = site.with_token(&within);
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}).to_string();
    assert_eq!(site.gateway.post(&person, "/mcp", &body).await.status, 401);
    for resource in [json!("https://other.example/mcp"), json!([]), json!(7)] {
        has!("{resource}"; ask(json!({ "resource": resource }), &[]).await, 400);
    }
    let several = json!({ "resource": ["https://other.example", format!("{PUBLIC}/mcp/sample")] });
    assert_eq!(ask(several, &[]).await.status, 200, "the resources of others are left out");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_jag_that_is_not_right_in_all_parts_is_refused() {
    let site = Site::start();
    let once = site.idp.sign(ID_JAG, &id_jag());
    assert_eq!(site.presented(&once, &[]).await.status, 200);
    assert_eq!(error(&site.presented(&once, &[]).await), (400, "invalid_grant"), "once");
    for changes in [
        json!({ "aud": "https://other.example" }),
        json!({ "client_id": "public" }),
        json!({ "jti": null }),
        json!({ "exp": null }),
        json!({ "iss": "https://evil.example" }),
        json!({ "groups": ["sales"] }),
        json!({ "tenant": "umbrella" }),
    ] {
        assert_eq!(error(&site.by_id_jag(&changes).await), (400, "invalid_grant"), "{changes}");
    }
    let forged = Signer::new().sign(ID_JAG, &id_jag());
    assert_eq!(error(&site.presented(&forged, &[]).await), (400, "invalid_grant"));
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_client_itself_presents_it() {
    let site = Site::start();
    let assertion = || site.idp.sign(ID_JAG, &id_jag());
    let present = |fields: Vec<(&'static str, String)>| {
        let site = &site;
        let assertion = assertion();
        async move {
            let mut all = vec![("grant_type", JWT_BEARER), ("assertion", assertion.as_str())];
            all.extend(fields.iter().map(|(name, value)| (*name, value.as_str())));
            site.token(&all).await
        }
    };
    let public = |id: &str| vec![("client_id", id.to_owned())];
    let proved = |proof: String| {
        vec![("client_assertion_type", CLIENT_ASSERTION.to_owned()), ("client_assertion", proof)]
    };

    for fields in [
        vec![],
        public(AGENT),
        public("public"),
        vec![("client_id", AGENT.to_owned()), ("client_secret", "secret".to_owned())],
        proved(Signer::new().sign("JWT", &proof(AGENT))),
        proved(site.agent.sign("JWT", &proof("public"))),
        proved(site.agent.sign("JWT", &with(proof(AGENT), &json!({ "aud": IDP })))),
        proved(site.agent.sign(ID_JAG, &proof(AGENT))),
        vec![("client_assertion", site.agent.sign("JWT", &proof(AGENT)))],
    ] {
        let refused = present(fields.clone()).await;
        assert_eq!(error(&refused), (401, "invalid_client"), "{fields:?}");
    }
    let used = site.agent.sign("JWT", &proof(AGENT));
    assert_eq!(present(proved(used.clone())).await.status, 200);
    assert_eq!(error(&present(proved(used)).await), (401, "invalid_client"));
    // A client with a key does not go without it at the other grants either.
    let code = site
        .token(&[
            ("grant_type", "authorization_code"),
            ("client_id", AGENT),
            ("code", "x"),
            ("code_verifier", "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"),
        ])
        .await;
    assert_eq!(error(&code), (401, "invalid_client"));
}
