//! Rows from one database into the other, table by table.

use std::mem;

use super::{MovedTable, MovingError};
use crate::{
    db::{Bound, Session, Value as _, all, cells, one, run},
    error::StoreError,
};

/// Every table that holds something to move, each behind those it refers to.
pub(super) const TABLES: [&str; 45] = [
    "orgs", "org_usage", "principals", "principal_keys", "policy_overrides", "scim_users",
    "scim_groups", "scim_members", "tokens", "refreshes", "identities", "logins", "consents",
    "search_words", "authorization_codes", "client_grants", "used_assertions", "browser_sessions",
    "login_links", "providers", "secrets", "connect_attempts", "oauth_clients", "capability_lists",
    "capability_versions", "capability_pins", "capability_surplus", "policy_versions",
    "policy_sets", "exports", "idempotency_keys", "provider_tasks", "approvals", "audit_events",
    "audit_seals", "audit_heads", "audit_tiles", "audit_checkpoints", "audit_intents",
    "audit_holds", "audit_pruned", "audit_counts", "audit_capability_counts", "sink_cursors",
    "sink_leases",
];

/// The tables that hold nothing to move.
#[cfg(test)]
const LEFT_OUT: [&str; 6] =
    ["schema_migrations", "probes", "nodes", "access_changes", "audit_index", "audit_floor"];

/// Rows carried at a time. The largest, events with their payloads, have some hundred kilobytes.
const BATCH: i64 = 250;

struct Column {
    name: String,
    /// Its type in the source.
    from: String,
    kind: Kind,
}

#[derive(Clone, Copy)]
enum Kind {
    Integer,
    Text,
    Bytes,
}

impl Kind {
    const fn array(self) -> &'static str {
        match self {
            Self::Integer => "bigint[]",
            Self::Text => "text[]",
            Self::Bytes => "bytea[]",
        }
    }
}

/// Locks all tables against other writers; fails unless they are empty.
pub(super) async fn refuse_unless_empty(target: &mut Session) -> Result<(), MovingError> {
    let lock = format!("LOCK TABLE {} IN EXCLUSIVE MODE", TABLES.join(", "));
    target.script(&lock).await?;
    for table in TABLES {
        let any = format!("SELECT EXISTS (SELECT 1 FROM {table})");
        if one!(target, scalar any) {
            return Err(MovingError::NotEmpty(table));
        }
    }
    Ok(())
}

/// Copies a table in the order in which its rows were made, so that a row that refers to another
/// one of the same table comes after it. Gives how many there were.
pub(super) async fn copy(
    source: &mut Session,
    target: &mut Session,
    table: &'static str,
) -> Result<u64, MovingError> {
    let mut columns = columns(source, table).await?;
    let wanted = "SELECT column_name::text FROM information_schema.columns \
                  WHERE table_schema = current_schema() AND table_name = $1";
    let wanted: Vec<String> = all!(target, scalar wanted => table);
    // The place of a row in the file means nothing elsewhere.
    columns.retain(|column| wanted.contains(&column.name));
    let names = columns.iter().map(|it| format!("\"{}\"", it.name)).collect::<Vec<_>>().join(", ");
    let from = columns.iter().map(|it| format!("{} AS \"{}\"", it.from, it.name));
    let from = from.collect::<Vec<_>>().join(", ");
    let select = format!(
        "SELECT {from}, rowid AS moved_rowid FROM {table} WHERE rowid > $1 ORDER BY rowid LIMIT {BATCH}"
    );
    let arrays = columns.iter().zip(1..).map(|(it, n)| format!("${n}::{}", it.kind.array()));
    let arrays = arrays.collect::<Vec<_>>().join(", ");
    let insert = format!("INSERT INTO {table} ({names}) SELECT * FROM UNNEST({arrays})");
    let mut place = i64::MIN;
    let mut count = 0;
    loop {
        let mut rows = source.all(cells, select.clone(), vec![place.bound()]).await?;
        let Some(Bound::Int(Some(last))) = rows.last().and_then(|row| row.last()) else {
            return Ok(count);
        };
        place = *last;
        let values =
            columns.iter().enumerate().map(|(at, column)| take(&mut rows, at, column.kind));
        let values = values.collect::<Result<_, _>>()?;
        count += target.run(insert.clone(), values).await?;
    }
}

