//! Erasing what is detached: value and salt go, the commitment in the hashed record stays, so every
//! proof stays valid and the value cannot be guessed from it.

use std::collections::BTreeMap;

use portcullis_core::{
    clock::Timestamp,
    id::{EventId, OrgId, PrincipalId},
};
use serde_json::value::RawValue;

use super::holds::held;
use crate::{
    db::{
        Db, NewEvent, RecordTexts, Store, all, change, read, row, run, sealed_upto, waiting_events,
    },
    error::StoreError,
    row_key::{CodedRow, PackedRecord, RowKey},
};

/// Rows looked at in one transaction.
const BATCH: i64 = 500;

/// The members that are payload.
pub(crate) const PAYLOADS: [&str; 2] = ["input", "output"];

/// Selection of events. Empty parts let everything through; all others must match.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    pub event: Option<EventId>,
    /// Done by this principal, or on its behalf.
    pub actor: Option<PrincipalId>,
    /// Committed at this moment or later.
    pub from: Option<Timestamp>,
    /// Committed before this moment.
    pub to: Option<Timestamp>,
}

/// Result of one step of an erasure.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Erased {
    /// Events of which something was erased.
    pub erased: u64,
    /// Events that matched and are under a hold.
    pub held: u64,
    /// Position of the next step; `None` at the end.
    pub next: Option<i64>,
}

row!(ErasableRow {
    position: i64,
    id: String,
    kind: String,
    committed_at: i64,
    mac: Option<Vec<u8>>,
    packed: Option<Vec<u8>>,
    held: i32,
});

impl ErasableRow {
    fn texts(&self) -> Result<RecordTexts, StoreError> {
        RecordTexts::of_row(self.packed.as_deref())
    }

    /// The code of the row with this record, if it had its own: it may wait for its seal.
    fn code_with(&self, org: OrgId, key: &RowKey, record: &PackedRecord) -> Option<Vec<u8>> {
        let org = org.text();
        let row = CodedRow::Event {
            id: &self.id,
            org_id: org.as_str(),
            kind: &self.kind,
            committed_at: self.committed_at,
        };
        let fits = key.fits(row, self.packed.as_deref(), self.mac.as_deref());
        fits.then(|| key.code(row, record))
    }
}

/// Members to erase of an event.
#[derive(Clone, Copy)]
struct What<'a> {
    members: &'a [String],
    /// Also of members of which there is no value but a commitment that could be opened.
    commitments: bool,
}

/// Remaining texts of an event.
struct RemainingTexts {
    texts: RecordTexts,
    has_payload: bool,
}

impl Store {
    /// Erases these members of the events selected that no hold covers, going on after position
    /// `after`. `tell` makes the event that is committed with each step that found something.
    pub async fn erase<F>(
        &self,
        org: OrgId,
        selection: &Selection,
        members: &[String],
        after: i64,
        tell: F,
    ) -> Result<Erased, StoreError>
    where
        F: Fn(&Erased) -> NewEvent + Send,
    {
        let select = match &self.db {
            Db::Sqlite { .. } => SELECT_IN_SQLITE,
            Db::Postgres(_) => SELECT_IN_POSTGRES,
        };
        let step = change!(self, org, |tx| {
            tx.announce_writer().await?;
            tx.remove_ended_intents().await?;
            let rows: Vec<ErasableRow> = all!(
                tx, select => org, after, selection.event.map(|id| id.to_string()),
                selection.actor.map(|id| id.to_string()), selection.from.map(Timestamp::as_micros),
                selection.to.map(Timestamp::as_micros), BATCH
            );
            let (step, lefts) = weigh(&rows, What { members, commitments: true })?;
            for (row, left) in lefts {
                let record = PackedRecord::of(left.texts.pack());
                let code = row.code_with(org, &self.row_key, &record);
                run!(tx, UPDATE => row.position, record.bytes, i32::from(left.has_payload), code);
            }
            if step.erased + step.held > 0 {
                let event = tell(&step);
                tx.insert_events(&self.row_key, event.occurred_at.as_micros(), &[&event]).await?;
            }
            step
        });
        Ok(step)
    }

