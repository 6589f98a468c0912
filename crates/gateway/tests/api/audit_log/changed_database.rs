//! A database that was changed from outside: set back, searched and counted by other columns than the records
//! say, or with other records than the log holds.

use super::{
    files::write, invoke, keys, live, logged, reindex, rewrite, size, verify, verify_in_python,
};
use crate::{planted::plant, prelude::*, v1::exports::export};

/// Waits until a checkpoint of `size` events of this org is in the anchor file.
async fn anchored(file: &Path, org: &str, size: u64) {
    let last = || {
        let text = fs::read_to_string(file).unwrap_or_default();
        let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let ours = lines.filter(|line| line["log"].as_str().is_some_and(|log| log.ends_with(org)));
        ours.filter_map(|line| line["size"].as_u64()).max()
    };
    eventually("a checkpoint of that size", async || last().filter(|last| *last >= size)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_was_set_back_is_found_while_it_is_shorter_and_after_it_grew_again() {
    let outside = tempfile::tempdir().unwrap();
    let anchors = outside.path().join("anchors.jsonl");
    let config = format!("[audit.anchor]\nevery_seconds = 1\nfile = {anchors:?}");
    let (mut gateway, who) = serve(gateway().sample().on_sqlite().config(&config));
    for _ in 0..3 {
        invoke(&gateway, &who).await;
    }
    gateway.stop();
    let database = gateway.folder().join("portcullis.db");
    let backup = outside.path().join("backup.db");
    fs::copy(&database, &backup).unwrap();
    gateway.start();
    for _ in 0..5 {
        invoke(&gateway, &who).await;
    }
    let lost = size(&gateway, &who).await;
    anchored(&anchors, &who.org, lost).await;
    gateway.stop();
    let since = ["--since", anchors.to_str().unwrap()];
    let told = live(&gateway, &since, 0, "continues the log").await;
    assert!(told.contains("places and tiles"), "{told}");
    let before_loss = fs::read(&anchors).unwrap();

    restore(&backup, &database);

    let told = live(&gateway, &since, 12, "the log was set back").await;
    assert!(told.contains(&lost.to_string()), "{told}");
    // Without a checkpoint from outside it cannot be told.
    live(&gateway, &[], 0, "").await;
    gateway.start();
    let _ = gateway.wait_for_log("the database was set back");
    gateway.stop();
    let before_return = fs::read(&anchors).unwrap();
    gateway.start();
    while size(&gateway, &who).await <= lost + 1 {
        invoke(&gateway, &who).await;
    }
    let grown = size(&gateway, &who).await;
    anchored(&anchors, &who.org, grown).await;
    live(&gateway, &since, 12, "set back or rewritten").await;
    gateway.stop();
    fs::write(&anchors, &before_return).unwrap();
    gateway.start();
    let _ = gateway.wait_for_log("the database was set back");
    // An export that was made after a larger tree had been published shows the same.
    write(&anchors, &aged(&before_loss));
    let file = gateway.folder().join("short.jsonl");
    gateway.kill();
    restore(&backup, &database);
    gateway.admin(&["audit", "export", "--org", "acme", "-o", file.to_str().unwrap()]);
    let key = &keys(&gateway, &who.org)[0];
    let (code, told) = verify(&gateway, &file, key, &since);
    assert_eq!(code, 12, "{told}");
    let (code, told) = verify_in_python(&file, key, Some(&anchors));
    assert_eq!(code, 12, "{told}");
}

/// Puts an earlier copy in the place of a database that no process has open.
fn restore(backup: &Path, database: &Path) {
    for more in ["-wal", "-shm"] {
        let _ = fs::remove_file(format!("{}{more}", database.display()));
    }
    fs::copy(backup, database).unwrap();
}

/// The lines of an anchor file as if they had been published an hour earlier.
fn aged(lines: &[u8]) -> String {
    let mut text = String::new();
    for line in String::from_utf8(lines.to_vec()).unwrap().lines() {
        let mut line: Value = serde_json::from_str(line).unwrap();
        line["anchored_at"] = json!("2020-01-01T00:00:00.000Z");
        text.extend([line.to_string().as_str(), "\n"]);
    }
    text
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_that_a_changed_column_hides_from_a_filter_is_found_and_shown_again() {
    let (gateway, who) = logged(4).await;
    let id = invoke(&gateway, &who).await;
    let listed = async |filter: &str| {
        let answer = gateway.get(&who, &format!("/v1/audit/events?{filter}")).await;
        items(&answer).iter().any(|item| item["id"] == id.as_str())
    };
    assert!(listed("decision=allow&outcome=success").await);
    reindex(&gateway, &["--check"], 0, "").await;
    for (column, value) in [
        ("decision", "'deny'"),
        ("actor_id", "NULL"),
        ("target", "'x'"),
        ("request_id", "NULL"),
        ("occurred_at", "1"),
        ("committed_at", "1"),
        ("payload_at", "1"),
    ] {
        gateway.tamper(&format!("UPDATE audit_events SET {column} = {value} WHERE id = '{id}'"));
        if column == "decision" {
            assert!(!listed("decision=allow").await, "it is hidden");
        }

        let found = reindex(&gateway, &["--check"], 14, &format!("`{column}`")).await;
        let mended = reindex(&gateway, &[], 14, &format!("`{column}`")).await;

        assert!(found.contains(&id) && mended.contains(&id), "{column}: {found}{mended}");
        assert!(found.contains("nothing was changed") && mended.contains("made anew"), "{found}");
        reindex(&gateway, &["--check"], 0, "0 of").await;
    }
    assert!(listed("decision=allow&outcome=success").await, "it is shown again");
    live(&gateway, &[], 0, "complete").await;
    let reported = gateway.get(&who, "/v1/audit/events?type=audit.reindexed").await;
    let of_one = &items(&reported)[0];
    has!(of_one, "/count": 1, "/actor/auth/method": "operator", "/outcome/status": "success");
    let of_one = format!("/v1/audit/events/{}", of_one["id"].as_str().unwrap());
    let of_one = gateway.get(&who, &of_one).await;
    assert_eq!(of_one.at("/data/detached/reindex/what"), "events", "{}", of_one.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn entries_of_the_index_and_counts_that_were_changed_are_found() {
    let (gateway, who) = logged(4).await;
    let id = invoke(&gateway, &who).await;
    assert!(size(&gateway, &who).await > 4);
    if gateway.database_url().starts_with("sqlite:") {
        let place = format!("position = (SELECT position FROM audit_events WHERE id = '{id}')");
        for (kind, number) in [("actor", 1), ("request", 3), ("id", 4)] {
            gateway.tamper(&format!("DELETE FROM audit_index WHERE kind = {number} AND {place}"));

            let found = reindex(&gateway, &[], 14, "`index`").await;

            assert!(found.contains(&id), "{kind}: {found}");
            reindex(&gateway, &["--check"], 0, "").await;
        }
        gateway.tamper(&format!("INSERT INTO audit_index SELECT 2, 'usr_x', position FROM audit_events WHERE id = '{id}'"));
        reindex(&gateway, &[], 14, "1 entries of the index").await;
    }
    gateway.tamper("UPDATE audit_counts SET number = number + 3 WHERE kind = 1");

    let found = reindex(&gateway, &["--check", "--json"], 14, "").await;
    let mended = reindex(&gateway, &["--json"], 14, "").await;

    for told in [found, mended] {
        let told: Value = serde_json::from_str(&told).unwrap();
        has!(&told, "/exit_code": 14, "/logs/0/counts": 1, "/logs/0/differing": 0);
    }
    let all = run(&gateway, &["audit", "reindex"]).await;
    assert_eq!(all.status.code(), Some(0), "{all:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_was_killed_is_gone_on_with_beside_a_gateway_that_serves() {
    let (gateway, who) = logged(1).await;
    plant(&gateway, &who, 1_500).await;
    assert!(size(&gateway, &who).await > 1_500);
    let changed = || {
        let wrong = "SELECT COUNT(*) FROM audit_events WHERE policy = 'x'";
        gateway.ask(wrong).parse::<u64>().unwrap()
    };
    gateway.tamper("UPDATE audit_events SET policy = 'x'");
    let all = changed();
    let mut command = gateway.command();
    command.args(["audit", "reindex", "--org", "acme", "--config"]).arg(gateway.config_file());
    let mut running = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();

    let begun = async || Some(changed()).filter(|left| *left < all);
    eventually("some of them are mended", begun).await;
    running.kill().unwrap();
    running.wait().unwrap();
    invoke(&gateway, &who).await;

    let left = changed();
    let ended = run(&gateway, &["audit", "reindex", "--org", "acme", "--json"]).await;
    let told: Value = serde_json::from_slice(&ended.stdout).unwrap();
    assert_eq!(told["logs"][0]["differing"], left, "{told}");
    assert_eq!(ended.status.code(), Some(if left > 0 { 14 } else { 0 }));
    assert_eq!(changed(), 0);
    reindex(&gateway, &["--check"], 0, "").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_event_with_a_changed_column_is_named() {
    let (gateway, who) = logged(2).await;
    let ids = [invoke(&gateway, &who).await, invoke(&gateway, &who).await];
    assert!(size(&gateway, &who).await > 3);
    for (id, column) in ids.iter().zip(["target", "decision"]) {
        gateway.tamper(&format!("UPDATE audit_events SET {column} = 'x' WHERE id = '{id}'"));
    }

    let told = reindex(&gateway, &["--check"], 14, "`target`").await;

    assert!(told.contains("`decision`") && ids.iter().all(|id| told.contains(id)), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn events_that_are_passed_over_as_removed_are_found() {
    let (gateway, who) = logged(4).await;
    assert!(size(&gateway, &who).await > 3);
    gateway.tamper(&format!("INSERT INTO audit_pruned (org_id, size) VALUES ('{}', 3)", who.org));
    let listed = gateway.get(&who, "/v1/audit/events?order=asc").await;
    assert_eq!(items(&listed)[0]["sequence"], 3, "the others are hidden");

    live(&gateway, &[], 14, "the first 3 events are passed over").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_a_log_that_somebody_cut_off_is_missed() {
    let (gateway, who) = logged(4).await;
    let grown = size(&gateway, &who).await;
    let newest = format!("org_id = '{}' AND sequence >= {}", who.org, grown - 3);

    gateway.tamper(&format!("DELETE FROM audit_seals WHERE {newest}"));

    let missing = format!("events {} to {} are missing", grown - 3, grown - 1);
    live(&gateway, &[], 13, &missing).await;
    // Nor does an export pass for complete that ends where the log was cut.
    has!(export(&gateway, &who, &json!({})).await, "/data/status": "failed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tile_that_is_not_that_of_the_events_is_found() {
    let (mut gateway, who) = logged(1).await;
    plant(&gateway, &who, 300).await;
    assert!(size(&gateway, &who).await > 256);
    gateway.stop();
    live(&gateway, &[], 0, "").await;
    let zeros = if gateway.database_url().starts_with("sqlite:") {
        "zeroblob(length(hashes))"
    } else {
        "decode(repeat('00', length(hashes)), 'hex')"
    };
    gateway.tamper("CREATE TABLE as_it_was AS SELECT * FROM audit_tiles");
    for (level, tile, word) in [(0, 0, "another leaf"), (1, 0, "tile 0 at level 1")] {
        let place = format!("level = {level} AND tile = {tile} AND org_id = '{}'", who.org);
        gateway.tamper(&format!("UPDATE audit_tiles SET hashes = {zeros} WHERE {place}"));

        live(&gateway, &[], 14, word).await;

        gateway.tamper(&format!(
            "UPDATE audit_tiles SET hashes = (SELECT hashes FROM as_it_was WHERE {place}) \
             WHERE {place}"
        ));
    }
    live(&gateway, &[], 0, "").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_was_changed_is_marked_wherever_it_is_read() {
    let (gateway, who) =
        serve(gateway().sample().config("[server]\nmetrics_listen = \"127.0.0.1:0\""));
    let ids = [invoke(&gateway, &who).await, invoke(&gateway, &who).await];
    let honest = invoke(&gateway, &who).await;
    assert!(size(&gateway, &who).await >= 3);
    let [changed, renamed] = &ids;
    rewrite(&gateway, changed, |texts| {
        texts.core = texts.core.replace("\"executed\":\"yes\"", "\"executed\":\"no\"");
    });
    rewrite(&gateway, renamed, |texts| {
        let detached = texts.detached.as_deref().unwrap();
        texts.detached = Some(detached.replace("service for", "mallory for"));
    });
    live(&gateway, &[], 10, "").await;
    let get = async |id: &str, what: &str| {
        gateway.get(&who, &format!("/v1/audit/events/{id}{what}")).await
    };

    for (id, member) in [(changed, "leaf"), (renamed, "actor_name")].repeat(2) {
        let mark = get(id, "").await.at("/data/integrity/mismatch").clone();
        assert_eq!(mark, json!([member]));
    }
    assert!(!get(&honest, "").await.text.contains("mismatch"));
    let listed = gateway.get(&who, "/v1/audit/events?type=mcp.invocation").await;
    let marked: Vec<_> = items(&listed)
        .iter()
        .filter(|item| item["integrity"].get("mismatch").is_some())
        .map(|item| item["id"].as_str().unwrap())
        .collect();
    assert_eq!(marked, [renamed, changed]);
    assert_eq!(get(changed, "/proof").await.status, 500);
    assert_eq!(get(&honest, "/proof").await.status, 200);
    let log = gateway.log();
    for id in &ids {
        let told = log.lines().filter(|line| line.contains("not the one that the log holds"));
        assert_eq!(told.filter(|line| line.contains(id.as_str())).count(), 1, "{log}");
    }
    let series = "portcullis_audit_mismatched_reads_total ";
    let figures = gateway.metrics().await;
    let count = figures.lines().find_map(|line| line.strip_prefix(series)?.parse::<u64>().ok());
    assert!(count >= Some(7), "{count:?}");
    exports_say_so(&gateway, &who, changed).await;
}

/// No export passes a changed event off as one of the log.
async fn exports_say_so(gateway: &Gateway, who: &Principal, changed: &str) {
    for (format, mark) in [
        ("jsonl", "\"mismatch\":[\"leaf\"]"),
        ("csv", ",mismatch: leaf"),
        ("ocsf", "\"integrity_mismatch\":[\"leaf\"]"),
    ] {
        let body = json!({ "format": format });
        let made = export(gateway, who, &body).await;
        assert_eq!(made.at("/data/mismatched"), 2, "{}", made.text);

        let text = gateway.get(who, made.at("/data/file").as_str().unwrap()).await.text;

        let line = text.lines().find(|line| line.contains(changed)).unwrap();
        assert!(line.contains(mark), "{format}: {line}");
        if format == "ocsf" {
            assert!(!line.contains("attestation_list"), "{line}");
        }
        if format == "jsonl" {
            let file = write(&gateway.folder().join("made.jsonl"), &text);
            let key = &keys(gateway, &who.org)[0];
            assert_eq!(verify(gateway, &file, key, &[]).0, 10);
            assert_eq!(verify_in_python(&file, key, None).0, 10);
        }
    }
    let told = gateway.get(who, "/v1/audit/events?type=audit.exported&limit=1").await;
    let id = items(&told)[0]["id"].as_str().unwrap().to_owned();
    let event = gateway.get(who, &format!("/v1/audit/events/{id}")).await;
    assert_eq!(event.at("/data/detached/export/mismatched"), 2, "{}", event.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_that_somebody_added_get_no_place_and_are_told_of_once() {
    let config = "[server]\nmetrics_listen = \"127.0.0.1:0\"";
    let (mut gateway, who) = serve(gateway().sample().config(config));
    let id = invoke(&gateway, &who).await;
    invoke(&gateway, &who).await;
    let before = size(&gateway, &who).await;
    let forged = "evt_01M754BKTKX1YB8Q05NMW9TP4G";
    let columns = "org_id, type, occurred_at, committed_at, target, decision, outcome, packed, mac";
    let copy = |id: &str, of: &str| {
        format!(
            "INSERT INTO audit_events (id, {columns}) SELECT {id}, {columns} FROM audit_events \
             WHERE id = '{of}' AND outcome = 'success'"
        )
    };
    let mut added = vec![(forged.to_owned(), "mac")];
    gateway.tamper(&copy(&format!("'{forged}'"), &id));
    if gateway.database_url().starts_with("sqlite:") {
        // On PostgreSQL an id is a key.
        gateway.tamper(&copy("id", &id));
        added.push((id.clone(), "twice"));
    }

    let told = eventually("an event about all of them", async || {
        Some(refusals(&gateway, &who).await).filter(|told| told.len() == added.len())
    });
    assert_eq!(told.await, added);
    assert_eq!(gateway.get(&who, &format!("/v1/audit/events/{forged}")).await.status, 404);
    let named = "rows that wait for their seals were not written by this installation";
    assert!(gateway.log().contains(named));
    let figures = gateway.metrics().await;
    // A row may also be counted at a position that was not given out yet, before its seal is refused.
    let counted = |line: &str| {
        let count = line.strip_prefix("portcullis_audit_refused_rows_total ")?;
        count.parse::<usize>().ok()
    };
    let counted = figures.lines().find_map(counted).unwrap();
    assert!((added.len()..=2 * added.len()).contains(&counted), "{figures}");
    others_go_on(&gateway, &who, &id).await;
    gateway.stop();
    gateway.start();
    assert!(size(&gateway, &who).await > before);
    assert_eq!(refusals(&gateway, &who).await, added, "told once");
    let seals = if gateway.database_url().starts_with("sqlite:") {
        "s.position = audit_events.position"
    } else {
        "s.event_id = audit_events.id"
    };
    gateway.tamper(&format!(
        "DELETE FROM audit_events WHERE id IN ('{id}', '{forged}') \
         AND NOT EXISTS (SELECT 1 FROM audit_seals s WHERE {seals})"
    ));
    live(&gateway, &[], 0, "").await;
}

/// Others are sealed, and exported; `verify` names what has no place.
async fn others_go_on(gateway: &Gateway, who: &Principal, id: &str) {
    let later = invoke(gateway, who).await;
    gateway.get(who, &format!("/v1/audit/events/{later}/proof")).await.ok();
    live(gateway, &[], 10, "stands among those that have a place in the log and has none").await;
    let made = export(gateway, who, &json!({})).await;
    let text = gateway.get(who, made.at("/data/file").as_str().unwrap()).await.text;
    assert_eq!(text.matches(&format!("\"id\":\"{id}\"")).count(), 1);
    let file = write(&gateway.folder().join("made.jsonl"), &text);
    let key = &keys(gateway, &who.org)[0];
    assert_eq!(verify(gateway, &file, key, &[]).0, 0);
    assert_eq!(verify_in_python(&file, key, None).0, 0);
}

/// Rows that events tell of as refused, with their faults, in the order of the log.
async fn refusals(gateway: &Gateway, who: &Principal) -> Vec<(String, &'static str)> {
    let events = "/v1/audit/events?type=audit.rows_refused&order=asc";
    let listed = gateway.get(who, events).await;
    let mut refused = Vec::new();
    for event in items(&listed) {
        let path = format!("/v1/audit/events/{}", event["id"].as_str().unwrap());
        let event = gateway.get(who, &path).await;
        let rows = event.at("/data/detached/refused/rows").as_array().unwrap();
        assert_eq!(event.at("/data/count"), rows.len());
        for row in rows {
            let fault = if row["fault"] == "twice" { "twice" } else { "mac" };
            refused.push((row["id"].as_str().unwrap().to_owned(), fault));
        }
    }
    refused
}
