//! Statements that the tests of the store run. At the end of a test, those that no test before it ran are explained on
//! SQLite, which plans by indexes alone: none reads the rows of an org one by one, least of all again and again. Their work
//! is counted on both databases ([`growth`]).

use std::{
    collections::BTreeSet,
    fmt::Debug,
    fs, path,
    sync::{LazyLock, Mutex, PoisonError},
};

use crate::growth;
use rusqlite::Connection;
use tracing::{
    Event, Metadata, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
};

/// Tables of which a statement may read all rows, once; each with what bounds their number.
pub(crate) const SMALL: [(&str, &str); 21] = [
    ("access_changes", "those of the last minutes"),
    ("approvals", "10,000 for an org"),
    ("audit_checkpoints", "two for an org"),
    ("audit_floor", "one"),
    ("audit_heads", "one for an org"),
    ("audit_holds", "laid by admins one by one"),
    ("audit_intents", "calls under way"),
    ("audit_pruned", "one for an org"),
    ("audit_capability_counts", "the tools of an org, for two days"),
    ("connect_attempts", "ten minutes"),
    ("exports", "files of an org, for a day"),
    ("nodes", "processes that serve"),
    ("orgs", "made by the operator"),
    ("org_usage", "one for an org and a day"),
    ("policy_overrides", "20 for an org"),
    ("principals", "made by admins, and by identity providers up to a number"),
    ("providers", "one for each owner and provider"),
    ("scim_groups", "up to a number"),
    ("scim_members", "up to a number of users and groups"),
    ("scim_users", "up to a number"),
    ("capability_pins", "`max_pins` for a provider and org"),
];

/// Tables with one row for an org, which is found by the org alone.
const ONE_FOR_AN_ORG: [&str; 2] = ["audit_heads", "audit_pruned"];

/// Statements that may read more, by a text in them; each with the reason.
const EXCEPTIONS: [(&str, &str); 3] = [
    ("ORDER BY sequence DESC LIMIT 1", "the newest row of an org, in the order of its key"),
    ("FROM audit_holds h", "any hold in force may cover an event"),
    ("instr(said, $3) > 0", "asked for the groups of a policy set, and logins are deleted in time"),
];

/// Statements that were run and not checked yet, and those that were checked.
#[derive(Debug)]
struct Statements {
    waiting: Mutex<BTreeSet<String>>,
    checked: Mutex<BTreeSet<String>>,
}

static ON_SQLITE: Statements = Statements::new();
static ON_POSTGRES: Statements = Statements::new();

impl Statements {
    const fn new() -> Self {
        Self { waiting: Mutex::new(BTreeSet::new()), checked: Mutex::new(BTreeSet::new()) }
    }

    fn note(&self, text: &str) {
        if !self.checked.lock().unwrap_or_else(PoisonError::into_inner).contains(text) {
            self.waiting.lock().unwrap_or_else(PoisonError::into_inner).insert(text.to_owned());
        }
    }

    fn waiting(&self) -> BTreeSet<String> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns true if no other test checks it.
    fn take(&self, text: &str) -> bool {
        self.checked.lock().unwrap_or_else(PoisonError::into_inner).insert(text.to_owned());
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).remove(text)
    }
}

/// Begins to note the statements of this process.
pub(crate) fn record() {
    static RECORDER: LazyLock<()> =
        LazyLock::new(|| tracing::subscriber::set_global_default(Recorder).unwrap());
    LazyLock::force(&RECORDER);
}

/// Takes the statements that the store logs.
struct Recorder;

impl Subscriber for Recorder {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "portcullis_store::statements"
    }
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, event: &Event<'_>) {
        event.record(&mut Statement(&ON_POSTGRES));
    }
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