    /// Lets payloads go that were kept before `before` and that no hold covers, a portion at a
    /// time. `tell` makes the event that is committed with a portion that is not empty.
    pub async fn let_payloads_go<F>(
        &self,
        org: OrgId,
        before: Timestamp,
        tell: F,
    ) -> Result<u64, StoreError>
    where
        F: Fn(u64) -> NewEvent + Send,
    {
        let old = match &self.db {
            Db::Sqlite { .. } => OLD_PAYLOADS_IN_SQLITE,
            Db::Postgres(_) => OLD_PAYLOADS_IN_POSTGRES,
        };
        let members = PAYLOADS.map(str::to_owned);
        // However many are kept by holds, looking for the others keeps nobody from writing.
        let found: Vec<i64> =
            read!(self, org, |conn| all!(conn, scalar old => org, before.as_micros(), BATCH));
        if found.is_empty() {
            return Ok(0);
        }
        let found = serde_json::Value::from(found).to_string();
        let at = match &self.db {
            Db::Sqlite { .. } => payloads_at!("json_each($2)"),
            Db::Postgres(_) => payloads_at!("jsonb_array_elements_text($2::jsonb) AS at (value)"),
        };
        let gone = change!(self, org, |tx| {
            tx.announce_writer().await?;
            tx.remove_ended_intents().await?;
            let rows: Vec<ErasableRow> = all!(tx, at => org, &found, before.as_micros());
            let (step, lefts) = weigh(&rows, What { members: &members, commitments: false })?;
            for (row, left) in lefts {
                let record = PackedRecord::of(left.texts.pack());
                let code = row.code_with(org, &self.row_key, &record);
                run!(tx, UPDATE => row.position, record.bytes, 0, code);
            }
            if step.erased > 0 {
                let event = tell(step.erased);
                tx.insert_events(&self.row_key, event.occurred_at.as_micros(), &[&event]).await?;
            }
            step.erased
        });
        Ok(gone)
    }
}

/// Rows that lose something, and what remains of them.
type Changes<'a> = Vec<(&'a ErasableRow, RemainingTexts)>;

/// Changes of the rows: the remaining members of those that lose some.
fn weigh<'a>(rows: &'a [ErasableRow], what: What<'_>) -> Result<(Erased, Changes<'a>), StoreError> {
    let full = rows.len() >= usize::try_from(BATCH).unwrap_or(usize::MAX);
    let next = rows.last().map(|row| row.position).filter(|_| full);
    let mut step = Erased { next, ..Erased::default() };
    let mut lefts = Vec::new();
    for row in rows {
        let Some(left) = find_remaining(row.texts()?, what)? else { continue };
        if row.held == 0 {
            step.erased += 1;
            lefts.push((row, left));
        } else {
            step.held += 1;
        }
    }
    Ok((step, lefts))
}

type Members = BTreeMap<String, Box<RawValue>>;

/// Remaining members of an event; `None` if it loses none.
fn find_remaining(
    texts: RecordTexts,
    what: What<'_>,
) -> Result<Option<RemainingTexts>, StoreError> {
    let mut detached = read(texts.detached.as_deref(), "audit_events.detached")?;
    let mut salts = read(texts.salts.as_deref(), "audit_events.salts")?;
    let mut anything = false;
    for member in what.members {
        let Some(value) = detached.get_mut(member) else { continue };
        let is_kept = value.get() != "null";
        if is_kept || what.commitments && salts.contains_key(member) {
            *value = RawValue::NULL.to_owned();
            salts.remove(member);
            anything = true;
        }
    }
    if !anything {
        return Ok(None);
    }
    let has_payload =
        PAYLOADS.iter().any(|name| detached.get(*name).is_some_and(|value| value.get() != "null"));
    let detached = Some(write(&detached, "audit_events.detached")?);
    let salts = Some(write(&salts, "audit_events.salts")?);
    let texts = RecordTexts { core: texts.core, detached, salts };
    Ok(Some(RemainingTexts { texts, has_payload }))
}

