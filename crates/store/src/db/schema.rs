//! Forward-only, numbered migrations, the same files for both databases.

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

const MIGRATIONS: &[Migration] = &[
    migration!(1, "0001_initial"),
    migration!(2, "0002_identity"),
    migration!(3, "0003_policy_versions"),
    migration!(4, "0004_audit_tree"),
    migration!(5, "0005_exports_and_sinks"),
    migration!(6, "0006_idempotency"),
    migration!(7, "0007_retention"),
    migration!(8, "0008_connections"),
    migration!(9, "0009_tool_pins"),
    migration!(10, "0010_logins"),
    migration!(11, "0011_row_security"),
    migration!(12, "0012_audit_partitions"),
    migration!(14, "0014_nodes"),
    migration!(17, "0017_intents_by_place"),
    migration!(20, "0020_missing_providers"),
    migration!(21, "0021_token_lineage"),
    migration!(22, "0022_bounds"),
    migration!(23, "0023_approvals"),
    migration!(24, "0024_access_changes"),
    migration!(25, "0025_requests_in_order"),
    migration!(26, "0026_approval_columns"),
    migration!(27, "0027_principal_groups"),
    migration!(28, "0028_packed_records"),
    migration!(29, "0029_index_by_sealer"),
    migration!(30, "0030_browser_sessions"),
    migration!(31, "0031_authorization"),
    migration!(32, "0032_usage"),
    migration!(33, "0033_principal_keys"),
    migration!(35, "0035_scim"),
    migration!(36, "0036_dpop"),
    migration!(37, "0037_policy_overrides"),
    migration!(38, "0038_audit_counts"),
    migration!(39, "0039_positions"),
    migration!(40, "0040_ids_by_sealer"),
    migration!(41, "0041_orgs_by_seals"),
    migration!(42, "0042_tool_counts"),
    migration!(43, "0043_exceptions"),
    migration!(44, "0044_descent"),
    migration!(45, "0045_row_macs"),
    migration!(47, "0047_scim_accounts"),
    migration!(48, "0048_consents_by_client"),
    migration!(50, "0050_search_words"),
];

/// Holds off other nodes that start at the same moment; any number that has no other use.
const LOCK: &str = "SELECT pg_advisory_xact_lock(5785245101)";

const CREATE: &str = "CREATE TABLE IF NOT EXISTS schema_migrations \
                      (version BIGINT NOT NULL PRIMARY KEY, name TEXT NOT NULL)";

const APPLIED: &str = "SELECT version FROM schema_migrations";

const APPLY: &str = "INSERT INTO schema_migrations (version, name) VALUES ($1, $2)";

/// The schema of a database that has one of ours.
const NEWEST: &str = "SELECT MAX(version) FROM schema_migrations";

