//! Forward-only, numbered migrations, the same files for both databases.

use rusqlite::{Connection, TransactionBehavior};
use sha2::{Digest as _, Sha256};

use super::{Pool, Scope, Session, all, begin, one, run};
use crate::error::StoreError;

struct Migration {
    version: i64,
    name: &'static str,
    sqlite: &'static str,
    postgres: &'static str,
}

macro_rules! migration {
    ($version:literal, $name:literal) => {
        Migration {
            version: $version,
            name: $name,
            sqlite: include_str!(concat!("../../migrations/sqlite/", $name, ".sql")),
            postgres: include_str!(concat!("../../migrations/postgres/", $name, ".sql")),
        }
    };
}

/// Further ones are appended. A file that was released never changes, not even in a comment: each
/// database names the digest of what was applied to it.
const MIGRATIONS: &[Migration] = &[migration!(1, "0001_initial")];

/// Holds off other nodes that start at the same moment; any number that has no other use.
const LOCK: &str = "SELECT pg_advisory_xact_lock(5785245101)";

const CREATE: &str = "CREATE TABLE IF NOT EXISTS schema_migrations \
                      (version BIGINT NOT NULL PRIMARY KEY, name TEXT NOT NULL)";

const APPLIED: &str = "SELECT version, name FROM schema_migrations ORDER BY version";

const APPLY: &str = "INSERT INTO schema_migrations (version, name) VALUES ($1, $2)";

/// A migration that was applied to a database: version, and name with the digest of the text.
type Applied = (i64, String);

/// The text of a migration for one of the databases.
type Text = fn(&Migration) -> &'static str;

const SQLITE: Text = |migration| migration.sqlite;
const POSTGRES: Text = |migration| migration.postgres;

/// Schema of a database, compared with that of this build.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Schema {
    /// The database has none of ours.
    Missing,
    Current,
    /// Another one, with what is to be said of it.
    Other(StoreError),
}

impl Migration {
    /// The name with the SHA-256 of this text.
    fn mark(&self, text: Text) -> String {
        let start = format!("{} ", self.name);
        Sha256::digest(text(self)).iter().fold(start, |mark, byte| mark + &format!("{byte:02x}"))
    }
}

pub(crate) fn migrate_sqlite(open: &mut Connection) -> Result<(), StoreError> {
    // A crash at any line leaves the schema as it was: the whole is one transaction.
    let tx = open.transaction_with_behavior(TransactionBehavior::Immediate)?;
    tx.execute(CREATE, ())?;
    for migration in pending(&applied(&tx)?, SQLITE)? {
        tx.execute_batch(migration.sqlite)?;
        tx.execute(APPLY, (migration.version, migration.mark(SQLITE)))?;
    }
    Ok(tx.commit()?)
}

fn applied(open: &Connection) -> Result<Vec<Applied>, StoreError> {
    let mut select = open.prepare(APPLIED)?;
    let rows = select.query_map((), |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

pub(super) async fn migrate_postgres(pool: &Pool) -> Result<(), StoreError> {
    // Migrations look after the rows of every org.
    let mut tx = begin(pool, Scope::Installation).await?;
    run!(tx, LOCK);
    run!(tx, CREATE);
    let applied: Vec<Applied> = all!(tx, APPLIED);
    for migration in pending(&applied, POSTGRES)? {
        tx.script(migration.postgres).await?;
        run!(tx, APPLY => migration.version, migration.mark(POSTGRES));
    }
    Ok(tx.commit().await?)
}

/// Compares the schema of an SQLite database, without a change.
pub(crate) fn of_sqlite(open: &Connection) -> Result<Schema, StoreError> {
    if !open.table_exists(None::<&str>, "schema_migrations")? {
        return Ok(Schema::Missing);
    }
    Ok(compare(&applied(open)?, SQLITE))
}

/// The same of a PostgreSQL database.
pub(super) async fn of_postgres(pool: &Pool) -> Result<Schema, StoreError> {
    let mut conn = Session::Postgres(pool.take().await?);
    let any: bool = one!(conn, scalar "SELECT to_regclass('schema_migrations') IS NOT NULL");
    if !any {
        return Ok(Schema::Missing);
    }
    let applied: Vec<Applied> = all!(conn, APPLIED);
    Ok(compare(&applied, POSTGRES))
}

/// A new SQLite database in memory.
#[cfg(test)]
pub(crate) fn in_memory() -> Connection {
    let mut open = Connection::open_in_memory().unwrap();
    migrate_sqlite(&mut open).unwrap();
    open
}

/// Steps by which SQLite runs a statement.
#[cfg(test)]
pub(crate) fn plan_of(open: &Connection, sql: &str) -> Vec<String> {
    let mut explain = open.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
    explain.raw_query().mapped(|row| row.get("detail")).map(Result::unwrap).collect()
}

fn compare(applied: &[Applied], text: Text) -> Schema {
    match pending(applied, text) {
        Ok([]) => Schema::Current,
        Ok(_) => {
            Schema::Other(StoreError::OlderSchema { found: newest_of(applied), known: newest() })
        }
        Err(error) => Schema::Other(error),
    }
}

/// The migrations that were not applied yet, in their order. Fails for a database that has others
/// than those of this build, or more.
fn pending(applied: &[Applied], text: Text) -> Result<&'static [Migration], StoreError> {
    let differs = |(ours, (version, mark)): (&Migration, &Applied)| {
        ours.version != *version || ours.mark(text) != *mark
    };
    if MIGRATIONS.iter().zip(applied).any(differs) {
        return Err(StoreError::OlderBuild);
    }
    let (found, known) = (newest_of(applied), newest());
    if found > known {
        return Err(StoreError::NewerSchema { found, known });
    }
    Ok(MIGRATIONS.get(applied.len()..).unwrap_or_default())
}

/// The newest schema that this build knows.
fn newest() -> i64 {
    MIGRATIONS.last().map_or(0, |migration| migration.version)
}

fn newest_of(applied: &[Applied]) -> i64 {
    applied.last().map_or(0, |(version, _)| *version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn migrations_are_in_order_and_named_after_their_number() {
        assert!(MIGRATIONS.is_sorted_by(|one, next| one.version < next.version));
        for migration in MIGRATIONS {
            assert!(migration.name.starts_with(&format!("{:04}_", migration.version)));
        }
    }
}
