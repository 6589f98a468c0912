//! Work of all statements that the tests of the store run, counted where each table has 10 rows and where it has 10,000, on
//! both databases. It grows by a fifth at most when the rows double, for each row that is answered or changed. At the end of
//! a test the statements that no test before it ran are counted, in a transaction that is rolled back.

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

use crate::{
    database::{make_database, server, template, url_of},
    given::{self, NOW},
    statements::SMALL,
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

/// Columns that hold JSON.
const LISTS: [&str; 4] = ["groups", "provisioned_groups", "lineage", "said"];

/// Words that statements look for, by the column.
const WORDS: [(&str, &[&str]); 8] = [
    ("kind", &["user", "refresh", "service"]),
    ("status", &["pending", "approved", "connected", "ready"]),
    ("method", &["token", "key", "login"]),
    ("type", &["mcp.invocation", "token.issued"]),
    ("decision", &["allow", "deny"]),
    ("dlp_result", &["passed", "redacted"]),
    ("outcome", &["success", "failed"]),
    ("role", &["admin", "member"]),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Number,
    Bytes,
}

impl From<String> for Kind {
    fn from(name: String) -> Self {
        match name.as_str() {
            "TEXT" | "text" => Self::Text,
            "INTEGER" | "bigint" => Self::Number,
            "BLOB" | "bytea" => Self::Bytes,
            other => panic!("another type of column: {other}"),
        }
    }
}

#[derive(Debug)]
struct Column {
    table: String,
    name: String,
    kind: Kind,
    is_nullable: bool,
}

/// The row whose values statements ask for.
const ASKED: i64 = 5;

/// Databases with few and with many rows, made once.
struct Filled {
    places: [String; 2],
    columns: Vec<Column>,
}

/// Value of a row's column in SQL, by the number `n` of the row.
fn value_of(column: &Column, rows: u32, is_sqlite: bool) -> String {
    let Column { table, name, kind, is_nullable } = column;
    let text = if is_sqlite { "'x' || printf('%06d', n)" } else { "'x' || lpad(n::text, 6, '0')" };
    let words = WORDS.iter().find(|(of, _)| of == name && *kind == Kind::Text);
    let value = match (table.as_str(), name.as_str(), kind) {
        (_, "org_id", _) => return "'org'".to_owned(),
        ("orgs", "id", _) => format!("CASE n WHEN {ASKED} THEN 'org' ELSE {text} END"),
        ("audit_floor" | "audit_heads", _, Kind::Number) => rows.to_string(),
        // All begin as asked.
        ("search_words", "word", _) => format!("'x{ASKED:06} ' || {text}"),
        (_, name, _) if LISTS.contains(&name) => format!("'[\"' || {text} || '\"]'"),
        (_, "kind", Kind::Number) => "n % 10 + 1".to_owned(),
        (_, name, Kind::Number) if name.ends_with("_at") => format!("{} + n", NOW.as_micros()),
        (_, _, Kind::Number) => "n".to_owned(),
        (_, _, Kind::Text) => words.map_or_else(
            || text.to_owned(),
            |(_, words)| {
                let cases = words.iter().enumerate();
                let cases = cases.map(|(place, word)| format!("WHEN {place} THEN '{word}' "));
                format!("CASE n % {} {}END", words.len(), cases.collect::<String>())
            },
        ),
        (_, _, Kind::Bytes) if is_sqlite => format!("CAST({text} AS BLOB)"),
        (_, _, Kind::Bytes) => format!("convert_to({text}, 'UTF8')"),
    };
    // What has ended says when: every other row has not.
    if *is_nullable && *kind == Kind::Number {
        return format!("CASE n % 2 WHEN 0 THEN {value} END");
    }
    value
}

/// Statements that fill the tables.
fn filling(columns: &[Column], rows: u32, is_sqlite: bool) -> Vec<String> {
    columns
        .chunk_by(|one, next| one.table == next.table)
        .map(|columns| {
            let table = &columns[0].table;
            let number = if SMALL.iter().any(|(small, _)| small == table) { FEW } else { rows };
            let names: Vec<_> = columns.iter().map(|it| format!("\"{}\"", it.name)).collect();
            let values: Vec<_> = columns.iter().map(|it| value_of(it, rows, is_sqlite)).collect();
            format!(
                "INSERT INTO {table} ({}) WITH RECURSIVE numbers (n) AS \
                 (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {number}) \
                 SELECT {} FROM numbers WHERE TRUE ON CONFLICT DO NOTHING",
                names.join(", "),
                values.join(", "),
            )
        })
        .collect()
}

/// What a value of a statement is about.
enum Use<'a> {
    /// It is compared with a column of this name, or put into it.
    Column(&'a Column),
    /// It is a number of rows.
    Rows,
    /// It is a list in JSON.
    List,
    Unknown,
}

/// The use of a statement's `place`th value, as far as that can be seen.
fn use_of<'a>(sql: &str, place: usize, columns: &'a [Column]) -> Use<'a> {
    let named = |name: &str| {
        let mut those = columns.iter().filter(|it| sql.contains(it.table.as_str()));
        those.find(|it| it.name == name).map(Use::Column)
    };
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let name = format!("${place}");
    for (at, _) in sql.match_indices(&name) {
        let after = &sql[at + name.len()..];
        if after.starts_with(|c: char| c.is_ascii_digit()) {
            continue;
        }
        let before = sql[..at].trim_end_matches(|c: char| " \n(=<>|+-".contains(c));
        let before = ["IS DISTINCT FROM", "IS NOT DISTINCT FROM", "IS NOT", "IS", "NOT IN", "IN"]
            .iter()
            .find_map(|it| before.strip_suffix(it))
            .map_or(before, str::trim_end);
        // The first of `COALESCE(column, $1)`.
        let before = before.strip_suffix(',').filter(|it| is_coalesced(it)).unwrap_or(before);
        let (_, last) = before.rsplit_once(|c| !is_word(c)).unwrap_or(("", before));
        let next = after.trim_start_matches([' ', '=', '<', '>']);
        let next = &next[..next.find(|c| !is_word(c) && c != '.').unwrap_or(next.len())];
        let compared = if after.trim_start().starts_with(['=', '<', '>']) { next } else { "" };
        return match last {
            "LIMIT" | "OFFSET" => Use::Rows,
            "json_each" | "jsonb_array_elements" | "jsonb_array_elements_text" => Use::List,
            _ => {
                let column = named(last).or_else(|| named(compared.rsplit('.').next()?));
                let Some(column) = column else { continue };
                column
            }
        };
    }
    inserted(sql, &name).and_then(named).unwrap_or(Use::Unknown)
}

