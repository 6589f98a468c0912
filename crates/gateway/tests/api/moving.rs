//! `portcullis migrate`: a grown installation moves from SQLite into PostgreSQL, and goes on.

use portcullis_core::audit::checkpoint::Checkpoint;

use crate::{
    audit_log::{invoke, keys},
    planted::plant,
    prelude::*,
};

/// Moves what is in the gateway's folder; gives what the command told.
fn migrate(gateway: &Gateway) -> Value {
    gateway.admin(&["migrate", "--from", &gateway.folder().to_string_lossy()])
}

/// The size and root of an org's log, as it is signed.
async fn signed(gateway: &Gateway, who: &Principal) -> (u64, String) {
    let note = gateway.get(who, "/v1/audit/checkpoint").await.text;
    let (checkpoint, _) = Checkpoint::open(&note, &keys(gateway, &who.org)).unwrap();
    let root = checkpoint.root.iter().map(|byte| format!("{byte:02x}"));
    (checkpoint.size, root.collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_used_installation_goes_on_in_postgresql_and_its_proofs_hold() {
    let Some(database) = PostgresDatabase::create("moving") else { return };
    let (mut gateway, who) = serve(gateway().sample().on_sqlite());
    let other = gateway.service(&gateway.org("other", &ENOUGH), ALL_SCOPES);
    plant(&gateway, &who, 700).await;
    let old = invoke(&gateway, &who).await;
    invoke(&gateway, &other).await;
    let key = keys(&gateway, &who.org)[0].to_string();
    let note = gateway.folder().join("old-checkpoint");
    fs::write(&note, gateway.get(&who, "/v1/audit/checkpoint").await.text).unwrap();
    // The checkpoint sealed what was there.
    let before = gateway.get(&who, &format!("/v1/audit/events/{old}")).await;
    gateway.stop();
    // Stopping wrote the last events; the logs are read as they stand now.
    gateway.start();
    let logs = [signed(&gateway, &who).await, signed(&gateway, &other).await];
    gateway.kill();
    gateway.configure(&database.config());

    let moved = migrate(&gateway);

    assert!(moved["tables"]["audit_events"].as_u64().unwrap() > 700, "{moved}");
    assert_eq!(moved["tables"]["orgs"], 2);
    for (log, who) in logs.iter().zip([&who, &other]) {
        let mut told = moved["logs"].as_array().unwrap().iter();
        let told = told.find(|it| it["org"] == who.org.as_str()).expect("a log");
        assert!(told["size"].as_u64().unwrap() >= log.0, "{told} {log:?}");
        if told["size"] == log.0 {
            assert_eq!(told["root"], log.1.as_str());
        }
    }
    gateway.start();
    let after = gateway.get(&who, &format!("/v1/audit/events/{old}")).await;
    assert_eq!(after.at("/data"), before.at("/data"));
    let new = invoke(&gateway, &who).await;
    let listed = gateway.get(&who, "/v1/audit/events?type=mcp.invocation&limit=1").await;
    assert_eq!(items(&listed)[0]["id"], new.as_str());
    let export = gateway.folder().join("export.jsonl").to_string_lossy().into_owned();
    gateway.admin(&["audit", "export", "--org", "acme", "--output", &export]);
    let note = note.to_string_lossy().into_owned();
    let verify = ["audit", "verify", &export, "--key", &key, "--since", &note, "--json"];
    let verified: Value = serde_json::from_str(&gateway.run(&verify)).unwrap();
    assert_eq!(verified["verified"], json!(true), "{verified}");
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_moved_while_a_gateway_serves_or_into_a_database_that_holds_something() {
    let Some(database) = PostgresDatabase::create("moving") else { return };
    let (mut source, who) = serve(gateway().sample().on_sqlite());
    let answer = source.invoke(&who, "sample:list_items", json!({"limit": 1})).await;
    let from = source.folder().to_string_lossy().into_owned();
    let target = gateway().config(&database.config()).prepare();

    let refused = async |gateway: &Gateway, from: &str, part: &str| {
        let (_, told) = failure(gateway, &["migrate", "--from", from]).await;
        assert!(told.contains(part), "{part}: {told}");
    };

    refused(&target, &from, "serves from the data folder").await;
    source.stop();
    let sqlite = gateway().on_sqlite().prepare();
    refused(&sqlite, &from, "only a PostgreSQL database").await;
    refused(&target, "sqlite:/nowhere/p.db", "/nowhere/p.db").await;
    target.org("somebody", &[]);
    refused(&target, &from, "not empty").await;
    refused(&target, &from, "`orgs`").await;
    assert_eq!(target.admin(&["org", "list"]).as_array().unwrap().len(), 1);
    source.start();
    let events =
        source.get(&who, &format!("/v1/audit/events?request_id={}", request_id(&answer))).await;
    assert_eq!(items(&events).len(), 1, "what was to be moved is as it was");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_source_it_brings_the_schema_up_to_date() {
    let gateway = gateway().prepare();

    let told = gateway.admin(&["migrate"]);

    let engine = if gateway.database_url().starts_with("sqlite:") { "sqlite" } else { "postgres" };
    assert_eq!(told["engine"], engine);
    assert_eq!(gateway.admin(&["org", "list"]), json!([]));
}
