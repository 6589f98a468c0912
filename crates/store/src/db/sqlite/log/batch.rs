//! A batch of the audit log, row by row: where nothing has to be sent anywhere, prepared statements
//! of one row cost no more than one of many.

mod approvals;

use std::{
    collections::{HashMap, HashSet},
    mem,
};

use portcullis_core::id::{EventId, IdText, PrincipalId, RequestId, TokenId};
use rusqlite::{CachedStatement, Connection, ToSql};

use super::{
    super::{INSERT_EVENT, REMOVE_ENDED},
    LogConnection, read_id,
};
use crate::{
    db::{
        batch::{Batch, key_rows},
        is_ended, positions_of_events,
        rows::{NewEvent, NewIntent, TextColumn},
    },
    error::StoreError,
    row_key::RowKey,
};

impl LogConnection {
    /// Writes the batch in one transaction. Those intents of it that lost their keys or have no
    /// approval are not written.
    pub(crate) fn commit(
        &mut self,
        node: &str,
        committed_at: i64,
        batch: &mut Batch<'_>,
    ) -> Result<(), StoreError> {
        let key = self.row_key.clone();
        self.change_intents(|open, known| {
            if !batch.keyed.is_empty() {
                let won = insert_keys(open, committed_at, batch)?;
                batch.keep_winners(&won);
            }
            if !batch.changes.is_empty() {
                approvals::change(open, batch)?;
            }
            if !batch.approved.is_empty() {
                approvals::take_uses(open, committed_at, batch)?;
            }
            insert_intents(open, &key, node, &batch.intents, known)?;
            insert_events(open, &key, committed_at, &batch.events)?;
            let closed = end_intents(open, &batch.finished, known)?;
            refuse_twins(open, batch.events.iter().filter(|event| !closed.contains(&event.id)))?;
            end_keys(open, batch)
        })
    }

    /// Runs `write` in a transaction that may write, with the intents in the table, and commits it.
    pub(crate) fn change_intents<R>(
        &mut self,
        write: impl FnOnce(&Connection, &mut KnownIntents) -> Result<R, StoreError>,
    ) -> Result<R, StoreError> {
        let mut known = mem::take(&mut self.intents);
        let written = self.change(|open| write(open, &mut known));
        if written.is_ok() {
            self.intents = known;
        }
        // Otherwise it is unknown which of them stand: the table is asked when one is missing.
        written
    }
}

fn insert_keys(open: &Connection, now: i64, batch: &Batch<'_>) -> Result<Vec<String>, StoreError> {
    let mut insert = open.prepare_cached(INSERT_KEYS)?;
    let won = insert.query_map((key_rows(&batch.keyed), now), |row| row.get(0))?;
    Ok(won.collect::<Result<_, _>>()?)
}

/// Intents in the table, as far as this connection knows.
#[derive(Debug, Default)]
pub(crate) struct KnownIntents {
    /// Rowids of those that are open.
    open: HashMap<EventId, i64>,
    /// Those whose events stand. The next intents take their places, or the next seal removes them: removing them
    /// with their events would write a page of a second tree.
    ended: Vec<(EventId, i64)>,
    /// False until those that a connection before left behind were removed.
    is_swept: bool,
}

impl KnownIntents {
    /// Removes the intents whose events stand.
    pub(crate) fn remove_ended(&mut self, open: &Connection) -> Result<(), StoreError> {
        self.sweep(open)?;
        for (id, rowid) in self.ended.drain(..) {
            open.prepare_cached(DELETE_INTENT)?.execute((rowid, id.text().as_str()))?;
        }
        Ok(())
    }

    fn sweep(&mut self, open: &Connection) -> Result<(), StoreError> {
        if !self.is_swept {
            open.prepare_cached(REMOVE_ENDED)?.execute(())?;
            self.is_swept = true;
        }
        Ok(())
    }
}

fn insert_intents(
    open: &Connection,
    key: &RowKey,
    node: &str,
    rows: &[&NewIntent],
    known: &mut KnownIntents,
) -> Result<(), StoreError> {
    if rows.is_empty() {
        return Ok(());
    }
    known.sweep(open)?;
    let mut replace = open.prepare_cached(REPLACE_INTENT)?;
    let mut insert = open.prepare_cached(INSERT_INTENT)?;
    for row in rows {
        let id = row.id.text();
        let org_id = row.org_id.text();
        let packed = row.record.packed();
        let code = row.code(key, &packed);
        let columns: [&dyn ToSql; 6] = [
            &id.as_str(),
            &org_id.as_str(),
            &node,
            &row.opened_at.as_micros(),
            &packed.bytes,
            &code,
        ];
        let place = match known.ended.pop() {
            Some((ended, place)) if replace_intent(&mut replace, columns, ended, place)? => place,
            Some(_) | None => {
                insert.execute(columns)?;
                open.last_insert_rowid()
            }
        };
        known.open.insert(row.id, place);
    }
    Ok(())
}

