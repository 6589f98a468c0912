//! Erasing what is detached: value and salt go, the commitment in the hashed record stays, so every
//! proof stays valid and the value cannot be guessed from it.

use std::collections::BTreeMap;

use portcullis_core::{
    clock::Timestamp,
    id::{EventId, OrgId, PrincipalId},
};
use serde_json::{json, value::RawValue};

use super::holds::held;
use crate::{
    db::{
        Db, NewEvent, RecordTexts, Store, all, change, events_of_seals, read, row, run,
        seals_of_events,
    },
    error::StoreError,
};

/// Events that are selected at a time.
pub const MAX_SELECTED: i64 = 500;

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

/// An event of which something may go, as it was proven.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErasableEvent {
    pub position: i64,
    pub id: String,
    /// True if a hold covers it, as the log tells.
    pub is_held: bool,
}

/// Parts of events to erase.
#[derive(Debug, Clone, Copy)]
pub enum ErasedParts<'a> {
    /// Payloads; a commitment to one that was never kept stays one that can be opened.
    Payloads,
    /// Members by name, also the salts of commitments to them.
    Members(&'a [String]),
}

impl ErasedParts<'_> {
    fn names(&self) -> Vec<&str> {
        match self {
            Self::Payloads => PAYLOADS.to_vec(),
            Self::Members(names) => names.iter().map(String::as_str).collect(),
        }
    }
}

/// Result of one step of an erasure.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Erased {
    /// Events of which something was erased.
    pub erased: u64,
    /// Events that matched and are under a hold.
    pub held: u64,
}

row!(ErasableRow { position: i64, id: String, packed: Option<Vec<u8>>, held: i32 });

/// Remaining texts of an event.
struct RemainingTexts {
    texts: RecordTexts,
    has_payload: bool,
}

impl Store {
    /// Places of the org's events that are selected behind the place `after`, at most [`MAX_SELECTED`]. Events that
    /// wait for their places are not among them.
    pub async fn select_events(
        &self,
        org: OrgId,
        selection: &Selection,
        after: i64,
    ) -> Result<Vec<i64>, StoreError> {
        let select = match &self.db {
            Db::Sqlite { .. } => select_sql!(sqlite),
            Db::Postgres(_) => select_sql!(postgres),
        };
        Ok(read!(self, org, |conn| {
            all!(
                conn, scalar select => org, after, selection.event.map(|id| id.to_string()),
                selection.actor.map(|id| id.to_string()), selection.from.map(Timestamp::as_micros),
                selection.to.map(Timestamp::as_micros), MAX_SELECTED
            )
        }))
    }

    /// Places of the org's events with the oldest payloads from before `before` that no hold covers, at most
    /// [`MAX_SELECTED`], in the order of the log. However many are kept by holds, looking for the others keeps
    /// nobody from writing.
    pub async fn old_payloads(
        &self,
        org: OrgId,
        before: Timestamp,
    ) -> Result<Vec<i64>, StoreError> {
        let old = match &self.db {
            Db::Sqlite { .. } => OLD_PAYLOADS_IN_SQLITE,
            Db::Postgres(_) => OLD_PAYLOADS_IN_POSTGRES,
        };
        let mut places: Vec<i64> = read!(self, org, |conn| {
            all!(conn, scalar old => org, before.as_micros(), MAX_SELECTED)
        });
        places.sort_unstable();
        Ok(places)
    }

