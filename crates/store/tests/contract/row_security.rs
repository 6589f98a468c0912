//! The wall behind the statements: PostgreSQL itself keeps the rows of an org from the others.

use portcullis_store::Store;
use sqlx::{AssertSqlSafe, Connection, PgConnection, Row};

use crate::{
    database::Database,
    given::{self, append_all, approval, event, hash, keyed_intent, leaf, soon, token, writer},
};

/// Something in many tables for the `n`th org.
async fn tenant(store: &Store, n: u32) -> String {
    let org = given::org(store, n).await;
    let user = given::user(store, org, n).await;
    store.insert_token(&token(org, user, n), &hash(n)).await.unwrap();
    append_all(store, vec![event(org, n)]).await;
    store.seal(org, leaf).await.unwrap();
    let (writer, _tasks) = writer(store);
    writer.intent(keyed_intent(org, n + 100, "digest"), soon()).await.unwrap();
    assert!(given::change(&writer, &approval(org, n, "call"), None, n + 200).await);
    org.to_string()
}

async fn connect(db: &Database) -> PgConnection {
    PgConnection::connect(&db.url()).await.unwrap()
}

async fn run(conn: &mut PgConnection, sql: &str) -> Result<u64, sqlx::Error> {
    sqlx::raw_sql(AssertSqlSafe(sql)).execute(conn).await.map(|done| done.rows_affected())
}

/// Every table that holds what belongs to an org, with the column that says whose it is.
async fn tables(conn: &mut PgConnection) -> Vec<(String, &'static str)> {
    let tables = "SELECT c.relname::text FROM pg_class c \
                  JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'org_id' \
                  WHERE c.relnamespace = current_schema()::regnamespace \
                  AND c.relkind IN ('r', 'p')";
    let tables: Vec<String> = sqlx::query_scalar(tables).fetch_all(conn).await.unwrap();
    let tables = tables.into_iter().map(|table| (table, "org_id"));
    tables.chain([("orgs".to_owned(), "id")]).collect()
}

/// Orgs of the rows that the connection sees without naming one.
async fn orgs_in(conn: &mut PgConnection, table: &str, column: &str) -> Vec<String> {
    let all = AssertSqlSafe(format!("SELECT DISTINCT {column} FROM {table} ORDER BY {column}"));
    sqlx::query_scalar(all).fetch_all(conn).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_table_with_an_org_is_walled_also_for_its_owner() {
    Database::on_postgres(|db| async move {
        let mut conn = connect(&db).await;

        for (table, _) in tables(&mut conn).await {
            let wall = "SELECT c.relrowsecurity, c.relforcerowsecurity, c.relispartition, \
                        EXISTS (SELECT 1 FROM pg_policy p WHERE p.polrelid = c.oid \
                                AND p.polname = 'of_one_org') \
                        FROM pg_class c WHERE c.oid = $1::regclass";
            let wall = sqlx::query(wall).bind(&table).fetch_one(&mut conn).await.unwrap();
            let [enabled, forced, partition, policy] = [0, 1, 2, 3].map(|n| wall.get::<bool, _>(n));
            assert!(enabled && forced, "{table} has no row-level security");
            // A partition has no policy of its own: asked directly it shows nothing.
            assert!(policy != partition, "{table}");
        }
        assert_eq!(db.store.durability().await.unwrap().row_security, Some(true));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_statement_that_names_no_org_sees_and_touches_no_other() {
    Database::on_postgres(|db| async move {
        let orgs = [tenant(&db.store, 1).await, tenant(&db.store, 2).await];
        let mut conn = connect(&db).await;
        let mut filled = 0;

        for (table, column) in tables(&mut conn).await {
            assert!(orgs_in(&mut conn, &table, column).await.is_empty(), "{table} without a scope");
            let ours = format!("BEGIN; SET LOCAL portcullis.org = '{}'", orgs[0]);
            run(&mut conn, &ours).await.unwrap();
            let one = orgs_in(&mut conn, &table, column).await;
            assert!(one.iter().all(|org| *org == orgs[0]), "{table}: {one:?}");
            run(&mut conn, "ROLLBACK").await.unwrap();
            assert!(orgs_in(&mut conn, &table, column).await.is_empty(), "{table} keeps no scope");
            run(&mut conn, "BEGIN; SET LOCAL portcullis.installation = 'on'").await.unwrap();
            let all = orgs_in(&mut conn, &table, column).await;
            run(&mut conn, "ROLLBACK").await.unwrap();
            if all.len() == 2 {
                assert_eq!((all, one), (orgs.to_vec(), vec![orgs[0].clone()]), "{table}");
                filled += 1;
            }
        }
        assert!(filled >= 9, "too little was looked at: {filled}");
        let ours = format!("BEGIN; SET LOCAL portcullis.org = '{}'", orgs[0]);
        run(&mut conn, &ours).await.unwrap();
        assert_eq!(run(&mut conn, "UPDATE tokens SET label = 'x'").await.unwrap(), 1);
        assert_eq!(run(&mut conn, "DELETE FROM audit_intents").await.unwrap(), 1);
        let theirs = format!("UPDATE tokens SET org_id = '{}'", orgs[1]);
        let refused = run(&mut conn, &theirs).await.unwrap_err().to_string();
        assert!(refused.contains("row-level security"), "{refused}");
    })
    .await;
}
