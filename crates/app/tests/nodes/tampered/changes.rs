//! Changes of the rows of a log, at random, and their statements.

use proptest::prelude::*;

use super::Scene;

/// Tables of the log.
const TABLES: [&str; 6] = [
    "audit_events", "audit_seals", "audit_heads", "audit_tiles", "audit_checkpoints",
    "audit_pruned",
];
/// Columns of events and seals.
const COLUMNS: [(&str, &str); 22] = [
    ("audit_events", "id"),
    ("audit_events", "org_id"),
    ("audit_events", "type"),
    ("audit_events", "occurred_at"),
    ("audit_events", "committed_at"),
    ("audit_events", "payload_at"),
    ("audit_events", "actor_id"),
    ("audit_events", "via"),
    ("audit_events", "token_id"),
    ("audit_events", "target"),
    ("audit_events", "decision"),
    ("audit_events", "policy"),
    ("audit_events", "dlp_result"),
    ("audit_events", "outcome"),
    ("audit_events", "request_id"),
    ("audit_events", "packed"),
    ("audit_events", "position"),
    ("audit_seals", "org_id"),
    ("audit_seals", "sequence"),
    ("audit_seals", "recorded_at"),
    ("audit_seals", "leaf_hash"),
    ("audit_index", "name"),
];
/// The columns of an event that are stored.
const STORED: &str = "position, id, org_id, type, occurred_at, committed_at, payload_at, \
                      actor_id, via, request_id, token_id, target, decision, policy, dlp_result, \
                      outcome, packed";
/// Brings rows of events back from the older database; to be followed by a condition.
pub(super) fn return_events() -> String {
    format!(
        "INSERT OR REPLACE INTO audit_events ({STORED}) SELECT {STORED} FROM older.audit_events"
    )
}

