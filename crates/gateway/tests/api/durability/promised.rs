//! `audit.sync = "power-loss"`: a database that does not keep it is refused.

use portcullis_testkit::PostgresServer;

use crate::prelude::*;

const POWER_LOSS: &str = "[audit]\nsync = \"power-loss\"";
const WEAKEN: &str = "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET synchronous_commit = off', \
                      current_database()); END $$";

/// Asserts that neither `serve` starts nor `check` is content, and that both name the reason.
async fn assert_refused(gateway: &Gateway, reason: &str) {
    for command in [&["serve", "--port", "0"][..], &["check"]] {
        assert_fails(gateway, command, 1, reason).await;
        assert_fails(gateway, command, 1, "process-crash").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn commits_that_do_not_wait_for_the_disk_are_refused() {
    let Some(database) = PostgresDatabase::create("sync") else { return };
    database.execute(WEAKEN);
    let strict = gateway().config(&database.config()).config(POWER_LOSS).prepare();

    assert_refused(&strict, "`synchronous_commit` is `off`").await;

    let shown = run(&strict, &["check", "--json"]).await;
    let shown: Value = serde_json::from_slice(&shown.stdout).unwrap();
    assert_eq!(shown["database"]["survives_power_loss"], false, "{shown}");
    let weakness = shown["database"]["weakness"].as_str().unwrap();
    assert!(weakness.contains("ALTER DATABASE"), "{weakness}");
    drop(strict);
    let relaxed = gateway().config(&database.config());
    let relaxed = relaxed.config("[audit]\nsync = \"process-crash\"").prepare();
    let told = run(&relaxed, &["check"]).await;
    assert_eq!(told.status.code(), Some(0), "{}", String::from_utf8_lossy(&told.stderr));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_syncs_is_taken_and_one_that_does_not_is_refused() {
    let replicated = "synchronous_standby_names=elsewhere synchronous_commit=local";
    for (settings, reason) in [
        ("fsync=off", Some("`fsync` is `off`")),
        (replicated, Some("`synchronous_standby_names` names a replica")),
        ("full_page_writes=off", None),
    ] {
        let server = tokio::task::block_in_place(|| PostgresServer::start_with(settings));
        let config = server.config_at(server.address());
        let mut gateway = gateway().config(&config).config(POWER_LOSS).prepare();

        if let Some(reason) = reason {
            assert_refused(&gateway, reason).await;
        } else {
            gateway.start();
            assert!(gateway.starting_log().contains("`full_page_writes` is off"));
            let ready = || gateway.send(gateway.request(Method::GET, "/readyz"));
            assert_eq!(ready().await.status, 200);
            server.execute("ALTER SYSTEM SET synchronous_commit = off");
            server.execute("SELECT pg_reload_conf()");
            until(ready, |answer| answer.status == 503).await;
            let _ = gateway.wait_for_log("`synchronous_commit` is `off`");
            server.execute("ALTER SYSTEM RESET synchronous_commit");
            server.execute("SELECT pg_reload_conf()");
            until(ready, |answer| answer.status == 200).await;
            drop(gateway);
        }
    }
}
