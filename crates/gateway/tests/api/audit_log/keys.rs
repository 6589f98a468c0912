//! `portcullis audit key`: made at the first start, rotated with both valid, never lost in silence.

use std::os::unix::fs::PermissionsExt;

use portcullis_core::audit::checkpoint::Checkpoint;

use super::{invoke, keys, logged};
use crate::prelude::*;

async fn signatures(gateway: &Gateway, who: &Principal) -> usize {
    let note = gateway.get(who, "/v1/audit/checkpoint").await.text;
    Checkpoint::open(&note, &keys(gateway, &who.org)).unwrap().1.len()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_start_makes_a_key_that_only_its_owner_reads_and_no_database_holds() {
    let (mut gateway, who) = logged(1).await;
    let file = gateway.folder().join("audit-key");

    let mode = fs::metadata(&file).unwrap().permissions().mode();

    assert_eq!(mode & 0o777, 0o600);
    let text = fs::read_to_string(&file).unwrap();
    let seed = text.lines().last().unwrap().rsplit(' ').next().unwrap();
    assert_eq!(seed.len(), 44);
    assert_eq!(keys(&gateway, &who.org)[0].name(), format!("localhost/audit/{}", who.org));
    gateway.stop();
    let stored = gateway.stored();
    let holds = |text: &str| stored.windows(text.len()).any(|window| window == text.as_bytes());
    assert!(holds(&who.token_id) && !holds(seed));
    assert!(!gateway.folder().join("audit-key.new").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn while_a_key_is_replaced_both_sign_and_a_running_node_takes_it_over() {
    let (gateway, who) = logged(2).await;
    let before = keys(&gateway, &who.org);
    let old = gateway.get(&who, "/v1/audit/checkpoint").await.text;

    gateway.admin(&["audit", "key", "rotate", "--org", &who.org]);

    let both = keys(&gateway, &who.org);
    assert_eq!((both.len(), &both[0]), (2, &before[0]));
    let checkpoint = || gateway.get(&who, "/v1/audit/checkpoint");
    until(checkpoint, |it| Checkpoint::open(&it.text, &both[1..]).is_ok()).await;
    let note = checkpoint().await.text;
    assert_eq!(Checkpoint::open(&note, &both).unwrap().1.len(), 2);
    assert!(Checkpoint::open(&note, &before).is_ok());
    let told = run(&gateway, &["audit", "verify", "--org", &who.org]).await;
    let told = String::from_utf8_lossy(&told.stdout).into_owned();
    let line = told.lines().find(|line| line.contains("signed by")).unwrap();
    assert_eq!((line.matches("/audit/").count(), line.matches(", ").count()), (1, 2), "{told}");

    gateway.admin(&["audit", "key", "retire", "--org", &who.org]);
    until(checkpoint, |it| Checkpoint::open(&it.text, &before).is_err()).await;
    assert_eq!(signatures(&gateway, &who).await, 1);
    assert_eq!(keys(&gateway, &who.org), both, "a retired key is still told");
    assert!(Checkpoint::open(&old, &keys(&gateway, &who.org)).is_ok());
    assert_fails(&gateway, &["audit", "key", "retire"], 1, "rotate first").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_does_not_start_without_the_key_that_signed_its_logs() {
    let (mut gateway, who) = logged(1).await;
    gateway.get(&who, "/v1/audit/checkpoint").await;
    gateway.stop();
    let file = gateway.folder().join("audit-key");
    let good = fs::read_to_string(&file).unwrap();
    let serve = ["serve", "--port", "0"];

    fs::remove_file(&file).unwrap();
    let (_, told) = failure(&gateway, &serve).await;
    assert!(told.contains("audit-key") && told.contains("is gone"), "{told}");
    assert!(!file.exists(), "no new key is made");
    fs::write(&file, "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n").unwrap();
    assert_fails(&gateway, &serve, 1, "signed with a key that is not here").await;
    fs::write(&file, "nonsense\n").unwrap();
    let (_, told) = failure(&gateway, &serve).await;
    assert!(told.contains("line 1") && !told.contains("nonsense"), "{told}");

    fs::write(&file, good).unwrap();
    gateway.configure("[server]\npublic_host = \"gateway.example.com\"");
    let (_, told) = failure(&gateway, &serve).await;
    assert!(told.contains("localhost/audit/") && told.contains("public_host"), "{told}");
    let config = fs::read_to_string(gateway.config_file()).unwrap();
    let config = config.replace("gateway.example.com", "localhost");
    fs::write(gateway.config_file(), config).unwrap();
    gateway.start();
    invoke(&gateway, &who).await;
}

const SEED: &str = "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=";

#[tokio::test(flavor = "multi_thread")]
async fn keys_may_come_from_a_variable_or_a_program() {
    signed_with("{ env = \"LOG_KEY\" }", "LOG_KEY").await;
    signed_with(&format!("{{ command = [\"echo\", \"{SEED}\"] }}"), "echo").await;
}

async fn signed_with(source: &str, told_by: &str) {
    let mut gateway = gateway()
        .sample()
        .config(&format!("[audit]\nsigning_key = {source}"))
        .config("[server]\npublic_host = \"gateway.acme.example\"")
        .env("LOG_KEY", SEED)
        .prepare();
    let who = gateway.service(&gateway.org("acme", &ENOUGH), ALL_SCOPES);
    gateway.start();
    invoke(&gateway, &who).await;

    let keys = keys(&gateway, &who.org);

    assert_eq!(keys[0].name(), format!("gateway.acme.example/audit/{}", who.org));
    assert_eq!(signatures(&gateway, &who).await, 1);
    assert!(!gateway.folder().join("audit-key").exists());
    let (_, told) = failure(&gateway, &["audit", "key", "rotate"]).await;
    assert!(told.contains(told_by) && !told.contains(SEED), "{told}");
    let by_name = gateway.admin(&["audit", "key", "list", "--org", "acme"]);
    assert_eq!(by_name[0]["key"], keys[0].to_string());
    assert_fails(&gateway, &["audit", "key", "list", "--org", "nobody"], 1, "nobody").await;
}