/// Lets positions go on behind the last one; a row that somebody added at the end of all numbers is passed over.
pub(super) async fn go_on(target: &mut Session) -> Result<(), MovingError> {
    run!(
        target,
        "SELECT setval('audit_events_position_seq', MAX(position)) FROM ( \
         SELECT position FROM audit_events UNION ALL SELECT last_position FROM audit_heads) AS given \
         WHERE position BETWEEN 1 AND 4611686018427387903 HAVING COUNT(*) > 0"
    );
    Ok(())
}

/// Fails unless the table has as many rows on both sides as were carried.
pub(super) async fn check(
    source: &mut Session,
    target: &mut Session,
    table: MovedTable,
) -> Result<(), MovingError> {
    let count = format!("SELECT COUNT(*) FROM {}", table.name);
    let wanted: i64 = one!(source, scalar count.clone());
    let found: i64 = one!(target, scalar count.clone());
    let wanted = wanted.unsigned_abs();
    let found = found.unsigned_abs();
    if wanted == found && wanted == table.rows {
        return Ok(());
    }
    Err(MovingError::Rows { table: table.name, wanted, found })
}

async fn columns(source: &mut Session, table: &'static str) -> Result<Vec<Column>, MovingError> {
    let columns = "SELECT name, type FROM pragma_table_info($1)";
    let rows: Vec<(String, String)> = all!(source, columns => table);
    let column = |(name, kind): (String, String)| {
        let kind = match kind.as_str() {
            "INTEGER" => Kind::Integer,
            "TEXT" => Kind::Text,
            "BLOB" => Kind::Bytes,
            _ => return Err(StoreError::Corrupt(table)),
        };
        Ok(Column { from: format!("\"{name}\""), name, kind })
    };
    let mut columns = rows.into_iter().map(column).collect::<Result<Vec<_>, _>>()?;
    if table == "audit_seals" {
        // By which PostgreSQL knows the month of a seal.
        let of = "SELECT e.id FROM audit_events e WHERE e.position = audit_seals.position";
        let name = "event_id".to_owned();
        let from = format!("({of})");
        columns.push(Column { name, from, kind: Kind::Text });
    }
    Ok(columns)
}

/// Makes room for the months that the source has events of.
pub(super) async fn make_months(
    source: &mut Session,
    target: &mut Session,
) -> Result<(), MovingError> {
    let months = "SELECT MIN(occurred_at) FROM audit_events \
                  GROUP BY strftime('%Y-%m', occurred_at / 1000000, 'unixepoch')";
    let months: Vec<i64> = all!(source, scalar months);
    for month in months {
        let make = "SELECT audit_make_month(to_timestamp($1 / 1000000) AT TIME ZONE 'UTC')";
        run!(target, make => month);
    }
    Ok(())
}

/// Takes what the rows have in a column, as an array.
fn take(rows: &mut [Vec<Bound>], at: usize, kind: Kind) -> Result<Bound, StoreError> {
    let mut array = match kind {
        Kind::Integer => Bound::Ints(Vec::new()),
        Kind::Text => Bound::Texts(Vec::new()),
        Kind::Bytes => Bound::Blobs(Vec::new()),
    };
    for row in rows {
        let value = row.get_mut(at).map(mem::take).unwrap_or_default();
        match (&mut array, value) {
            (Bound::Ints(all), Bound::Int(value)) => all.push(value),
            (Bound::Texts(all), Bound::Text(value)) => all.push(value),
            (Bound::Blobs(all), Bound::Bytes(value)) => all.push(value),
            (Bound::Ints(all), Bound::Text(None)) => all.push(None),
            (Bound::Blobs(all), Bound::Text(None)) => all.push(None),
            _ => return Err(StoreError::Corrupt("a column")),
        }
    }
    Ok(array)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::db::schema;

    #[test]
    fn every_table_is_moved_or_left_out_on_purpose() {
        let open = schema::in_memory();

        let mut select =
            open.prepare("SELECT name FROM sqlite_master WHERE type = 'table'").unwrap();
        let tables = select.query_map((), |row| row.get(0)).unwrap();
        let tables: Vec<String> = tables.map(Result::unwrap).collect();

        let found: BTreeSet<_> = tables.iter().map(String::as_str).collect();
        assert_eq!(found, TABLES.into_iter().chain(LEFT_OUT).collect());
    }
}
