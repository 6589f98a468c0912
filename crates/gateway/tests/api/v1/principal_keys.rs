//! Public keys of service accounts: `GET /v1/principals/{id}/keys`, `POST /v1/principals/{id}/keys`,
//! `DELETE /v1/principals/{id}/keys` and `portcullis principal key`.

use crate::prelude::*;

/// RFC 8037 appendix A.2 and A.3.
const POINT: &str = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo";
const THUMBPRINT: &str = "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k";
/// The same key in PEM.
const PEM: &str = "-----BEGIN PUBLIC KEY-----\n\
    MCowBQYDK2VwAyEA11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=\n-----END PUBLIC KEY-----\n";
/// A key of the appendix of RFC 7517.
const P256: &str = r#"{"kty":"EC","crv":"P-256","kid":"2011",
    "x":"MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4",
    "y":"4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM"}"#;

fn jwk() -> Value {
    json!({ "kty": "OKP", "crv": "Ed25519", "kid": "ci-1", "x": POINT })
}

fn keys_of(whose: &Principal) -> String {
    format!("/v1/principals/{}/keys", whose.id)
}

struct Scene {
    gateway: Gateway,
    admin: Principal,
    ci: Principal,
}

fn scene() -> Scene {
    let (gateway, admin) = serve_admin(gateway());
    let ci = gateway.service(&admin.org, "mcps:read mcps:invoke");
    Scene { gateway, admin, ci }
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_are_registered_listed_and_removed_over_the_api_and_by_the_shell() {
    // An admin registers lists and removes keys.
    let Scene { gateway, admin, ci } = scene();
    let path = keys_of(&ci);

    let added = gateway.post(&admin, &path, &json!({ "jwk": jwk() }).to_string()).await.ok();
    let again = gateway.post(&admin, &path, &json!({ "pem": PEM }).to_string()).await;
    let second = json!({ "jwk": serde_json::from_str::<Value>(P256).unwrap() });
    gateway.post(&admin, &path, &second.to_string()).await.ok();

    has!(added, "/data/id": THUMBPRINT, "/data/jwk": jwk(), "/data/last_used_at": null);
    assert_framed(&added, "added");
    // In PEM it is the same key, which is there.
    assert_eq!(again.at("/data/id"), THUMBPRINT, "{}", again.text);
    let listed = gateway.get(&admin, &path).await.ok();
    let ids: Vec<_> = items(&listed).iter().map(|it| it["id"].clone()).collect();
    assert_eq!(ids.len(), 2, "{}", listed.text);
    assert_eq!(ids[0], THUMBPRINT);
    let removed = gateway.delete(&admin, &format!("{path}?key_id={THUMBPRINT}")).await.ok();
    has!(removed, "/data": { "removed": true, "key_id": THUMBPRINT, "tokens_revoked": 0 });
    has!(gateway.delete(&admin, &format!("{path}?key_id={THUMBPRINT}")).await, 404 "not_found");
    assert_eq!(items(&gateway.get(&admin, &path).await.ok()).len(), 1);

    let query = "/v1/audit/events?type=principal.key_added,principal.key_removed";
    let events = gateway.get(&admin, query).await.ok();
    let told: Vec<_> = items(&events)
        .iter()
        .map(|it| (it["type"].as_str().unwrap().to_owned(), it["target"]["id"].clone()))
        .collect();
    let first = json!(format!("{}/{THUMBPRINT}", ci.id));
    assert_eq!(told.len(), 3, "the same key again is no change: {}", events.text);
    assert_eq!(told[0], ("principal.key_removed".to_owned(), first.clone()));
    assert_eq!(told[2], ("principal.key_added".to_owned(), first));
    assert_eq!(items(&events)[0]["target"]["type"], "principal_key");
    assert_eq!(items(&events)[0]["actor"]["id"], json!(admin.id));

    // The shell registers lists and removes keys.
    let admin = gateway.user(&fresh_org(&gateway), "admin", ALL_SCOPES);
    let ci = gateway.service(&admin.org, "mcps:read mcps:invoke");
    let file = gateway.folder().join("ci.pub.pem");
    fs::write(&file, PEM).unwrap();
    let file = file.to_str().unwrap();

    let added = gateway.admin(&["principal", "key", "add", &ci.id, "--key-file", file]);
    let listed = gateway.admin(&["principal", "key", "list", &ci.id]);
    let removed = gateway.admin(&["principal", "key", "remove", &ci.id, "--key", THUMBPRINT]);

    assert_eq!(added["id"], THUMBPRINT);
    assert_eq!(listed[0]["id"], THUMBPRINT, "{listed}");
    assert_eq!(removed["tokens_revoked"], 0, "{removed}");
    assert_eq!(gateway.admin(&["principal", "key", "list", &ci.id]), json!([]));
    for (command, wanted) in [
        (&["principal", "key", "remove", &ci.id, "--key", THUMBPRINT][..], "no key `"),
        (&["principal", "key", "add", &admin.id, "--key-file", file], "Only service accounts"),
        (&["principal", "key", "add", &ci.id, "--key-file", "/nowhere"], "/nowhere"),
    ] {
        assert_fails(&gateway, command, 1, wanted).await;
    }
    let query = "/v1/audit/events?type=principal.key_added,principal.key_removed";
    let events = gateway.get(&admin, query).await.ok();
    let methods = items(&events).iter().map(|it| it["actor"]["auth"]["method"].clone());
    assert_eq!(methods.collect::<Vec<_>>(), ["operator", "operator"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_public_key_or_one_of_an_account_that_may_do_more_is_refused() {
    // What is no public key of a service account is refused.
    let Scene { gateway, admin, ci } = scene();
    let path = keys_of(&ci);
    let mut private = jwk();
    private["d"] = json!("nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A");
    for body in [
        json!({ "jwk": jwk(), "pem": PEM }),
        json!({ "jwk": private }),
        json!({ "pem": "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----" }),
        json!({ "pem": "x".repeat(17 << 10) }),
    ] {
        let answer = gateway.post(&admin, &path, &body.to_string()).await;
        assert_eq!(answer.refusal(), (400, "invalid_request"), "{body}");
        assert!(!answer.text.contains("nWGxne"), "a private key is never repeated");
    }
    let of_person =
        gateway.post(&admin, &keys_of(&admin), &json!({ "pem": PEM }).to_string()).await;
    assert_eq!(of_person.refusal(), (400, "invalid_request"));
    for path in ["/v1/principals/nobody/keys", "/v1/principals/sa_01M7W9Y2TK0000000000000000/keys"]
    {
        has!("{path}"; gateway.get(&admin, path).await, 404 "not_found");
    }
    for query in ["", "?key_id=", "?key=x"] {
        let answer = gateway.delete(&admin, &format!("{path}{query}")).await;
        assert_eq!(answer.refusal(), (400, "invalid_request"), "{query}");
    }
    assert!(items(&gateway.get(&admin, &path).await.ok()).is_empty());

    // A service account registers no key of one that may do more.
    let admin = gateway.user(&fresh_org(&gateway), "admin", ALL_SCOPES);
    let ci = gateway.service(&admin.org, "mcps:read mcps:invoke");
    let root = gateway.service(&admin.org, "admin mcps:read");
    let reader = gateway.service(&admin.org, "mcps:read");
    let body = json!({ "pem": PEM }).to_string();

    let more = gateway.post(&root, &keys_of(&ci), &body).await;
    gateway.post(&root, &keys_of(&reader), &body).await.ok();

    has!(more, 400 "invalid_scope", "/error/details/scope": "mcps:invoke");
    assert!(items(&gateway.get(&admin, &keys_of(&ci)).await.ok()).is_empty(), "nothing is kept");
    let query = "/v1/audit/events?type=principal.key_added";
    assert_eq!(items(&gateway.get(&admin, query).await.ok()).len(), 1, "nor recorded as done");
    // A person who is admin gives whatever there is.
    gateway.post(&admin, &keys_of(&ci), &body).await.ok();
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_are_for_admins_of_the_same_org() {
    let Scene { gateway, admin, ci } = scene();
    let path = keys_of(&ci);
    gateway.post(&admin, &path, &json!({ "pem": PEM }).to_string()).await.ok();
    let member = gateway.user(&admin.org, "member", "mcps:read mcps:invoke");
    let elsewhere = gateway.org("umbrella", &ENOUGH);
    let stranger = gateway.user(&elsewhere, "admin", ALL_SCOPES);
    let body = json!({ "pem": PEM }).to_string();

    for (who, wanted) in [
        (&member, (403, "insufficient_scope")),
        (&ci, (403, "insufficient_scope")),
        (&stranger, (404, "not_found")),
    ] {
        assert_eq!(gateway.get(who, &path).await.refusal(), wanted);
        assert_eq!(gateway.post(who, &path, &body).await.refusal(), wanted);
        let remove = format!("{path}?key_id={THUMBPRINT}");
        assert_eq!(gateway.delete(who, &remove).await.refusal(), wanted);
    }
    assert_eq!(items(&gateway.get(&admin, &path).await.ok()).len(), 1);
}
