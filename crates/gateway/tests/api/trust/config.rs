//! `[[trust]]` entries, and what `check` says of them.

use std::fs;

use portcullis_testkit::{Gateway, Oidc};
use serde_json::{Value, json};

use super::{APP, GATEWAY, prepared};
use crate::{
    gateway,
    given::{failure, run},
};

const ED25519: &str = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo";

#[tokio::test]
async fn a_trust_rule_that_is_wrong_stops_the_start_and_the_wrong_is_named() {
    let toml = "[[trust]]\nname = \"ci\"\norg = \"acme\"\nissuer = \"https://a.example\"\n\
                audience = \"x\"\nmatch = { a = \"b\" }\nuser_from = \"sub\"\n\
                roles = { a = \"member\" }";
    for (toml, wanted) in [
        (toml.to_owned(), "trust rule `ci`: `org`"),
        (toml.replace("audience", "audiense"), "audiense"),
        (toml.replace("member", "root"), "`root` is no role"),
    ] {
        let gateway = gateway().config(&toml).prepare();

        let (code, told) = failure(&gateway, &["serve"]).await;

        assert_eq!(code, 1, "{toml}: {told}");
        assert!(told.starts_with("error: ") && told.contains(wanted), "{wanted}: {told}");
    }
}

fn rule<'a>(shown: &'a Value, name: &str) -> &'a Value {
    let rules = shown["trust"].as_array().unwrap();
    rules.iter().find(|rule| rule["name"] == name).unwrap()
}

async fn checked(gateway: &Gateway) -> (Option<i32>, Value) {
    let told = run(gateway, &["check", "--json"]).await;
    (told.status.code(), serde_json::from_slice(&told.stdout).unwrap())
}

#[tokio::test]
async fn check_tells_who_is_missing_and_whether_there_are_keys() {
    let (gateway, org) = prepared();
    let oidc = Oidc::start();
    let who = gateway.service(&org, "mcps:read").id;
    let matching = "match = { repository_id = \"1\" }";
    let good = format!("{matching}\nprincipal = \"{who}\"\ndelegation = [\"{who}\"]");
    let nobody = format!("{matching}\nprincipal = \"sa_01M754BKTK9KV856N96WMEHWY9\"");
    gateway.configure(&oidc.trust("good", &org, GATEWAY, &good));

    let (code, shown) = checked(&gateway).await;
    assert_eq!((code, &rule(&shown, "good")["errors"]), (Some(0), &json!([])), "{shown}");
    assert_eq!(rule(&shown, "good")["keys"], 4, "{shown}");

    gateway.configure(&oidc.trust("nobody", &org, GATEWAY, &nobody));
    let nowhere = oidc.trust("nowhere", "org_01M754BKTK9TG1TCT7SPYHDJTD", GATEWAY, &good);
    gateway.configure(&nowhere);
    let (code, shown) = checked(&gateway).await;
    let errors = |name: &str| rule(&shown, name)["errors"].to_string();
    assert_eq!(code, Some(1));
    assert!(errors("nobody").contains("sa_01M754BKTK9KV856N96WMEHWY9"), "{shown}");
    assert!(errors("nowhere").contains("org_01M754BKTK9TG1TCT7SPYHDJTD"), "{shown}");
    assert_eq!(errors("good"), "[]");

    oidc.stop();
    let (_, shown) = checked(&gateway).await;
    assert!(rule(&shown, "good")["errors"].to_string().contains("cannot be reached"), "{shown}");
    let text = run(&gateway, &["check"]).await;
    assert!(String::from_utf8_lossy(&text.stderr).contains("trust rules"));
}

#[tokio::test]
async fn check_warns_of_what_is_allowed_and_rarely_meant() {
    let (gateway, org) = prepared();
    let who = gateway.service(&org, "mcps:read").id;
    let keys = json!({"keys": [{"kty": "OKP", "crv": "Ed25519", "x": ED25519}]});
    fs::write(gateway.folder().join("keys.json"), keys.to_string()).unwrap();
    gateway.configure(&format!(
        "[[trust]]\nname = \"names-only\"\norg = \"{org}\"\naudience = \"{APP}\"\n\
         issuer = \"https://token.actions.githubusercontent.com\"\n\
         match = {{ repository = \"acme/api\" }}\nprincipal = \"{who}\"\n\
         jwks = {{ file = \"keys.json\" }}"
    ));

    let (code, shown) = checked(&gateway).await;

    let warnings = rule(&shown, "names-only")["warnings"].to_string();
    assert_eq!(code, Some(0), "a warning stops nobody: {shown}");
    assert!(warnings.contains("binds names only") && warnings.contains("repository_id"), "{shown}");
    assert!(warnings.contains("single_use"), "{shown}");
    let text = run(&gateway, &["check"]).await;
    assert!(String::from_utf8_lossy(&text.stdout).contains("warning: it binds names only"));
}
