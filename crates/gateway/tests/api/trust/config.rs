//! `[[trust]]` entries, and what `check` says of them.

use super::{APP, GATEWAY, prepared};
use crate::prelude::*;

/// The command of the sample server.
const SAMPLE: [&str; 2] = [env!("CARGO_BIN_EXE_portcullis"), "sample-mcp"];

const ED25519: &str = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo";

#[tokio::test]
async fn a_trust_rule_that_is_wrong_stops_the_start_and_the_wrong_is_named() {
    let org = "org_01M754BKTK9TG1TCT7SPYHDJTD";
    let toml = "[[trust]]\nname = \"ci\"\norg = \"ORG\"\nissuer = \"https://a.example\"\n\
                audience = \"x\"\nmatch = { a = \"b\" }\nuser_from = \"sub\"\n\
                roles = { a = \"member\" }";
    let toml = toml.replace("ORG", org);
    for (toml, wanted) in [
        (toml.replace(org, "acme"), "trust rule `ci`: there is no org `acme`"),
        (toml.replace("audience", "audiense"), "(did you mean `audience`?)"),
        (toml.replace("member", "root"), "`root` is no role"),
    ] {
        let gateway = gateway().config(&toml).prepare();

        let (code, told) = failure(&gateway, &["serve"]).await;

        assert_eq!(code, 1, "{toml}: {told}");
        assert!(told.starts_with("error: ") && told.contains(wanted), "{wanted}: {told}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn orgs_and_principals_are_named_by_their_names_in_the_configuration() {
    let oidc = Oidc::start();
    let mut gateway = gateway().stdio("theirs", &SAMPLE, "org = \"acme\"").prepare();
    let acme = gateway.user(&gateway.org("acme", &ENOUGH), "admin", ALL_SCOPES);
    let other = gateway.user(&gateway.org("globex", &ENOUGH), "admin", ALL_SCOPES);
    let scopes = ["--type", "service", "--scopes", "mcps:read"];
    let ci = gateway.principal(&acme.org, "ci", &scopes, &[]);
    gateway.principal(&other.org, "ci", &scopes, &[]);
    let ours = "match = { repository_id = \"1\" }\nprincipal = \"ci\"\ndelegation = [\"ci\"]";
    gateway.configure(&oidc.trust("ours", "acme", GATEWAY, ours));
    gateway.start();

    let jwt = oidc.service_token(&Wanted::new(GATEWAY).claim("repository_id", "1"));
    let exchange = gateway.request(Method::POST, "/v1/auth/token").bearer_auth(jwt);
    has!(gateway.send(exchange).await, "/data/principal/id": ci.id.as_str());

    let seen = |who| gateway.get(who, "/v1/mcps");
    assert!(!items(&seen(&acme).await).is_empty());
    assert!(items(&seen(&other).await).is_empty());
    gateway.configure(&oidc.trust("theirs", "acme", APP, &ours.replace("[\"ci\"]", "[\"eve\"]")));
    let (_, told) = failure(&gateway, &["check"]).await;
    assert!(told.contains("trust rule `theirs`: there is no principal `eve`"), "{told}");
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

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_starts_while_the_issuers_it_trusts_are_down() {
    let (mut gateway, org) = prepared();
    let who = gateway.service(&org, "mcps:read");
    gateway.configure(&format!(
        "[[trust]]\nname = \"down\"\norg = \"{org}\"\naudience = \"{APP}\"\n\
         issuer = \"http://127.0.0.1:1\"\nallow_private = true\n\
         match = {{ sub = \"a\" }}\nprincipal = \"{}\"",
        who.id
    ));

    gateway.start();

    assert_eq!(gateway.get(&who, "/v1/mcps").await.status, 200);
}
