//! The wall behind the statements: PostgreSQL itself keeps the rows of an org from the others.

use tokio_postgres::{Client, SimpleQueryMessage};

use crate::database;
use crate::prelude::*;

/// Something in many tables for the `n`th org.
async fn tenant(store: &Store, n: u32) -> String {
    let org = org(store, n).await;
    let user = user(store, org, n).await;
    store.insert_token(&token(org, user, n), &hash(n)).await.unwrap();
    append_all(store, vec![event(org, n)]).await;
    store.seal(org, leaf).await.unwrap();
    let (writer, _tasks) = writer(store);
    writer.intent(keyed_intent(org, n + 100, "digest"), soon()).await.unwrap();
    assert!(change(&writer, &approval(org, n, "call"), None, n + 200).await);
    org.to_string()
}

async fn connect(db: &Database) -> Client {
    database::connect(&db.url()).await
}

/// Rows that the last of these statements changed.
async fn run(conn: &Client, sql: &str) -> Result<u64, String> {
    let done = conn.simple_query(sql).await;
    let done = done.map_err(|error| error.as_db_error().unwrap().message().to_owned())?;
    match done.last() {
        Some(SimpleQueryMessage::CommandComplete(rows)) => Ok(*rows),
        other => panic!("{other:?}"),
    }
}

/// Every table that holds what belongs to an org, with the column that says whose it is.
async fn tables(conn: &Client) -> Vec<(String, &'static str)> {
    let tables = "SELECT c.relname::text FROM pg_class c \
                  JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'org_id' \
                  WHERE c.relnamespace = current_schema()::regnamespace \
                  AND c.relkind IN ('r', 'p')";
    let tables = conn.query(tables, &[]).await.unwrap();
    let tables = tables.iter().map(|row| (row.get(0), "org_id"));
    tables.chain([("orgs".to_owned(), "id")]).collect()
}

/// Orgs of the rows that the connection sees without naming one.
async fn orgs_in(conn: &Client, table: &str, column: &str) -> Vec<String> {
    let all = format!("SELECT DISTINCT {column} FROM {table} ORDER BY {column}");
    conn.query(&all, &[]).await.unwrap().iter().map(|row| row.get(0)).collect()
}

on_postgres! {
    async fn every_table_with_an_org_is_walled_also_for_its_owner(db: Database) {
        let conn = connect(&db).await;

        for (table, _) in tables(&conn).await {
            let wall = "SELECT c.relrowsecurity, c.relforcerowsecurity, c.relispartition, \
                        EXISTS (SELECT 1 FROM pg_policy p WHERE p.polrelid = c.oid \
                                AND p.polname = 'of_one_org') \
                        FROM pg_class c WHERE c.oid = $1::text::regclass";
            let wall = conn.query_one(wall, &[&table]).await.unwrap();
            let [enabled, forced, partition, policy] = [0, 1, 2, 3].map(|n| wall.get::<_, bool>(n));
            assert!(enabled && forced, "{table} has no row-level security");
            // A partition has no policy of its own: asked directly it shows nothing.
            assert!(policy != partition, "{table}");
        }
        assert_eq!(db.durability().await.unwrap().row_security, Some(true));
    }

    async fn a_statement_that_names_no_org_sees_and_touches_no_other(db: Database) {
        let orgs = [tenant(&db, 1).await, tenant(&db, 2).await];
        let conn = connect(&db).await;
        let mut filled = 0;

        for (table, column) in tables(&conn).await {
            assert!(orgs_in(&conn, &table, column).await.is_empty(), "{table} without a scope");
            let ours = format!("BEGIN; SET LOCAL portcullis.org = '{}'", orgs[0]);
            run(&conn, &ours).await.unwrap();
            let one = orgs_in(&conn, &table, column).await;
            assert!(one.iter().all(|org| *org == orgs[0]), "{table}: {one:?}");
            run(&conn, "ROLLBACK").await.unwrap();
            assert!(orgs_in(&conn, &table, column).await.is_empty(), "{table} keeps no scope");
            run(&conn, "BEGIN; SET LOCAL portcullis.installation = 'on'").await.unwrap();
            let all = orgs_in(&conn, &table, column).await;
            run(&conn, "ROLLBACK").await.unwrap();
            if all.len() == 2 {
                assert_eq!((all, one), (orgs.to_vec(), vec![orgs[0].clone()]), "{table}");
                filled += 1;
            }
        }
        assert!(filled >= 9, "too little was looked at: {filled}");
        let ours = format!("BEGIN; SET LOCAL portcullis.org = '{}'", orgs[0]);
        run(&conn, &ours).await.unwrap();
        assert_eq!(run(&conn, "UPDATE tokens SET label = 'x'").await.unwrap(), 1);
        assert_eq!(run(&conn, "DELETE FROM audit_intents").await.unwrap(), 1);
        let theirs = format!("UPDATE tokens SET org_id = '{}'", orgs[1]);
        let refused = run(&conn, &theirs).await.unwrap_err();
        assert!(refused.contains("row-level security"), "{refused}");
    }
}