/// One change of the rows of the org.
#[derive(Debug, Clone)]
pub(super) enum Change {
    /// Rows of events, seals or both are deleted: so many from this share of the log on.
    Delete { events: bool, seals: bool, from: f64, count: i64 },
    /// The newest rows are deleted, and head and checkpoint are left, deleted or set back.
    Cut { count: i64, head: After, checkpoint: After },
    /// Rows of a table are deleted.
    Empty { table: usize },
    /// A table is as it was when the older checkpoint was made.
    SetBack { table: usize },
    /// Rows of events are as they were then.
    Return { from: f64, count: i64 },
    /// A column of a row is empty, another value, or that of another row.
    Column { column: usize, row: f64, to: To },
    /// A number of the head, or of what was removed, is another one.
    Count { column: usize, by: i64 },
    /// An event of the other org is filed under this one.
    Adopt,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum After {
    Left,
    Gone,
    SetBack,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum To {
    Nothing,
    Another,
    Of(f64),
}

/// One change or two, one after the other.
pub(super) fn changes() -> impl Strategy<Value = Vec<Change>> {
    let share = || 0.0..1.0_f64;
    let after = || prop_oneof![Just(After::Left), Just(After::Gone), Just(After::SetBack)];
    let to = prop_oneof![Just(To::Nothing), Just(To::Another), share().prop_map(To::Of)];
    let change = prop_oneof![
        3 => (any::<bool>(), any::<bool>(), share(), 1..20_i64)
            .prop_map(|(events, seals, from, count)| Change::Delete { events, seals, from, count }),
        4 => (1..150_i64, after(), after())
            .prop_map(|(count, head, checkpoint)| Change::Cut { count, head, checkpoint }),
        1 => (0..TABLES.len()).prop_map(|table| Change::Empty { table }),
        2 => (0..TABLES.len()).prop_map(|table| Change::SetBack { table }),
        2 => (share(), 1..40_i64).prop_map(|(from, count)| Change::Return { from, count }),
        6 => (0..COLUMNS.len(), share(), to)
            .prop_map(|(column, row, to)| Change::Column { column, row, to }),
        2 => (0..5_usize, prop_oneof![Just(-1), Just(1), Just(-40), Just(10_000)])
            .prop_map(|(column, by)| Change::Count { column, by }),
        1 => Just(Change::Adopt),
    ];
    prop::collection::vec(change, 1..3)
}

impl Scene {
    /// The place at this share of the log.
    fn place(&self, share: f64) -> i64 {
        let first = *self.evidence.keys().next().unwrap();
        #[expect(clippy::cast_possible_truncation, reason = "a place of a small log")]
        let within = (share * f64::from(u32::try_from(self.evidence.len()).unwrap())) as i64;
        first + within
    }

    pub(super) fn statements(&self, change: &Change) -> Vec<String> {
        let org = format!("org_id = '{}'", self.org.id);
        match change {
            Change::Delete { events, seals, from, count } => {
                let from = self.place(*from);
                let places = format!("sequence >= {from} AND sequence < {}", from + count);
                self.delete(&places, *events, *seals)
            }
            Change::Cut { count, head, checkpoint } => self.cut(*count, *head, *checkpoint),
            Change::Empty { table } => vec![format!("DELETE FROM {} WHERE {org}", TABLES[*table])],
            Change::SetBack { table } => self.set_back(TABLES[*table]),
            Change::Return { from, count } => {
                let from = self.place(*from);
                let places = format!("sequence >= {from} AND sequence < {}", from + count);
                let from = self.of_places(&places);
                vec![format!("{} WHERE {from}", return_events())]
            }
            Change::Column { column, row, to } => vec![self.set_column(*column, *row, *to)],
            Change::Count { column, by } => {
                let (table, column) = [
                    ("audit_heads", "size"),
                    ("audit_heads", "tree_size"),
                    ("audit_heads", "last_position"),
                    ("audit_pruned", "size"),
                    ("audit_checkpoints", "size"),
                ][*column];
                vec![format!("UPDATE {table} SET {column} = {column} + {by} WHERE {org}")]
            }
            Change::Adopt => vec![format!(
                "UPDATE audit_events SET {org} WHERE position = (SELECT position FROM audit_events \
                 WHERE NOT {org} ORDER BY position DESC LIMIT 1)"
            )],
        }
    }

    /// The events at these places.
    fn of_places(&self, places: &str) -> String {
        let org = format!("org_id = '{}'", self.org.id);
        format!("position IN (SELECT position FROM audit_seals WHERE {org} AND {places})")
    }

    fn delete(&self, places: &str, events: bool, seals: bool) -> Vec<String> {
        let events =
            events.then(|| format!("DELETE FROM audit_events WHERE {}", self.of_places(places)));
        let org = format!("org_id = '{}'", self.org.id);
        let seals = seals.then(|| format!("DELETE FROM audit_seals WHERE {org} AND {places}"));
        events.into_iter().chain(seals).collect()
    }

    fn cut(&self, count: i64, head: After, checkpoint: After) -> Vec<String> {
        let org = format!("org_id = '{}'", self.org.id);
        let size = i64::try_from(self.newest.checkpoint().size).unwrap() - count;
        let mut all = self.delete(&format!("sequence >= {size}"), true, true);
        let last = |column: &str| {
            format!("(SELECT {column} FROM audit_seals WHERE {org} ORDER BY sequence DESC LIMIT 1)")
        };
        all.extend(match head {
            After::Left => None,
            After::Gone => Some(format!("DELETE FROM audit_heads WHERE {org}")),
            After::SetBack => Some(format!(
                "UPDATE audit_heads SET size = {size}, tree_size = {size}, last_position = {}, \
                 last_recorded_at = {} WHERE {org}",
                last("position"),
                last("recorded_at"),
            )),
        });
        all.extend(match checkpoint {
            After::Left => Vec::new(),
            After::Gone => vec![format!("DELETE FROM audit_checkpoints WHERE {org}")],
            After::SetBack => self.set_back("audit_checkpoints"),
        });
        all
    }

    fn set_column(&self, column: usize, row: f64, to: To) -> String {
        let (table, column) = COLUMNS[column];
        let row = self.of_places(&format!("sequence = {}", self.place(row)));
        let value = match to {
            To::Nothing => "NULL".to_owned(),
            To::Another => format!(
                "CASE typeof({column}) WHEN 'integer' THEN {column} + 3600000000 \
                 WHEN 'text' THEN replace(replace({column}, 'a', 'e'), '0', '1') \
                 WHEN 'blob' THEN zeroblob(32) ELSE 'x' END"
            ),
            To::Of(other) => {
                let other = self.of_places(&format!("sequence = {}", self.place(other)));
                format!("(SELECT {column} FROM {table} WHERE {other})")
            }
        };
        format!("UPDATE {table} SET {column} = {value} WHERE {row}")
    }

    fn set_back(&self, table: &str) -> Vec<String> {
        let org = format!("org_id = '{}'", self.org.id);
        vec![
            format!("DELETE FROM {table} WHERE {org}"),
            match table {
                "audit_events" => format!("{} WHERE {org}", return_events()),
                _ => format!(
                    "INSERT OR REPLACE INTO {table} SELECT * FROM older.{table} WHERE {org}"
                ),
            },
        ]
    }
}
