//! Forward-only, numbered migrations, the same files for both databases.

use sha2::{Digest as _, Sha256};
use sqlx::{PgPool, SqliteConnection, SqlitePool};

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

pub(crate) async fn migrate_sqlite(pool: &SqlitePool) -> Result<(), StoreError> {
    // A crash at any line leaves the schema as it was: the whole is one transaction.
    let mut tx = pool.begin_with("BEGIN IMMEDIATE").await?;
    sqlx::query(CREATE).execute(&mut *tx).await?;
    let applied: Vec<Applied> = sqlx::query_as(APPLIED).fetch_all(&mut *tx).await?;
    for migration in pending(&applied, SQLITE)? {
        sqlx::raw_sql(migration.sqlite).execute(&mut *tx).await?;
        let apply = sqlx::query(APPLY).bind(migration.version).bind(migration.mark(SQLITE));
        apply.execute(&mut *tx).await?;
    }
    Ok(tx.commit().await?)
}

pub(super) async fn migrate_postgres(pool: &PgPool) -> Result<(), StoreError> {
    let mut tx = pool.begin().await?;
    sqlx::query(LOCK).execute(&mut *tx).await?;
    // Migrations look after the rows of every org.
    sqlx::query("SET LOCAL portcullis.installation = 'on'").execute(&mut *tx).await?;
    sqlx::query(CREATE).execute(&mut *tx).await?;
    let applied: Vec<Applied> = sqlx::query_as(APPLIED).fetch_all(&mut *tx).await?;
    for migration in pending(&applied, POSTGRES)? {
        sqlx::raw_sql(migration.postgres).execute(&mut *tx).await?;
        let apply = sqlx::query(APPLY).bind(migration.version).bind(migration.mark(POSTGRES));
        apply.execute(&mut *tx).await?;
    }
    Ok(tx.commit().await?)
}

/// Compares the schema of an SQLite database, without a change.
pub(crate) async fn of_sqlite(conn: &mut SqliteConnection) -> Result<Schema, StoreError> {
    let any = "SELECT COUNT(*) FROM sqlite_master WHERE name = 'schema_migrations'";
    let any: i64 = sqlx::query_scalar(any).fetch_one(&mut *conn).await?;
    if any == 0 {
        return Ok(Schema::Missing);
    }
    let applied: Vec<Applied> = sqlx::query_as(APPLIED).fetch_all(&mut *conn).await?;
    Ok(compare(&applied, SQLITE))
}

/// The same of a PostgreSQL database.
pub(super) async fn of_postgres(pool: &PgPool) -> Result<Schema, StoreError> {
    let any = "SELECT to_regclass('schema_migrations') IS NOT NULL";
    let any: bool = sqlx::query_scalar(any).fetch_one(pool).await?;
    if !any {
        return Ok(Schema::Missing);
    }
    let applied: Vec<Applied> = sqlx::query_as(APPLIED).fetch_all(pool).await?;
    Ok(compare(&applied, POSTGRES))
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