pub(crate) async fn migrate_sqlite(pool: &SqlitePool) -> Result<(), StoreError> {
    // A crash at any line leaves the schema as it was: the whole is one transaction.
    let mut tx = pool.begin_with("BEGIN IMMEDIATE").await?;
    sqlx::query(CREATE).execute(&mut *tx).await?;
    let applied: Vec<i64> = sqlx::query_scalar(APPLIED).fetch_all(&mut *tx).await?;
    for migration in pending(&applied)? {
        sqlx::raw_sql(migration.sqlite).execute(&mut *tx).await?;
        let apply = sqlx::query(APPLY).bind(migration.version).bind(migration.name);
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
    let applied: Vec<i64> = sqlx::query_scalar(APPLIED).fetch_all(&mut *tx).await?;
    for migration in pending(&applied)? {
        sqlx::raw_sql(migration.postgres).execute(&mut *tx).await?;
        let apply = sqlx::query(APPLY).bind(migration.version).bind(migration.name);
        apply.execute(&mut *tx).await?;
    }
    Ok(tx.commit().await?)
}

/// The newest schema that this build knows.
pub(crate) fn newest() -> i64 {
    MIGRATIONS.last().map_or(0, |migration| migration.version)
}

/// The schema that a database has; `None` if it has none of ours.
pub(crate) async fn found(conn: &mut SqliteConnection) -> Result<Option<i64>, StoreError> {
    let any = "SELECT COUNT(*) FROM sqlite_master WHERE name = 'schema_migrations'";
    let any: i64 = sqlx::query_scalar(any).fetch_one(&mut *conn).await?;
    if any == 0 {
        return Ok(None);
    }
    Ok(sqlx::query_scalar(NEWEST).fetch_one(&mut *conn).await?)
}

/// The same of a PostgreSQL database.
pub(super) async fn found_on_postgres(pool: &PgPool) -> Result<Option<i64>, StoreError> {
    let any = "SELECT to_regclass('schema_migrations') IS NOT NULL";
    let any: bool = sqlx::query_scalar(any).fetch_one(pool).await?;
    if !any {
        return Ok(None);
    }
    Ok(sqlx::query_scalar(NEWEST).fetch_one(pool).await?)
}

/// The migrations that were not applied yet, in their order: each touches tables of its own.
fn pending(applied: &[i64]) -> Result<impl Iterator<Item = &'static Migration>, StoreError> {
    let known = newest();
    let found = applied.iter().copied().max().unwrap_or(0);
    if found > known {
        return Err(StoreError::NewerSchema { found, known });
    }
    Ok(MIGRATIONS.iter().filter(|migration| !applied.contains(&migration.version)))
}

#[cfg(test)]
mod tests {
    use sqlx::sqlite::SqlitePoolOptions;

    use super::*;

    /// Actor, principal acted for and request of an event.
    type Ids = (Option<String>, Option<String>, Option<String>);

    #[test]
    fn migrations_are_in_order_and_named_after_their_number() {
        assert!(MIGRATIONS.is_sorted_by(|one, next| one.version < next.version));
        for migration in MIGRATIONS {
            assert!(migration.name.starts_with(&format!("{:04}_", migration.version)));
        }
    }
    #[tokio::test]
    async fn events_of_schema_28_keep_their_values_and_indexes_and_are_not_rewritten() {
        let options = SqlitePoolOptions::new().max_connections(1);
        let pool = options.connect("sqlite::memory:").await.unwrap();
        sqlx::query(CREATE).execute(&pool).await.unwrap();
        for migration in MIGRATIONS.iter().filter(|it| it.version <= 28) {
            sqlx::raw_sql(migration.sqlite).execute(&pool).await.unwrap();
            let apply = sqlx::query(APPLY).bind(migration.version).bind(migration.name);
            apply.execute(&pool).await.unwrap();
        }
        let before = "PRAGMA foreign_keys = OFF;
            INSERT INTO audit_events (id, org_id, type, occurred_at, committed_at, actor_id, via,
                request_id, core) VALUES ('evt_1', 'org_1', 'call', 1, 1, 'sa_1', 'usr_1', 'req_1', '');
            INSERT INTO audit_events (id, org_id, type, occurred_at, committed_at, core)
                VALUES ('evt_2', 'org_1', 'call', 2, 2, '')";
        sqlx::raw_sql(before).execute(&pool).await.unwrap();

        migrate_sqlite(&pool).await.unwrap();

        let ids = "SELECT actor_id, via, request_id FROM audit_events ORDER BY position";
        let found: Vec<Ids> = sqlx::query_as(ids).fetch_all(&pool).await.unwrap();
        let id = |text: &str| Some(text.to_owned());
        assert_eq!(found, [(id("sa_1"), id("usr_1"), id("req_1")), (None, None, None)]);
        let indexed = "SELECT COUNT(*) FROM audit_events INDEXED BY audit_events_by_actor \
                       WHERE org_id = 'org_1' AND actor_before = 'sa_1'";
        let indexed: i64 = sqlx::query_scalar(indexed).fetch_one(&pool).await.unwrap();
        assert_eq!(indexed, 1);
        let sound: String =
            sqlx::query_scalar("PRAGMA integrity_check").fetch_one(&pool).await.unwrap();
        assert_eq!(sound, "ok");
    }
}