    /// Erases parts of those of these events that no hold covers. `tell` makes the event that is committed with it,
    /// if there is anything to tell.
    pub async fn erase<F>(
        &self,
        org: OrgId,
        events: &[ErasableEvent],
        parts: ErasedParts<'_>,
        tell: F,
    ) -> Result<Erased, StoreError>
    where
        F: Fn(&Erased) -> Option<NewEvent> + Send,
    {
        let positions = json!(events.iter().map(|event| event.position).collect::<Vec<_>>());
        let at = match &self.db {
            Db::Sqlite { .. } => at_positions!("IN (SELECT value FROM json_each($2))"),
            Db::Postgres(_) => at_positions!(
                "= ANY (ARRAY(SELECT CAST(value AS BIGINT) \
                 FROM jsonb_array_elements_text($2::jsonb) AS at (value)))"
            ),
        };
        let step = change!(self, org, |tx| {
            tx.announce_writer().await?;
            tx.remove_ended_intents().await?;
            let rows: Vec<ErasableRow> = all!(tx, at => org, positions.to_string());
            let (step, lefts) = weigh(&rows, events, parts)?;
            for (row, left) in lefts {
                run!(tx, UPDATE => row.position, left.texts.pack(), i32::from(left.has_payload));
            }
            if let (1.., Some(event)) = (step.erased + step.held, tell(&step)) {
                tx.insert_events(&self.row_key, event.occurred_at.as_micros(), &[&event]).await?;
            }
            step
        });
        Ok(step)
    }
}

/// Rows that lose something, and what remains of them.
type Changes<'a> = Vec<(&'a ErasableRow, RemainingTexts)>;

