//! Opening a database: durability, schema versions, two processes on one file.

use std::{fmt::Write as _, path::Path};

use portcullis_core::{
    clock::Timestamp,
    id::{EventId, OrgId},
};
use portcullis_store::{
    DatabaseSettings, DatabaseUrl, RecordTexts, Store, StoreError, Sync, Visibility,
};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, sqlite::SqliteConnectOptions};
use tokio::task::JoinSet;

use crate::{
    database::{Database, on_both},
    given,
};

on_both! {
    async fn a_commit_survives_a_power_loss_unless_told_otherwise(db: Database) {
        let found = db.store.durability().await.unwrap();

        // The PostgreSQL of the tests may be one that does not wait for its disk; then it says so.
        let relaxed = found.engine == "postgres" && !found.survives_power_loss();
        assert!(found.survives_power_loss() || relaxed, "{found:?}");
        assert!(found.synchronous != "off" || relaxed, "{found:?}");
        assert_eq!(found.journal, "wal");
        db.store.ping().await.unwrap();
    }

    async fn a_newer_schema_is_refused_and_named(db: Database) {
        db.execute("INSERT INTO schema_migrations (version, name) VALUES (9001, 'x')").await;

        let refused = Store::open(&db.settings).await.err();

        assert!(matches!(refused, Some(StoreError::NewerSchema { found: 9001, .. })), "{refused:?}");
        assert!(refused.unwrap().to_string().contains("9001"));
    }

    async fn a_database_is_opened_as_it_is_with_the_schema_of_this_build_alone(db: Database) {
        let current = Store::open_as_it_is(&db.settings).await.unwrap();
        db.execute("DELETE FROM schema_migrations WHERE version > 25").await;

        let older = Store::open_as_it_is(&db.settings).await.unwrap();
        let again = Store::open_as_it_is(&db.settings).await.unwrap();

        assert!(current.is_some());
        assert!(older.is_none() && again.is_none(), "nothing is migrated");
        let refused = Store::refuse_older(&db.settings).await.err();
        assert!(matches!(refused, Some(StoreError::OlderSchema { found: 25, .. })), "{refused:?}");
    }

    async fn what_was_stored_is_there_after_opening_again(db: Database) {
        let org = given::org(&db.store, 1).await;
        db.store.close().await;

        let again = Store::open(&db.settings).await.unwrap();

        assert!(again.find_org(org).await.unwrap().is_some());
    }

    async fn two_who_open_at_once_write_side_by_side(db: Database) {
        let org = given::org(&db.store, 1).await;
        let mut writers = JoinSet::new();
        for handle in 0..2 {
            let settings = db.settings.clone();
            writers.spawn(async move {
                let store = Store::open(&settings).await.unwrap();
                for n in 0..100 {
                    given::user(&store, org, handle * 1000 + n).await;
                }
            });
        }

        writers.join_all().await;

        assert_eq!(db.store.list_principals(org).await.unwrap().len(), 200);
    }
}

/// The second and the third event as this schema packs them, without compression: with salts up to 40, with
/// their seed from 41 on.
fn packed(schema: u32, n: u32) -> Option<String> {
    match n {
        1 => Some("\0{\"n\":1}\n{\"input\":1}\n{\"input\":\"AAAA\"}".to_owned()),
        2 if schema > 40 => {
            let seed = "A".repeat(43);
            Some(format!("\0{{\"commitments\":{{}},\"n\":2}}\n{{\"input\":1}}\n\"{seed}=\""))
        }
        _ => None,
    }
}

/// A file of this schema, 39 or later, with this many events, all of which have their places.
async fn file_of_schema(schema: u32, path: &Path, events: u32) {
    let options = SqliteConnectOptions::new().filename(path).create_if_missing(true);
    let mut conn = options.connect().await.unwrap();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations/sqlite");
    let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    let mut files: Vec<_> =
        files.filter(|file| name_of(file) < format!("{:04}", schema + 1)).collect();
    files.sort_unstable();
    let mut script = "CREATE TABLE schema_migrations (version BIGINT NOT NULL PRIMARY KEY, \
                      name TEXT NOT NULL);"
        .to_owned();
    for file in files {
        let name = name_of(&file);
        let version: u32 = name[..4].parse().unwrap();
        script.push_str(&std::fs::read_to_string(&file).unwrap());
        write!(script, "INSERT INTO schema_migrations VALUES ({version}, '{name}');").unwrap();
    }
    let org: OrgId = given::id("org", 1);
    write!(
        script,
        "INSERT INTO orgs (id, name, plan, created_at) VALUES ('{org}', 'org 1', 'pro', 1);
         INSERT INTO audit_heads (org_id, size, tree_size, last_position, last_recorded_at)
         VALUES ('{org}', {events}, {events}, {events}, 1);
         INSERT INTO audit_tiles (org_id, level, tile, hashes)
         VALUES ('{org}', 0, 0, zeroblob(32 * {events}));"
    )
    .unwrap();
    let marked =
        ["payload_at = 1", "payload_at = 1, by_sealer = 1", "payload_at = 1, by_sealer = 2"];
    let marked = marked[usize::try_from(schema - 39).unwrap().min(2)];
    for n in 0..events {
        let id: EventId = given::id("evt", n);
        write!(
            script,
            "INSERT INTO audit_events (id, org_id, type, occurred_at, committed_at, core, detached)
             VALUES ('{id}', '{org}', 'mcp.invocation', 1, 1, '{{\"n\":{n}}}', '{{\"input\":1}}');
             UPDATE audit_events SET {marked} WHERE id = '{id}';"
        )
        .unwrap();
        if let Some(packed) = packed(schema, n) {
            let text = packed.trim_start_matches('\0');
            write!(
                script,
                "UPDATE audit_events SET packed = CAST(char(0) || '{text}' AS BLOB), core = '',
                    detached = NULL WHERE id = '{id}';"
            )
            .unwrap();
        }
    }
    give_places(schema, &mut script);
    sqlx::raw_sql(AssertSqlSafe(script)).execute(&mut conn).await.unwrap();
    conn.close().await.unwrap();
}