fn read(text: Option<&str>, column: &'static str) -> Result<Members, StoreError> {
    let text = text.filter(|text| *text != "null").unwrap_or("{}");
    serde_json::from_str(text).map_err(|_| StoreError::Corrupt(column))
}

fn write(members: &Members, column: &'static str) -> Result<String, StoreError> {
    serde_json::to_string(members).map_err(|_| StoreError::Corrupt(column))
}

/// The SQL for the events that are selected, of those that `$from` says how to find; they are read in
/// the order of `$place`.
macro_rules! select_sql {
    ($from:expr, $place:literal) => {
        concat!(
            "SELECT e.position, e.id, e.type AS kind, e.committed_at, e.mac, e.packed, ",
            held!(),
            " AS held FROM ",
            $from,
            " AND e.org_id = $1 AND e.position > $2 \
             AND ($3 IS NULL OR e.id = $3) AND ($4 IS NULL OR e.actor_id = $4 OR e.via = $4) \
             AND ($5 IS NULL OR e.committed_at >= $5) AND ($6 IS NULL OR e.committed_at < $6) \
             ORDER BY ",
            $place,
            " LIMIT $7"
        )
    };
}

const SELECT_IN_POSTGRES: &str = select_sql!("audit_events e WHERE TRUE", "e.position");

/// Events with a place stand in front of those without.
const SELECT_IN_SQLITE: &str = concat!(
    "SELECT * FROM (",
    select_sql!(
        "audit_seals s JOIN audit_events e ON e.position = s.position \
         WHERE s.org_id = $1 AND s.sequence > COALESCE(\
         (SELECT a.sequence FROM audit_seals a WHERE a.position = $2 AND a.org_id = $1), -1)",
        "s.sequence"
    ),
    ") UNION ALL SELECT * FROM (",
    select_sql!(
        concat!(
            "audit_events e WHERE e.position IN (SELECT w.position FROM (",
            waiting_events!(),
            ") w WHERE w.org_id = $1) AND NOT EXISTS (SELECT 1 FROM audit_seals s WHERE s.position = e.position)"
        ),
        "e.position"
    ),
    ") ORDER BY position LIMIT $7"
);

/// The SQL for the positions of the oldest events with payloads from before `$2` that no hold covers, of those that
/// `$from` says how to find, in the order of `$moment`.
macro_rules! old_payloads {
    ($from:expr, $moment:literal) => {
        concat!(
            "SELECT e.position FROM ",
            $from,
            " AND e.org_id = $1 AND e.payload_at < $2 AND ",
            held!(),
            " = 0 ORDER BY ",
            $moment,
            " LIMIT $3"
        )
    };
}

/// The SQL for the events at the positions of `$list` that have a payload from before `$3`.
macro_rules! payloads_at {
    ($list:literal) => {
        concat!(
            "SELECT e.position, e.id, e.type AS kind, e.committed_at, e.mac, e.packed, ",
            held!(),
            " AS held FROM audit_events e WHERE e.org_id = $1 AND e.payload_at < $3 \
             AND e.position IN (SELECT CAST(value AS BIGINT) FROM ",
            $list,
            ")"
        )
    };
}
use payloads_at;

const OLD_PAYLOADS_IN_POSTGRES: &str = old_payloads!("audit_events e WHERE TRUE", "e.payload_at");

