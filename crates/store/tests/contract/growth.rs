//! Work of all statements that the tests of the store run, counted where each table has 10 rows and where it has 10,000, on
//! both databases. It grows by a fifth at most when the rows double, for each row that is answered or changed. At the end of
//! a test the statements that no test before it ran are counted, in a transaction that is rolled back.

mod values;

use std::{
    process,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use futures_util::TryStreamExt as _;
use portcullis_store::{DatabaseUrl, Store};
use serde_json::Value;
use sqlx::{
    AssertSqlSafe, Connection, Executor as _, PgConnection, Row as _, SqliteConnection,
    error::DatabaseError,
};
use tempfile::TempDir;
use tokio::sync::{Mutex, OnceCell};

use self::values::{ASKED, Column, Given, Use, filling, given, read_columns, use_of, values_of};
use crate::{
    database::{make_database, server, template, url_of},
    given as scene,
};

const FEW: u32 = 10;
const MANY: u32 = 10_000;
/// A fifth for each of the ten times that the rows double.
const GROWTH: f64 = 6.2;
/// Steps, or blocks and rows, that say nothing about growth.
const LITTLE: f64 = 40.0;

/// Statements whose work grows, by a text in them; each with the reason.
const EXCEPTIONS: [(&str, &str); 3] = [
    ("(SELECT COUNT(*) FROM audit_seals s", "all places of the part that it is asked about"),
    ("AND ($4 IS NULL OR e.actor_id = $4 OR e.via = $4)", "an erasure reads the log once"),
    ("(said, $3) > 0", "asked for the groups of a policy set, and logins are deleted in time"),
];

/// Databases with few and with many rows, made once.
struct Filled {
    places: [String; 2],
    columns: Vec<Column>,
}

/// Returns true if the work for a row grows by more than a fifth when the rows double.
fn grows([few, many]: [f64; 2]) -> bool {
    many > GROWTH * few.max(LITTLE)
}

/// Fails for a statement whose work grows.
pub(crate) async fn check_on_sqlite(sql: &str) {
    if is_counted(sql) {
        assert_even(sql, work_on_sqlite(sql).await);
    }
}

/// Fails for a statement whose work grows.
pub(crate) async fn check_on_postgres(sql: &str) {
    if is_counted(sql) && !sql.contains("::regclass") {
        assert_even(sql, work_on_postgres(sql).await);
    }
}

fn assert_even(sql: &str, work: [f64; 2]) {
    let is_exception = EXCEPTIONS.iter().any(|(of, _)| sql.contains(of));
    assert!(!grows(work) || is_exception, "{work:?}: {sql}");
}

fn is_counted(sql: &str) -> bool {
    ["SELECT", "INSERT", "UPDATE", "DELETE", "WITH"].iter().any(|verb| sql.starts_with(verb))
}

/// Counts a statement of SQLite, in steps of its virtual machine.
async fn work_on_sqlite(sql: &str) -> [f64; 2] {
    static FILLED: OnceCell<(TempDir, Mutex<Filled>)> = OnceCell::const_new();
    let (_, filled) = FILLED.get_or_init(fill_sqlite).await;
    let filled = filled.lock().await;
    let mut work = [0.0; 2];
    for (work, place) in work.iter_mut().zip(&filled.places) {
        *work = steps(place, sql, &filled.columns).await;
    }
    work
}

async fn fill_sqlite() -> (TempDir, Mutex<Filled>) {
    let folder = TempDir::new().unwrap();
    let mut columns = Vec::new();
    let places = [FEW, MANY].map(|rows| folder.path().join(format!("{rows}.db")));
    for (place, rows) in places.iter().zip([FEW, MANY]) {
        let settings = scene::settings(DatabaseUrl::sqlite(place.clone()));
        Store::open(&settings).await.unwrap().close().await;
        let mut conn = SqliteConnection::connect(place.to_str().unwrap()).await.unwrap();
        let pragmas = "PRAGMA foreign_keys = OFF; PRAGMA ignore_check_constraints = ON; PRAGMA synchronous = OFF";
        conn.execute(pragmas).await.unwrap();
        let all = "SELECT m.name AS \"table\", c.name, c.type AS kind, c.\"notnull\" = 0 AS is_nullable FROM sqlite_schema m, pragma_table_xinfo(m.name) c \
                   WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%' AND m.name <> 'schema_migrations' \
                   AND c.hidden = 0 ORDER BY m.name, c.cid";
        columns = read_columns(sqlx::query_as(all).fetch_all(&mut conn).await.unwrap());
        for insert in filling(&columns, rows, true) {
            conn.execute(AssertSqlSafe(insert)).await.unwrap();
        }
        conn.close().await.unwrap();
    }
    let places = places.map(|place| place.to_str().unwrap().to_owned());
    (folder, Mutex::new(Filled { places, columns }))
}

async fn steps(place: &str, sql: &str, columns: &[Column]) -> f64 {
    let mut conn = SqliteConnection::connect(place).await.unwrap();
    // What refers to a row that is deleted is looked for, and not missed before the end.
    conn.execute("PRAGMA ignore_check_constraints = ON; BEGIN; PRAGMA defer_foreign_keys = ON")
        .await
        .unwrap();
    let before: i64 =
        sqlx::query_scalar("SELECT total_changes()").fetch_one(&mut conn).await.unwrap();
    let steps = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&steps);
    conn.lock_handle().await.unwrap().set_progress_handler(1, move || {
        counted.fetch_add(1, Relaxed);
        true
    });
    let mut query = sqlx::query(AssertSqlSafe(sql.to_owned()));
    for place in 1..=values_of(sql) {
        query = match given(sql, place, columns) {
            Given::Text(text) => query.bind(text),
            Given::Number(number) => query.bind(number),
            Given::Bytes(bytes) => query.bind(bytes),
        };
    }
    let done = conn.fetch_many(query).try_filter(|it| std::future::ready(it.is_right()));
    let answered: Result<Vec<_>, _> = done.try_collect().await;
    conn.lock_handle().await.unwrap().remove_progress_handler();
    let answered = if sql.starts_with("INSERT") {
        answered.unwrap_or_default()
    } else {
        answered.unwrap_or_else(|error| panic!("{error}: {sql}"))
    }
    .len();
    let after: i64 =
        sqlx::query_scalar("SELECT total_changes()").fetch_one(&mut conn).await.unwrap();
    let changed = u32::try_from(after - before).unwrap();
    let answered = u32::try_from(answered).unwrap();
    let steps = u32::try_from(steps.load(Relaxed)).unwrap();
    conn.execute("ROLLBACK").await.unwrap();
    conn.close().await.unwrap();
    f64::from(steps) / f64::from(answered.max(changed).max(1))
}