struct Statement(&'static Statements);

impl Visit for Statement {
    fn record_bool(&mut self, field: &Field, value: bool) {
        if field.name() == "is_sqlite" && value {
            self.0 = &ON_SQLITE;
        }
    }
    fn record_str(&mut self, field: &Field, text: &str) {
        let text = text.trim();
        // Those of the tests themselves have their values in them.
        let is_of_tests = !text.contains("$1") || text.ends_with(OF_TESTS);
        if field.name() == "statement" && !is_of_tests && !text.starts_with("EXPLAIN") {
            self.0.note(text);
        }
    }
    fn record_debug(&mut self, _: &Field, _: &dyn Debug) {}
}

/// The end of a statement of the tests themselves.
pub(crate) const OF_TESTS: &str = "/* of tests */";

/// A place where a statement reads more than it is about.
#[derive(Debug, PartialEq, Eq)]
struct Reading {
    table: String,
    /// True if it is done again for each row of another table or step of a recursion.
    is_nested: bool,
    plan: String,
}

/// Explains and counts the statements that no test before ran, on this database. Those that it does not take are left to the
/// next one: its test may have changed the schema.
pub(crate) async fn check(file: &path::Path) {
    let conn = Connection::open(file).unwrap();
    let tables = tables(&conn);
    for sql in ON_SQLITE.waiting() {
        let Ok(readings) = readings(&conn, &sql, &tables) else { continue };
        if ON_SQLITE.take(&sql) {
            assert_eq!(readings, [], "a statement needs an index, or an exception above: {sql}");
            growth::check_on_sqlite(&sql).await;
        }
    }
}

/// Counts the statements that no test before ran.
pub(crate) async fn check_on_postgres() {
    for sql in ON_POSTGRES.waiting() {
        if ON_POSTGRES.take(&sql) {
            growth::check_on_postgres(&sql).await;
        }
    }
}

fn tables(conn: &Connection) -> BTreeSet<String> {
    let mut select = conn.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").unwrap();
    select.query_map((), |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

fn readings(
    conn: &Connection,
    sql: &str,
    tables: &BTreeSet<String>,
) -> rusqlite::Result<Vec<Reading>> {
    let mut explain = conn.prepare(&format!("EXPLAIN QUERY PLAN {sql}"))?;
    let plan = explain
        .raw_query()
        .mapped(|row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))
        .collect::<rusqlite::Result<Vec<(i64, i64, i64, String)>>>()?;
    let words: Vec<&str> = sql.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
    let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
    let table_of = |name: &str| {
        let renamed = words.windows(2).find(|pair| pair[1] == name && tables.contains(pair[0]));
        tables.get(renamed.map_or(name, |pair| pair[0])).cloned()
    };
    let is_reading = |text: &str| text.starts_with("SCAN ") || text.starts_with("SEARCH ");
    let mut readings = Vec::new();
    for (place, (_, parent, _, text)) in plan.iter().enumerate() {
        let is_scan = text.starts_with("SCAN ") && !text.contains("VIRTUAL TABLE");
        if !is_reading(text) || !is_scan && !text.ends_with("(org_id=?)") {
            continue;
        }
        let Some(table) = text.split(' ').nth(1).and_then(table_of) else { continue };
        let mut is_nested =
            plan[..place].iter().any(|step| step.1 == *parent && is_reading(&step.3));
        let mut above = *parent;
        while let Some(step) = plan.iter().find(|step| step.0 == above) {
            is_nested |= step.3.starts_with("CORRELATED") || step.3 == "RECURSIVE STEP";
            above = step.1;
        }
        let is_small = !is_nested && SMALL.iter().any(|(small, _)| *small == table);
        let is_one = !is_scan && ONE_FOR_AN_ORG.contains(&table.as_str());
        if !is_small && !is_one && !EXCEPTIONS.iter().any(|(of, _)| sql.contains(of)) {
            readings.push(Reading { table, is_nested, plan: text.clone() });
        }
    }
    Ok(readings)
}

#[tokio::test]
async fn a_recursion_that_joins_by_one_of_several_links_is_found_to_read_all_tokens_of_an_org() {
    let folder = tempfile::TempDir::new().unwrap();
    let file = folder.path().join("portcullis.db");
    let url = portcullis_store::DatabaseUrl::sqlite(file.clone());
    let settings = crate::given::settings(url);
    portcullis_store::Store::open(&settings).await.unwrap().close().await;
    let conn = Connection::open(file).unwrap();
    let tables = tables(&conn);
    let sql = "WITH RECURSIVE doomed (id, grant_id) AS (
        SELECT id, grant_id FROM tokens WHERE org_id = $1 AND id = $2
        UNION SELECT t.id, t.grant_id FROM tokens t JOIN doomed d
        ON t.grant_id = d.grant_id OR t.parent_id = d.id OR t.via_token_id = d.id
        WHERE t.org_id = $1
    ) UPDATE tokens SET revoked_at = $3 WHERE org_id = $1 AND id IN (SELECT id FROM doomed)";

    let found = readings(&conn, sql, &tables).unwrap();

    let nested: Vec<_> = found.iter().filter(|reading| reading.is_nested).collect();
    assert_eq!(nested.len(), 1, "{found:?}");
    assert_eq!(nested[0].table, "tokens");
}

#[test]
fn each_exception_stands_in_a_statement() {
    let sources = path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut folders = vec![sources];
    let mut texts = String::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|it| it == "rs") {
                texts.push_str(&fs::read_to_string(path).unwrap());
            }
        }
    }
    // Concatenated texts stand on several lines.
    let texts = texts.split_whitespace().collect::<Vec<_>>().join(" ");
    for (text, why) in EXCEPTIONS {
        assert!(texts.contains(text) && !why.is_empty(), "{text}");
    }
}