/// Puts an intent in the place of one that has ended; `false` if another process has removed that.
fn replace_intent(
    replace: &mut CachedStatement<'_>,
    columns: [&dyn ToSql; 6],
    ended: EventId,
    place: i64,
) -> Result<bool, rusqlite::Error> {
    let ended = ended.text();
    let [id, org_id, node, opened_at, packed, code] = columns;
    let all: [&dyn ToSql; 8] = [id, org_id, node, opened_at, packed, code, &place, &ended.as_str()];
    Ok(replace.execute(all)? == 1)
}

pub(crate) fn insert_events(
    open: &Connection,
    key: &RowKey,
    committed_at: i64,
    rows: &[&NewEvent],
) -> Result<(), StoreError> {
    if rows.is_empty() {
        return Ok(());
    }
    let mut insert = open.prepare_cached(INSERT_EVENT)?;
    for row in rows {
        bind_event(&mut insert, key, committed_at, row)?;
        insert.raw_execute()?;
    }
    Ok(())
}

fn bind_event(
    insert: &mut CachedStatement<'_>,
    key: &RowKey,
    committed_at: i64,
    event: &NewEvent,
) -> Result<(), rusqlite::Error> {
    let id = event.id.text();
    let org_id = event.org_id.text();
    let ids = [
        event.actor_id.map(PrincipalId::text),
        event.via.map(PrincipalId::text),
        event.token_id.map(TokenId::text),
        event.request_id.map(RequestId::text),
    ];
    let [actor_id, via, token_id, request_id] =
        ids.each_ref().map(|id| id.as_ref().map(IdText::as_str));
    let packed = event.texts.packed();
    let code = event.code(key, committed_at, &packed);
    let columns: [&dyn ToSql; 17] = [
        &id.as_str(),
        &org_id.as_str(),
        &event.kind,
        &event.occurred_at.as_micros(),
        &committed_at,
        &actor_id,
        &via,
        &token_id,
        &event.texts.of(TextColumn::Target),
        &event.decision,
        &event.texts.of(TextColumn::Policy),
        &event.dlp_result,
        &event.outcome,
        &request_id,
        &packed.bytes,
        &event.has_payload.then_some(committed_at),
        &code,
    ];
    for (column, place) in columns.into_iter().zip(1..) {
        insert.raw_bind_parameter(place, column)?;
    }
    Ok(())
}

/// Notes that the intents have ended, and removes those of other connections. Gives those that this
/// connection opened and closes once: no event can stand for them yet.
fn end_intents(
    open: &Connection,
    ids: &[EventId],
    known: &mut KnownIntents,
) -> Result<HashSet<EventId>, StoreError> {
    let mut own = HashSet::new();
    let mut others = Vec::new();
    for id in ids {
        let Some(rowid) = known.open.remove(id) else {
            others.push(*id);
            continue;
        };
        // Another process may have closed it.
        if open.prepare_cached(FIND_INTENT)?.exists((rowid, id.text().as_str()))? {
            known.ended.push((*id, rowid));
            own.insert(*id);
        }
    }
    if !others.is_empty() {
        known.open = read_open(open)?;
    }
    for id in others {
        open.prepare_cached(DELETE_OTHER)?.execute([id.text().as_str()])?;
        own.remove(&id);
    }
    Ok(own)
}

/// Fails if one of the events stands twice. No index is written with an event, so no constraint tells.
fn refuse_twins<'a>(
    open: &Connection,
    events: impl Iterator<Item = &'a &'a NewEvent>,
) -> Result<(), StoreError> {
    let ids: Vec<_> = events.map(|event| event.id).collect();
    if ids.is_empty() {
        return Ok(());
    }
    let ids = serde_json::json!(ids).to_string();
    let stands_twice = open.prepare_cached(TWINS)?.exists([ids])?;
    if stands_twice { Err(StoreError::Conflict("audit_events".to_owned())) } else { Ok(()) }
}

