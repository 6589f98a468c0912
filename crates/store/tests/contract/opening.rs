//! Opening a database: durability, schema versions, two processes on one file.

use crate::prelude::*;

on_both! {
    async fn a_commit_survives_a_power_loss_unless_told_otherwise(db: Database) {
        let found = db.durability().await.unwrap();

        // The PostgreSQL of the tests may be one that does not wait for its disk; then it says so.
        let relaxed = found.engine == "postgres" && !found.survives_power_loss();
        assert!(found.survives_power_loss() || relaxed, "{found:?}");
        assert!(found.synchronous != "off" || relaxed, "{found:?}");
        assert_eq!(found.journal, "wal");
        db.ping().await.unwrap();
    }

    async fn a_newer_schema_is_refused_and_named(db: Database) {
        db.execute("INSERT INTO schema_migrations (version, name) VALUES (9001, 'x')").await;

        let refused = Store::open(&db.settings).await.err();

        assert!(matches!(refused, Some(StoreError::NewerSchema { found: 9001, .. })), "{refused:?}");
        assert!(refused.unwrap().to_string().contains("9001"));
    }

    async fn a_database_is_opened_as_it_is_with_the_schema_of_this_build_alone(db: Database) {
        let current = Store::open_as_it_is(&db.settings).await.unwrap();
        db.execute("DELETE FROM schema_migrations").await;

        let older = Store::open_as_it_is(&db.settings).await.unwrap();
        let again = Store::open_as_it_is(&db.settings).await.unwrap();

        assert!(current.is_some());
        assert!(older.is_none() && again.is_none(), "nothing is migrated");
        let refused = Store::refuse_other_schema(&db.settings).await;
        assert_eq!(refused, Err(StoreError::OlderSchema { found: 0, known: 1 }));
    }

    async fn a_database_of_an_older_build_is_refused_and_stays_as_it_is(db: Database) {
        let org = org(&db, 1).await;
        let others = [
            ("UPDATE schema_migrations SET name = 'x' || name", "UPDATE schema_migrations SET name = substr(name, 2)"),
            ("UPDATE schema_migrations SET version = 2", "UPDATE schema_migrations SET version = 1"),
            (
                "UPDATE schema_migrations SET name = 'x' || name; \
                 INSERT INTO schema_migrations (version, name) VALUES (2, '0002_identity'), (50, '0050_search_words')",
                "DELETE FROM schema_migrations WHERE version > 1; UPDATE schema_migrations SET name = substr(name, 2)",
            ),
        ];

        for (other, same) in others {
            db.execute(other).await;
            for _ in 0..2 {
                assert_eq!(Store::open(&db.settings).await.err(), Some(StoreError::OlderBuild), "{other}");
            }
            let looked_at = Store::refuse_other_schema(&db.settings).await;
            assert_eq!(looked_at, Err(StoreError::OlderBuild), "{other}");
            assert!(Store::open_as_it_is(&db.settings).await.unwrap().is_none(), "{other}");
            db.execute(same).await;
            let again = Store::open(&db.settings).await.unwrap();
            assert!(again.find_org(org).await.unwrap().is_some(), "{other}");
        }
        let told = StoreError::OlderBuild.to_string();
        assert!(told.contains("older build") && told.contains("`portcullis audit export`"), "{told}");
    }

    async fn what_was_stored_is_there_after_opening_again(db: Database) {
        let org = org(&db, 1).await;
        db.close().await;

        let again = Store::open(&db.settings).await.unwrap();

        assert!(again.find_org(org).await.unwrap().is_some());
    }

    async fn two_who_open_at_once_write_side_by_side(db: Database) {
        let org = org(&db, 1).await;
        let mut writers = JoinSet::new();
        for handle in 0..2 {
            let settings = db.settings.clone();
            writers.spawn(async move {
                let store = Store::open(&settings).await.unwrap();
                for n in 0..100 {
                    user(&store, org, handle * 1000 + n).await;
                }
            });
        }

        writers.join_all().await;

        assert_eq!(db.list_principals(org).await.unwrap().len(), 200);
    }
}

#[tokio::test]
async fn a_new_file_has_pages_of_the_usual_size() {
    let folder = tempfile::TempDir::new().unwrap();
    let path = folder.path().join("portcullis.db");
    let settings = settings(DatabaseUrl::sqlite(path.clone()));
    Store::open(&settings).await.unwrap().close().await;

    let head = std::fs::read(path).unwrap();

    // https://www.sqlite.org/fileformat.html#page_size
    assert_eq!(head[16..18], 4096_u16.to_be_bytes());
}

#[tokio::test]
async fn process_crash_safety_is_synchronous_normal() {
    let folder = tempfile::TempDir::new().unwrap();
    let url = DatabaseUrl::sqlite(folder.path().join("portcullis.db"));
    let settings = DatabaseSettings { sync: Sync::ProcessCrash, ..settings(url) };

    let found = Store::open(&settings).await.unwrap().durability().await.unwrap();

    assert_eq!((found.synchronous.as_str(), found.survives_power_loss()), ("normal", false));
}

#[tokio::test]
async fn a_folder_that_does_not_exist_is_unavailable() {
    let folder = tempfile::TempDir::new().unwrap();
    let url = DatabaseUrl::sqlite(folder.path().join("missing").join("portcullis.db"));

    let refused = Store::open(&settings(url)).await.err();

    assert!(matches!(refused, Some(StoreError::Unavailable(_))), "{refused:?}");
}