/// Returns true for a text that ends in `COALESCE(column`.
fn is_coalesced(text: &str) -> bool {
    let open = text.trim_end_matches(|c: char| c.is_alphanumeric() || "_.".contains(c));
    open.ends_with("COALESCE(")
}

/// The column that a value is put into.
fn inserted<'a>(sql: &'a str, value: &str) -> Option<&'a str> {
    let (_, inserted) = sql.split_once("INSERT INTO ")?;
    let (names, values) = inserted.split_once('(')?.1.split_once(')')?;
    let values = values.split_once("VALUES").or_else(|| values.split_once("SELECT"))?.1;
    let values = values.trim_start().trim_start_matches('(').split([')', 'W', 'F']).next()?;
    let position = values.split(',').position(|it| it.trim() == value)?;
    names.split(',').nth(position).map(str::trim)
}

/// What a statement is given: of a row that is there, or what is new if it inserts.
#[derive(Debug)]
enum Given {
    Text(String),
    Number(i64),
    Bytes(Vec<u8>),
}

fn given(sql: &str, place: usize, columns: &[Column]) -> Given {
    let asked = if sql.contains("INSERT INTO") { "new".to_owned() } else { format!("x{ASKED:06}") };
    match use_of(sql, place, columns) {
        Use::Rows => Given::Number(ASKED),
        Use::List if sql.contains("value ->>") => {
            let row = ["\"00\"", "5"].map(|it| [it; 10]).concat().join(",");
            Given::Text(format!("[[{row}]]"))
        }
        Use::List if sql.contains("CAST(value AS") => Given::Text(format!("[{ASKED}]")),
        Use::List => Given::Text(format!("[{asked:?}]")),
        Use::Column(Column { name, .. }) if name == "org_id" => Given::Text("org".to_owned()),
        Use::Column(Column { name, kind: Kind::Number, .. }) => Given::Number(match name {
            name if name.ends_with("_at") => NOW.as_micros() + ASKED,
            _ => ASKED,
        }),
        Use::Column(Column { name, kind: Kind::Text, .. }) => {
            let words = WORDS.iter().find(|(of, _)| of == name);
            Given::Text(words.map_or(asked, |(_, words)| words[1].to_owned()))
        }
        Use::Column(Column { kind: Kind::Bytes, .. }) => Given::Bytes(asked.into_bytes()),
        Use::Unknown => Given::Text(asked),
    }
}

fn values_of(sql: &str) -> usize {
    (1..100).take_while(|place| sql.contains(&format!("${place}"))).count()
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
        let settings = given::settings(DatabaseUrl::sqlite(place.clone()));
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

type ColumnRow = (String, String, String, bool);

fn read_columns(rows: Vec<ColumnRow>) -> Vec<Column> {
    let rows = rows.into_iter();
    rows.map(|(table, name, kind, is_nullable)| Column {
        table,
        name,
        kind: Kind::from(kind),
        is_nullable,
    })
    .collect()
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

const READS_ALL: &str = "SELECT COUNT(*) FROM tokens WHERE org_id = $1 AND label = $2";
const READS_ONE: &str = "SELECT COUNT(*) FROM tokens WHERE org_id = $1 AND id = $2";

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
