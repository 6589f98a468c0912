//! Work of all statements that the tests of the store run, counted where each table has 10 rows and where it has 10,000, on
//! both databases. It grows by a fifth at most when the rows double, for each row that is answered or changed. At the end of
//! a test the statements that no test before it ran are counted, in a transaction that is rolled back.

mod values;

use std::{
    process,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

use self::values::{ASKED, Column, Given, Use, filling, given, read_columns, use_of, values_of};
use rusqlite::{Connection, ToSql};
use serde_json::Value;
use tempfile::TempDir;
use tokio::sync::{Mutex, OnceCell};
use tokio_postgres::{SimpleQueryMessage, error::SqlState};

use crate::{
    database::{connect, make_database, server, template, url_of},
    prelude::*,
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
        *work = steps(place, sql, &filled.columns);
    }
    work
}

async fn fill_sqlite() -> (TempDir, Mutex<Filled>) {
    let folder = TempDir::new().unwrap();
    let mut columns = Vec::new();
    let places = [FEW, MANY].map(|rows| folder.path().join(format!("{rows}.db")));
    for (place, rows_of_each) in places.iter().zip([FEW, MANY]) {
        let settings = settings(DatabaseUrl::sqlite(place.clone()));
        Store::open(&settings).await.unwrap().close().await;
        let conn = Connection::open(place).unwrap();
        let pragmas = "PRAGMA foreign_keys = OFF; PRAGMA ignore_check_constraints = ON; PRAGMA synchronous = OFF";
        conn.execute_batch(pragmas).unwrap();
        let all = "SELECT m.name AS \"table\", c.name, c.type AS kind, c.\"notnull\" = 0 AS is_nullable FROM sqlite_schema m, pragma_table_xinfo(m.name) c \
                   WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%' AND m.name <> 'schema_migrations' \
                   AND c.hidden = 0 ORDER BY m.name, c.cid";
        let mut select = conn.prepare(all).unwrap();
        let rows = select
            .query_map((), |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))
            .unwrap();
        columns = read_columns(rows.map(Result::unwrap).collect());
        for insert in filling(&columns, rows_of_each, true) {
            conn.execute_batch(&insert).unwrap();
        }
    }
    let places = places.map(|place| place.to_str().unwrap().to_owned());
    (folder, Mutex::new(Filled { places, columns }))
}

fn steps(place: &str, sql: &str, columns: &[Column]) -> f64 {
    let mut conn = Connection::open(place).unwrap();
    // What refers to a row that is deleted is looked for, and not missed before the end.
    conn.execute_batch(
        "PRAGMA ignore_check_constraints = ON; BEGIN; PRAGMA defer_foreign_keys = ON",
    )
    .unwrap();
    let before = conn.total_changes();
    let steps = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&steps);
    let count = move || {
        counted.fetch_add(1, Relaxed);
        false
    };
    conn.progress_handler(1, Some(count)).unwrap();
    let mut query = conn.prepare(sql).unwrap_or_else(|error| panic!("{error}: {sql}"));
    for place in 1..=query.parameter_count() {
        let name = query.parameter_name(place).and_then(|name| name[1..].parse().ok());
        let value: Box<dyn ToSql> = match given(sql, name.unwrap_or(place), columns) {
            Given::Text(text) => Box::new(text),
            Given::Number(number) => Box::new(number),
            Given::Bytes(bytes) => Box::new(bytes),
        };
        query.raw_bind_parameter(place, value).unwrap();
    }
    let mut rows = query.raw_query();
    let mut answered = 0_u32;
    let ended = loop {
        match rows.next() {
            Ok(Some(_)) => answered += 1,
            Ok(None) => break Ok(()),
            Err(error) => break Err(error),
        }
    };
    drop(rows);
    let steps = u32::try_from(steps.load(Relaxed)).unwrap();
    if let (Err(error), false) = (ended, sql.starts_with("INSERT")) {
        panic!("{error}: {sql}");
    }
    let changed = u32::try_from(conn.total_changes() - before).unwrap();
    drop(query);
    conn.execute_batch("ROLLBACK").unwrap();
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
    let admin = connect(server).await;
    let places = [FEW, MANY].map(|rows| format!("portcullis_test_{}_{rows}_rows", process::id()));
    for (place, rows) in places.iter().zip([FEW, MANY]) {
        make_database(&admin, place, template(server).await).await;
        let (address, _) = server.rsplit_once('/').unwrap();
        let conn = connect(&format!("{address}/{place}")).await;
        let all = "SELECT c.relname::text AS \"table\", a.attname::text AS name, format_type(a.atttypid, NULL) AS kind, NOT a.attnotnull AS is_nullable \
                   FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid \
                   WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') \
                   AND NOT c.relispartition AND c.relname <> 'schema_migrations' AND a.attnum > 0 \
                   AND NOT a.attisdropped AND a.attgenerated = '' ORDER BY c.relname, a.attnum";
        let found = conn.query(all, &[]).await.unwrap();
        let found = found.iter().map(|row| (row.get(0), row.get(1), row.get(2), row.get(3)));
        columns = read_columns(found.collect());
        let free = "DO $$ DECLARE it RECORD; BEGIN \
                    FOR it IN SELECT conrelid::regclass AS place, conname FROM pg_constraint \
                    WHERE contype IN ('c', 'f') AND conparentid = 0 AND connamespace = 'public'::regnamespace \
                    LOOP EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', it.place, it.conname); \
                    END LOOP; END $$; SET session_replication_role = replica";
        conn.batch_execute(free).await.unwrap();
        for insert in filling(&columns, rows, false) {
            conn.batch_execute(&insert).await.unwrap();
        }
        conn.batch_execute("ANALYZE").await.unwrap();
    }
    Mutex::new(Filled { places: places.map(|place| url_of(server, &place)), columns })
}

async fn reads(place: &str, sql: &str, columns: &[Column]) -> f64 {
    let conn = connect(place).await;
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
    if let Err(error) = conn.batch_execute(&prepare).await {
        panic!("{error:?}: {sql}");
    }
    let types = "SELECT parameter_types::text[] FROM pg_prepared_statements WHERE name = 'counted'";
    let types: Vec<String> = conn.query_one(types, &[]).await.unwrap().get(0);
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
    let plan = conn.simple_query(&explain).await;
    // A row by the key of one that is there.
    if plan.as_ref().is_err_and(|error| error.code() == Some(&SqlState::UNIQUE_VIOLATION)) {
        return 0.0;
    }
    let plan = plan.unwrap_or_else(|error| panic!("{error:?}: {sql} {values}"));
    let plan: String = plan.iter().filter_map(first_column).collect();
    let plan: Value = serde_json::from_str(&plan).unwrap();
    let plan = &plan[0]["Plan"];
    let [read, answered] = read(plan);
    let blocks =
        ["Shared Hit Blocks", "Shared Read Blocks"].map(|it| plan[it].as_f64().unwrap_or(0.0));
    (read + blocks[0] + blocks[1]) / answered.max(1.0)
}

fn first_column(message: &SimpleQueryMessage) -> Option<String> {
    let SimpleQueryMessage::Row(row) = message else { return None };
    row.get(0).map(str::to_owned)
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
