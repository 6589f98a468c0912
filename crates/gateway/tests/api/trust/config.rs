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

/// A rule that is right, as a list of lines to be changed.
fn lines() -> Vec<(&'static str, String)> {
    [
        ("name", "\"ci\""),
        ("org", "\"org_01M754BKTKX1YB8Q05NMW9TP4G\""),
        ("issuer", "\"https://login.acme.example\""),
        ("audience", "\"https://gateway.acme.example\""),
        ("match", "{ repository_id = \"821093847\" }"),
        ("principal", "\"sa_01M754BKTK9KV856N96WMEHWY9\""),
    ]
    .map(|(key, value)| (key, value.to_owned()))
    .to_vec()
}

/// The rule with these keys set, or left out when the value is empty.
fn entry(changes: &[(&'static str, &str)]) -> String {
    let mut lines = lines();
    for (key, value) in changes {
        lines.retain(|(known, _)| known != key);
        if !value.is_empty() {
            lines.push((key, (*value).to_owned()));
        }
    }
    let lines: Vec<String> = lines.iter().map(|(key, value)| format!("{key} = {value}")).collect();
    format!("[[trust]]\n{}\n", lines.join("\n"))
}

fn user(changes: &[(&'static str, &str)]) -> String {
    let mut all = vec![("principal", ""), ("user_from", "\"sub\"")];
    all.extend(changes);
    entry(&all)
}

#[tokio::test]
async fn a_trust_rule_that_is_wrong_is_refused_and_the_wrong_is_named() {
    let inline =
        format!("{{ keys = [{{ kty = \"OKP\", crv = \"Ed25519\", x = \"{ED25519}\" }}] }}");
    for (toml, wanted) in [
        (entry(&[("nmae", "\"x\"")]), "nmae"),
        (entry(&[("name", "")]), "name"),
        (entry(&[("name", "\"a b\"")]), "`name`"),
        (entry(&[("org", "\"acme\"")]), "`org`"),
        (entry(&[("org", "")]), "org"),
        (entry(&[("issuer", "\"\"")]), "`issuer`"),
        (entry(&[("issuer", "\"https://a b\"")]), "`issuer`"),
        (entry(&[("issuer", "\"http://login.acme.example\"")]), "https://"),
        (entry(&[("issuer", "\"https://127.0.0.1\"")]), "may not be dialled"),
        (entry(&[("issuer", "\"kubernetes/serviceaccount\"")]), "not a URL"),
        (entry(&[("audience", "\"\"")]), "`audience`"),
        (entry(&[("audience", "")]), "audience"),
        (entry(&[("match", "")]), "`match` is empty"),
        (entry(&[("match", "{}")]), "`match` is empty"),
        (entry(&[("match", "{ ref = \"*\" }")]), "`match.ref`"),
        (entry(&[("match", "{ ref = \"refs/*/main\" }")]), "at the end"),
        (entry(&[("match", "{ ref = \"\" }")]), "`match.ref`"),
        (entry(&[("match", "{ ref = [\"a\", \"b\"] }")]), "one rule for each"),
        (entry(&[("match", "{ ref = 1.5 }")]), "`match.ref`"),
        (entry(&[("match", "{ ref = { a = \"b\" } }")]), "/kubernetes.io/namespace"),
        (entry(&[("principal", "\"acme\"")]), "`principal`"),
        (entry(&[("principal", "")]), "either `principal` or `user_from`"),
        (entry(&[("user_from", "\"sub\"")]), "either `principal` or `user_from`"),
        (entry(&[("roles", "{ \"*\" = \"member\" }")]), "`roles`"),
        (user(&[]), "needs `roles`"),
        (user(&[("roles", "{}")]), "`roles` is empty"),
        (user(&[("roles", "{ a = \"root\" }")]), "`root` is no role"),
        (user(&[("roles", "{ a = \"service\" }")]), "role"),
        (user(&[("roles", "{ \"a*b\" = \"member\" }")]), "at the end"),
        (user(&[("roles", "{ a = \"member\" }"), ("roles_from", "\"\"")]), "`roles_from`"),
        (entry(&[("scopes", "[\"mcps:all\"]")]), "mcps:all"),
        (entry(&[("scopes", "[]")]), "`scopes` is empty"),
        (entry(&[("max_ttl", "\"13h\"")]), "`max_ttl`"),
        (entry(&[("max_ttl", "59")]), "`max_ttl`"),
        (entry(&[("max_ttl", "\"soon\"")]), "soon"),
        (entry(&[("max_ttl", "-5")]), "15m"),
        (entry(&[("single_use", "\"yes\"")]), "single_use"),
        (entry(&[("delegation", "[\"usr_01M754BKTKFVJC7V0B9VHVKZBP\"]")]), "sa_"),
        (entry(&[("delegation", "[\"acme\"]")]), "`delegation`"),
        (entry(&[("jwks_url", "\"http://8.8.8.8/keys\"")]), "`jwks_url`"),
        (entry(&[("jwks_url", "\"https://a.example/k\""), ("jwks", &inline)]), "one of them"),
        (entry(&[("jwks", "{}")]), "file"),
        (entry(&[("jwks", "{ file = \"/nowhere.json\" }")]), "/nowhere.json"),
        (entry(&[("jwks", "{ keys = [] }")]), "no key"),
        (entry(&[("jwks", "{ keys = [{ kty = \"oct\", k = \"c2VjcmV0\" }] }")]), "no key"),
        (entry(&[("jwks", "{ keys = 1 }")]), "keys"),
        (entry(&[("jwks", "{ url = \"x\" }")]), "url"),
        (entry(&[("jwks", &inline), ("allow_private", "true")]), "`allow_private`"),
        (entry(&[("stale_keys_for", "\"8d\"")]), "`stale_keys_for`"),
        (entry(&[]).repeat(2), "two trust rules `ci`"),
        (
            entry(&[("jwks_url", "\"https://a.example/1\"")])
                + &entry(&[("name", "\"cd\""), ("jwks_url", "\"https://a.example/2\"")]),
            "other keys",
        ),
    ] {
        let gateway = gateway().config(&toml).prepare();

        let (code, told) = failure(&gateway, &["serve"]).await;

        assert_eq!(code, 1, "{toml}: {told}");
        assert!(told.starts_with("error: ") && told.contains(wanted), "{wanted}: {told}");
    }
}

#[tokio::test]
async fn rules_of_one_issuer_share_its_keys_whichever_of_them_names_them() {
    let inline =
        format!("{{ keys = [{{ kty = \"OKP\", crv = \"Ed25519\", x = \"{ED25519}\" }}] }}");
    let issuer = ("issuer", "\"kubernetes/serviceaccount\"");
    let silent = entry(&[issuer]);
    let naming = entry(&[issuer, ("name", "\"cd\""), ("jwks", &inline)]);
    for toml in [silent.clone() + &naming, naming + &silent] {
        let gateway = gateway().config(&toml).prepare();

        let told = run(&gateway, &["check"]).await;

        let text = String::from_utf8_lossy(&told.stdout).into_owned();
        assert_eq!(text.matches("kubernetes/serviceaccount, 1 keys").count(), 2, "{text}");
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