/// Counts a statement of PostgreSQL, in blocks and rows that its plan reads. It reads a table of this size as a whole where
/// it expects more than some rows, and is told not to: in larger tables, it does not.
async fn work_on_postgres(sql: &str) -> [f64; 2] {
    static FILLED: OnceCell<Mutex<Filled>> = OnceCell::const_new();
    let server = server().unwrap();
    let filled = FILLED.get_or_init(async || fill_postgres(&server).await).await.lock().await;
    let mut work = [0.0; 2];
    for (work, place) in work.iter_mut().zip(&filled.places) {
        *work = reads(place, sql, &filled.columns).await;
    }
    work
}

async fn fill_postgres(server: &str) -> Mutex<Filled> {
    let mut columns = Vec::new();
    let mut admin = PgConnection::connect(server).await.unwrap();
    let places = [FEW, MANY].map(|rows| format!("portcullis_test_{}_{rows}_rows", process::id()));
    for (place, rows) in places.iter().zip([FEW, MANY]) {
        make_database(&mut admin, place, template(server).await).await;
        let (address, _) = server.rsplit_once('/').unwrap();
        let mut conn = PgConnection::connect(&format!("{address}/{place}")).await.unwrap();
        let all = "SELECT c.relname::text AS \"table\", a.attname::text AS name, format_type(a.atttypid, NULL) AS kind, NOT a.attnotnull AS is_nullable \
                   FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid \
                   WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') \
                   AND NOT c.relispartition AND c.relname <> 'schema_migrations' AND a.attnum > 0 \
                   AND NOT a.attisdropped AND a.attgenerated = '' ORDER BY c.relname, a.attnum";
        columns = read_columns(sqlx::query_as(all).fetch_all(&mut conn).await.unwrap());
        let free = "DO $$ DECLARE it RECORD; BEGIN \
                    FOR it IN SELECT conrelid::regclass AS place, conname FROM pg_constraint \
                    WHERE contype IN ('c', 'f') AND conparentid = 0 AND connamespace = 'public'::regnamespace \
                    LOOP EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', it.place, it.conname); \
                    END LOOP; END $$; SET session_replication_role = replica";
        conn.execute(free).await.unwrap();
        for insert in filling(&columns, rows, false) {
            conn.execute(AssertSqlSafe(insert)).await.unwrap();
        }
        conn.execute("ANALYZE").await.unwrap();
        conn.close().await.unwrap();
    }
    Mutex::new(Filled { places: places.map(|place| url_of(server, &place)), columns })
}

