//! Credentials stay where they are sealed: after a full run with everything that can go wrong,
//! nothing that was written or told holds one.

use portcullis_testkit::{CLIENT_SECRET, tool};
use reqwest::StatusCode;

use super::{USER, code_on, come_back, connect, delete, text};
use crate::prelude::*;

const KEY: &str = "canary-key-8e1f0c2a7b";
const WORSE: &str = "canary-worse-55d0e4c1";

fn files(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { files(&path, into) } else { into.push(path) }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_credential_is_written_or_told_anywhere() {
    let saas = Saas::start(Habits { expires_in: Some(3600), ..Habits::default() }).await;
    let server = McpServer::start(vec![tool("a")]).await;
    let keyed = "protocol = \"legacy\"\nauth = \"api_key\"";
    let log = "[log]\nlevel = \"trace\"\n[server]\nmetrics_listen = \"127.0.0.1:0\"";
    let gateway = gateway()
        .env("SAAS_SECRET", CLIENT_SECRET)
        .config(log)
        .http("keyed", &server.url(), keyed)
        .http("saas", &saas.mcp(), &saas.oauth())
        .start();
    let org = gateway.org("acme", &ENOUGH);
    let who = gateway.user(&org, "member", USER);
    let admin = gateway.service(&org, ALL_SCOPES);
    let (mut told, mut codes): (Vec<Answer>, Vec<String>) = (Vec::new(), Vec::new());

    told.push(connect(&gateway, &who, "keyed", &json!({"api_key": KEY})).await);
    server.fail(Some(StatusCode::UNAUTHORIZED));
    told.push(connect(&gateway, &who, "keyed", &json!({"api_key": WORSE})).await);
    told.push(gateway.invoke(&who, "keyed:a", json!({})).await);
    for account in ["octocat", "hubot"] {
        let begun = connect(&gateway, &who, "saas", &json!({})).await;
        let back = saas.consent(&text(&begun, "/data/authorization_url"), account).await;
        let code = code_on(&come_back(&back).await.text().await.unwrap());
        told.push(connect(&gateway, &who, "saas", &json!({"confirm": "WRONG"})).await);
        told.push(connect(&gateway, &who, "saas", &json!({ "confirm": code })).await);
        codes.push(code);
    }
    let id = text(told.last().unwrap(), "/data/id");
    told.push(gateway.invoke(&who, "saas:whoami", json!({})).await);
    saas.change(|habits| habits.token_status = Some(500));
    told.push(gateway.post(&who, &format!("/v1/providers/{id}/refresh"), "").await);
    // Its server takes the token no more, and the renewal fails.
    saas.end_access("hubot");
    told.push(gateway.invoke(&who, "saas:whoami", json!({})).await);
    saas.change(|habits| (habits.token_status, habits.ended) = (None, true));
    told.push(gateway.post(&who, &format!("/v1/providers/{id}/refresh"), "").await);
    saas.end_all("hubot");
    told.push(gateway.invoke(&who, "saas:whoami", json!({})).await);
    for path in ["/v1/providers", "/v1/mcps?view=full", "/v1/audit/events?limit=200"] {
        told.push(gateway.get(&admin, path).await);
    }
    let events = members(told.last().unwrap(), "id");
    let events: Vec<String> = events.into_iter().map(str::to_owned).collect();
    for event in events {
        told.push(gateway.event(&admin, &event).await);
    }
    told.push(delete(&gateway, &who, &id).await);

    let mut secrets = saas.secrets();
    secrets.extend([KEY.to_owned(), WORSE.to_owned()]);
    assert!(secrets.len() > 6, "{secrets:?}");
    // The confirming client sends the code, so answers to others and files are what counts.
    secrets.extend(codes);
    let told = told.into_iter().map(|answer| ("an answer".to_owned(), answer.text)).collect();
    assert_nowhere(&gateway, &secrets, told).await;
}

/// Fails if one of the secrets stands in these texts, the log, the metrics or a file.
async fn assert_nowhere(gateway: &Gateway, secrets: &[String], mut texts: Vec<(String, String)>) {
    texts.push(("the log".to_owned(), gateway.log() + gateway.starting_log()));
    texts.push(("the metrics".to_owned(), gateway.metrics().await));
    let mut found = Vec::new();
    files(gateway.folder(), &mut found);
    let on_sqlite = gateway.database_url().starts_with("sqlite:");
    assert_eq!(found.iter().any(|file| file.to_string_lossy().ends_with("-wal")), on_sqlite);
    let stored = String::from_utf8_lossy(&gateway.stored()).into_owned();
    assert!(stored.contains("provider.connected"), "the database is looked into");
    texts.push(("the database".to_owned(), stored));
    for file in found {
        let bytes = fs::read(&file).unwrap();
        texts.push((file.display().to_string(), String::from_utf8_lossy(&bytes).into_owned()));
    }
    for (what, text) in texts {
        for secret in secrets {
            assert!(!text.contains(secret.as_str()), "{secret} in {what}");
        }
    }
}