/// Those at the end of the table are in no index.
const OLD_PAYLOADS_IN_SQLITE: &str = concat!(
    "SELECT * FROM (",
    old_payloads!(
        "audit_index i CROSS JOIN audit_events e ON e.position = i.position WHERE i.kind = 5 \
         AND i.name > $1 || ' ' AND i.name < $1 || printf(' %016d', $2)",
        "i.name"
    ),
    ") UNION ALL SELECT * FROM (",
    old_payloads!(
        concat!(
            "audit_events e WHERE e.position > ",
            sealed_upto!(),
            " AND NOT EXISTS (SELECT 1 FROM audit_seals s WHERE s.position = e.position)"
        ),
        "e.position"
    ),
    ") LIMIT $3"
);

const UPDATE: &str = "
UPDATE audit_events SET packed = $2, mac = $4,
    payload_at = CASE WHEN $3 = 1 THEN payload_at ELSE NULL END
WHERE position = $1";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::db::schema;

    #[test]
    fn events_are_selected_by_their_places_and_payloads_by_their_moments() {
        let open = schema::in_memory();
        let places = "audit_seals_1 (org_id=? AND sequence>?)";
        let end = "SEARCH u USING INTEGER PRIMARY KEY (rowid>?)";
        let moments = "SEARCH i USING PRIMARY KEY (kind=? AND name>? AND name<?)";
        let waiting = "SEARCH e USING INTEGER PRIMARY KEY (rowid>?)";

        for (select, searches) in
            [(SELECT_IN_SQLITE, [places, end]), (OLD_PAYLOADS_IN_SQLITE, [moments, waiting])]
        {
            let plan = schema::plan_of(&open, select);

            for search in searches {
                assert!(plan.iter().any(|step| step.contains(search)), "{search}: {plan:?}");
            }
            let scans = plan.iter().any(|step| step == "SCAN e" || step == "SCAN s");
            assert!(!scans, "{plan:?}");
        }
    }

    fn texts(detached: &str, salts: &str) -> RecordTexts {
        let core = "{}".to_owned();
        RecordTexts { core, detached: Some(detached.to_owned()), salts: Some(salts.to_owned()) }
    }

    fn row(detached: &str, salts: &str, held: i32) -> ErasableRow {
        ErasableRow {
            position: 1,
            id: String::new(),
            kind: String::new(),
            committed_at: 0,
            mac: None,
            packed: Some(texts(detached, salts).pack()),
            held,
        }
    }

    fn members(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn value_and_salt_go_and_the_rest_stays_as_it_was_written() {
        let detached = r#"{"actor_name":"ann","input":{"n":1.10e3},"output":null}"#;
        let salts = r#"{"actor_name":"s1","input":"s2","output":"s3"}"#;

        let both = members(&["actor_name", "output"]);
        let erase = |commitments| {
            let what = What { members: &both, commitments };
            find_remaining(texts(detached, salts), what).unwrap().unwrap()
        };

        let left = erase(true);
        let values_only = erase(false);

        let detached = r#"{"actor_name":null,"input":{"n":1.10e3},"output":null}"#;
        assert_eq!(left.texts, texts(detached, r#"{"input":"s2"}"#));
        let both_salts = r#"{"input":"s2","output":"s3"}"#;
        assert_eq!(values_only.texts, texts(detached, both_salts));
        assert!(left.has_payload);
    }

    #[test]
    fn what_is_gone_already_is_not_erased_again_and_what_is_held_is_counted() {
        let rows = [
            row(r#"{"actor_name":null}"#, "{}", 0),
            row(r#"{"actor_name":"ann"}"#, r#"{"actor_name":"s"}"#, 1),
            row(r#"{"label":"x"}"#, r#"{"label":"s"}"#, 0),
            row(r#"{"actor_name":"bob"}"#, r#"{"actor_name":"s"}"#, 0),
        ];

        let (step, lefts) =
            weigh(&rows, What { members: &members(&["actor_name"]), commitments: true }).unwrap();

        assert_eq!(step, Erased { erased: 1, held: 1, next: None });
        assert_eq!(lefts.len(), 1);
        assert!(!lefts[0].1.has_payload);
    }
}