/// Intents that an earlier node left open, or that were written while the connection failed.
fn read_open(open: &Connection) -> Result<HashMap<EventId, i64>, StoreError> {
    let mut select = open.prepare_cached(OPEN_INTENTS)?;
    let mut rows = select.query(())?;
    let mut rowids = HashMap::new();
    while let Some(row) = rows.next()? {
        // One whose id cannot be read cannot be closed; the others are closed.
        let Ok(id) = read_id(row, 1, "audit_intents.id") else { continue };
        rowids.insert(id, row.get(0)?);
    }
    Ok(rowids)
}

fn end_keys(open: &Connection, batch: &Batch<'_>) -> Result<(), StoreError> {
    for key in &batch.answered {
        open.prepare_cached(ANSWER_KEY)?.execute((&key.org_id, &key.subject, key.sealed))?;
    }
    for (org_id, subject) in &batch.released {
        open.prepare_cached(RELEASE_KEY)?.execute((org_id, subject))?;
    }
    Ok(())
}

const INSERT_INTENT: &str = "INSERT INTO audit_intents (id, org_id, node, opened_at, packed, mac) VALUES (?, ?, ?, ?, ?, ?)";

/// In the same place, no page is freed and taken again.
const REPLACE_INTENT: &str = "
UPDATE audit_intents SET id = ?, org_id = ?, node = ?, opened_at = ?, packed = ?, mac = ?
WHERE place = ? AND id = ?";

/// A place is used again once it is free: what lies there is removed only if it is the intent meant.
const DELETE_INTENT: &str = "DELETE FROM audit_intents WHERE place = ? AND id = ?";

const FIND_INTENT: &str = "SELECT 1 FROM audit_intents WHERE place = ? AND id = ?";

const DELETE_OTHER: &str = "DELETE FROM audit_intents WHERE id = ?";

const OPEN_INTENTS: &str = concat!("SELECT place, id FROM audit_intents WHERE NOT ", is_ended!());

const TWINS: &str = concat!(
    "SELECT 1 FROM audit_events WHERE position IN (",
    positions_of_events!("IN (SELECT value FROM json_each($1))"),
    ") AND id IN (SELECT value FROM json_each($1)) GROUP BY id HAVING COUNT(*) > 1"
);

const ANSWER_KEY: &str =
    "UPDATE idempotency_keys SET sealed = ?3 WHERE org_id = ?1 AND subject = ?2";

const RELEASE_KEY: &str = "DELETE FROM idempotency_keys WHERE org_id = ? AND subject = ?";

const INSERT_KEYS: &str = "
INSERT INTO idempotency_keys (org_id, digest, fingerprint, subject, request_id, expires_at)
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5
FROM json_each($1) WHERE TRUE
ON CONFLICT (org_id, digest) DO UPDATE SET fingerprint = excluded.fingerprint,
    subject = excluded.subject, request_id = excluded.request_id,
    expires_at = excluded.expires_at, sealed = NULL
WHERE idempotency_keys.expires_at <= $2
RETURNING subject";

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;
    use crate::db::schema;

    /// Trees that a statement can write to.
    fn trees(open: &Connection, sql: &str) -> BTreeSet<String> {
        let mut select =
            open.prepare("SELECT rootpage, name FROM sqlite_master WHERE rootpage > 0").unwrap();
        let names = select.query_map((), |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        let names: BTreeMap<i64, String> = names.map(Result::unwrap).collect();
        let mut explain = open.prepare(&format!("EXPLAIN {sql}")).unwrap();
        let steps = explain.raw_query().mapped(|row| Ok((row.get("opcode")?, row.get("p2")?)));
        let steps: Vec<(String, i64)> = steps.map(Result::unwrap).collect();
        let writes = steps.iter().filter(|(opcode, _)| opcode == "OpenWrite");
        writes.map(|(_, page)| names[page].clone()).collect()
    }

    #[test]
    fn a_commit_writes_to_the_trees_of_intents_and_events_alone() {
        let open = schema::in_memory();

        for intents in [INSERT_INTENT, REPLACE_INTENT, DELETE_INTENT] {
            assert_eq!(trees(&open, intents), BTreeSet::from(["audit_intents".to_owned()]));
        }
        assert_eq!(trees(&open, INSERT_EVENT), BTreeSet::from(["audit_events".to_owned()]));
    }
}