/// Adds what a sealer of this schema writes for the events.
fn give_places(schema: u32, script: &mut String) {
    script.push_str(
        "INSERT INTO audit_seals (position, org_id, sequence, recorded_at, leaf_hash)
         SELECT position, org_id, position - 1, 1, zeroblob(32) FROM audit_events;",
    );
    if schema > 39 {
        script.push_str(
            "INSERT INTO audit_index (kind, name, position) SELECT 4, id, position FROM audit_events;",
        );
    }
    if schema > 40 {
        script.push_str(
            "INSERT INTO audit_index (kind, name, position)
             SELECT 5, org_id || printf(' %016d', payload_at), position FROM audit_events;
             UPDATE audit_floor SET sealed = (SELECT MAX(position) FROM audit_events);",
        );
    }
}

fn name_of(file: &Path) -> String {
    file.file_stem().unwrap().to_string_lossy().into_owned()
}

#[tokio::test]
async fn a_file_of_a_version_before_is_read_sealed_on_and_pruned() {
    for (schema, indexed_ids) in [(39, 1), (40, 5), (41, 5), (42, 5)] {
        let folder = tempfile::TempDir::new().unwrap();
        let path = folder.path().join("portcullis.db");
        file_of_schema(schema, &path, 4).await;
        let org = given::id("org", 1);

        let store = Store::open(&given::settings(DatabaseUrl::sqlite(path.clone()))).await;
        let store = store.unwrap();
        given::append_all(&store, vec![given::event(org, 4)]).await;
        let find = async |n| {
            let id = given::id("evt", n);
            let found = store.find_event(org, Visibility::All, id).await.unwrap();
            found.map(|event| (event.core, event.seal.map(|seal| seal.sequence)))
        };

        let core = |n| match packed(schema, n) {
            Some(packed) => RecordTexts::unpack(packed.as_bytes()).unwrap().core,
            None => format!(r#"{{"n":{n}}}"#),
        };
        assert_eq!(find(4).await, Some((core(4), None)), "{schema}");
        assert_eq!(store.orgs_with_unsealed().await.unwrap(), [org], "{schema}");
        assert_eq!(store.seal(org, given::leaf).await.unwrap(), 1, "{schema}");
        for n in 0..5 {
            assert_eq!(find(n).await, Some((core(n), Some(i64::from(n)))), "{schema}");
        }
        assert_eq!(find(5).await, None);
        let indexed = store.indexed_events(org, 0, 5).await.unwrap();
        assert_eq!(indexed.iter().filter(|event| event.is_indexed).count(), 5, "{schema}");
        // Those from before keep their indexes.
        let ids = "SELECT COUNT(*) FROM audit_index WHERE kind = 4";
        assert_eq!(number(&path, ids).await, indexed_ids, "{schema}");
        assert_eq!(store.orgs_to_prune(given::NOW, Timestamp::default()).await.unwrap(), [org]);
        let told = |_| given::event(org, 10);
        assert_eq!(store.let_payloads_go(org, given::NOW, told).await.unwrap(), 4, "{schema}");
        let pruned = store.prune(org, given::NOW, |_| given::event(org, 11)).await.unwrap();
        assert_eq!(pruned.map(|pruned| pruned.events()), Some(4), "{schema}");
        assert_eq!(find(3).await, None);
        let entries = "SELECT COUNT(*) FROM audit_index WHERE kind = 4";
        assert_eq!(number(&path, entries).await, 1, "{schema}");
        store.close().await;
        let sound = "SELECT COUNT(*) FROM pragma_integrity_check WHERE integrity_check = 'ok'";
        assert_eq!(number(&path, sound).await, 1, "{schema}");
    }
}

async fn number(path: &Path, sql: &'static str) -> i64 {
    let mut conn = SqliteConnectOptions::new().filename(path).connect().await.unwrap();
    let found = sqlx::query_scalar(sql).fetch_one(&mut conn).await.unwrap();
    conn.close().await.unwrap();
    found
}

#[tokio::test]
async fn a_new_file_has_pages_of_the_usual_size() {
    let folder = tempfile::TempDir::new().unwrap();
    let path = folder.path().join("portcullis.db");
    let settings = given::settings(DatabaseUrl::sqlite(path.clone()));
    Store::open(&settings).await.unwrap().close().await;

    let head = std::fs::read(path).unwrap();

    // https://www.sqlite.org/fileformat.html#page_size
    assert_eq!(head[16..18], 4096_u16.to_be_bytes());
}

#[tokio::test]
async fn process_crash_safety_is_synchronous_normal() {
    let folder = tempfile::TempDir::new().unwrap();
    let url = DatabaseUrl::sqlite(folder.path().join("portcullis.db"));
    let settings = DatabaseSettings { sync: Sync::ProcessCrash, ..given::settings(url) };

    let found = Store::open(&settings).await.unwrap().durability().await.unwrap();

    assert_eq!((found.synchronous.as_str(), found.survives_power_loss()), ("normal", false));
}

#[tokio::test]
async fn a_folder_that_does_not_exist_is_unavailable() {
    let folder = tempfile::TempDir::new().unwrap();
    let url = DatabaseUrl::sqlite(folder.path().join("missing").join("portcullis.db"));

    let refused = Store::open(&given::settings(url)).await.err();

    assert!(matches!(refused, Some(StoreError::Unavailable(_))), "{refused:?}");
}