/// Changes of the rows: the remaining members of those that lose some. A row of another event than the one that was
/// proven loses nothing.
fn weigh<'a>(
    rows: &'a [ErasableRow],
    events: &[ErasableEvent],
    parts: ErasedParts<'_>,
) -> Result<(Erased, Changes<'a>), StoreError> {
    let events: BTreeMap<(i64, &str), bool> =
        events.iter().map(|it| ((it.position, it.id.as_str()), it.is_held)).collect();
    let mut step = Erased::default();
    let mut lefts = Vec::new();
    for row in rows {
        let Some(is_held) = events.get(&(row.position, row.id.as_str())) else { continue };
        let texts = RecordTexts::of_row(row.packed.as_deref())?;
        let Some(left) = find_remaining(texts, parts)? else { continue };
        if row.held == 0 && !is_held {
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
    parts: ErasedParts<'_>,
) -> Result<Option<RemainingTexts>, StoreError> {
    let commitments = matches!(parts, ErasedParts::Members(_));
    let mut detached = read(texts.detached.as_deref(), "audit_events.detached")?;
    let mut salts = read(texts.salts.as_deref(), "audit_events.salts")?;
    let mut anything = false;
    for member in parts.names() {
        let Some(value) = detached.get_mut(member) else { continue };
        let is_kept = value.get() != "null";
        if is_kept || commitments && salts.contains_key(member) {
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

macro_rules! select_sql {
    ($dialect:ident) => {
        concat!(
            "SELECT s.sequence FROM ",
            events_of_seals!($dialect),
            " WHERE s.org_id = $1 AND e.org_id = $1 AND s.sequence > $2 \
             AND ($3 IS NULL OR e.id = $3) AND ($4 IS NULL OR e.actor_id = $4 OR e.via = $4) \
             AND ($5 IS NULL OR e.committed_at >= $5) AND ($6 IS NULL OR e.committed_at < $6) \
             ORDER BY s.sequence LIMIT $7"
        )
    };
}
use select_sql;

/// The SQL for the places of the oldest events with payloads from before `$2` that no hold covers, of those that
/// `$from` says how to find, in the order of `$moment`.
macro_rules! old_payloads {
    ($from:expr, $moment:literal) => {
        concat!(
            "SELECT s.sequence FROM ",
            $from,
            " AND e.org_id = $1 AND s.org_id = $1 AND e.payload_at < $2 AND ",
            held!(),
            " = 0 ORDER BY ",
            $moment,
            " LIMIT $3"
        )
    };
}

/// The SQL for the events whose positions are in the `$list`.
macro_rules! at_positions {
    ($list:literal) => {
        concat!(
            "SELECT e.position, e.id, e.packed, ",
            held!(),
            " AS held FROM audit_events e WHERE e.org_id = $1 AND e.position ",
            $list
        )
    };
}
use at_positions;

const OLD_PAYLOADS_IN_POSTGRES: &str =
    old_payloads!(concat!(seals_of_events!(), " WHERE TRUE"), "e.payload_at");

const OLD_PAYLOADS_IN_SQLITE: &str = old_payloads!(
    "audit_index i CROSS JOIN audit_events e ON e.position = i.position \
     JOIN audit_seals s ON s.position = e.position WHERE i.kind = 5 \
     AND i.name > $1 || ' ' AND i.name < $1 || printf(' %016d', $2)",
    "i.name"
);

const UPDATE: &str = "
UPDATE audit_events SET packed = $2,
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
        let moments = "SEARCH i USING PRIMARY KEY (kind=? AND name>? AND name<?)";

        for (select, search) in [(select_sql!(sqlite), places), (OLD_PAYLOADS_IN_SQLITE, moments)] {
            let plan = schema::plan_of(&open, select);

            assert!(plan.iter().any(|step| step.contains(search)), "{search}: {plan:?}");
            let scans = plan.iter().any(|step| step == "SCAN e" || step == "SCAN s");
            assert!(!scans, "{plan:?}");
        }
    }

    fn texts(detached: &str, salts: &str) -> RecordTexts {
        let core = "{}".to_owned();
        RecordTexts { core, detached: Some(detached.to_owned()), salts: Some(salts.to_owned()) }
    }

    fn row(position: i64, detached: &str, salts: &str, held: i32) -> ErasableRow {
        let packed = Some(texts(detached, salts).pack());
        ErasableRow { position, id: "evt_1".to_owned(), packed, held }
    }

    fn members(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn value_and_salt_go_and_the_rest_stays_as_it_was_written() {
        let detached = r#"{"actor_name":"ann","input":{"n":1.10e3},"output":null}"#;
        let salts = r#"{"actor_name":"s1","input":"s2","output":"s3"}"#;
        let both = members(&["actor_name", "output"]);
        let erase = |parts| find_remaining(texts(detached, salts), parts).unwrap().unwrap();

        let left = erase(ErasedParts::Members(&both));
        let values_only = erase(ErasedParts::Payloads);

        let detached = r#"{"actor_name":null,"input":{"n":1.10e3},"output":null}"#;
        assert_eq!(left.texts, texts(detached, r#"{"input":"s2"}"#));
        let detached = r#"{"actor_name":"ann","input":null,"output":null}"#;
        let salts = r#"{"actor_name":"s1","output":"s3"}"#;
        assert_eq!(values_only.texts, texts(detached, salts));
        assert!(left.has_payload && !values_only.has_payload);
    }

    #[test]
    fn only_what_is_there_and_proven_and_not_held_is_erased() {
        let (detached, salts) = (r#"{"actor_name":"ann"}"#, r#"{"actor_name":"s"}"#);
        let rows = [
            row(1, r#"{"actor_name":null}"#, "{}", 0),
            row(2, detached, salts, 1),
            row(3, r#"{"label":"x"}"#, r#"{"label":"s"}"#, 0),
            row(4, detached, salts, 0),
            row(5, detached, salts, 0),
            row(6, detached, salts, 0),
        ];
        let event = |position| ErasableEvent {
            position,
            id: if position == 6 { "evt_2" } else { "evt_1" }.to_owned(),
            is_held: position == 5,
        };
        let events: Vec<_> = (1..=6).map(event).collect();

        let names = members(&["actor_name"]);
        let (step, lefts) = weigh(&rows, &events, ErasedParts::Members(&names)).unwrap();

        assert_eq!(step, Erased { erased: 1, held: 2 });
        assert_eq!(lefts.iter().map(|(row, _)| row.position).collect::<Vec<_>>(), [4]);
        assert!(!lefts[0].1.has_payload);
    }
}
