//! The end of the table of events on SQLite, where those stand that have no place in a log yet.
//!
//! No index is written with an event: look-ups by org or id read the events behind a position that follows
//! what is sealed. A log that cannot be sealed holds up no other: of the events that it keeps waiting, those
//! far behind are noted in the index of the sealer instead.

use std::collections::HashMap;

use portcullis_core::id::OrgId;
use rusqlite::{Connection, OptionalExtension};

use crate::{
    db::{index_entries, newest_position, sealed_upto},
    error::StoreError,
};

/// Events that look-ups read at the end of the table at most, until the next seal: those of some seconds.
const LONGEST: i64 = 16_384;

/// Events of logs that have no place yet.
#[derive(Default)]
pub(super) struct Waiting(HashMap<String, WaitingLog>);

struct WaitingLog {
    /// Position of the last event that has its place.
    sealed: i64,
    positions: Vec<i64>,
}

impl Waiting {
    /// Adds a log whose events up to the position `sealed` have their places.
    pub(super) fn add(&mut self, org: OrgId, sealed: i64) {
        self.0.insert(org.to_string(), WaitingLog { sealed, positions: Vec::new() });
    }

    /// Reads the positions of the first events of each log, `most` of each, up to `horizon`.
    pub(super) fn read(
        &mut self,
        open: &Connection,
        horizon: i64,
        most: usize,
    ) -> Result<(), StoreError> {
        let mut noted = open.prepare_cached(NOTED)?;
        let mut full = 0;
        for (org, log) in &mut self.0 {
            let limit = i64::try_from(most).unwrap_or(i64::MAX);
            let positions = noted.query_map((org, log.sealed, horizon, limit), |row| row.get(0))?;
            log.positions = positions.collect::<Result<_, _>>()?;
            full += usize::from(log.positions.len() >= most);
        }
        let mut tail = open.prepare_cached(TAIL)?;
        let mut rows = tail.query([horizon])?;
        while full < self.0.len()
            && let Some(row) = rows.next()?
        {
            // An event whose org cannot be read is in no log.
            let Ok(org) = row.get_ref(1)?.as_str() else { continue };
            let Some(log) = self.0.get_mut(org) else { continue };
            let position = row.get(0)?;
            if position > log.sealed && log.positions.len() < most {
                log.positions.push(position);
                full += usize::from(log.positions.len() >= most);
            }
        }
        Ok(())
    }

    /// Takes the positions of a log.
    pub(super) fn take(&mut self, org: OrgId) -> Vec<i64> {
        self.0.remove(&org.to_string()).map(|log| log.positions).unwrap_or_default()
    }
}

/// Lets look-ups begin behind the events that have their places. A crash in front of it leaves more to
/// read, and nothing unread.
pub(super) fn follow(open: &Connection) -> Result<(), StoreError> {
    open.prepare_cached(FOLLOW)?.execute(())?;
    let last = open.prepare_cached(LAST_OF_LONG)?.query_row([LONGEST], |row| row.get::<_, i64>(0));
    let Some(last) = last.optional()? else { return Ok(()) };
    let upto = last - LONGEST / 2;
    for note in [INDEX_WAITING, NOTE_WAITING, PASS_WAITING] {
        open.prepare_cached(note)?.execute([upto])?;
    }
    Ok(())
}

/// Removes the notes of events of the org up to this position, which have their places now.
pub(super) fn forget(open: &Connection, org: &str, upto: i64) -> Result<(), StoreError> {
    let forget = "DELETE FROM audit_index WHERE kind = 6 AND name = ? AND position <= ?";
    open.prepare_cached(forget)?.execute((org, upto))?;
    Ok(())
}

const NOTED: &str = "
SELECT position FROM audit_index
WHERE kind = 6 AND name = ? AND position > ? AND position <= ? ORDER BY position LIMIT ?";

const TAIL: &str = concat!(
    "SELECT position, org_id FROM audit_events WHERE position <= ? AND position > ",
    sealed_upto!(),
    " ORDER BY position"
);

/// The SQL for whether the event `e` waits for its place: one in front of its log's head was refused.
macro_rules! waits {
    () => {
        "NOT EXISTS (SELECT 1 FROM audit_seals s WHERE s.position = e.position) AND e.position > \
         COALESCE((SELECT h.last_position FROM audit_heads h WHERE h.org_id = e.org_id), -1)"
    };
}

const FOLLOW: &str = concat!(
    "UPDATE audit_floor SET sealed = MAX(sealed, COALESCE(
    (SELECT e.position - 1 FROM audit_events e WHERE e.position > audit_floor.sealed AND e.position <= ",
    newest_position!(),
    " AND ",
    waits!(),
    " ORDER BY e.position LIMIT 1), ",
    newest_position!(),
    "))"
);

/// The last position, if look-ups read more than so many events.
const LAST_OF_LONG: &str = concat!(
    "SELECT position FROM audit_events WHERE position > ? + ",
    sealed_upto!(),
    " AND position <= ",
    newest_position!(),
    " ORDER BY position DESC LIMIT 1"
);

/// The SQL for the events `e` without a place, up to the position `$1`.
macro_rules! waiting_upto {
    () => {
        concat!("e.position <= $1 AND e.position > ", sealed_upto!(), " AND ", waits!())
    };
}

const INDEX_WAITING: &str = concat!(
    "INSERT OR IGNORE INTO audit_index (kind, name, position) ",
    index_entries!("audit_events e", waiting_upto!())
);

const NOTE_WAITING: &str = concat!(
    "INSERT OR IGNORE INTO audit_index (kind, name, position)
SELECT 6, e.org_id, e.position FROM audit_events e WHERE ",
    waiting_upto!()
);

const PASS_WAITING: &str = "UPDATE audit_floor SET sealed = MAX(sealed, $1)";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        audit::{
            counts,
            seal::{UNSEALED_IN_SQLITE, sqlite},
        },
        db::schema,
    };

    #[test]
    fn a_seal_reads_the_end_of_the_table_and_the_places_it_gives() {
        let open = schema::in_memory();

        let reading = [
            NOTED,
            TAIL,
            FOLLOW,
            LAST_OF_LONG,
            INDEX_WAITING,
            NOTE_WAITING,
            sqlite::INDEX,
            UNSEALED_IN_SQLITE,
        ];
        for sql in reading.into_iter().chain(counts::ADD_BY_PLACE) {
            let plan = schema::plan_of(&open, sql);

            let whole = ["SCAN e", "SCAN i", "SCAN s", "SCAN u", "SCAN audit_events"];
            let scans = plan.iter().any(|step| whole.contains(&step.as_str()));
            assert!(!scans, "{sql}: {plan:?}");
        }
    }
}