async fn reads(place: &str, sql: &str, columns: &[Column]) -> f64 {
    let mut conn = PgConnection::connect(place).await.unwrap();
    // As the store does, all that has a type of the store's is given with it.
    let declared = (1..=values_of(sql)).map(|place| {
        let is_cast =
            sql.contains(&format!("${place}::")) && !sql.contains(&format!("${place}::json"));
        match given(sql, place, columns) {
            _ if matches!(use_of(sql, place, columns), Use::Unknown) => {
                let is_filter = sql.contains(&format!("${place} IS NULL"));
                if is_filter { "text" } else { "unknown" }
            }
            _ if is_cast || sql.contains(&format!("ANY(${place})")) => "unknown",
            Given::Text(_) => "text",
            Given::Number(_) => "bigint",
            Given::Bytes(_) => "bytea",
        }
    });
    let declared = declared.collect::<Vec<_>>().join(", ");
    let scope = if sql.contains("INSERT INTO") { "installation = 'on'" } else { "org = 'org'" };
    let prepare = format!(
        "BEGIN; SET LOCAL enable_seqscan = off; SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off; SET LOCAL portcullis.{scope}; PREPARE counted({declared}) AS {sql}"
    );
    let prepare = prepare.replace("counted()", "counted");
    if let Err(error) = sqlx::raw_sql(AssertSqlSafe(prepare)).execute(&mut conn).await {
        panic!("{error}: {sql}");
    }
    let types = "SELECT parameter_types::text[] FROM pg_prepared_statements WHERE name = 'counted'";
    let types: Vec<String> = sqlx::query_scalar(types).fetch_one(&mut conn).await.unwrap();
    let values = types.iter().enumerate().map(|(place, of)| {
        let value = match given(sql, place + 1, columns) {
            Given::Number(number) => number.to_string(),
            _ if ["bigint", "integer", "numeric"].iter().any(|it| of.starts_with(it)) => {
                ASKED.to_string()
            }
            _ if of.starts_with("boolean") => "true".to_owned(),
            Given::Text(text) => format!("'{text}'"),
            Given::Bytes(bytes) => format!("'{}'", String::from_utf8(bytes).unwrap()),
        };
        if of.ends_with("[]") { format!("ARRAY[{value}]::{of}") } else { value }
    });
    let values = values.collect::<Vec<_>>().join(", ");
    let values = if values.is_empty() { values } else { format!("({values})") };
    let explain =
        format!("EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) EXECUTE counted{values}");
    let plan = sqlx::raw_sql(AssertSqlSafe(explain)).fetch_one(&mut conn).await;
    // A row by the key of one that is there.
    if plan.as_ref().is_err_and(|error| {
        error.as_database_error().is_some_and(DatabaseError::is_unique_violation)
    }) {
        return 0.0;
    }
    let plan = plan.unwrap_or_else(|error| panic!("{error}: {sql} {values}"));
    let plan: String = plan.get_unchecked(0);
    let plan: Value = serde_json::from_str(&plan).unwrap();
    conn.close().await.unwrap();
    let plan = &plan[0]["Plan"];
    let [read, answered] = read(plan);
    let blocks =
        ["Shared Hit Blocks", "Shared Read Blocks"].map(|it| plan[it].as_f64().unwrap_or(0.0));
    (read + blocks[0] + blocks[1]) / answered.max(1.0)
}

/// The rows that a plan reads and answers or changes.
fn read(plan: &Value) -> [f64; 2] {
    let number = |name: &str| plan[name].as_f64().unwrap_or(0.0);
    let rows = number("Actual Rows");
    let removed = ["Filter", "Join Filter", "Index Recheck"]
        .map(|by| number(&format!("Rows Removed by {by}")));
    let mut all = (rows + removed.iter().sum::<f64>()) * number("Actual Loops");
    let mut answered = rows;
    for below in plan["Plans"].as_array().into_iter().flatten() {
        let [read, changed] = read(below);
        all += read;
        if plan["Node Type"] == "ModifyTable" {
            answered = answered.max(changed);
        }
    }
    [all, answered]
}

const READS_ALL: &str =
    "SELECT COUNT(*) FROM tokens WHERE org_id = $1 AND label = $2 /* of tests */";
const READS_ONE: &str = "SELECT COUNT(*) FROM tokens WHERE org_id = $1 AND id = $2 /* of tests */";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_statement_that_reads_all_rows_of_an_org_is_found_to_grow_on_sqlite() {
    assert!(grows(work_on_sqlite(READS_ALL).await));
    assert!(!grows(work_on_sqlite(READS_ONE).await));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_statement_that_reads_all_rows_of_an_org_is_found_to_grow_on_postgres() {
    if server().is_some() {
        assert!(grows(work_on_postgres(READS_ALL).await));
        assert!(!grows(work_on_postgres(READS_ONE).await));
    }
}
